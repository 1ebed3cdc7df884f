// Batches of rows as arrays of Arrow's C data interface.
//
// Values that have the same form in Arrow are handed over and not copied: BIGINT, DOUBLE PRECISION, TIMESTAMP, TIME, DECIMAL
// of more than 18 digits, and the bytes of texts. Others are converted in one pass.
//
// Start at: ExportRows. Any thread; arrays are released by any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "capi/arrow.h"
#include "tablet/values/row_batch.h"
#include "vm/program/program.h"

namespace tessera {

/// What the offsets of an array's texts can tell.
inline constexpr uint64_t kMostTextBytes = (uint64_t{1} << 31) - 1;

/// Adds a struct array with the columns of the batch to `out`; more than one where a column's texts are longer than `most_bytes`
/// together. Errors: kOutOfRange, an interval is longer than Arrow's nanoseconds can tell; kLimitExceeded, a single
/// text is too long.
Status ExportRows(RowBatch&& batch, const std::vector<vm::ResultColumn>& columns, std::vector<ArrowArray>* out,
                  uint64_t most_bytes = kMostTextBytes);

}  // namespace tessera
