// Splits a block with window calls into a chain of blocks. Private to compiler/.
//
//   the rows, columns that windows need, and windows of one order      Query::windows
//   these rows, and windows of another order ...
//   the outputs, DISTINCT, ORDER BY, LIMIT                              the block itself
//
// Windows share a sort if one's keys begin the other's: those of PARTITION BY may come in any order. What filters by the
// value of a window (an outer WHERE) is a conjunct of the last block.
//
// DISTINCT ON and WITH TIES are windows, too: KeepRanked puts the block below one, and a filter above that.
//
// Start at: SplitWindows. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "compiler/query_block.h"

namespace tessera {

/// Splits the bound block; one without window calls stays as it is. Errors: it refers to a block around it.
Status SplitWindows(QueryBlock* block);

/// A number of each row, in an order of the outputs.
struct RowRanking {
  vm::WindowFunction function = vm::WindowFunction::kRowNumber;  ///< or kRank
  std::vector<OrderKey> order;
  int partition_keys = 0;  ///< leading entries of `order`
  int64_t most = 1;        ///< rows of a greater number are left out
  int position = -1;       ///< for errors
};

/// Leaves out rows of the bound and split block, before its ORDER BY and LIMIT. Errors: it refers to a block around it.
Status KeepRanked(RowRanking ranking, QueryBlock* block);

}  // namespace tessera
