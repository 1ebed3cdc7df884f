// A join table on the host: the rows that Build collected and an index over their keys. Private to vm/.
//
// One integer or text key whose values lie close together addresses its rows directly (slot: key - least key); other
// keys are hashed, with linear probing. Rows with the same key form a chain in the order of rows. A set of bits says which
// keys are there, unless they lie too far apart; then a Bloom filter says which are not, if the table is large (B. H.
// Bloom, CACM 1970). Where nothing else matters, as in IN and EXISTS, no row is found.
// REQUIRES: Finish before any probe; then it is read-only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "base/uninitialized.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {

struct ProgramTraits;

inline constexpr uint32_t kNoRow = 0xFFFFFFFFu;

class JoinIndex {
 public:
  /// Errors: kResource, more rows than an index can hold.
  static Status CheckRows(const RowSet& rows);
  /// Indexes `rows`, whose first `keys` columns are the keys (none NULL), with the threads of `pool`, which may be
  /// nullptr. Without keys there is nothing to index. `only_keys`: it only matters whether a key is there. `selective`: as
  /// in JoinSpec. Errors: as CheckRows; out of memory.
  Status Finish(RowSet rows, int keys, bool only_keys, bool selective, ThreadPool* pool);
  /// Whether the program's sections only ask whether a key is in the join table: it has no columns but keys, and none
  /// goes over a key's rows.
  static bool OnlyKeysMatter(const Program& program, const ProgramTraits& traits, int join);

  /// What key_range() would be.
  static KeyRange RangeOf(const RowSet& rows, int keys);

  const RowSet& rows() const { return rows_; }
  /// Takes the rows away; nothing else may be asked then.
  RowSet Release() { return std::move(rows_); }
  KeyRange key_range() const { return range_; }

  bool direct() const { return direct_; }
  /// First row with the single key `key`, or kNoRow. REQUIRES: direct().
  uint32_t FirstDirect(int64_t key) const {
    const uint64_t at = static_cast<uint64_t>(key) - static_cast<uint64_t>(range_.low);
    if (at >= direct_size_) return kNoRow;
    if (has_rows()) return heads_[at];
    return (present_[at / 64] >> (at % 64) & 1) != 0 ? 0 : kNoRow;
  }
  /// Whether it has rows, not just bits. If not, any row stands for those of a key.
  bool has_rows() const { return !heads_.empty() || direct_size_ == 0; }
  /// nullptr if it has no rows.
  const uint32_t* direct_heads() const { return heads_.data(); }
  uint64_t direct_size() const { return direct_size_; }
  int64_t direct_base() const { return range_.low; }
  /// One bit per key value from key_range().low on, or nullptr: keys that lie too far apart, or most values have a row.
  /// Probes test these bits first, because they are 32 times smaller than the heads, and stay in cache (SSB q2.1 on two
  /// cores: 55 ms without).
  const uint64_t* present() const { return present_.empty() ? nullptr : present_.data(); }

  /// For the keys with `n` rows' words, one after the other, gives found(i, row) the first row with the key, or kNoRow.
  /// `hashes` are those of the words. Memory is asked for what is needed some keys later, because tables outgrow the
  /// caches. REQUIRES: !direct().
  template <class F>
  void FindHashed(const int64_t* words, const uint64_t* hashes, size_t n, F found) const {
    const size_t mask = heads_.size() - 1, width = word_columns_.size();
    for (size_t i = 0; i < std::min(n, 2 * kAhead); ++i) __builtin_prefetch(&heads_[hashes[i] & mask]);
    for (size_t i = 0; i < n; ++i) {
      if (i + 2 * kAhead < n) __builtin_prefetch(&heads_[hashes[i + 2 * kAhead] & mask]);
      if (i + kAhead < n) PrefetchKey(heads_[hashes[i + kAhead] & mask]);
      found(i, FirstHashed(words + i * width, hashes[i]));
    }
  }
  /// Whether there is a Bloom filter: a hash table outgrows the caches near a core, and the filter is a tenth of it.
  bool has_bloom() const { return !bloom_.empty(); }
  /// False: no row has a key with this hash of its words. REQUIRES: has_bloom().
  bool MayHave(uint64_t hash) const {
    const uint64_t bits = BloomBits(hash);
    return (bloom_[BloomWord(hash)] & bits) == bits;
  }
  /// The next row with the same key, or kNoRow.
  uint32_t After(uint32_t row) const { return row < next_.size() ? next_[row] : kNoRow; }
  /// Number of words in a key: a wide column gives two.
  int words() const { return static_cast<int>(word_columns_.size()); }

 private:
  class Filling;
  /// Keys that are looked up at a time, in each of the two steps: about as many as a core has reads under way.
  static constexpr size_t kAhead = 12;

  /// All bits of a key are in one word, so that a test is one access.
  static uint64_t BloomBits(uint64_t hash) {
    return uint64_t{1} << (hash >> 14 & 63) | uint64_t{1} << (hash >> 20 & 63) | uint64_t{1} << (hash >> 26 & 63);
  }
  size_t BloomWord(uint64_t hash) const { return hash >> 32 & (bloom_.size() - 1); }

  void PrefetchKey(uint32_t row) const {
    if (row == kNoRow) return;
    for (const int64_t* words : word_columns_) __builtin_prefetch(words + row);
  }
  uint32_t FirstHashed(const int64_t* words, uint64_t hash) const {
    for (size_t at = hash & (heads_.size() - 1); heads_[at] != kNoRow; at = (at + 1) & (heads_.size() - 1)) {
      bool same = true;
      for (size_t w = 0; w < word_columns_.size(); ++w) same &= word_columns_[w][heads_[at]] == words[w];
      if (same) return heads_[at];
    }
    return kNoRow;
  }

  RowSet rows_;
  std::vector<const int64_t*> word_columns_;
  UninitializedVector<uint32_t> heads_;  // direct: by key - least key; hashed: slots, a power of two, at most half full
  std::vector<uint64_t> present_;        // direct and sparse: one bit by key - least key
  std::vector<uint64_t> bloom_;          // hashed: a power of two
  std::vector<uint32_t> next_;           // empty if every key is unique
  bool direct_ = false;
  uint64_t direct_size_ = 0;  // direct: how many key values there are from the least to the greatest
  KeyRange range_;
};

}  // namespace tessera::vm
