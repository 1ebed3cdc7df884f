// The one instantiation of the VM kernel, and how it is started.

#include "kernels/interpreter.cuh"
#include "kernels/vm_kernel.h"

namespace tessera::kernels {

cudaError_t SetUpVm(uint32_t shared_bytes) {
  return cudaFuncSetAttribute(VmKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
}

cudaError_t VmBlocksPerMultiprocessor(uint32_t shared_bytes, int* blocks) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, VmKernel, kThreads + 32, shared_bytes);
}

cudaError_t StartVm(const Launch& launch, uint32_t blocks, cudaStream_t stream) {
  VmKernel<<<blocks, kThreads + 32, launch.layout.bytes, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
