// Identifiers of one rank become those of another.

#include "kernels/ranks/rank_texts.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;

__global__ void Translate(uint64_t* values, uint64_t rows, const int64_t* ids, uint64_t count) {
  const uint64_t i = uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= rows) return;
  const uint64_t id = values[i];
  values[i] = id < count ? static_cast<uint64_t>(ids[id]) : 0;
}

}  // namespace

cudaError_t StartTranslate(uint64_t* values, uint64_t rows, const int64_t* ids, uint64_t count, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  Translate<<<static_cast<uint32_t>((rows + kBlock - 1) / kBlock), kBlock, 0, stream>>>(values, rows, ids, count);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
