#include <algorithm>

#include "kernels/memory/send.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kSendThreads = 256, kMostSendBlocks = 32;

struct Sendings {
  Sending all[kMostSendings];
  uint32_t count;
};

__global__ void __launch_bounds__(kSendThreads) Send(const __grid_constant__ Sendings sendings) {
  for (uint32_t s = 0; s < sendings.count; ++s) {
    auto* to = static_cast<unsigned long long*>(sendings.all[s].to);
    const auto* from = static_cast<const unsigned long long*>(sendings.all[s].from);
    uint64_t bytes = sendings.all[s].bytes;
    if (const uint32_t* count = sendings.all[s].count) bytes = min(bytes, *count * sendings.all[s].piece);
    for (uint64_t i = blockIdx.x * kSendThreads + threadIdx.x; i < bytes / 8; i += gridDim.x * kSendThreads)
      to[i] = __ldcv(from + i);
  }
}

}  // namespace

cudaError_t StartSend(std::initializer_list<Sending> sendings, cudaStream_t stream) {
  Sendings all = {};
  uint64_t bytes = 0;
  for (const Sending& s : sendings) {
    all.all[all.count++] = s;
    bytes += s.bytes;
  }
  const uint32_t blocks = static_cast<uint32_t>(std::clamp<uint64_t>(bytes / 8 / kSendThreads, 1, kMostSendBlocks));
  Send<<<blocks, kSendThreads, 0, stream>>>(all);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
