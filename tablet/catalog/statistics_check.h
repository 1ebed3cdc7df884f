// Whether a table's statistics can be. Private to tablet/catalog.
//
// Start at: CheckStatistics. Any thread.
#pragma once

#include "base/status.h"
#include "tablet/catalog/table_record.h"

namespace tessera {

/// What the statistics of a table say must be possible: plans, and on a GPU the sizes of tables, are made from them.
Status CheckStatistics(const TableRecord& table);

}  // namespace tessera
