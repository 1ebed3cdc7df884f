// Nested-loop joins whose grids are launched from the device (dynamic parallelism, hence "dp"): what the host hands
// over. No device code: g++ compiles what includes this. Private to kernels/.
//
// The outer rows are cut into buckets of some tiles each, and the units that can hold a match are searched for bucket
// by bucket. A bucket that has units gets a child grid of the VM kernel, with blocks in proportion to its units: a
// bucket without matches costs no launch, one with many gets a larger grid. Buckets come in generations, so that the
// number of pending grids stays below the device's limit. A generation starts the next one when its own grids are done
// (tail launch). If a grid stopped (no room, or the host wants it to) the generations stop too. The host deals with the
// reason, lets the grids go on from where they were, and then the generations.
//
// Start at: StartBuckets.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/launch/launch.h"
#include "kernels/launch/unit_search.h"

namespace tessera::kernels {

/// The most buckets in a generation, which is the most grids that are pending at once. The device's limit is left as it
/// is, 2,048.
inline constexpr uint32_t kGenerationBuckets = 1024;

/// Bytes of a multiprocessor's shared memory that a block of the parent takes while child grids run: the system's share
/// and its own.
inline constexpr uint32_t kKeeperBytes = 1024 + 128;

/// A bucket's grid.
struct ChildGrid {
  uint32_t units;                ///< in the bucket's list; 0: there is no grid
  uint32_t first_block, blocks;  ///< its cursors, partial aggregates and registers in device memory are from there on
};

/// How far the generations are.
struct BucketProgress {
  uint32_t first;    ///< bucket of the generation
  uint32_t blocks;   ///< of all child grids so far
  uint32_t ready;    ///< buckets of the generation whose grids are launched
  uint32_t running;  ///< blocks of them that have not ended
  uint32_t error;    ///< cudaError_t of a grid that could not be launched
};

struct BucketLaunch {
  Launch launch;      ///< of the child grids; StartChildGrid fills in what differs between them
  UnitSearch search;  ///< its units: a list for each bucket of a generation
  uint32_t buckets = 0, bucket_tiles = 1;
  uint32_t generation = 1;     ///< buckets of one, fewer in the last one; up to kGenerationBuckets
  uint32_t bucket_units = 0;   ///< entries of a bucket's list
  uint32_t child_blocks = 1;   ///< of all grids, beyond one a bucket
  uint32_t* counts = nullptr;  ///< units found per bucket of the generation
  ChildGrid* grids = nullptr;  ///< per bucket of the generation
  BucketProgress* progress = nullptr;
  uint32_t multiprocessors = 0;
  Variant variant = Variant::kDp;  ///< of the child grids
  bool again = false;              ///< the grids of the generation, launched before, go on; no search
};
static_assert(sizeof(BucketLaunch) <= 4096, "kernel parameters");

/// To be called before the first launch: sets how much shared memory child grids may take.
cudaError_t PrepareBuckets(Variant variant, uint32_t shared_bytes);
/// Starts the generations from bucket `first` on, which is progress->first. REQUIRES: counts are 0, or `again`.
cudaError_t StartBuckets(const BucketLaunch& buckets, uint32_t first, cudaStream_t stream);
/// The instantiation of the VM kernel that child grids run, kDp or kDpPairs. Ask for it only when a query needs it:
/// loading a kernel that can launch grids takes time.
const void* DpVmKernel(Variant variant);

}  // namespace tessera::kernels
