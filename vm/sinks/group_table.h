// A group table on the host: groups numbered from 0 in the order of their first row, their keys, and one state per
// group and aggregate. Each worker fills its own; Merge joins them. Private to vm/.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "vm/meaning/meaning.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// The states of one aggregate, by group. Which vector is used follows from the State of its meaning.
struct AggregateStates {
  Opcode op = Opcode::CountRows;
  std::vector<int64_t> narrow;  ///< one word: counts, integers, text identifiers, bits of doubles
  std::vector<int128_t> wide;   ///< sums of integers, and all of class W
  std::vector<uint64_t> words;  ///< structs: kStateWords words a group
  std::vector<uint8_t> seen;    ///< a value that is not NULL came in; not used by counts

  template <class State>
  State Get(size_t g) const {
    if constexpr (std::is_same_v<State, int128_t>) {
      return wide[g];
    } else if constexpr (kStateWords<State> == 1) {
      return std::bit_cast<State>(narrow[g]);
    } else {
      return FromWords<State>(words.data() + g * kStateWords<State>);
    }
  }
  template <class State>
  void Set(size_t g, const State& state) {
    if constexpr (std::is_same_v<State, int128_t>) {
      wide[g] = state;
    } else if constexpr (kStateWords<State> == 1) {
      narrow[g] = std::bit_cast<int64_t>(state);
    } else {
      ToWords(state, words.data() + g * kStateWords<State>);
    }
  }
  /// The states of `groups` groups; `first` is that of new ones.
  template <class State>
  void Resize(size_t groups, const State& first) {
    if constexpr (std::is_same_v<State, int128_t>) {
      wide.resize(groups, first);
    } else if constexpr (kStateWords<State> == 1) {
      narrow.resize(groups, std::bit_cast<int64_t>(first));
    } else {
      constexpr size_t kWords = kStateWords<State>;
      const size_t before = words.size() / kWords;
      words.resize(groups * kWords);
      for (size_t g = before; g < groups; ++g) ToWords(first, words.data() + g * kWords);
    }
  }
};

/// Two words are the usual number: a call of memcmp, which std::equal becomes, was a third of a query's time.
inline bool SameWords(const int64_t* a, const int64_t* b, int words) {
  for (int i = 0; i < words; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

/// Groups by number.
struct GroupArrays {
  std::vector<int64_t> keys;     ///< groups x words
  std::vector<uint64_t> hashes;  ///< of tables with keys
  std::vector<AggregateStates> aggregates;
};

class GroupTable {
 public:
  GroupTable(const Section& section, const StringPool* strings);

  /// Key words of a group: per key its value (two words if wide; 0 if NULL); then words with a bit per NULL key, one for
  /// each 64 keys.
  int words() const { return words_; }
  /// How many of them are values.
  int value_words() const { return value_words_; }
  /// The group with these words, made if it is new. Its states are there after MakeStates.
  uint32_t FindOrMake(const int64_t* words, uint64_t hash);
  /// The same for `n` groups' words, one after the other: group(i, g) gets each. Where the table has outgrown the
  /// caches this is several times as fast, because memory is asked for what is needed some groups later.
  template <class F>
  void FindOrMakeMany(const int64_t* words, const uint64_t* hashes, size_t n, F group) {
    sought_ += n;
    for (size_t i = 0; i < std::min(n, 2 * kAhead); ++i) PrefetchEntry(hashes[i]);
    for (size_t i = 0; i < n; ++i) {
      if (i + 2 * kAhead < n) PrefetchEntry(hashes[i + 2 * kAhead]);
      if (i + kAhead < n) PrefetchKeys(hashes[i + kAhead]);
      group(i, FindOrMake(words + i * static_cast<size_t>(words_), hashes[i]));
    }
  }
  /// Gives all groups their states. REQUIRES: before states are read or changed.
  void MakeStates();
  size_t groups() const { return groups_; }
  /// How many rows looked for their groups by FindOrMakeMany, or found them without it.
  uint64_t sought() const { return sought_; }
  void NoteFound(uint64_t rows) { sought_ += rows; }
  std::vector<AggregateStates>& aggregates() { return arrays_.aggregates; }
  const GroupArrays& arrays() const { return arrays_; }
  /// No groups, and memory for `room` of them. REQUIRES: there are keys.
  void Clear(size_t room);
  /// Memory for that number of groups, which then come without copies of those before. REQUIRES: there are keys, and no groups.
  void MakeRoom(size_t groups);
  /// Counts the calls of Clear: groups have other numbers then.
  uint32_t generation() const { return generation_; }

  /// Takes in the groups of another table of the same section. Errors: an exact sum that overflows.
  Status Merge(const GroupTable& other);
  /// The same for groups [begin, end) of a table of the same section.
  Status Merge(const GroupArrays& from, size_t begin, size_t end);
  /// Takes in groups that other tables of the same section, on other ranks or a GPU, gave as Rows(): a group may come
  /// several times.
  Status Merge(const RowSet& rows);
  /// Finds the groups of rows of keys alone. Returns 1 for each row that made a new one.
  std::vector<uint8_t> AddKeys(const RowSet& rows);
  /// Columns: keys, then aggregates (AggregateColumns). An aggregate that saw no value is NULL, but for counts.
  RowSet Rows() const;

 private:
  /// Look-ups that are under way at a time in FindOrMakeMany, in each of its two steps: about as many as a core has.
  static constexpr size_t kAhead = 12;
  void PrefetchEntry(uint64_t hash) const {
    if (!table_.empty()) __builtin_prefetch(table_.data() + (hash & (table_.size() - 1)));
  }
  void PrefetchKeys(uint64_t hash) const {
    if (table_.empty()) return;
    const uint64_t group = table_[hash & (table_.size() - 1)] & UINT32_MAX;
    if (group != 0) __builtin_prefetch(arrays_.keys.data() + (group - 1) * static_cast<uint64_t>(words_));
  }
  /// Memory for that number of groups at once: pages that are not written cost nothing, copies of all groups do.
  void Reserve(size_t groups);
  /// The key words of rows [begin, begin + n), whose first columns are the keys, one after the other, and their hashes.
  void KeysOf(const RowSet& rows, size_t begin, size_t n, int64_t* words, uint64_t* hashes) const;
  /// Adds others' states [begin, begin + n) to those of groups[0 .. n).
  Status MergeStates(const std::vector<AggregateStates>& others, size_t begin, size_t n, const uint32_t* groups);
  void Grow();

  const Section& section_;
  const StringPool* strings_;
  int words_ = 0, value_words_ = 0;
  size_t groups_ = 0;
  GroupArrays arrays_;  // (states of as many groups as MakeStates has seen)
  /// Upper half of the hash, then group + 1; 0 if free. A power of two, at most half full; small: a quarter.
  std::vector<uint64_t> table_;
  uint64_t sought_ = 0;
  uint32_t generation_ = 0;
};

}  // namespace tessera::vm
