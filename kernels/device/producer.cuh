// The producer warp: copies tiles into the ring, ahead of the interpreting warps.
//
// Start at: Producer::Run.
#pragma once

#include "kernels/device/group_table.cuh"
#include "kernels/device/ring.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

/// Tiles, or units of a grid, in the launch.
template <Variant kVariant>
__device__ __forceinline__ uint32_t TilesOf(const Launch& launch) {
  if constexpr (HasNestedLoops(kVariant)) {
    if (launch.grid.unit_count != nullptr) return __ldcg(launch.grid.unit_count);
  }
  return launch.input.tiles;
}

/// What a lane of the producer has looked up for a tile: the tile, and its own staged column.
struct FoundColumns {
  TileHeader header;
  UnitHeader unit;  ///< of a grid
  const uint8_t* codes;
  uint32_t width;
};

/// The producer. Memory answers after some 600 cycles and a tile should take 2,000, so it must not look up one thing
/// after the other for the next tile. Lane i finds the tablet of the i-th tile to come, for 32 tiles at once, and
/// columns are looked up one tile ahead.
template <Variant kVariant>
class Producer {
  static constexpr bool kNestedLoops = HasNestedLoops(kVariant);

 public:
  __device__ __forceinline__ Producer(const Launch& launch, uint8_t* shared)
      : launch_(launch), shared_(shared), lane_(threadIdx.x & 31) {}

