// Identifiers of texts: which there are, and how those of one rank become those of another.

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

__global__ void MarkTexts(const uint64_t* values, uint64_t rows, uint64_t count, uint32_t* bits) {
  const uint64_t i = uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i >= rows) return;
  const uint64_t id = values[i];
  if (id >= count) return;
  const uint32_t bit = 1u << (id % 32);
  // (Most rows have a text that another one has, too.)
  if ((bits[id / 32] & bit) == 0) atomicOr(&bits[id / 32], bit);
}

uint32_t Blocks(uint64_t rows) { return static_cast<uint32_t>((rows + kBlock - 1) / kBlock); }

}  // namespace

cudaError_t StartMark(const uint64_t* values, uint64_t rows, uint64_t count, uint32_t* bits, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  MarkTexts<<<Blocks(rows), kBlock, 0, stream>>>(values, rows, count, bits);
  return cudaGetLastError();
}

cudaError_t StartTranslate(uint64_t* values, uint64_t rows, const int64_t* ids, uint64_t count, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  Translate<<<Blocks(rows), kBlock, 0, stream>>>(values, rows, ids, count);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
