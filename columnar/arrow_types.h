// Types of Arrow and of SQL. The README has the table.
//
// Start at: FieldOf, ArrowTypeOf. Pure functions; any thread.
#pragma once

#include <arrow/type.h>

#include <memory>
#include <string>

#include "tablet/columnar/columnar_plugin.h"

namespace tessera::columnar {

/// The column that values of a field become.
ColumnarField FieldOf(const arrow::Field& field);
/// What values of the type are written as.
std::shared_ptr<arrow::DataType> ArrowTypeOf(const SqlType& type);

}  // namespace tessera::columnar
