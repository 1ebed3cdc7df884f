// TableWriter over a TableLoad, with threads of its own that encode.
//
// Start at: MakeTableWriter.
#pragma once

#include <memory>

#include "tablet/load/table_load.h"
#include "tablet/tablet.h"

namespace tessera {

std::unique_ptr<TableWriter> MakeTableWriter(std::unique_ptr<TableLoad> load);

/// The first row of `batch` that violates NOT NULL, VARCHAR(n) or the form of text: kConstraint, as "row n".
Status CheckConstraints(const TableSchema& schema, const RowBatch& batch, uint64_t first_row);

}  // namespace tessera
