// Splits a block with window calls into a chain of blocks. Private to compiler/.
//
//   the rows, columns that windows need, and windows of one order      Query::windows
//   these rows, and windows of another order ...
//   the outputs, DISTINCT, ORDER BY, LIMIT                              the block itself
//
// Windows share a sort if one's keys begin the other's: those of PARTITION BY may come in any order. What filters by the
// value of a window (an outer WHERE) is a conjunct of the last block.
//
// Start at: SplitWindows. One thread.
#pragma once

#include "base/status.h"
#include "compiler/bind/query_block.h"

namespace tessera {

/// Splits the bound block; one without window calls stays as it is. Errors: too deep, too many orders.
Status SplitWindows(QueryBlock* block);

}  // namespace tessera
