// How fast memory of the host comes to the device, in pieces and each way of SET transfer: what streaming is measured
// against. Private to kernels/.
//
// Start at: MeasureTransfer.
#pragma once

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/memory/gpu_device.h"

namespace tessera::kernels {

/// See Gpu::MeasureTransfer. REQUIRES: `gpu` is open, and its mutex held.
tessera::Result<double> MeasureTransfer(const TransferCase& way, GpuDevice* gpu);

/// Adds all words to `sums`, one sum for each of blocks * kSumThreads threads. `words` may lie in pinned memory of the host.
inline constexpr uint32_t kSumThreads = 256;
cudaError_t StartSum(const uint64_t* words, uint64_t count, uint32_t blocks, uint64_t* sums, cudaStream_t stream);

}  // namespace tessera::kernels
