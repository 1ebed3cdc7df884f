// The VM kernel that does what the star kernel does up to where rows wait in a queue, and with the rows that come from it
// nearly all that the full kernel does.

#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kQueue>(const __grid_constant__ Launch launch);

const void* QueueVmKernel() { return reinterpret_cast<const void*>(&VmKernel<Variant::kQueue>); }

}  // namespace tessera::kernels
