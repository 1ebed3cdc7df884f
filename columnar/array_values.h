// Values of Arrow's arrays as columns of rows, and the other way round.
//
// Start at: AppendArray, ArrayOf. Pure functions; any thread.
#pragma once

#include <arrow/array.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "tablet/values/row_batch.h"

namespace tessera::columnar {

/// A value that its column cannot hold.
struct BadValue {
  int64_t row = 0;  ///< of the array
  ErrorKind kind = ErrorKind::kOutOfRange;
  std::string message;
};

/// Appends all values to a column of the type that FieldOf() gave for the array's. Texts, dates and moments are not checked.
/// What is returned is the first value that cannot be held; nothing: there is none.
std::optional<BadValue> AppendArray(const arrow::Array& array, ColumnVector* out);

/// An array of type ArrowTypeOf(column.type).
arrow::Result<std::shared_ptr<arrow::Array>> ArrayOf(const ColumnVector& column, size_t rows, arrow::MemoryPool* pool);

}  // namespace tessera::columnar
