// Parquet files: a share is a row group, or what follows in a large one.
//
// Start at: DescribeParquet, OpenParquet. May throw.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "tablet/columnar/columnar_plugin.h"

namespace tessera::columnar {

Status DescribeParquet(const ColumnarSource& source, ColumnarShape* shape);
Result<std::unique_ptr<FileReader>> OpenParquet(const ColumnarSource& source, const std::vector<int>& fields);
Result<std::unique_ptr<ColumnarGroups>> OpenParquetGroups(const ColumnarSource& source);

}  // namespace tessera::columnar
