// The VM kernel launched from the device: see launch/dp_kernel.h. Compiled on its own, because device launches slow the
// start of every kernel that is compiled with them.

#include "kernels/device/grid_search.cuh"
#include "kernels/device/ptx.cuh"
#include "kernels/device/vm_kernel.cuh"
#include "kernels/launch/dp_kernel.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBucketThreads = 128;
/// How long KeepDivision waits for the next block to end, in case grids do not run side by side.
constexpr unsigned long long kPatience = 20'000'000;  // nanoseconds

/// Buckets of the generation that begins with `first`.
__host__ __device__ __forceinline__ uint32_t GenerationOf(const BucketLaunch& b, uint32_t first) {
  return b.buckets - first < b.generation ? b.buckets - first : b.generation;
}

/// Lists the units of a bucket. Grid: (blocks of a bucket, buckets of the generation).
__global__ void __launch_bounds__(kSearchThreads) SearchBuckets(const __grid_constant__ BucketLaunch buckets) {
  const uint32_t tile = (buckets.progress->first + blockIdx.y) * buckets.bucket_tiles;
  FindUnits(buckets.search, tile, min(buckets.bucket_tiles, buckets.search.outer.pieces() - tile),
            buckets.counts + blockIdx.y,
            buckets.search.units + static_cast<uint64_t>(blockIdx.y) * buckets.bucket_units);
}

/// Launches the grids of a generation. It has one block per bucket, then one per multiprocessor that keeps the division
/// of its memory.
__global__ void __launch_bounds__(kBucketThreads) LaunchBuckets(const __grid_constant__ BucketLaunch buckets);

__host__ __device__ dim3 SearchGrid(const BucketLaunch& b, uint32_t first) {
  const uint32_t buckets = GenerationOf(b, first), most = kSearchBlocks / buckets;
  const uint32_t turns = (b.bucket_units + kSearchThreads - 1) / kSearchThreads;
  return dim3(turns < most ? turns : most, buckets);
}
__host__ __device__ uint32_t LaunchBlocks(const BucketLaunch& b, uint32_t first) {
  return GenerationOf(b, first) + b.multiprocessors;
}

__device__ cudaError_t StartChildGrid(const BucketLaunch& b, uint32_t bucket, const ChildGrid& grid) {
  Launch launch = b.launch;
  launch.grid.units = b.search.units + static_cast<uint64_t>(bucket) * b.bucket_units;
  launch.input.tiles = grid.units;
  launch.state.cursors += uint64_t{grid.first_block} * kWarps;
  launch.aggregates.partials += uint64_t{grid.first_block} * launch.aggregates.block_partials;
  launch.state.scratch += grid.first_block * launch.state.scratch_bytes;
  launch.running = &b.progress->running;
  atomicAdd(launch.running, grid.blocks);
  if (b.variant == Variant::kDpPairs) {
    VmKernel<Variant::kDpPairs><<<grid.blocks, kThreads + 32, launch.layout.bytes, cudaStreamFireAndForget>>>(launch);
  } else {
    VmKernel<Variant::kDp><<<grid.blocks, kThreads + 32, launch.layout.bytes, cudaStreamFireAndForget>>>(launch);
  }
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) atomicSub(launch.running, grid.blocks);
  return error;
}

/// Runs after a generation and all its grids. One block.
__global__ void __launch_bounds__(kBucketThreads) NextGeneration(const __grid_constant__ BucketLaunch buckets) {
  BucketProgress& p = *buckets.progress;
  if (threadIdx.x == 0) p.ready = 0;
  if (__ldcg(&buckets.launch.state.control->stop) != 0) return;  // the host decides how it goes on
  for (uint32_t i = threadIdx.x; i < buckets.generation; i += kBucketThreads) buckets.counts[i] = 0;
  if (threadIdx.x != 0) return;
  p.first += GenerationOf(buckets, p.first);
  if (p.first >= buckets.buckets) return;
  BucketLaunch next = buckets;
  next.again = false;
  SearchBuckets<<<SearchGrid(next, p.first), kSearchThreads, 0, cudaStreamTailLaunch>>>(next);
  LaunchBuckets<<<LaunchBlocks(next, p.first), kBucketThreads, 0, cudaStreamTailLaunch>>>(next);
}

