// The launch interface: what the host hands to the VM kernel. The lowered program, tablets, join tables, sinks, and
// where each is in shared memory. Private to kernels/. Plain data, compiled by g++ and nvcc; pointers are device
// pointers.
//
// Start at: Launch.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/launch/instruction.h"
#include "kernels/launch/join_record.h"
#include "kernels/launch/op.h"
#include "kernels/launch/sinks.h"
#include "kernels/launch/tablet_record.h"
#include "kernels/launch/tile.h"

namespace tessera::kernels {

/// Byte offsets in dynamic shared memory.
struct Layout {
  uint32_t code = kNowhere;           ///< copy of the instructions; kNowhere: read from device memory
  uint32_t joins = 0;                 ///< JoinRecord[joins]
  uint32_t headers = 0;               ///< TileHeader[stages]
  uint32_t units = kNowhere;          ///< UnitHeader[stages], if the launch is a grid
  uint32_t barriers = 0;              ///< full[stages], empty[stages]
  uint32_t warps = 0;                 ///< WarpState[warps]
  uint32_t marks = kNowhere;          ///< Mark[warps][marks]
  uint32_t warp_states = 0;           ///< Partial[warps][block_partials]
  uint32_t thread_states = kNowhere;  ///< ThreadState[aggregates][threads]
  uint32_t thread_counts = 0;         ///< uint32_t[aggregates][threads], if there are thread_states
  uint32_t masks = 0;                 ///< uint32_t[masks][threads]
  uint32_t queues = kNowhere;         ///< uint32_t[warps][queues.entries]: rows of the tablet, see RunQueues
  uint32_t row_places = kTileRows;  ///< rows that the next two and registers have places for; fewer if rows are queued
  uint32_t wide = 0;                ///< accumulator W: 16 bytes [row_places]
  uint32_t ordinals = 0;            ///< uint32_t[row_places]: the group of each row
  uint32_t private_slots =
      0;  ///< uint32_t[2 * private_groups]; direct: uint8_t[private_groups], 1 for groups that have a row
  uint32_t private_records = 0;                 ///< uint64_t[private_groups][record_words]; direct: none
  uint32_t private_seen = 0;                    ///< uint8_t[aggregates][private_groups]
  uint32_t private_begin = 0, private_end = 0;  ///< all of the above, cleared at the start
  uint32_t ring = 0;
  uint32_t stage_bytes = 0;
  uint32_t stages = 0;
  uint32_t bytes = 0;
};

/// Block b takes the tiles from here to where b + 1 begins.
TESSERA_HD uint32_t FirstTileOf(uint32_t block, uint32_t blocks, uint32_t tiles) {
  return static_cast<uint32_t>(uint64_t{tiles} * block / blocks);
}

/// The instructions, and what they read of a tablet.
struct LaunchCode {
  const DeviceInstruction* instructions = nullptr;
  uint32_t length = 0;
  uint32_t slots = 0;  ///< SlotRecords, PredicateRecords, then ProbeRecords make a tablet's record
};

/// The tablets, and how blocks go over their tiles.
struct LaunchInput {
  const uint8_t* records = nullptr;  ///< per tablet
  uint32_t record_bytes = 0;
  bool record_staged = false;  ///< the record travels at the head of each stage
  bool two_passes = false;     ///< sinks are fed more than once a tile: a first pass reserves, a second applies
  uint8_t part_bits = 0;       ///< 0, 2 or 4: a part of a tile has every 1 << part_bits-th row of a thread
  uint32_t tablets = 0;
  /// Not 0: how many tiles there are, where `tiles` counts parts of them: the first part of each, then the second ones and
  /// so on, so that different blocks take the parts of a tile. See RowsOfPart, JoinRecord::match_bits.
  uint32_t whole_tiles = 0;
  const uint32_t* first_tile = nullptr;  ///< per tablet
  const uint32_t* tablet_rows = nullptr;
  uint32_t tiles = 0;
  uint32_t staged_count = 0;
  const StagedSlot* staged = nullptr;
  uint32_t prefetched_count = 0;
  uint32_t prefetched[kMaxPrefetched] = {};  ///< slots that rows of queues read, brought to the L2 cache with a tile
};

/// The rows of a thread that belong to a part of a tile.
TESSERA_HD uint32_t RowsOfPart(uint32_t part, uint32_t part_bits) {
  const uint32_t first = part_bits == 0 ? 0xFFFFu : part_bits == 2 ? 0x1111u : 1u;
  return first << (part & ((1u << part_bits) - 1));
}

/// What blocks write in device memory while they run, beside what they make.
struct LaunchState {
  uint32_t* cursors = nullptr;  ///< per block and warp: the next tile that it has to apply
  Control* control = nullptr;
  uint8_t* scratch = nullptr;  ///< registers that shared memory has no room for
  uint64_t scratch_bytes = 0;  ///< per block
};

/// The aggregates, with keys or without; how each is computed is in Launch::folds.
struct LaunchAggregates {
  uint32_t count = 0;
  uint32_t block_partials = 0;  ///< without keys: those of all aggregates
  Partial* partials = nullptr;  ///< [block][block_partials], those of an aggregate from its fold's `state` on
};

/// The join tables, and the marks that measure what each of them costs.
struct LaunchJoins {
  uint32_t count = 0;
  uint32_t mark_count = 0;
  Mark* marks = nullptr;  ///< nullptr: nothing is measured
  const JoinRecord* records = nullptr;
};

/// A grid: LaunchInput::tiles counts units, each a tile and a range of the rows of join table `join`.
struct LaunchGrid {
  uint32_t join = kNowhere;  ///< kNowhere: the launch is no grid
  uint32_t part_rows = 0;    ///< of the join table, in a part
  uint32_t parts = 1;
  const uint32_t* units = nullptr;       ///< tile * parts + part, and kAllPairs; nullptr: all there are, in this order
  const uint32_t* unit_count = nullptr;  ///< how many; nullptr: LaunchInput::tiles
};

/// Queues: where in the program their rows go on, and the cursors that the rows take along, as offsets in shared
/// memory, by row of the tile or by entry.
struct LaunchQueues {
  uint32_t entries = 0;  ///< of a warp: kQueueRows a queue
  uint32_t resume[kQueues] = {};
  uint32_t carried[kQueues] = {};  ///< how many
  uint32_t carried_from[kMaxCarried] = {};
  uint32_t carried_to[kQueues][kMaxCarried] = {};
};

/// The keys of the sink, groups or a join table, and the register that each is in.
struct LaunchKeys {
  uint32_t of_build = 0;  ///< output columns at the front that are keys of a join table: no row has a NULL in them
  uint32_t of_groups = 0;
  uint32_t registers[kMaxGroupKeys + 1] = {};
};

/// Groups by number. Without private groups DeviceGroups::states and `touched` are arrays by that number, which
/// EnterDirectGroups adds to the table after the launch.
struct DirectGroups {
  bool active = false;         ///< the keys themselves give a group's number, below `groups`
  uint32_t groups = 0;         ///< size of the keys' joint domain
  uint8_t* touched = nullptr;  ///< 1: the group has a row
  /// Copies of the two arrays, one after the other. Blocks are spread over them, because additions to one address wait
  /// for each other.
  uint32_t copies = 1;
  DirectKey keys[kMaxDirectKeys] = {};
};

/// All that the VM kernel gets. Fields lie where they would lie without the parts. (The fields of the sink
/// are no part of their own: nvcc makes other loops over groups then, and longer ones.)
struct Launch {
  LaunchCode code;
  LaunchInput input;
  Layout layout;
  LaunchState state;
  LaunchAggregates aggregates;
  LaunchJoins joins;
  LaunchGrid grid;
  bool repeats = false;  ///< a row can reach the sink more than once
  LaunchQueues queues;
  LaunchKeys keys;
  /// Groups that a block aggregates in shared memory before it adds them to the table. Without direct.active a power of two
  /// (or 0): the groups with ordinals below it. With direct.active all groups there can be, or none.
  uint32_t private_groups = 0;
  DirectGroups direct;
  /// Not 0: no more tiles are begun once the sink has no room for this many groups, or rows, more: those of the rows
  /// that are under way or in queues.
  uint32_t spare = 0;
  DeviceGroups groups;
  const DeviceInstruction* folds = nullptr;  ///< per aggregate an instruction with its op, state and private_state
  Output output;
  unsigned long long enough = ~0ull;  ///< rows of output after which the launch may stop
  uint32_t* running = nullptr;        ///< dp: blocks that have not ended
  /// The most neighbours among the listed units that are run as one; a power of two up to 32. Where such a run ends
  /// depends on the list alone, so that a block that is resumed finds the same runs.
  uint32_t most_units = 1;
};
static_assert(sizeof(Launch) <= 4096, "kernel parameters");

}  // namespace tessera::kernels
