// Items on their way to parts, of which there are few: how many each part gets, and a place for each item. A block counts
// in shared memory, so each part's counter is added to once for 4,096 items. Private to kernels/ranks/.
//
// Start at: CountParts, DealToParts. REQUIRES: all threads of blocks of kPartsBlock threads call them.
#pragma once

#include <cstdint>

namespace tessera::kernels {

inline constexpr uint32_t kMostCounters = 1025;  ///< a part for each of 1,024 ranks, and one more
inline constexpr uint32_t kPartsBlock = 256;
inline constexpr uint32_t kItemsPerThread = 16, kItemsPerBlock = kPartsBlock * kItemsPerThread;
inline uint32_t PartsBlocks(uint64_t items) {
  return static_cast<uint32_t>((items + kItemsPerBlock - 1) / kItemsPerBlock);
}

/// Adds 1 to a counter in shared memory and returns what it was. Threads of a warp often belong to the same part; additions
/// to one address come one by one, so lanes that share a counter add together.
__device__ __forceinline__ uint32_t CountOne(uint32_t* counters, uint32_t part) {
  const uint32_t lanes = __match_any_sync(__activemask(), part);
  const uint32_t lane = threadIdx.x & 31;
  const int leader = __ffs(static_cast<int>(lanes)) - 1;
  uint32_t first = 0;
  if (static_cast<int>(lane) == leader) first = atomicAdd(&counters[part], static_cast<uint32_t>(__popc(lanes)));
  return __shfl_sync(lanes, first, leader) + static_cast<uint32_t>(__popc(lanes & ((1u << lane) - 1)));
}

/// Adds to counts[p] how many of the block's items, of [0, items), belong to part p = part_of(item).
template <class PartOf>
__device__ __forceinline__ void CountParts(uint32_t items, uint32_t parts, PartOf part_of, uint32_t* counts) {
  __shared__ uint32_t mine[kMostCounters];
  for (uint32_t p = threadIdx.x; p < parts; p += kPartsBlock) mine[p] = 0;
  __syncthreads();
  const uint32_t first = blockIdx.x * kItemsPerBlock;
  for (uint32_t i = first + threadIdx.x; i < items && i < first + kItemsPerBlock; i += kPartsBlock)
    CountOne(mine, part_of(i));
  __syncthreads();
  for (uint32_t p = threadIdx.x; p < parts; p += kPartsBlock) {
    if (mine[p] > 0) atomicAdd(&counts[p], mine[p]);
  }
}

/// put(item, place) for each of the block's items. `places`: where the next item of each part goes, changed on the way.
template <class PartOf, class Put>
__device__ __forceinline__ void DealToParts(uint32_t items, uint32_t parts, PartOf part_of, uint32_t* places, Put put) {
  __shared__ uint32_t mine[kMostCounters];
  for (uint32_t p = threadIdx.x; p < parts; p += kPartsBlock) mine[p] = 0;
  __syncthreads();
  const uint32_t first = blockIdx.x * kItemsPerBlock;
  uint32_t part[kItemsPerThread], place[kItemsPerThread];
#pragma unroll
  for (uint32_t k = 0; k < kItemsPerThread; ++k) {
    const uint32_t i = first + k * kPartsBlock + threadIdx.x;
    if (i >= items) continue;
    part[k] = part_of(i);
    place[k] = CountOne(mine, part[k]);
  }
  __syncthreads();
  for (uint32_t p = threadIdx.x; p < parts; p += kPartsBlock) {
    if (mine[p] > 0) mine[p] = atomicAdd(&places[p], mine[p]);
  }
  __syncthreads();
#pragma unroll
  for (uint32_t k = 0; k < kItemsPerThread; ++k) {
    const uint32_t i = first + k * kPartsBlock + threadIdx.x;
    if (i < items) put(i, mine[part[k]] + place[k]);
  }
}

}  // namespace tessera::kernels
