// Whether a COPY can be shared, and what the others are told.
#include "tablet/csv/shared_load.h"

#include <fmt/format.h>

#include <random>

#include "tablet/csv/csv_shares.h"

namespace tessera {

Result<bool> LoadWithRanks(const std::string& file, const CopyFromOptions& options, TableLoad* own) {
  const TableSchema& schema = own->schema();
  if (options.ranks == nullptr || options.rules || !schema.cluster_by.empty() || !schema.distribute_by.empty())
    return false;
  TESSERA_ASSIGN(CsvFile csv, CsvFile::Open(file));
  TESSERA_ASSIGN(const bool can, CanBeShared(csv, options));
  if (!can) return false;
  SharedLoad load;
  load.target = own->target();
  std::random_device random;
  load.target.load = fmt::format("{:08x}{:08x}", random(), random());
  load.schema.name = schema.name;
  load.schema.columns = schema.columns;
  load.short_rows = own->short_rows();
  load.tablet_rows = own->tablet_rows();
  load.file = file;
  load.file_bytes = load.text_bytes = csv.size();
  const size_t fields = options.columns.empty() ? schema.columns.size() : options.columns.size();
  if (fields > 1) {
    TESSERA_ASSIGN(load.text_bytes, csv.BytesWithoutBlankEnd());
  }
  load.file_written = csv.written();
  load.options = options;
  return options.ranks->Load(load, std::move(csv), own);
}

}  // namespace tessera
