// A COPY in which other processes have a part: each reads a share of the file and makes tablets of it in the database's
// directory, and the process with the writer lock commits them all. Which processes these are, and how they talk to each
// other, is not known here.
//
// Start at: LoadRanks, SharedFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "tablet/catalog/schema.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"
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
  uint64_t text_bytes = 0;  ///< without empty lines after the last record
  int64_t file_written = 0;
  CopyFromOptions options;
};

/// What a process has counted of a stretch of a file; what the numbers mean is the format's matter.
struct StretchCount {
  uint64_t lines = 0, rows = 0, state = 0;
};

/// A file whose rows several processes read, each some of them. To find a row, each process counts some stretches of the
/// file, and all get the counts of all.
class SharedFile {
 public:
  virtual ~SharedFile() = default;
  virtual uint64_t bytes() const = 0;
  virtual int64_t written() const = 0;  ///< nanoseconds since 1970
  virtual size_t stretches() const = 0;
  /// Counts stretches begin .. end - 1. `pool`: nullptr: this thread alone. Errors: kIo.
  virtual Result<std::vector<StretchCount>> Count(size_t begin, size_t end, ThreadPool* pool) const = 0;
  /// Those of all stretches. Errors: kIo.
  virtual Status SetCounts(const std::vector<StretchCount>& counts) = 0;
  /// After SetCounts().
  virtual uint64_t rows() const = 0;
  /// Rows begin .. end - 1, once. Errors: kIo, the file has changed.
  virtual Result<std::unique_ptr<FileReader>> ReadRows(uint64_t begin, uint64_t end) = 0;
};

/// Errors: kIo, there is none.
Result<std::unique_ptr<SharedFile>> OpenSharedFile(const SharedLoad& load);

class LoadRanks {
 public:
  virtual ~LoadRanks() = default;
  /// Makes the first tablets with `own`, on this process, and lets it adopt those of the others. Returns false if
  /// another process cannot take part; then nothing has happened. Errors: of one of the processes, which it names; that
  /// of the first of them in the order of the file.
  virtual Result<bool> Load(const SharedLoad& load, SharedFile* file, TableLoad* own) = 0;
};

/// Loads the file with the others, if it is one that can be shared and the table needs nothing that one process must do:
/// `options.rules`, or rows in an order or in buckets. Returns false if not.
Result<bool> LoadWithRanks(const std::string& file, const CopyFromOptions& options, TableLoad* own);

}  // namespace tessera
