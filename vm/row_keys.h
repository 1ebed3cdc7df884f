// Keys of rows in the machine's form: whether they are equal, and their hash, where equal values have equal bits. Private
// to vm/.
//
// Start at: IsPlainKey, AreEqualKeys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vm/row_set.h"
#include "vm/vm.h"

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

}  // namespace tessera::vm
