// A group table on the host: groups numbered from 0 in the order of their first row, their keys, and one state per
// group and aggregate. Each worker fills its own; Merge joins them. Private to vm/.
#pragma once

#include <cstdint>
#include <vector>

#include "base/int128.h"
#include "vm/meaning.h"
#include "vm/program.h"
#include "vm/row_set.h"
#include "vm/string_pool.h"
#include "vm/vm.h"

namespace tessera::vm {

/// The states of one aggregate. Which vector is used follows from the opcode: sums of integers and all of class W are
/// wide.
struct AggregateStates {
  Opcode op = Opcode::CountRows;
  std::vector<int64_t> narrow;  ///< counts, MIN and MAX of class I, text identifiers, bits of doubles
  std::vector<int128_t> wide;
  std::vector<uint8_t> seen;  ///< a value that is not NULL came in; not used by counts
};

/// Two words are the usual number: a call of memcmp, which std::equal becomes, was a third of a query's time.
inline bool SameWords(const int64_t* a, const int64_t* b, int words) {
  for (int i = 0; i < words; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

class GroupTable {
 public:
  GroupTable(const Section& section, const StringPool* strings);

  /// Key words of a group: per key its value (two words if wide; 0 if NULL); the last word has a bit per NULL key.
  int words() const { return words_; }
  /// The group with these words, made if it is new.
  uint32_t FindOrMake(const int64_t* words, uint64_t hash);
  size_t groups() const { return groups_; }
  std::vector<AggregateStates>& aggregates() { return aggregates_; }

  /// Takes in the groups of another table of the same section. Errors: an exact sum that overflows.
  Status Merge(const GroupTable& other);
  /// Takes in groups that other tables of the same section, on other ranks or a GPU, gave as Rows(): a group may come
  /// several times.
  Status Merge(const RowSet& rows);
  /// Columns: keys, then aggregates. SUM, MIN and MAX that saw no value are NULL.
  RowSet Rows() const;

 private:
  uint32_t MakeGroup(const int64_t* words);
  /// Adds the states of others' group `from` to those of group g.
  Status MergeStates(uint32_t g, const std::vector<AggregateStates>& others, uint32_t from);
  void Grow();

  const Section& section_;
  const StringPool* strings_;
  int words_ = 0;
  size_t groups_ = 0;
  std::vector<int64_t> keys_;     // groups x words
  std::vector<uint64_t> hashes_;  // per group
  std::vector<uint32_t> table_;   // group + 1, 0 if free; a power of two, at most half full; small: a quarter
  std::vector<AggregateStates> aggregates_;
};

}  // namespace tessera::vm
