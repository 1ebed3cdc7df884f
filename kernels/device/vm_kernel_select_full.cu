// The VM kernel for programs that begin with filters and probes of narrow codes, and do with the few rows that these leave
// what kSelect cannot do.

#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kSelectFull>(const __grid_constant__ Launch launch);

const void* SelectFullVmKernel() { return reinterpret_cast<const void*>(&VmKernel<Variant::kSelectFull>); }

}  // namespace tessera::kernels
