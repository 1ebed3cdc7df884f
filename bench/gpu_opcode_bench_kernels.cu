// The kernels of opcode_kernels.h as they are, and the choice between them: LeanVmKernel and FullVmKernel of this
// object are the ones that the linker finds first.

#include "bench/opcode_kernels.h"
#include "kernels/cuda/cuda_memory.h"
#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::bench {
const void* LeanVmKernelWithMoreOpcodes();
const void* FullVmKernelWithMoreOpcodes();
}  // namespace tessera::bench

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kLean>(const __grid_constant__ Launch launch);
template __global__ void VmKernel<Variant::kFull>(const __grid_constant__ Launch launch);

namespace {

bool use_more = false;

const void* KernelOf(bool full, bool more) {
  if (full)
    return more ? bench::FullVmKernelWithMoreOpcodes() : reinterpret_cast<const void*>(&VmKernel<Variant::kFull>);
  return more ? bench::LeanVmKernelWithMoreOpcodes() : reinterpret_cast<const void*>(&VmKernel<Variant::kLean>);
}

}  // namespace

const void* LeanVmKernel() { return KernelOf(false, use_more); }
const void* FullVmKernel() { return KernelOf(true, use_more); }

}  // namespace tessera::kernels

namespace tessera::bench {

Status UseMoreOpcodes(bool more) {
  kernels::use_more = more;
  // As Gpu::Open does for its kernels.
  int most = 0;
  CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  for (bool full : {false, true})
    CUDA_TRY(cudaFuncSetAttribute(kernels::KernelOf(full, more), cudaFuncAttributeMaxDynamicSharedMemorySize, most));
  return Status::Ok();
}

Result<KernelSize> SizeOfKernel(bool full, bool more) {
  cudaFuncAttributes attributes;
  CUDA_TRY(cudaFuncGetAttributes(&attributes, kernels::KernelOf(full, more)));
  return KernelSize{attributes.numRegs, attributes.localSizeBytes};
}

}  // namespace tessera::bench
