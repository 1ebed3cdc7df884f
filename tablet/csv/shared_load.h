// A COPY in which other processes have a part: each reads a share of the file and makes tablets of it in the database's
// directory, and the process with the writer lock commits them all. Which processes these are, and how they talk to each
// other, is not known here.
//
// Start at: LoadRanks.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/csv/copy_options.h"
#include "tablet/csv/csv_file.h"
#include "tablet/load/table_load.h"

namespace tessera {

/// What a process needs to know to make some of the tablets.
struct SharedLoad {
  TabletTarget target;       ///< of all: the load has a name, and the first tablet is that of the first process
  TableSchema schema;        ///< name and columns
  uint64_t short_rows = 0;   ///< rows that the first new tablet has before those of the file
  uint32_t tablet_rows = 0;  ///< 0: chosen by the number of rows
  // A process that finds another file under the name has no part in it.
  std::string file;
  uint64_t file_bytes = 0;
  uint64_t text_bytes = 0;  ///< without empty lines behind the last record
  int64_t file_written = 0;
  CopyFromOptions options;
};

class LoadRanks {
 public:
  virtual ~LoadRanks() = default;
  /// Makes the first tablets with `own`, on this process, and lets it adopt those of the others. Returns false if
  /// another process cannot take part; then nothing has happened. Errors: of one of the processes, which it names; that
  /// of the first of them in the order of the file.
  virtual Result<bool> Load(const SharedLoad& load, CsvFile csv, TableLoad* own) = 0;
};

/// Loads the file with the others, if it is one that can be shared and the table needs nothing that one process must do:
/// `options.rules`, or rows in an order or in buckets. Returns false if not.
Result<bool> LoadWithRanks(const std::string& file, const CopyFromOptions& options, TableLoad* own);

}  // namespace tessera
