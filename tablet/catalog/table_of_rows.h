// Rows of a running statement as a table that its next query reads: tablets in memory.
//
// Start at: FillTable. One thread; the table is then as any other.
#pragma once

#include <span>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// Makes the rows of the batches, one after the other, those of `table`, which has a schema and nothing else: its tablets,
/// statistics and counts. REQUIRES: batches with the columns of the schema.
Status FillTable(std::span<const RowBatch> batches, TableInfo* table);

}  // namespace tessera
