#include "tablet/csv/csv_load.h"

#include <memory>
#include <utility>

#include "tablet/load/file_load.h"

namespace tessera {

Status LoadCsv(CsvFile file, const CopyFromOptions& options, TabletCutter* load, size_t block_bytes) {
  TESSERA_ASSIGN(const std::unique_ptr<FileReader> reader,
                 OpenCsvReader(std::move(file), load->schema(), options, block_bytes));
  return LoadFile(reader.get(), options, load);
}

}  // namespace tessera
