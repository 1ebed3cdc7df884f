// Parquet and Arrow files as readers of a table's columns: the plugin gives values, which are checked here for what SQL
// asks of them (texts are UTF-8, dates are of the years 1 to 9999), and become the table's types where these are others.
//
// Start at: DescribeColumnar, OpenColumnarReader.
#pragma once

#include <cstdint>
#include <memory>
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

/// Errors: kUnsupported, there is no plugin; kIo and kSql, the file is none or broken.
Result<DescribedColumnar> DescribeColumnar(const ColumnarSource& source);

/// Of `options`: columns (of `schema`, by column of the file) and read. Errors: the same.
Result<std::unique_ptr<FileReader>> OpenColumnarReader(const ColumnarSource& source, const TableSchema& schema,
                                                       const CopyFromOptions& options);

}  // namespace tessera
