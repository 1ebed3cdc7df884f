// COPY TO of a Parquet or an Arrow file.
//
// Start at: OpenColumnarWriter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/columnar/columnar_plugin.h"
#include "tablet/load/columnar_options.h"
#include "tablet/load/row_writer.h"

namespace tessera {

/// Columns whose names are equal get other ones. Errors: kUnsupported, there is no plugin, or the format has no such type; kIo.
Result<std::unique_ptr<RowWriter>> OpenColumnarWriter(const std::string& file, const ColumnarOptions& options,
                                                      std::vector<ColumnarColumn> columns);

}  // namespace tessera
