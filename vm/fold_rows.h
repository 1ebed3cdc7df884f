// Section::fold: aggregates that need all values of a group, over rows in order. Internal to vm/.
//
// Start at: FoldRows. One thread.
#pragma once

#include <vector>

#include "base/status.h"
#include "vm/program.h"
#include "vm/string_pool.h"
#include "vm/vm.h"

namespace tessera::vm {

/// Leaves one row for each run of rows with equal keys, with what the section's fold makes of their values. Errors: kSql,
/// a text of 2^30 bytes. REQUIRES: the section has a fold, and the rows are in its order.
Status FoldRows(const Section& section, const std::vector<Value>& constants, StringPool* strings, RowSet* rows);

}  // namespace tessera::vm
