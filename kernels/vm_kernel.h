// How the host starts the kernels. Private to kernels/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/machine.h"

namespace tessera::kernels {

/// Allows the VM kernel `shared_bytes` of dynamic shared memory on the current device.
cudaError_t SetUpVm(uint32_t shared_bytes);
/// Blocks of the VM kernel that one multiprocessor of the current device holds.
cudaError_t VmBlocksPerMultiprocessor(uint32_t shared_bytes, int* blocks);
cudaError_t StartVm(const Launch& launch, uint32_t blocks, cudaStream_t stream);

/// Enters the first `groups` groups of a table, whose records are in place, into its cleared slots.
cudaError_t StartRehash(const GroupTable& table, uint32_t groups, cudaStream_t stream);

/// Carries what the low halves of integer sums have collected over to the high ones: once per 2^32 rows. `sums`: state words of SumI (two
/// each) and, from `first_wide` on, of SumW (four each).
cudaError_t StartNormalise(const GroupTable& table, uint32_t groups, const uint32_t* sums, uint32_t count, uint32_t first_wide,
                           cudaStream_t stream);

}  // namespace tessera::kernels
