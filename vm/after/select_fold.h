// Folds of kind kQuantile and kBetween without a sort: the values of few groups, put side by side, are searched for those
// at a place. (Over ten million rows in one group a sort, and rows brought into its order, took three quarters of the time.)
// Private to vm/.
//
// Start at: SelectFold.
#pragma once

#include <vector>

#include "base/status.h"
#include "tablet/values/row_batch.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

/// Leaves one row for each key, as FoldRows would of the rows in order, so that there is nothing left for it to do. False,
/// and rows as they were: they have to be sorted, because they are few or their groups many, or because of their types.
/// Uses the threads of `pool`, if not nullptr. Errors: kResource, out of memory.
Result<bool> SelectFold(const Section& section, const std::vector<Value>& constants, ThreadPool* pool, RowSet* rows);

}  // namespace tessera::vm
