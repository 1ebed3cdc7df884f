// A join table on the host: the rows that Build collected and an index over their keys. Private to vm/.
//
// One integer or text key whose values lie close together addresses its rows directly (slot: key - least key); other
// keys are hashed, with linear probing. Rows with the same key form a chain in the order of rows. REQUIRES: Finish
// before any probe; then it is read-only.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/row_set.h"
#include "vm/section_encoder.h"
#include "vm/vm.h"

namespace tessera::vm {

inline constexpr uint32_t kNoRow = 0xFFFFFFFFu;

class JoinIndex {
 public:
  /// Errors: kResource, more rows than an index can hold.
  static Status CheckRows(const RowSet& rows);
  /// Indexes `rows`, whose first `keys` columns are the keys (none NULL). Without keys there is nothing to index.
  /// Errors: as CheckRows.
  Status Finish(RowSet rows, int keys);

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
    return at < heads_.size() ? heads_[at] : kNoRow;
  }
  const uint32_t* direct_heads() const { return heads_.data(); }
  uint64_t direct_size() const { return heads_.size(); }
  int64_t direct_base() const { return range_.low; }
  /// One bit per key value, or nullptr if most values have a row. Probes of a sparse table test these bits first,
  /// because they are 32 times smaller than the heads and stay in cache (SSB q2.1 on two cores: 55 ms without, see
  /// bench/README.md).
  const uint64_t* present() const { return present_.empty() ? nullptr : present_.data(); }

  /// First row whose key words equal `words` (see KeyWords), or kNoRow. REQUIRES: !direct().
  uint32_t FirstHashed(const int64_t* words, uint64_t hash) const;
  /// The next row with the same key, or kNoRow.
  uint32_t After(uint32_t row) const { return row < next_.size() ? next_[row] : kNoRow; }
  /// Number of words in a key: a wide column gives two.
  int words() const { return static_cast<int>(word_columns_.size()); }

 private:
  RowSet rows_;
  std::vector<const int64_t*> word_columns_;
  std::vector<uint32_t> heads_;    // direct: by key - least key; hashed: slots, a power of two, at most half full
  std::vector<uint64_t> present_;  // direct and sparse: one bit by key - least key
  std::vector<uint32_t> next_;     // empty if every key is unique
  bool direct_ = false;
  KeyRange range_;
};

}  // namespace tessera::vm
