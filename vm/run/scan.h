// One section's work on this rank, cut into units, and its progress. Private to vm/.
//
// Start at: PrepareScan, then RunUnits of unit_runner.h. Prepared by the thread of the run, worked on by its workers.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/shared_loops.h"
#include "vm/encode/pair_ranges.h"
#include "vm/encode/read_ahead.h"
#include "vm/encode/section_encoder.h"
#include "vm/machine/tile_machine.h"
#include "vm/run/run_state.h"
#include "vm/sinks/first_of_keys.h"
#include "vm/sinks/group_partitions.h"
#include "vm/sinks/top_rows.h"

namespace tessera::vm {

/// Rows of the join table in a unit of a grid. With a tile they make a million pairs, which take some milliseconds.
inline constexpr uint32_t kRangeRows = 512;

/// A piece of a source: some rows of one tablet (or of the one intermediate result).
struct Block {
  uint64_t number;  ///< that of its first tile among all tiles of the source, on all ranks
  size_t tablet;
  uint32_t first, rows;
};

/// What a worker takes: a block, or, in a grid, a block and a range of the join table's rows.
struct Unit {
  uint64_t number;  ///< unlike that of any other unit of the section, on all ranks; in the order of the rows
  size_t block;     ///< index in ScanUnits::blocks
  uint32_t range_first, range_end;

  size_t range() const { return range_first / kRangeRows; }
  /// Each block's rows are counted once, by the unit with its first range.
  bool IsFirstOfBlock() const { return range_first == 0; }
};

/// This rank's units of a section. A grid has very many, so they are computed from a number and not stored.
struct ScanUnits {
  std::vector<Block> blocks;
  int grid = -1;           ///< the join table whose rows are cut into ranges, too; -1: none
  uint32_t grid_rows = 0;  ///< of that table
  uint64_t ranges = 1;
  uint64_t first = 0, step = 1;  ///< this rank's units among all blocks.size() * ranges, in the order of blocks

  size_t size() const {
    const uint64_t all = blocks.size() * ranges;
    return all <= first ? 0 : static_cast<size_t>((all - first - 1) / step + 1);
  }
  /// REQUIRES: k < size().
  Unit At(size_t k) const {
    const uint64_t at = first + k * step, range = at % ranges;
    const size_t block = at / ranges;
    const uint64_t row = range * kRangeRows;
    return {blocks[block].number * ranges + range, block, static_cast<uint32_t>(row),
            static_cast<uint32_t>(std::min<uint64_t>(row + kRangeRows, grid_rows))};
  }
  /// Whether this rank has a unit of the block.
  bool HasBlock(size_t block) const {
    const uint64_t begin = block * ranges, end = begin + ranges;
    if (begin <= first) return first < end;
    return first + (begin - first + step - 1) / step * step < end;
  }
  /// Pairs of rows that the unit compares; 0 if this is not a grid.
  uint64_t PairsOf(const Unit& unit) const {
    return grid < 0 ? 0 : uint64_t{blocks[unit.block].rows} * (unit.range_end - unit.range_first);
  }
};

/// Prunes units of a grid by the least and greatest values of its blocks and ranges.
struct GridPruning {
  RangeProgram program;                        ///< without steps nothing is pruned
  std::vector<std::vector<KnownRange>> outer;  ///< by block, then by column of the source
  std::vector<std::vector<KnownRange>> inner;  ///< by range, then by column of the join table

  /// How many pairs of the unit's rows can reach the sink.
  Coverage Reaching(const Unit& unit) const {
    const std::vector<RangeStep>& steps = program.steps;
    if (steps.empty()) return Coverage::kSome;
    return TryRanges(steps.data(), static_cast<int>(steps.size()), outer[unit.block].data(),
                     inner[unit.range()].data());
  }
};

/// A tablet's encoding, made once, by the first worker that needs it. Others that need it help (Scan::loops).
struct LazyTablet {
  std::atomic<bool> begun{false}, done{false};
  std::atomic<uint64_t> units_left{0};  ///< of this process, if this is no grid; after the last its chunks go
  Status status;
  TabletEncoding encoded;
};

/// What workers count while they run units.
struct ScanCounts {
  std::atomic<uint64_t> rows_in{0}, rows_out{0};
  std::atomic<uint64_t> pairs{0}, pruned_pairs{0};
  std::unique_ptr<JoinCounter[]> joined;      ///< by number of the join table
  std::atomic<uint64_t> cycles{0};            ///< of all tiles, if joins are timed
  std::atomic<uint64_t> decoded_bytes{0};     ///< of codes that tiles have unpacked
  std::atomic<uint64_t> read_nanoseconds{0};  ///< opening, checking and encoding tablets
  double milliseconds = 0;                    ///< time that units ran; set while none runs
};

struct Scan {
  int number = 0;                    ///< of the section
  const TableInfo* table = nullptr;  ///< that it scans; nullptr: the rows of an earlier section or of a join table
  ScanUnits units;
  GridPruning pruning;
  std::unique_ptr<SectionEncoder> encoder;  ///< of stored tables
  std::unique_ptr<ReadAhead> ahead;         ///< of stored tables, once units have begun to run
  std::vector<LazyTablet> tablets;
  std::vector<uint64_t> first_rows;     ///< of stored tables and series: the number of each tablet's first row
  uint64_t next_tile = 0;               ///< the number of the next tile, if the source comes in rounds
  int64_t series_end = 0;               ///< of a series: how many of its rows have been cut
  double done = 0, round = 1;           ///< parts of the source: in earlier rounds, in this one
  bool counted = false;                 ///< the source's rows have been, in an earlier round
  uint64_t place = 0;                   ///< what is added to rows' numbers, so that turns of a recursion differ
  SharedLoops loops;                    ///< over the texts of tablets that are being encoded
  std::unique_ptr<TopRows> top;         ///< of ORDER BY and LIMIT
  uint64_t enough_groups = UINT64_MAX;  ///< of any keys, after which no more are read; UINT64_MAX: all
  std::atomic<bool> has_groups{false};  ///< a worker has as many
  std::unique_ptr<FirstOfKeys> first_of_keys;
  std::vector<std::unique_ptr<TileMachine>> machines;  ///< one per worker, or nullptr
  std::vector<std::unique_ptr<WorkerGroups>> groups;   ///< kGroups: one per worker
  ScanCounts counts;
};

/// Cuts the source of a section into units and keeps those of this rank; of a series the first rows only, which come in
/// rounds, so that they take no memory. REQUIRES: all that the section reads and
/// probes is there. Errors: kResource, too many rows.
Status PrepareScan(RunState* state, int number, Scan* scan);

/// Cuts the rows that the section's source has now, in place of those of the round before. Errors: as PrepareScan.
Status RenewSource(RunState* state, Scan* scan);

/// Cuts the next rows of a series, in place of those of the round before. False: there are no more, or it is none.
bool CutNextOfSeries(RunState* state, Scan* scan);

/// Begins the source anew, for other rows of a join table that the section probes.
void RenewJoin(RunState* state, Scan* scan);

/// Copies the counts of a scan to the section's statistics, and adds what this process read to its own.
void AddScan(const Scan& scan, RunState* state, SectionStatistics* stats);

}  // namespace tessera::vm
