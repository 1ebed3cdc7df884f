// Group tables between launches of the VM kernel.

#include "kernels/group_table.cuh"
#include "kernels/vm_kernel.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;
uint32_t Blocks(uint32_t items) { return items == 0 ? 1 : items / kBlock + (items % kBlock != 0 ? 1 : 0); }

__global__ void Rehash(GroupTable table, uint32_t groups) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  if (g >= groups) return;
  const uint64_t* record = table.records + static_cast<uint64_t>(g) * table.record_words;
  KeyHash hash;  // as RowKey::Hash: the words, then the NULL bits
  for (uint32_t w = 1; w < table.record_words; ++w) hash.Add(record[w]);
  hash.Add(record[0]);
  const uint64_t h = hash.Finish();
  const unsigned long long slot = (h & 0xFFFFFFFF00000000u) | (g + 2);
  // The groups differ from each other, so the first free slot is theirs.
  for (uint64_t at = h & table.slot_mask; atomicCAS(AtomicWord(table.slots + at), 0ull, slot) != 0;)
    at = (at + 1) & table.slot_mask;
}

__global__ void Normalise(GroupTable table, uint32_t groups, const uint32_t* sums, uint32_t count,
                          uint32_t first_wide) {
  const uint32_t g = blockIdx.x * kBlock + threadIdx.x;
  if (g >= groups) return;
  uint64_t* states = table.states + static_cast<uint64_t>(g) * table.state_words;
  for (uint32_t k = 0; k < count; ++k) {
    uint64_t* s = states + sums[k];
    for (uint32_t part = 0; part + 1 < (k < first_wide ? 2u : 4u); ++part) {
      s[part + 1] += s[part] >> 32;
      s[part] &= 0xFFFFFFFFu;
    }
  }
}

}  // namespace

cudaError_t StartRehash(const GroupTable& table, uint32_t groups, cudaStream_t stream) {
  Rehash<<<Blocks(groups), kBlock, 0, stream>>>(table, groups);
  return cudaGetLastError();
}

cudaError_t StartNormalise(const GroupTable& table, uint32_t groups, const uint32_t* sums, uint32_t count,
                           uint32_t first_wide, cudaStream_t stream) {
  Normalise<<<Blocks(groups), kBlock, 0, stream>>>(table, groups, sums, count, first_wide);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
