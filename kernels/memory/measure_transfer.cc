#include "kernels/memory/measure_transfer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "kernels/cuda/cuda_memory.h"

namespace tessera::kernels {
namespace {

constexpr int kRounds = 4;
constexpr uint32_t kBlocksEach = 4;  ///< of a multiprocessor

/// A stream beside that of the kernels, and an event to order the two.
class CopyStream {
 public:
  ~CopyStream() {
    if (event_ != nullptr) IgnoreError(cudaEventDestroy(event_));
    if (stream_ != nullptr) IgnoreError(cudaStreamDestroy(stream_));
  }
  Status Open() {
    CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CUDA_TRY(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    return Status::Ok();
  }
  /// `kernels` wait for what was copied so far. (An event that is recorded again does not change who waits already.)
  Status LetWait(cudaStream_t kernels) {
    CUDA_TRY(cudaEventRecord(event_, stream_));
    CUDA_TRY(cudaStreamWaitEvent(kernels, event_, 0));
    return Status::Ok();
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

}  // namespace

tessera::Result<double> MeasureTransfer(const TransferCase& way, GpuDevice* gpu) {
  const uint64_t bytes = way.bytes / 4096 * 4096, piece = std::max<uint64_t>(way.piece_bytes / 4096 * 4096, 4096);
  const uint32_t blocks = static_cast<uint32_t>(gpu->info.multiprocessors) * kBlocksEach;
  std::vector<uint64_t> pageable, sums(uint64_t{blocks} * kSumThreads);
  PinnedBuffer pinned;
  uint64_t* words = nullptr;
  if (way.transfer == Transfer::kPageable) {
    pageable.resize(bytes / 8);
    words = pageable.data();
  } else {
    TESSERA_TRY(pinned.Reserve(bytes));
    words = pinned.As<uint64_t>();
  }
  std::iota(words, words + bytes / 8, uint64_t{1});
  const uint64_t expected = bytes / 8 * (bytes / 8 + 1) / 2;
  DeviceBuffer column, device_sums;
  if (way.transfer != Transfer::kZeroCopy) TESSERA_TRY(column.Reserve(bytes));
  TESSERA_TRY(device_sums.Reserve(sums.size() * 8));
  CopyStream copies;
  TESSERA_TRY(copies.Open());
  const bool waits = way.transfer == Transfer::kSync;
  const bool scanned = way.scanned || way.transfer == Transfer::kZeroCopy;
  const auto run = [&]() -> Status {
    for (uint64_t at = 0; at < bytes; at += piece) {
      const uint64_t size = std::min(piece, bytes - at);
      const uint8_t* from = reinterpret_cast<const uint8_t*>(words) + at;
      if (way.transfer != Transfer::kZeroCopy) {
        uint8_t* const to = column.As<uint8_t>() + at;
        CUDA_TRY(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, copies.get()));
        if (waits) CUDA_TRY(cudaStreamSynchronize(copies.get()));
        from = to;
      }
      if (!scanned) continue;
      TESSERA_TRY(copies.LetWait(gpu->stream));
      CUDA_TRY(
          StartSum(reinterpret_cast<const uint64_t*>(from), size / 8, blocks, device_sums.As<uint64_t>(), gpu->stream));
      if (waits) CUDA_TRY(cudaStreamSynchronize(gpu->stream));
    }
    CUDA_TRY(cudaStreamSynchronize(copies.get()));
    CUDA_TRY(cudaStreamSynchronize(gpu->stream));
    return Status::Ok();
  };
  double least = 0;
  for (int round = 0; round < kRounds; ++round) {  // the first one touches pages and loads the kernel
    CUDA_TRY(cudaMemsetAsync(device_sums.As<void>(), 0, sums.size() * 8, gpu->stream));
    CUDA_TRY(cudaStreamSynchronize(gpu->stream));
    const Clock::time_point start = Clock::now();
    TESSERA_TRY(run());
    const double milliseconds = MillisecondsSince(start);
    if (round == 1 || (round > 1 && milliseconds < least)) least = milliseconds;
  }
  if (scanned) {
    CUDA_TRY(
        cudaMemcpyAsync(sums.data(), device_sums.As<void>(), sums.size() * 8, cudaMemcpyDeviceToHost, gpu->stream));
    CUDA_TRY(cudaStreamSynchronize(gpu->stream));
    if (std::accumulate(sums.begin(), sums.end(), uint64_t{0}) != expected) {
      return Status(ErrorCode::kInternal, "a kernel has read other values than were copied to it");
    }
  }
  return static_cast<double>(bytes) / (least / 1e3);
}

}  // namespace tessera::kernels
