// Parquet and Arrow files as readers of a table's columns: the plugin gives values, which are checked here for what SQL
// asks of them (texts are UTF-8, dates are of the years 1 to 9999), and become the table's types where these are others.
//
// Start at: DescribeColumnar, OpenColumnarReader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/columnar/columnar_plugin.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"

namespace tessera {

struct DescribedColumnar {
  TableSchema schema;  ///< columns only; their names are in lower case and differ
  uint64_t rows = 0;   ///< in a stream an estimate
};

/// `groups`: nullptr, or of a Parquet file also its row groups, from the same footer. Errors: kUnsupported, there is no plugin; kIo
/// and kSql, the file is none or broken.
Result<DescribedColumnar> DescribeColumnar(const ColumnarSource& source,
                                           std::shared_ptr<const ColumnarGroups>* groups = nullptr);

/// Of `options`: columns (of `schema`, by column of the file) and read. Errors: the same.
Result<std::unique_ptr<FileReader>> OpenColumnarReader(const ColumnarSource& source, const TableSchema& schema,
                                                       const CopyFromOptions& options);

/// What of a value is wrong.
struct BadColumnRow {
  size_t row = 0;
  Status status;
};
/// Whether all integers from the one to the other are values of the type.
bool AreValuesOf(const SqlType& type, int128_t least, int128_t greatest);
/// Checks the values of a column that the plugin gave, and makes them those of `type`.
std::optional<BadColumnRow> FitColumn(const SqlType& type, size_t rows, ColumnVector* column);

}  // namespace tessera
