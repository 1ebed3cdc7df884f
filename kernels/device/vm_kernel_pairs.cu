// The VM kernel for nested-loop joins: few opcodes.

#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kPairs>(const __grid_constant__ Launch launch);

const void* PairsVmKernel() { return reinterpret_cast<const void*>(&VmKernel<Variant::kPairs>); }

}  // namespace tessera::kernels
