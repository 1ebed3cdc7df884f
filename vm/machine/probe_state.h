// What the machine knows of a join table between its instructions. Private to vm/machine/.
//
// Start at: ProbeState.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "vm/program/section_traits.h"
#include "vm/program/tile_rows.h"
#include "vm/sinks/join_index.h"

namespace tessera::vm {

/// Keys that were tested by a join table's Bloom filter, and how many of them may be there.
struct BloomUse {
  uint64_t tested = 0, passed = 0;
  /// Whether it leaves enough of them out, or that is not known yet.
  bool Helps() const { return tested < 16 * kTileRows || passed < tested / 4 * 3; }
};

/// A join table without keys. All rows of the tile are compared with the same row of it at a time, so they share one
/// cursor, and each of its columns is one value for the tile (see bench/HISTORY.md).
struct CrossedRows {
  uint32_t first = 0, end = 0;
  uint32_t at = kNoRow;
};

/// One per join table of the program; as it is here for those that the section does not probe.
struct ProbeState {
  std::vector<uint32_t> cursor;  ///< by row of the tile: the row of the join table; empty without keys
  CrossedRows crossed;           ///< without keys
  BloomUse bloom;
  bool outer = false;  ///< ProbeOuter probes it, so that a cursor may be kNoRow
};

/// How many rows are left after a join, and the time. Shared by workers.
struct JoinCounter {
  std::atomic<uint64_t> rows{0};
  std::atomic<uint64_t> cycles{0};  ///< since the join before it, or since the tile began; if wanted
};

/// Counts rows after joins, if it is asked to.
class JoinCounts {
 public:
  /// `instructions`: of the section.
  JoinCounts(const SectionTraits& traits, size_t instructions) : join_before_(instructions, -1) {
    for (const ProbeTrait& p : traits.probes) {
      if (p.counted != kNoInstruction) join_before_[p.counted] = p.join;
    }
  }
  /// `counters`: an array by number of the join table, or nullptr.
  void CountIn(JoinCounter* counters, bool with_cycles) {
    counters_ = counters;
    with_cycles_ = with_cycles;
  }
  void BeginTile() {
    if (with_cycles_) last_cycle_ = __builtin_ia32_rdtsc();
  }
  /// The instruction, a SkipIfNone, finds this many live rows.
  void Count(size_t instruction, int live) {
    if (counters_ == nullptr || join_before_[instruction] < 0) return;
    JoinCounter& counter = counters_[join_before_[instruction]];
    if (live > 0) counter.rows.fetch_add(static_cast<uint64_t>(live), std::memory_order_relaxed);
    if (with_cycles_) {
      const uint64_t now = __builtin_ia32_rdtsc();
      counter.cycles.fetch_add(now - std::exchange(last_cycle_, now), std::memory_order_relaxed);
    }
  }

 private:
  std::vector<int>
      join_before_;  ///< by instruction: the join whose rows are counted there (ProbeTrait::counted), or -1
  JoinCounter* counters_ = nullptr;
  bool with_cycles_ = false;
  uint64_t last_cycle_ = 0;
};

}  // namespace tessera::vm