  /// Run by one warp: tells the interpreters which tiles there are and copies the staged columns of each into the ring,
  /// as far ahead as the ring has stages.
  __device__ __forceinline__ void Run() {
    const Layout& layout = launch_.layout;
    TileHeader* headers = Headers();
    uint64_t* filled = reinterpret_cast<uint64_t*>(shared_ + layout.barriers);
    uint64_t* emptied = filled + layout.stages;
    // The warps may have been suspended in different tiles; the earliest one decides.
    const uint32_t cursor = lane_ < kWarps ? launch_.state.cursors[blockIdx.x * kWarps + lane_] : kNowhere;
    const uint32_t tiles = TilesOf<kVariant>(launch_);
    first_ = max(__reduce_min_sync(kAllLanes, cursor), FirstTileOf(blockIdx.x, gridDim.x, tiles));
    end_ = FirstTileOf(blockIdx.x + 1, gridDim.x, tiles);
    if (lane_ < launch_.input.staged_count) my_slot_ = launch_.input.staged[lane_];
    FoundColumns now = FindColumns(0);
    for (uint32_t count = 0, stage = 0, parity = 1;; ++count) {
      if constexpr (HasAllQueued(kVariant)) StopIfFull();
      const uint32_t stop = LoadRelaxed(&launch_.state.control->stop);
      const FoundColumns next = FindColumns(count + 1);
      BarrierWait(emptied + stage, parity);
      if (__any_sync(kAllLanes, stop != 0)) now.header.rows = 0;
      Fill(now, shared_ + layout.ring + stage * layout.stage_bytes, headers + stage, filled + stage);
      if (now.header.rows == 0) return;
      now = next;
      if (++stage == layout.stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

 private:
  /// Before rows that are queued have no room.
  __device__ __forceinline__ void StopIfFull() const {
    if (launch_.spare == 0) return;
    Control* const control = launch_.state.control;
    const bool groups = launch_.keys.of_groups != 0;
    const uint64_t used =
        groups ? LoadRelaxed(&control->groups) : LoadRelaxed(reinterpret_cast<const uint64_t*>(&control->rows));
    if (used + launch_.spare <= (groups ? launch_.groups.max_groups : launch_.output.capacity) || lane_ != 0) return;
    if (!groups) atomicMax(&control->rows_wanted, 2 * static_cast<unsigned long long>(launch_.spare));
    atomicOr(&control->reasons, groups ? kGrow : kOutputFull);
    atomicExch(&control->stop, 1u);
  }
  __device__ __forceinline__ TileHeader* Headers() const {
    return reinterpret_cast<TileHeader*>(shared_ + launch_.layout.headers);
  }
  /// The block's count-th tile, or run of units, from its cursor on. REQUIRES: called with 0, 1, 2 and so on.
  __device__ __forceinline__ FoundColumns FindColumns(uint32_t count) {
    uint32_t at = count % 32, units = 1;  // of lane `at`
    if constexpr (kNestedLoops) {
      if (starts_ == 0) FindRuns();
      at = static_cast<uint32_t>(__ffs(static_cast<int>(starts_))) - 1;
      starts_ &= starts_ - 1;
      units = (starts_ != 0 ? static_cast<uint32_t>(__ffs(static_cast<int>(starts_))) - 1 : found_) - at;
    } else if (at == 0) {
      FindTile(first_ + count + lane_, end_);
    }
    FoundColumns to;
    to.header.index = __shfl_sync(kAllLanes, my_tile_.index, at);
    to.header.tablet = __shfl_sync(kAllLanes, my_tile_.tablet, at);
    to.header.first = __shfl_sync(kAllLanes, my_tile_.first, at);
    to.header.rows = __shfl_sync(kAllLanes, my_tile_.rows, at);
    if constexpr (kNestedLoops) {
      const uint32_t unit = __shfl_sync(kAllLanes, my_unit_, at);
      to.unit = {(unit & ~kAllPairs) % launch_.grid.parts, units, unit / kAllPairs};
    }
    to.codes = nullptr;
    to.width = 0;
    if (lane_ < launch_.input.staged_count && to.header.rows != 0) {
      const SlotHead head = LoadHead(Records(to.header)[my_slot_.slot].head);
      to.codes = head.codes;
      to.width = head.width;
    }
    return to;
  }

  /// Grids: finds as many of the block's next tiles or units as there are lanes, one per lane, and where runs of
  /// neighbours start among them. Runs also end at multiples of 32, wherever the block began.
  __device__ __forceinline__ void FindRuns() {
    const uint32_t end = min(end_, (first_ | 31) + 1);
    FindTile(first_ + lane_, end);
    const uint32_t before = __shfl_up_sync(kAllLanes, my_unit_, 1);
    const bool goes_on = launch_.most_units > 1 && lane_ > 0 && my_unit_ == before + 1 &&
                         (my_unit_ & ~kAllPairs) % launch_.grid.parts != 0 && my_tile_.index % launch_.most_units != 0;
    starts_ = __ballot_sync(kAllLanes, my_tile_.rows != 0 && !goes_on) | 1;  // at the end: a header without rows
    found_ = end - first_;
    first_ = end;
  }

  /// Finds the lane's tile, or unit of a grid. It has no rows from `end` on.
  __device__ __forceinline__ void FindTile(uint32_t index, uint32_t end) {
    my_tile_ = {index, 0, 0, 0};
    if (index >= end) return;
    uint32_t tile = index;
    if constexpr (kNestedLoops) {
      if (launch_.grid.join != kNowhere) {
        my_unit_ = launch_.grid.units != nullptr ? __ldcg(launch_.grid.units + index) : index;
        tile = (my_unit_ & ~kAllPairs) / launch_.grid.parts;
      }
    }
    if constexpr (HasAll(kVariant)) {
      if (launch_.input.whole_tiles != 0) tile = index % launch_.input.whole_tiles;
    }
    // The last tablet that does not start after the tile.
    uint32_t low = 0, high = launch_.input.tablets;
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      if (__ldg(launch_.input.first_tile + middle) <= tile) {
        low = middle;
      } else {
        high = middle;
      }
    }
    my_tile_.tablet = low;
    my_tile_.first = (tile - __ldg(launch_.input.first_tile + low)) * kTileRows;
    my_tile_.rows = min(kTileRows, __ldg(launch_.input.tablet_rows + low) - my_tile_.first);
  }

  __device__ __forceinline__ const SlotRecord* Records(const TileHeader& tile) const {
    return reinterpret_cast<const SlotRecord*>(launch_.input.records +
                                               static_cast<uint64_t>(tile.tablet) * launch_.input.record_bytes);
  }
  static __device__ __forceinline__ uint32_t CopyBytes(const TileHeader& tile, uint32_t width) {
    return (tile.rows * width + 15) / 16 * 16;
  }

  /// Starts the copies of a tile into a free stage. A tile without rows says that there are no more.
  __device__ __forceinline__ void Fill(const FoundColumns& now, uint8_t* to, TileHeader* header,
                                       uint64_t* filled) const {
    const SlotRecord* records = Records(now.header);
    const uint32_t staged = now.header.rows != 0 ? launch_.input.staged_count : 0;
    uint32_t bytes = now.header.rows != 0 ? CopyBytes(now.header, now.width) : 0;
    for (uint32_t k = lane_ + 32; k < staged; k += 32)
      bytes += CopyBytes(now.header, records[launch_.input.staged[k].slot].head.width);
    if (lane_ == 0 && launch_.input.record_staged && now.header.rows != 0) bytes += launch_.input.record_bytes;
    bytes = __reduce_add_sync(kAllLanes, bytes);
    if (lane_ == 0) {
      *header = now.header;
      if constexpr (kNestedLoops) {
        if (launch_.grid.join != kNowhere)
          reinterpret_cast<UnitHeader*>(shared_ + launch_.layout.units)[header - Headers()] = now.unit;
      }
      if (bytes != 0) {
        BarrierExpect(filled, bytes);
      } else if (TESSERA_BULK_COPY) {
        BarrierArrive(filled);
      }
    }
    __syncwarp();
    if (now.header.rows != 0) {
#if TESSERA_BULK_COPY
      if (lane_ == 31 && launch_.input.record_staged) CopyBulk(to, records, launch_.input.record_bytes, filled);
      if (now.width != 0) {
        CopyBulk(to + my_slot_.offset, now.codes + static_cast<uint64_t>(now.header.first) * now.width,
                 CopyBytes(now.header, now.width), filled);
      }
      for (uint32_t k = lane_ + 32; k < staged; k += 32) {
        const SlotHead& s = records[launch_.input.staged[k].slot].head;
        if (s.width == 0) continue;
        CopyBulk(to + launch_.input.staged[k].offset, s.codes + static_cast<uint64_t>(now.header.first) * s.width,
                 CopyBytes(now.header, s.width), filled);
      }
#else
      if (launch_.input.record_staged)
        CopyByLanes(to, reinterpret_cast<const uint8_t*>(records), launch_.input.record_bytes, lane_);
      for (uint32_t k = 0; k < staged; ++k) {
        const SlotHead& s = records[launch_.input.staged[k].slot].head;
        CopyByLanes(to + launch_.input.staged[k].offset, s.codes + static_cast<uint64_t>(now.header.first) * s.width,
                    CopyBytes(now.header, s.width), lane_);
      }
#endif
    }
    ArriveAfterCopies(filled);
    if (HasQueues(kVariant) && now.header.rows != 0) Prefetch(now.header, records);
  }

  /// Rows of queues read columns where they lie. Those of which they will read most sectors need not come from far by then.
  __device__ __forceinline__ void Prefetch(const TileHeader& tile, const SlotRecord* records) const {
    if (lane_ >= launch_.input.prefetched_count) return;
    const SlotHead& s = records[launch_.input.prefetched[lane_]].head;
    if (s.width == 0 || s.width > kOfBits) return;
    PrefetchBulk(s.codes + static_cast<uint64_t>(tile.first) * s.width, CopyBytes(tile, s.width));
  }

  const Launch& launch_;
  uint8_t* shared_;
  const uint32_t lane_;
  uint32_t first_ = 0, end_ = 0;
  StagedSlot my_slot_ = {};
  TileHeader my_tile_ = {};
  uint32_t my_unit_ = 0;
  uint32_t starts_ = 0, found_ = 0;  ///< grids: lanes where the next runs start; lanes with units
};

}  // namespace tessera::kernels
