#include "kernels/run/marked_rows.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/phase_clock.h"
#include "kernels/cuda/cuda_memory.h"
#include "tablet/catalog/live_tablet.h"

namespace tessera::kernels {
namespace {

constexpr uint64_t kBytesOfTablet = (uint64_t{1} << kRowNumberBits) / 8;
/// The bits may take this many times the bytes of the numbers: they are on the link for longer, and need no thread that
/// looks at each row.
constexpr uint64_t kMostBits = 4;
/// Tablets whose bits are on the way at a time: 8 MiB.
constexpr uint64_t kTabletsAtOnce = 64;

}  // namespace

tessera::Result<bool> MarkedRows::Mark(const vm::RowMarks& marks, const uint64_t* numbers, uint64_t rows) {
  if (memory_.bytes() == 0) {
    const uint64_t tablets = static_cast<uint64_t>(marks.end()) >> kRowNumberBits, bytes = tablets * kBytesOfTablet;
    if (bytes > kMostBits * rows * sizeof *numbers || !memory_.TryAllocate(&gpu_, bytes + tablets)) return false;
    CUDA_TRY(cudaMemsetAsync(memory_.As<void>(), 0, bytes + tablets, gpu_.stream));
    bits_ = {memory_.As<uint32_t>(), memory_.As<uint8_t>() + bytes, static_cast<uint64_t>(marks.end()), kRowNumberBits};
  }
  CUDA_TRY(StartMarkRows(numbers, rows, bits_, gpu_.stream));
  rows_ += rows;
  return true;
}

Status MarkedRows::HandOn(vm::RowMarks* marks) {
  std::vector<uint8_t> has(bits_.end >> kRowNumberBits);
  CUDA_TRY(cudaMemcpyAsync(has.data(), bits_.tablets, has.size(), cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  for (auto first = has.begin(); (first = std::find(first, has.end(), 1)) != has.end();) {
    const auto last = std::find(first, has.end(), 0);
    TESSERA_TRY(
        HandOnRun(static_cast<uint64_t>(first - has.begin()), static_cast<uint64_t>(last - has.begin()), marks));
    first = last;
  }
  return Status::Ok();
}

Status MarkedRows::HandOnRun(uint64_t first, uint64_t last, vm::RowMarks* marks) {
  TESSERA_TRY(gpu_.buffers.host_rows.Reserve(2 * kTabletsAtOnce * kBytesOfTablet));
  const auto host = [&](uint64_t tablet) {
    return gpu_.buffers.host_rows.As<uint8_t>() +
           (tablet - first) / kTabletsAtOnce % 2 * kTabletsAtOnce * kBytesOfTablet;
  };
  const auto count = [&](uint64_t tablet) { return std::min(kTabletsAtOnce, last - tablet); };
  const auto start = [&](uint64_t tablet) -> Status {
    CUDA_TRY(cudaMemcpyAsync(host(tablet), memory_.As<uint8_t>() + tablet * kBytesOfTablet,
                             count(tablet) * kBytesOfTablet, cudaMemcpyDeviceToHost, gpu_.stream));
    return Status::Ok();
  };
  TESSERA_TRY(start(first));
  for (uint64_t tablet = first; tablet < last; tablet += kTabletsAtOnce) {
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    if (tablet + kTabletsAtOnce < last) TESSERA_TRY(start(tablet + kTabletsAtOnce));
    const std::span<const uint64_t> words(reinterpret_cast<const uint64_t*>(host(tablet)),
                                          count(tablet) * kBytesOfTablet / sizeof(uint64_t));
    TESSERA_TRY(marks->TakeBits(static_cast<int64_t>(tablet << kRowNumberBits), words));
  }
  return Status::Ok();
}

}  // namespace tessera::kernels
