// How the machine finds groups, and rows of join tables, by key. Private to vm/machine/.
//
// Start at: KeyBatch, GroupSearch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vm/program/tile_rows.h"
#include "vm/sinks/direct_groups.h"
#include "vm/sinks/group_table.h"

namespace tessera::vm {

/// Keys of a tile's rows that are looked up in a hash table together, and those rows. Nothing of it outlives an
/// instruction.
struct KeyBatch {
  /// For keys of this many words, one for each row.
  void MakeRoom(size_t words_of_key) { words.resize(std::max(words.size(), kTileRows * words_of_key)); }

  std::vector<int64_t> words;  ///< one key's after the other's
  uint64_t hashes[kTileRows];
  uint16_t rows[kTileRows];
};

/// Rows whose groups are looked for together: `keys` different from those before, in the first places of a KeyBatch, and
/// rows with the key of the row before, which GroupSearch::of_row has the number of.
struct BatchedRows {
  size_t keys = 0, repeats = 0;
  uint16_t repeated[kTileRows];
};

/// The groups of the tile's rows, and what is known of those of tiles before.
struct GroupSearch {
  /// A group that was found not long ago, by its keys. In a query with few groups, most rows find theirs here, without the
  /// hash table (20 M rows into 201 groups: 140 ms with them, 231 without, see bench/HISTORY.md).
  struct Recent {
    int64_t first = 0, second = 0;
    uint32_t number = 0;  ///< 1 + the group; 0: none
  };
  /// From this number of groups on, the group table has outgrown the caches, and recent groups do not help.
  static constexpr size_t kManyGroups = 1 << 15;
  static constexpr int kRecentBits = 10;

  /// Before the groups of a tile are looked for in `into`, by `keys` keys. `remembers`: recent groups are used.
  void Begin(const GroupTable& into, int keys, bool remembers) {
    if (table == &into && generation == into.generation()) return;
    if (remembers) recent.assign(size_t{1} << kRecentBits, {});
    // (A table that was put aside had too many groups that hardly come back.)
    if (table == &into) {
      direct.Close();
    } else {
      direct = DirectGroups(keys);
    }
    std::fill(of_row.begin(), of_row.end(), 0u);  // stale groups may be no more
    table = &into;
    generation = into.generation();
  }
  Recent& RecentOf(int64_t first, int64_t second) {
    const uint64_t mixed = (static_cast<uint64_t>(first) + static_cast<uint64_t>(second) * 31) * 0x9E3779B97F4A7C15u;
    return recent[mixed >> (64 - kRecentBits)];
  }

  std::vector<uint32_t> of_row;  ///< the number in the group table; empty if the section makes no groups
  std::vector<Recent> recent;
  DirectGroups direct;
  const GroupTable* table = nullptr;  ///< of which recent and direct ones are
  uint32_t generation = 0;            ///< GroupTable::generation
};

}  // namespace tessera::vm
