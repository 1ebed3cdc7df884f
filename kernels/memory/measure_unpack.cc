#include "kernels/memory/measure_unpack.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/cuda_memory.h"
#include "kernels/unpack/unpack.h"

namespace tessera::kernels {
namespace {

/// Copies of the chunk that are unpacked one after the other.
constexpr uint64_t kMostInTurn = 128;
/// Of these, this many are unpacked together: as many bytes as the cache copies together.
constexpr uint64_t kPackedTogether = uint64_t{32} << 20;
constexpr int kRounds = 5;

}  // namespace

tessera::Result<double> MeasureUnpack(const Chunk& chunk, uint64_t bytes, GpuDevice* gpu, std::vector<uint8_t>* codes) {
  TESSERA_ASSIGN(const UnpackPlan plan, PlanUnpack(chunk));
  const uint64_t packed_bytes = AlignedForUnpack(chunk.packed_bytes), out_bytes = AlignedForUnpack(chunk.codes_bytes);
  const uint64_t copies = std::clamp<uint64_t>(bytes / (packed_bytes + out_bytes), 1, kMostInTurn);
  const uint64_t together = std::clamp<uint64_t>(kPackedTogether / packed_bytes, 1, copies),
                 scratch_bytes = plan.scratch_bytes;
  DeviceBuffer packed, out, unpack_scratch, told;
  TESSERA_TRY(packed.Reserve(copies * packed_bytes));
  TESSERA_TRY(out.Reserve(copies * out_bytes));
  TESSERA_TRY(unpack_scratch.Reserve(together * scratch_bytes));
  for (uint64_t i = 0; i < copies; ++i) {
    CUDA_TRY(cudaMemcpyAsync(packed.As<uint8_t>() + i * packed_bytes, chunk.packed_codes, chunk.packed_bytes,
                             cudaMemcpyHostToDevice, gpu->stream));
  }
  std::vector<UnpackBatch> batches;
  std::vector<UnpackStep> steps;
  std::vector<size_t> firsts;
  for (uint64_t i = 0; i < copies; ++i) {
    if (i % together == 0) batches.emplace_back();
    batches.back().Add(plan, packed.As<uint8_t>() + i * packed_bytes, out.As<uint8_t>() + i * out_bytes,
                       unpack_scratch.As<uint8_t>() + i % together * scratch_bytes, nullptr);
  }
  for (UnpackBatch& batch : batches) {
    const std::vector<UnpackStep>& own = batch.Finish();
    firsts.push_back(steps.size());
    steps.insert(steps.end(), own.begin(), own.end());
  }
  TESSERA_TRY(told.Reserve(steps.size() * sizeof(UnpackStep)));
  CUDA_TRY(cudaMemcpyAsync(told.As<void>(), steps.data(), steps.size() * sizeof(UnpackStep), cudaMemcpyHostToDevice,
                           gpu->stream));
  double least = 0;
  for (int round = 0; round <= kRounds; ++round) {  // the first one loads the kernels
    TESSERA_TRY(gpu->clock.Begin(gpu->stream));
    for (size_t i = 0; i < batches.size(); ++i) {
      CUDA_TRY(batches[i].Start(told.As<UnpackStep>() + firsts[i], gpu->stream));
    }
    TESSERA_TRY(gpu->clock.End(gpu->stream));
    TESSERA_ASSIGN(const double milliseconds, gpu->clock.WaitForMilliseconds());
    if (round == 1 || (round > 1 && milliseconds < least)) least = milliseconds;
  }
  codes->resize(uint64_t{chunk.rows} * chunk.width);
  CUDA_TRY(cudaMemcpyAsync(codes->data(), out.As<uint8_t>() + (copies - 1) * out_bytes, codes->size(),
                           cudaMemcpyDeviceToHost, gpu->stream));
  CUDA_TRY(cudaStreamSynchronize(gpu->stream));
  return least / static_cast<double>(copies);
}

}  // namespace tessera::kernels
