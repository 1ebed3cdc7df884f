#include <algorithm>

#include "kernels/memory/small_copies.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kCopyThreads = 256, kMostSendBlocks = 32;

struct SmallCopies {
  SmallCopy all[kMostSmallCopies];
  uint32_t count;
};

__global__ void __launch_bounds__(kCopyThreads) CopySmall(const __grid_constant__ SmallCopies copies) {
  for (uint32_t s = 0; s < copies.count; ++s) {
    auto* to = static_cast<unsigned long long*>(copies.all[s].to);
    const auto* from = static_cast<const unsigned long long*>(copies.all[s].from);
    uint64_t bytes = copies.all[s].bytes;
    if (const uint32_t* count = copies.all[s].count) bytes = min(bytes, *count * copies.all[s].piece);
    for (uint64_t i = blockIdx.x * kCopyThreads + threadIdx.x; i < bytes / 8; i += gridDim.x * kCopyThreads)
      to[i] = __ldcv(from + i);
  }
}

}  // namespace

cudaError_t StartSmallCopies(std::initializer_list<SmallCopy> copies, cudaStream_t stream) {
  SmallCopies all = {};
  uint64_t bytes = 0;
  for (const SmallCopy& s : copies) {
    all.all[all.count++] = s;
    bytes += s.bytes;
  }
  const uint32_t blocks = static_cast<uint32_t>(std::clamp<uint64_t>(bytes / 8 / kCopyThreads, 1, kMostSendBlocks));
  CopySmall<<<blocks, kCopyThreads, 0, stream>>>(all);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
