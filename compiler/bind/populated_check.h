// What a statement may do with a materialised view. Private to compiler/.
//
// Start at: CheckPopulated. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "tablet/catalog/schema.h"

namespace tessera {

/// Before rows of a table are read. Errors: it is a materialised view WITH NO DATA.
Status CheckPopulated(const TableSchema& table, int position);
/// Before a table is changed. Errors: it is a materialised view.
Status CheckChangeable(const TableSchema& table, int position);

}  // namespace tessera
