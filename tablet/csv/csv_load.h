// COPY table FROM file: reads, parses and encodes on several threads at once.
//
// Start at: LoadCsv.
#pragma once

#include "tablet/csv/csv_file.h"
#include "tablet/load/tablet_cutter.h"

namespace tessera {

/// Small enough for a core's second-level cache, large enough to make the hand-over between threads cheap.
inline constexpr size_t kCsvBlockBytes = size_t{1} << 20;

/// Adds all records of `file` to `load`, on `options.threads` threads, and encodes them; does not finish the load. Of several
/// errors the first in the file is returned, whatever thread met it when.
Status LoadCsv(CsvFile file, const CopyFromOptions& options, TabletCutter* load, size_t block_bytes = kCsvBlockBytes);

}  // namespace tessera
