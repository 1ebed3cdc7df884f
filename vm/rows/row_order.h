// Which of two rows comes first. Private to vm/.
//
// Start at: RowLess, OrderCode.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/int128.h"
#include "tablet/values/ordered_float.h"
#include "vm/meaning/meaning.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// The code of a value that is not NULL, an integer or a floating-point number: by an order, rows with lower codes come
/// first. Zeros of both signs have one.
inline uint64_t OrderCode(int64_t value, bool is_float, bool descending) {
  // Adding 0.0 turns -0.0 into 0.0.
  const uint64_t code =
      is_float ? OrderedFloat(std::bit_cast<double>(value) + 0.0) : static_cast<uint64_t>(value) ^ uint64_t { 1 } << 63;
  return descending ? ~code : code;
}
/// The value of a code.
inline int64_t ValueOfOrderCode(uint64_t code, bool is_float, bool descending) {
  if (descending) code = ~code;
  return is_float ? std::bit_cast<int64_t>(FromOrderedFloat(code)) : static_cast<int64_t>(code ^ uint64_t{1} << 63);
}

/// Compares two values of one column that are not NULL: < 0, 0, > 0.
inline int CompareValues(const RowColumn& c, size_t a, size_t b, const StringPool& strings) {
  switch (c.type.storage()) {
    case StorageClass::kInt:
      return c.low[a] < c.low[b] ? -1 : c.low[a] > c.low[b] ? 1 : 0;
    case StorageClass::kFloat: {
      const double x = std::bit_cast<double>(c.low[a]), y = std::bit_cast<double>(c.low[b]);
      return FloatLess(x, y) ? -1 : FloatLess(y, x) ? 1 : 0;
    }
    case StorageClass::kWide: {
      const int128_t x = Make128(c.high[a], c.low[a]), y = Make128(c.high[b], c.low[b]);
      return x < y ? -1 : x > y ? 1 : 0;
    }
    case StorageClass::kText:
      return c.low[a] == c.low[b] ? 0 : strings.Get(c.low[a]).compare(strings.Get(c.low[b]));
  }
  return 0;
}

/// Whether row a comes before row b by the keys of an order, or by row number if these are equal.
class RowLess {
 public:
  /// All arguments must outlive it.
  RowLess(std::span<const SortKey> order, const StringPool& strings, const RowSet& rows)
      : order_(order), strings_(strings), rows_(rows) {}

  bool operator()(uint32_t a, uint32_t b) const {
    for (const SortKey& k : order_) {
      const RowColumn& c = rows_.columns[static_cast<size_t>(k.column)];
      const bool an = !c.null.empty() && c.null[a] != 0, bn = !c.null.empty() && c.null[b] != 0;
      if (an || bn) {
        if (an && bn) continue;
        return an == k.nulls_first;
      }
      const int r = CompareValues(c, a, b, strings_);
      if (r != 0) return k.descending ? r > 0 : r < 0;
    }
    return a < b;  // stable
  }

 private:
  const std::span<const SortKey> order_;
  const StringPool& strings_;
  const RowSet& rows_;
};

}  // namespace tessera::vm
