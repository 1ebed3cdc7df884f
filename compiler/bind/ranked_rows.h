// Keeps the rows of a block that come first in an order, overall or of each partition: DISTINCT ON, WITH TIES and the
// LIMIT of a correlated subquery. Private to compiler/.
//
//   the block, without its ORDER BY and LIMIT
//   its columns, and row_number() or rank() of each row
//   its columns where that is few enough, then ORDER BY and LIMIT
//
// Start at: KeepRanked. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compiler/query/bound_query.h"

namespace tessera {

/// Levels of nesting that a block with windows counts as, as QueryBlock's.
inline constexpr int kWindowLevels = 4;

/// A number of each row, in an order of the outputs.
struct RowRanking {
  vm::WindowFunction function = vm::WindowFunction::kRowNumber;  ///< or kRank
  std::vector<OrderKey> order;
  int partition_keys = 0;       ///< leading entries of `order`
  int64_t least = 1, most = 1;  ///< rows with another number are left out
  double percent = -1;          ///< not -1: `most` ends at this percentage of all rows
  /// Not nullptr: rows that are left out before the others, and rows that are kept of these; NULL is none and all. Then
  /// `least` and `most` do not count.
  ExprPtr skipped, taken;
};

/// Leaves out rows of the block, before its ORDER BY and LIMIT; two levels are added.
void KeepRanked(RowRanking ranking, Query* q);

/// A relation over a block with windows.
Relation WindowedTable(std::shared_ptr<Query> rows);
/// A block that has all columns of another one.
std::shared_ptr<Query> ReaderOf(std::shared_ptr<Query> rows);

}  // namespace tessera
