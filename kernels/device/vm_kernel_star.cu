// The VM kernel with the opcodes of tier Star: probes of join tables with one key, and queues.

#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kStar>(const __grid_constant__ Launch launch);

const void* StarVmKernel() { return reinterpret_cast<const void*>(&VmKernel<Variant::kStar>); }

}  // namespace tessera::kernels
