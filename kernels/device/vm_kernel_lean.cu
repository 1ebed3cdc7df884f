// The VM kernel with few opcodes.

#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kLean>(const __grid_constant__ Launch launch);

const void* LeanVmKernel() { return reinterpret_cast<const void*>(&VmKernel<Variant::kLean>); }

}  // namespace tessera::kernels
