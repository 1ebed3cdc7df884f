// The order of a join table's rows: by one of their columns, as grid joins want them, or by the slots of the table, as
// partitioned probes do. Private to kernels/.
//
// Start at: SortTableRows, OrderRowsBySlots. REQUIRES, of both: the device's mutex is held.
#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "kernels/join/table_layout.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/rows/device_rows.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// Brings rows into the order of column `by`.
Status SortTableRows(GpuDevice* gpu, const std::vector<SqlType>& columns, size_t by, const ColumnSummary* summaries,
                     DeviceRows* rows);

/// Brings the rows of a table that was laid out into the order of the radix partitions of its slots, if these outgrow
/// the cache and point to rows. (How many rows will probe it is not known here.) false: they stay as they are.
Result<bool> OrderRowsBySlots(GpuDevice* gpu, const vm::Section& builder, const ColumnSummary* summaries,
                              vm::JoinPartitioning partitioning, DeviceTable* table);

}  // namespace tessera::kernels
