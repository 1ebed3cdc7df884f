// Arrow IPC, as a file (.arrow, .feather) or as a stream: a share is a record batch.
//
// Start at: DescribeIpc, OpenIpc. May throw.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "tablet/columnar/columnar_plugin.h"

namespace tessera::columnar {

Status DescribeIpc(const ColumnarSource& source, ColumnarShape* shape);
/// `fields`: ascending.
Result<std::unique_ptr<FileReader>> OpenIpc(const ColumnarSource& source, const std::vector<int>& fields);

}  // namespace tessera::columnar
