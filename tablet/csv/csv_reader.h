// A CSV file as a FileReader: its shares are blocks of whole records.
//
// Start at: OpenCsvReader.
#pragma once

#include <memory>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/csv/csv_file.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"

namespace tessera {

/// Small enough for a core's second-level cache, large enough to make the hand-over between threads cheap.
inline constexpr size_t kCsvBlockBytes = size_t{1} << 20;

/// Reads `file` from where it is. Errors: as CsvParser::Create.
Result<std::unique_ptr<FileReader>> OpenCsvReader(CsvFile file, const TableSchema& schema,
                                                  const CopyFromOptions& options, size_t block_bytes = kCsvBlockBytes);

}  // namespace tessera
