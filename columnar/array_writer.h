// Rows into a Parquet or an Arrow file.
//
// Start at: MakeWriter. May throw. A writer belongs to one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/columnar/columnar_plugin.h"

namespace tessera::columnar {

Result<std::unique_ptr<ColumnarWriter>> MakeWriter(int file, const std::string& name,
                                                   const std::vector<ColumnarColumn>& columns,
                                                   const ColumnarOptions& options);

}  // namespace tessera::columnar
