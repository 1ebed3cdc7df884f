// Rows in the order of a section, and within its OFFSET and LIMIT.
//
// Start at: OrderAndLimit.
#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// Brings rows into the order of `after` and leaves those within its OFFSET and LIMIT. Text is compared through
/// `strings`. Uses the threads of `pool`, if not nullptr, for many rows. Errors: kResource, out of memory.
Status OrderAndLimit(const RowsAfter& after, const StringPool& strings, ThreadPool* pool, RowSet* rows);
/// Leaves the rows within OFFSET and LIMIT. They are in order already.
void ApplyBounds(const RowsAfter& after, RowSet* rows);
/// `after`, changed to order only some of the rows while it is not known which rows come before them: its LIMIT is OFFSET
/// rows greater, and it skips none.
RowsAfter WithoutOffset(const RowsAfter& after);
/// Merges the runs of `rows` and leaves the rows within OFFSET and LIMIT. Run i begins at row starts[i],
/// ends where the next one begins, and is in the order of `after`. Equal rows keep their order. Uses the threads of
/// `pool`, if not nullptr, for many rows. Errors: kResource, out of memory.
Status MergeRuns(const RowsAfter& after, const std::vector<size_t>& starts, const StringPool& strings, ThreadPool* pool,
                 RowSet* rows);
/// Sorts rows by one column as JoinSpec::order requires: ascending, NULL last. Equal rows keep their order.
Status SortRows(int column, const StringPool& strings, ThreadPool* pool, RowSet* rows);

}  // namespace tessera::vm
