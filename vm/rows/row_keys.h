// Keys of rows in the machine's form: whether they are equal, and their hash, where equal values have equal bits. Private
// to vm/.
//
// Start at: IsPlainKey, RowsByKey.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tablet/values/types.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {

/// Whether equal values of the type have equal bits: 0.0 and -0.0 have not, nor have intervals of one length.
inline bool IsPlainKey(const SqlType& type) {
  return type.storage() != StorageClass::kFloat && type.id != TypeId::kInterval;
}

inline bool IsNullAt(const RowColumn& c, size_t row) { return !c.null.empty() && c.null[row] != 0; }

inline uint64_t HashOfKeys(std::span<const RowColumn> keys, size_t row) {
  uint64_t hash = kHashSeed;
  for (const RowColumn& c : keys) {
    const bool null = IsNullAt(c, row);
    hash = HashWord(hash, null ? -1 : c.low[row]);
    if (!null && !c.high.empty()) hash = HashWord(hash, c.high[row]);
  }
  return hash;
}

/// NULLs are equal.
inline bool AreEqualKeys(std::span<const RowColumn> keys, size_t a, size_t b) {
  return std::all_of(keys.begin(), keys.end(), [&](const RowColumn& c) {
    if (IsNullAt(c, a) || IsNullAt(c, b)) return IsNullAt(c, a) && IsNullAt(c, b);
    return c.low[a] == c.low[b] && (c.high.empty() || c.high[a] == c.high[b]);
  });
}

/// A row for each key, the first one that was found.
class RowsByKey {
 public:
  /// `most`: keys that there may be. `keys` must outlive it.
  RowsByKey(std::span<const RowColumn> keys, size_t most) : keys_(keys), places_(std::bit_ceil(2 * most)) {}

  /// The number of the row's key, from 0 in the order in which they come.
  uint32_t Find(uint32_t row) {
    const size_t mask = places_.size() - 1;
    size_t at = HashOfKeys(keys_, row) & mask;
    for (; places_[at] != 0; at = (at + 1) & mask) {
      if (AreEqualKeys(keys_, rows_[places_[at] - 1], row)) return places_[at] - 1;
    }
    rows_.push_back(row);
    places_[at] = static_cast<uint32_t>(rows_.size());
    return places_[at] - 1;
  }
  /// By number. Each may become another one of its key.
  std::vector<uint32_t>& rows() { return rows_; }
  const std::vector<uint32_t>& rows() const { return rows_; }

 private:
  std::span<const RowColumn> keys_;
  std::vector<uint32_t> places_;  ///< 1 + the number of the key that is there; 0: none
  std::vector<uint32_t> rows_;
};

}  // namespace tessera::vm
