// Folds (FoldSpec): aggregates that need all values of a group, over rows in order. Internal to vm/.
//
// Start at: FoldRows. One thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/status.h"
#include "tablet/values/row_batch.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// Where the value of kQuantile is among `n` > 0 in order.
inline size_t PlaceOfQuantile(double fraction, size_t n) {
  return std::clamp<size_t>(static_cast<size_t>(std::ceil(fraction * static_cast<double>(n))), 1, n) - 1;
}

/// The values that that of kBetween lies between, among `n` > 0 in order, and how far after the first.
struct PlaceBetween {
  size_t below, above;
  double fraction;

  PlaceBetween(double quantile, size_t n) {
    const double place = quantile * static_cast<double>(n - 1);
    below = std::min(static_cast<size_t>(place), n - 1);
    above = std::min(below + 1, n - 1);
    fraction = place - static_cast<double>(below);
  }
  /// (Infinities have no difference.)
  double Value(double low, double high) const {
    return fraction == 0 || low == high ? low : low + fraction * (high - low);
  }
};

/// Leaves one row for each run of rows with equal keys, which are the first `keys` columns, with what the fold makes of the
/// values of the column after these. Errors: kSql, a text of 2^30 bytes. REQUIRES: it is a fold, and the rows are in order.
Status FoldRows(const FoldSpec& fold, size_t keys, const std::vector<Value>& constants, StringPool* strings,
                RowSet* rows);

}  // namespace tessera::vm
