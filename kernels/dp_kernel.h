// Products whose units are launched from the device (dynamic parallelism): what the host hands over. Private to
// kernels/.
//
// Buckets of the outer rows (some tiles each) look for the units that can hold a match, all buckets at once; each
// bucket that finds some launches a child grid of the VM kernel over them, with as many blocks as it has work. A bucket
// without matches costs no launch, one with many gets a larger grid. Buckets come in generations, so that never more
// grids are pending than the device's limit; one generation starts the next when its own grids are done (tail launch).
// If one of the grids stopped (no room, the host's wish) the generations stop, too: the host sees to the reason, lets
// the grids go on from where they were, and then the generations.
//
// Start at: StartBuckets.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/machine.h"
#include "kernels/product_kernels.h"

namespace tessera::kernels {

/// Buckets of a generation: at most so many grids are pending at once. The device's limit is left as it is, 2,048.
inline constexpr uint32_t kGenerationBuckets = 1024;

/// A bucket's grid.
struct ChildGrid {
  uint32_t first_unit, units;    ///< in UnitSearch::units
  uint32_t first_block, blocks;  ///< its cursors, partial aggregates and registers in device memory are from there on
};
enum class BucketState : uint8_t { kWaiting, kLaunched, kDone };

/// How far the generations are.
struct BucketProgress {
  uint32_t first;          ///< bucket of the generation
  uint32_t first_waiting;  ///< that found no room for its units; kNowhere: none
  uint32_t units;          ///< taken of the room for units in this generation
  uint32_t blocks;         ///< of all child grids so far
  uint32_t more_blocks;    ///< ... beyond BucketLaunch::own_blocks
  uint32_t ready;          ///< buckets of the generation that have launched what they have
};

/// What the device tells of its search.
struct Found {
  UnitTotals totals = {};
  BucketProgress progress = {};
};

struct BucketLaunch {
  Launch launch;  ///< of the child grids, but for what differs between them
  UnitSearch search;
  uint32_t buckets = 0, bucket_tiles = 1;
  uint32_t unit_room = 0;        ///< entries of search.units
  uint32_t units_per_block = 1;  ///< a block of a child grid takes about so many
  uint32_t most_blocks = 1;      ///< of a child grid
  uint32_t own_blocks = 1;       ///< ... that it gets in any case, if it has work for them
  uint32_t spare_blocks = 0;     ///< over all grids, beyond these: for the buckets with most work
  ChildGrid* grids = nullptr;    ///< per bucket
  BucketState* states = nullptr;
  BucketProgress* progress = nullptr;
  uint32_t keepers = 0;            ///< blocks that keep multiprocessors as child grids want them, see KeepDivision
  Variant variant = Variant::kDp;  ///< of the child grids
  bool again = false;  ///< lets the grids of the generation go on that were launched before; looks for nothing
};
static_assert(sizeof(BucketLaunch) <= 4096, "kernel parameters");

/// Before the first launch: how much shared memory child grids may take.
cudaError_t PrepareBuckets(Variant variant, uint32_t shared_bytes);
/// Starts the generations from bucket `first` on, which is progress->first.
cudaError_t StartBuckets(const BucketLaunch& buckets, uint32_t first, cudaStream_t stream);
/// The instantiation of the VM kernel that child grids run, kDp or kDpPairs. It is not asked for before a query needs
/// it: loading what can launch grids takes time.
const void* DpVmKernel(Variant variant);

}  // namespace tessera::kernels
