// The VM kernel with all opcodes and aggregates whose states have several words.

#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kStates>(const __grid_constant__ Launch launch);

const void* StatesVmKernel() { return reinterpret_cast<const void*>(&VmKernel<Variant::kStates>); }

}  // namespace tessera::kernels
