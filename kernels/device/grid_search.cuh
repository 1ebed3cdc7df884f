// The search for the units of a grid that can hold a match. Shared by the kernel that lists all of them and the one
// that lists those of a bucket.
#pragma once

#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"
#include "kernels/launch/unit_search.h"
#include "tablet/values/ordered_float.h"

namespace tessera::kernels {

/// Threads per block of a search, and the most blocks that a search has.
inline constexpr uint32_t kSearchThreads = 128, kSearchBlocks = 4096;

/// Whether the unit of `tile` and range `part` has to be run. If so, `found` is what LaunchGrid::units holds for it, and
/// `pairs` the pairs of rows in it.
__device__ __forceinline__ bool TryUnit(const UnitSearch& search, uint32_t tile, uint32_t part, uint32_t* found,
                                        unsigned long long* pairs) {
  const vm::Coverage coverage =
      vm::TryRanges(search.steps, search.count, search.outer.ranges + uint64_t{tile} * search.outer.columns,
                    search.inner.ranges + uint64_t{part} * search.inner.columns);
  if (coverage == vm::Coverage::kNone) return false;
  *found = tile * search.inner.pieces() + part;
  if (search.may_skip && coverage == vm::Coverage::kAll) *found |= kAllPairs;
  const uint32_t outer = min(search.outer.piece_rows, search.outer.rows - tile * search.outer.piece_rows);
  const uint32_t inner = min(search.inner.piece_rows, search.inner.rows - part * search.inner.piece_rows);
  *pairs = static_cast<unsigned long long>(outer) * inner;
  return true;
}

/// Run by the blocks of one row of the CUDA grid, each with a multiple of 32 threads: looks at the units of `tiles`
/// tiles from `first_tile` on. Units that have to be run are counted in `count` and listed in `list`, in any order; if
/// `list` is nullptr they are only counted.
__device__ __forceinline__ void FindUnits(const UnitSearch& search, uint32_t first_tile, uint32_t tiles,
                                          uint32_t* count, uint32_t* list) {
  const uint32_t parts = search.inner.pieces(), lane = threadIdx.x & 31;
  const uint64_t all = uint64_t{tiles} * parts, step = uint64_t{gridDim.x} * blockDim.x;
  unsigned long long pairs = 0;
  // All lanes of a warp take part in each turn.
  for (uint64_t first = uint64_t{blockIdx.x} * blockDim.x + (threadIdx.x - lane); first < all; first += step) {
    const uint64_t unit = first + lane;
    uint32_t found = 0;
    bool keep = false;
    if (unit < all) {
      const uint32_t tile = first_tile + static_cast<uint32_t>(unit / parts);
      unsigned long long n = 0;
      keep = TryUnit(search, tile, static_cast<uint32_t>(unit % parts), &found, &n);
      if (keep) pairs += n;
    }
    const uint32_t keeping = __ballot_sync(kAllLanes, keep);
    if (keeping == 0) continue;
    uint32_t at = 0;
    if (lane == 0) at = atomicAdd(count, static_cast<uint32_t>(__popc(keeping)));
    at = __shfl_sync(kAllLanes, at, 0) + static_cast<uint32_t>(__popc(keeping & ((1u << lane) - 1)));
    if (keep && list != nullptr) list[at] = found;
  }
  for (int d = 16; d > 0; d >>= 1) pairs += __shfl_xor_sync(kAllLanes, pairs, d);
  if (lane == 0 && pairs != 0) atomicAdd(&search.totals->pairs, pairs);
}

}  // namespace tessera::kernels
