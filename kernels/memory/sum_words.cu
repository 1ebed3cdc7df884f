#include "kernels/memory/measure_transfer.h"

namespace tessera::kernels {
namespace {

/// Each thread reads 16 bytes at a time, next to its neighbours'.
__global__ void __launch_bounds__(kSumThreads) SumWords(const ulonglong2* pairs, uint64_t count, uint64_t* sums) {
  const uint32_t thread = blockIdx.x * kSumThreads + threadIdx.x;
  uint64_t sum = 0;
  for (uint64_t i = thread; i < count; i += gridDim.x * kSumThreads) {
    const ulonglong2 pair = pairs[i];
    sum += pair.x + pair.y;
  }
  sums[thread] += sum;
}

}  // namespace

cudaError_t StartSum(const uint64_t* words, uint64_t count, uint32_t blocks, uint64_t* sums, cudaStream_t stream) {
  SumWords<<<blocks, kSumThreads, 0, stream>>>(reinterpret_cast<const ulonglong2*>(words), count / 2, sums);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