/// Units of all buckets of the generation. All threads of the block.
__device__ __forceinline__ unsigned long long UnitsFound(const BucketLaunch& b, uint32_t generation) {
  __shared__ unsigned long long found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  unsigned long long mine = 0;
  for (uint32_t i = threadIdx.x; i < generation; i += kBucketThreads) mine += b.counts[i];
  if (mine != 0) atomicAdd(&found, mine);
  __syncthreads();
  return found;
}

/// A multiprocessor keeps its division into cache and shared memory as long as something runs on it. An idle one takes
/// the division that the first block of a child grid asks for, which has room for that block only. Where a block of
/// this kernel is still running, there is room for three. So one block stays on each multiprocessor until the child
/// grids have ended. (On an H100, 100,000 rows a side, sum over half of the pairs: 32 ms without, 1.6 blocks a
/// multiprocessor; 18 ms with.)
__device__ __forceinline__ void KeepDivision(const BucketLaunch& buckets, uint32_t generation) {
  const volatile BucketProgress& progress = *buckets.progress;
  uint32_t running = 0;
  for (unsigned long long changed = Nanoseconds(); Nanoseconds() - changed < kPatience; __nanosleep(1000)) {
    if (progress.ready >= generation && progress.running == 0) return;
    if (progress.running == running) continue;
    running = progress.running;
    changed = Nanoseconds();
  }
}

__global__ void __launch_bounds__(kBucketThreads) LaunchBuckets(const __grid_constant__ BucketLaunch buckets) {
  BucketProgress& progress = *buckets.progress;
  const uint32_t generation = GenerationOf(buckets, progress.first), bucket = blockIdx.x;
  if (bucket >= generation) {
    if (threadIdx.x == 0) KeepDivision(buckets, generation);
    return;
  }
  const unsigned long long found = UnitsFound(buckets, generation);
  if (threadIdx.x != 0) return;
  if (bucket == 0) NextGeneration<<<1, kBucketThreads, 0, cudaStreamTailLaunch>>>(buckets);
  ChildGrid& grid = buckets.grids[bucket];
  if (!buckets.again) {
    // Blocks get equal numbers of units, whichever bucket these are in: the grids that start last must not have the
    // blocks that take longest.
    const uint64_t blocks = max(uint64_t{1}, uint64_t{buckets.child_blocks} * generation / buckets.buckets);
    const uint32_t share = max(1u, static_cast<uint32_t>((found + blocks - 1) / blocks));
    grid.units = buckets.counts[bucket];
    grid.blocks = (grid.units + share - 1) / share;
    grid.first_block = atomicAdd(&progress.blocks, grid.blocks);
    atomicAdd(&buckets.search.totals->count, grid.units);
    atomicAdd(&buckets.search.totals->child_grids, grid.units != 0 ? 1u : 0u);
  }
  if (grid.units != 0) {
    const cudaError_t error = StartChildGrid(buckets, bucket, grid);
    if (error != cudaSuccess) atomicCAS(&progress.error, 0u, static_cast<uint32_t>(error));
  }
  __threadfence();
  atomicAdd(&progress.ready, 1u);
}

}  // namespace

cudaError_t StartBuckets(const BucketLaunch& buckets, uint32_t first, cudaStream_t stream) {
  if (!buckets.again) SearchBuckets<<<SearchGrid(buckets, first), kSearchThreads, 0, stream>>>(buckets);
  LaunchBuckets<<<LaunchBlocks(buckets, first), kBucketThreads, 0, stream>>>(buckets);
  return cudaGetLastError();
}

cudaError_t PrepareBuckets(Variant variant, uint32_t shared_bytes) {
  cudaError_t error = cudaFuncSetAttribute(DpVmKernel(variant), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_bytes));
  // These kernels ask for the division of memory that child grids want, because child grids start on multiprocessors
  // where they still run.
  for (const void* kernel :
       {DpVmKernel(variant), reinterpret_cast<const void*>(&SearchBuckets),
        reinterpret_cast<const void*>(&LaunchBuckets), reinterpret_cast<const void*>(&NextGeneration)}) {
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
