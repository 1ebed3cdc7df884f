// Some rows of a batch.
//
// Start at: KeepRows. Pure functions; any thread.
#pragma once

#include <vector>

#include "tablet/values/row_batch.h"

namespace tessera {

/// Leaves out the rows that are not `kept`.
void KeepRows(const std::vector<bool>& kept, RowBatch* batch);

}  // namespace tessera
