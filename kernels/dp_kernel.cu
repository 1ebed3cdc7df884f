// The VM kernel launched from the device: see dp_kernel.h. Compiled on its own, as the only file whose kernels launch
// others: device launches slow a kernel's start.

#include "kernels/dp_kernel.h"

#include <algorithm>

#include "kernels/product_search.cuh"
#include "kernels/vm_kernel.cuh"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBucketThreads = 128;

/// Blocks: the buckets of a generation. Launches the next one behind it, which finds out whether there is one.
__global__ void __launch_bounds__(kBucketThreads) Buckets(const __grid_constant__ BucketLaunch buckets);

/// f(tile, part) for the pairs of a bucket; the threads of the block take turns.
template <class F>
__device__ __forceinline__ void ForPairs(const BucketLaunch& b, uint32_t bucket, F f) {
  const uint32_t parts = b.search.inner.pieces();
  const uint32_t first = bucket * b.bucket_tiles, tiles = min(b.bucket_tiles, b.search.outer.pieces() - first);
  for (uint64_t i = threadIdx.x; i < uint64_t{tiles} * parts; i += kBucketThreads)
    f(first + static_cast<uint32_t>(i / parts), static_cast<uint32_t>(i % parts));
}

__device__ void LaunchGrid(const BucketLaunch& b, const ChildGrid& grid) {
  Launch launch = b.launch;
  launch.units = b.search.units + grid.first_unit;
  launch.tiles = grid.units;
  launch.cursors += uint64_t{grid.first_block} * kWarps;
  launch.partials += uint64_t{grid.first_block} * launch.aggregates;
  launch.scratch += grid.first_block * launch.scratch_bytes;
  if (b.variant == Variant::kDpPairs) {
    VmKernel<Variant::kDpPairs><<<grid.blocks, kThreads + 32, launch.layout.bytes, cudaStreamFireAndForget>>>(launch);
  } else {
    VmKernel<Variant::kDp><<<grid.blocks, kThreads + 32, launch.layout.bytes, cudaStreamFireAndForget>>>(launch);
  }
}

/// Behind a generation and all its grids.
__global__ void NextGeneration(const __grid_constant__ BucketLaunch buckets) {
  BucketProgress& p = *buckets.progress;
  if (__ldcg(&buckets.launch.control->stop) != 0) return;  // the host decides how it goes on
  p.first = p.first_waiting != kNowhere ? p.first_waiting : p.first + kGenerationBuckets;
  p.first_waiting = kNowhere;
  p.units = 0;
  if (p.first >= buckets.buckets) return;
  BucketLaunch next = buckets;
  next.again = false;
  Buckets<<<min(kGenerationBuckets, buckets.buckets - p.first), kBucketThreads, 0, cudaStreamTailLaunch>>>(next);
}

__global__ void __launch_bounds__(kBucketThreads) Buckets(const __grid_constant__ BucketLaunch buckets) {
  const uint32_t bucket = buckets.progress->first + blockIdx.x;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    NextGeneration<<<1, 1, 0, cudaStreamTailLaunch>>>(buckets);
  }
  __shared__ uint32_t count, at;
  __shared__ unsigned long long pairs;
  __shared__ ChildGrid grid;
  if (buckets.again) {
    if (threadIdx.x == 0 && buckets.states[bucket] == BucketState::kLaunched) LaunchGrid(buckets, buckets.grids[bucket]);
    return;
  }
  if (buckets.states[bucket] != BucketState::kWaiting) return;  // it had its turn in an earlier generation
  if (threadIdx.x == 0) {
    count = at = 0;
    pairs = 0;
  }
  __syncthreads();
  uint32_t mine = 0;
  unsigned long long my_pairs = 0;
  ForPairs(buckets, bucket, [&](uint32_t tile, uint32_t part) {
    uint32_t unit;
    unsigned long long n;
    if (!TryUnit(buckets.search, tile, part, &unit, &n)) return;
    ++mine;
    my_pairs += n;
  });
  if (mine != 0) {
    atomicAdd(&count, mine);
    atomicAdd(&pairs, my_pairs);
  }
  __syncthreads();
  BucketProgress& progress = *buckets.progress;
  if (threadIdx.x == 0 && count != 0) {
    grid.units = count;
    grid.first_unit = atomicAdd(&progress.units, count);
    if (uint64_t{grid.first_unit} + count > buckets.unit_room) {
      atomicMin(&progress.first_waiting, bucket);
      grid.units = 0;
    } else {
      uint32_t more = min((count - 1) / buckets.units_per_block, buckets.most_blocks - 1);
      if (more != 0 && atomicAdd(&progress.more_blocks, more) + more > buckets.spare_blocks) {
        atomicSub(&progress.more_blocks, more);
        more = 0;
      }
      grid.blocks = 1 + more;
      grid.first_block = atomicAdd(&progress.blocks, grid.blocks);
      atomicAdd(&buckets.search.totals->pairs, pairs);
      atomicAdd(&buckets.search.totals->count, count);
      atomicAdd(&buckets.search.totals->child_grids, 1u);
    }
  }
  __syncthreads();
  if (count == 0) {
    if (threadIdx.x == 0) buckets.states[bucket] = BucketState::kDone;
    return;
  }
  if (grid.units == 0) return;
  ForPairs(buckets, bucket, [&](uint32_t tile, uint32_t part) {
    uint32_t unit;
    unsigned long long n;
    if (TryUnit(buckets.search, tile, part, &unit, &n)) buckets.search.units[grid.first_unit + atomicAdd(&at, 1u)] = unit;
  });
  __threadfence();
  __syncthreads();
  if (threadIdx.x != 0) return;
  buckets.grids[bucket] = grid;
  buckets.states[bucket] = BucketState::kLaunched;
  LaunchGrid(buckets, grid);
}

}  // namespace

cudaError_t StartBuckets(const BucketLaunch& buckets, uint32_t first, cudaStream_t stream) {
  Buckets<<<std::min(kGenerationBuckets, buckets.buckets - first), kBucketThreads, 0, stream>>>(buckets);
  return cudaGetLastError();
}

const void* DpVmKernel(Variant variant) {
  return variant == Variant::kDpPairs ? reinterpret_cast<const void*>(&VmKernel<Variant::kDpPairs>)
                                      : reinterpret_cast<const void*>(&VmKernel<Variant::kDp>);
}

}  // namespace tessera::kernels
