// One value of a column of decoded rows.
//
// Start at: ValueAt. Any thread.
#pragma once

#include <cstddef>

#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {

/// The value in row `row` as one of `type`, whose storage class the column has.
Value ValueAt(const ColumnVector& column, size_t row, const SqlType& type);

}  // namespace tessera
