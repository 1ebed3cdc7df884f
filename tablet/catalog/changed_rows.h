// The rows in which two states of a table differ, found by their tablets: those of the one that are not in the other.
//
// Start at: RowsNotIn. Any thread.
#pragma once

#include <memory>

#include "tablet/catalog/table_info.h"

namespace tessera {

/// A table of the rows of `table` that are live there and not in `other`, an earlier or later state of it (nullptr: there is
/// none). A row that was written anew is among them. It has the schema of `table`, and bounds for statistics.
std::shared_ptr<const TableInfo> RowsNotIn(const TableInfo& table, const TableInfo* other);

}  // namespace tessera
