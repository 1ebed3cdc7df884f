// The VM kernel with all opcodes.

#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kFull>(const __grid_constant__ Launch launch);

const void* FullVmKernel() { return reinterpret_cast<const void*>(&VmKernel<Variant::kFull>); }

}  // namespace tessera::kernels
