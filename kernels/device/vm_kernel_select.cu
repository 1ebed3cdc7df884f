// The VM kernel for programs that begin with filters and probes of narrow codes, which leave few rows for the rest.

#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {

template __global__ void VmKernel<Variant::kSelect>(const __grid_constant__ Launch launch);

const void* SelectVmKernel() { return reinterpret_cast<const void*>(&VmKernel<Variant::kSelect>); }

}  // namespace tessera::kernels
