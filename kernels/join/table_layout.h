// Laying out a join table: how its keys become one number, whether a value is the payload itself or the number of a
// row, and whether slots are addressed directly or by a hash. README.md beside this file describes it. No CUDA calls
// here. Private to kernels/.
//
// Start at: LayOutTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/join/join_kernels.h"
#include "kernels/plan/join_shape.h"
#include "kernels/rows/device_rows.h"
#include "vm/program/program.h"

namespace tessera::kernels {

/// A join table on the device.
struct DeviceTable {
  JoinShape shape;
  DeviceRows rows;  ///< kept if payload is read from them
};

/// A table whose kernel can run once it is known where bits, values and chains lie; these have that many bytes.
struct TableLayout {
  DeviceTable* table = nullptr;
  JoinBuild build;
  uint64_t bits = 0, values = 0, next = 0;
  uint64_t collided = 0;  ///< of JoinBuild::collided
  uint64_t bytes() const { return bits + values + next + collided; }
};

/// What the sections of a program ask of a join table.
struct TableUse {
  bool unique = false;  ///< no two rows have the same keys
  bool outer = false;   ///< some section keeps rows without a match, which then point at no row
  bool loop = false;    ///< some section goes over all rows that have a key
};

/// Lays out table->rows, whose columns are summarised in `summaries` (of the first kMaxSummaries). `direct_bytes`: as
/// MostDirectBytes gives it. Errors: kResource, too many rows.
Result<TableLayout> LayOutTable(DeviceTable* table, const vm::Section& builder, const TableUse& use,
                                const ColumnSummary* summaries, uint64_t direct_bytes);

/// The work of StartSummarize for rows that are all there: of their first kMaxSummaries columns.
RowsToSummarize ToSummarize(const DeviceRows& rows, size_t columns, ColumnSummary* summaries);

/// What is known of the columns of rows, summarised as for LayOutTable. The rows must outlive it.
std::vector<PayloadShape> ShapesOf(const DeviceRows& rows, const std::vector<SqlType>& columns,
                                   const ColumnSummary* summaries);

/// Bytes of a table that is addressed directly, whatever the number of its rows, on a device with this budget.
uint64_t MostDirectBytes(uint64_t budget);
/// Bytes of that many rows of a table and of what is made of them, at most.
uint64_t MostTableBytes(const vm::Section& builder, uint64_t rows, uint64_t direct_bytes);

}  // namespace tessera::kernels
