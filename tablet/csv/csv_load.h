// A CSV file into tablets.
//
// Start at: LoadCsv.
#pragma once

#include "tablet/csv/csv_reader.h"
#include "tablet/load/tablet_cutter.h"

namespace tessera {

/// Adds all records of `file` to `load`: LoadFile of its reader.
Status LoadCsv(CsvFile file, const CopyFromOptions& options, TabletCutter* load, size_t block_bytes = kCsvBlockBytes);

}  // namespace tessera
