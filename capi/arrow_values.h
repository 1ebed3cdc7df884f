// Values of Arrow's arrays as values of SQL.
//
// Start at: AppendArrow. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "capi/arrow.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// Whether a DATE, TIME, TIMESTAMP or TIMESTAMP WITH TIME ZONE may have that value: of the years 1 to 9999, and of a day.
bool HoldsTime(TypeId type, int64_t value);

/// Rows first .. first + count - 1 of an array (without those before its offset) as column->type, which SqlTypeOf gave for
/// the field. *column is empty. Errors: a value has no place in the type; the buffers contradict each other.
Status AppendArrow(const ArrowSchema& field, const ArrowArray& array, int64_t first, int64_t count,
                   ColumnVector* column);

}  // namespace tessera
