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
#include <vector>

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

/// Of a dictionary of texts: its entries, and the number of each row's entry among all that `entries` has then; UINT32_MAX is
/// NULL. false: it is none, or broken.
bool AppendNumbered(const arrow::Array& array, ColumnVector* entries, std::vector<uint32_t>* numbers);

}  // namespace tessera::columnar
