// Whether the catalog is the same in two snapshots, which may be two objects: temporary views make one for each statement.
//
// Start at: IsSame. Pure functions; any thread.
#pragma once

#include "tablet/catalog/table_info.h"

namespace tessera {

/// Types, macros and views.
bool IsSameBesideTables(const Snapshot& a, const Snapshot& b);
bool IsSame(const Snapshot& a, const Snapshot& b);

}  // namespace tessera
