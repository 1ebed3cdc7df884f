// The VM kernel launched from the device: see dp_kernel.h. Compiled on its own, as the only file whose kernels launch
// others: device launches slow a kernel's start.

#include "kernels/dp_kernel.h"
#include "kernels/product_search.cuh"
#include "kernels/ptx.cuh"
#include "kernels/vm_kernel.cuh"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBucketThreads = 128;
/// How long the keepers stay behind the last launch: child grids start within some 40 us.
constexpr unsigned long long kKeptNanoseconds = 200'000;

/// Buckets of the generation that begins with `first`.
__host__ __device__ __forceinline__ uint32_t GenerationOf(const BucketLaunch& b, uint32_t first) {
  return b.buckets - first < kGenerationBuckets ? b.buckets - first : kGenerationBuckets;
}

/// Blocks: the buckets of a generation, then the keepers.
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
  p.ready = 0;
  if (p.first >= buckets.buckets) return;
  BucketLaunch next = buckets;
  next.again = false;
  Buckets<<<GenerationOf(buckets, p.first) + buckets.keepers, kBucketThreads, 0, cudaStreamTailLaunch>>>(next);
}

/// Looks for the units of a bucket and launches its grid.
__device__ __forceinline__ void LaunchBucket(const BucketLaunch& buckets, uint32_t bucket) {
  __shared__ uint32_t count, at;
  __shared__ unsigned long long pairs;
  __shared__ ChildGrid grid;
  if (buckets.again) {
    if (threadIdx.x == 0 && buckets.states[bucket] == BucketState::kLaunched)
      LaunchGrid(buckets, buckets.grids[bucket]);
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
      grid.blocks = min((count - 1) / buckets.units_per_block + 1, buckets.most_blocks);
      if (grid.blocks > buckets.own_blocks) {
        const uint32_t more = grid.blocks - buckets.own_blocks;
        if (atomicAdd(&progress.more_blocks, more) + more > buckets.spare_blocks) {
          atomicSub(&progress.more_blocks, more);
          grid.blocks = buckets.own_blocks;
        }
      }
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
    if (TryUnit(buckets.search, tile, part, &unit, &n))
      buckets.search.units[grid.first_unit + atomicAdd(&at, 1u)] = unit;
  });
  __threadfence();
  __syncthreads();
  if (threadIdx.x != 0) return;
  buckets.grids[bucket] = grid;
  buckets.states[bucket] = BucketState::kLaunched;
  LaunchGrid(buckets, grid);
}

/// A multiprocessor keeps its division into cache and shared memory as long as something runs there. An idle one takes
/// the division that the first block of a child grid brings, which has room for that one block only; where blocks of
/// this kernel still are, there is room for three. So some of them stay everywhere until the child grids have come. (On
/// an H100, 100,000 rows a side, sum over half of the pairs: 32 ms without, 1.6 blocks a multiprocessor; 18 ms with.)
__device__ __forceinline__ void KeepDivision(const BucketLaunch& buckets, uint32_t generation) {
  if (threadIdx.x != 0) return;
  const volatile uint32_t* ready = &buckets.progress->ready;
  const volatile uint32_t* stop = &buckets.launch.control->stop;
  while (*ready < generation && *stop == 0) __nanosleep(500);
  for (const unsigned long long begin = Nanoseconds(); Nanoseconds() - begin < kKeptNanoseconds;) __nanosleep(1000);
}

__global__ void __launch_bounds__(kBucketThreads) Buckets(const __grid_constant__ BucketLaunch buckets) {
  const uint32_t first = buckets.progress->first, generation = GenerationOf(buckets, first);
  if (blockIdx.x >= generation) return KeepDivision(buckets, generation);
  if (blockIdx.x == 0 && threadIdx.x == 0) NextGeneration<<<1, 1, 0, cudaStreamTailLaunch>>>(buckets);
  LaunchBucket(buckets, first + blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&buckets.progress->ready, 1u);
}

}  // namespace

cudaError_t StartBuckets(const BucketLaunch& buckets, uint32_t first, cudaStream_t stream) {
  Buckets<<<GenerationOf(buckets, first) + buckets.keepers, kBucketThreads, 0, stream>>>(buckets);
  return cudaGetLastError();
}

cudaError_t PrepareBuckets(Variant variant, uint32_t shared_bytes) {
  cudaError_t error = cudaFuncSetAttribute(DpVmKernel(variant), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_bytes));
  // Child grids start where buckets still run: on multiprocessors whose memory is divided as those want it.
  for (const void* kernel :
       {DpVmKernel(variant), reinterpret_cast<const void*>(&Buckets), reinterpret_cast<const void*>(&NextGeneration)}) {
    if (error == cudaSuccess)
      error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  }
  return error;
}

const void* DpVmKernel(Variant variant) {
  return variant == Variant::kDpPairs ? reinterpret_cast<const void*>(&VmKernel<Variant::kDpPairs>)
                                      : reinterpret_cast<const void*>(&VmKernel<Variant::kDp>);
}

}  // namespace tessera::kernels
