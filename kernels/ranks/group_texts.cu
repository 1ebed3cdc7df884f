// Texts in the keys of groups: which there are, and how identifiers become numbers and numbers identifiers.

#include "kernels/ranks/group_texts.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;

/// f(key) for each key of this thread's group that is a text.
template <class F>
__device__ __forceinline__ void ForTexts(const GroupRecords& groups, const TextKeys& keys, F f) {
  const uint64_t g = uint64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (g >= groups.n) return;
  uint64_t* const record = groups.words + g * groups.record_words;
  for (uint32_t k = 0; k < keys.count; ++k) {
    if ((record[0] >> keys.bit[k] & 1) == 0) f(&record[keys.word[k]]);
  }
}

__global__ void MarkKeys(const GroupRecords groups, const __grid_constant__ TextKeys keys, uint64_t count,
                         uint32_t* bits) {
  ForTexts(groups, keys, [&](const uint64_t* key) {
    if (*key >= count) return;
    const uint32_t bit = 1u << (*key % 32);
    // (Many groups have a text that another one has, too.)
    if ((bits[*key / 32] & bit) == 0) atomicOr(&bits[*key / 32], bit);
  });
}

__global__ void TranslateKeys(const GroupRecords groups, const __grid_constant__ TextKeys keys, const uint32_t* map,
                              uint64_t count) {
  ForTexts(groups, keys, [&](uint64_t* key) { *key = *key < count ? map[*key] : 0; });
}

uint32_t Blocks(uint64_t groups) { return static_cast<uint32_t>((groups + kBlock - 1) / kBlock); }

}  // namespace

cudaError_t StartMarkKeys(const GroupRecords& groups, const TextKeys& keys, uint64_t count, uint32_t* bits,
                          cudaStream_t stream) {
  if (groups.n == 0) return cudaSuccess;
  MarkKeys<<<Blocks(groups.n), kBlock, 0, stream>>>(groups, keys, count, bits);
  return cudaGetLastError();
}

cudaError_t StartTranslateKeys(const GroupRecords& groups, const TextKeys& keys, const uint32_t* map, uint64_t count,
                               cudaStream_t stream) {
  if (groups.n == 0) return cudaSuccess;
  TranslateKeys<<<Blocks(groups.n), kBlock, 0, stream>>>(groups, keys, map, count);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
