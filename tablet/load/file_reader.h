// Files of rows, whatever their format: how they are read by many threads.
//
// A reader hands out shares of its file in their order, one thread at a time, which is cheap; what is in a share is read by
// any thread, which is the work. So a format is a FileReader and a FileShare, and knows nothing of threads, of tablets or
// of SQL. Lines are what an error counts: physical lines of text, rows of a format that has none.
//
// Start at: FileReader::Next, FileShare::Read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// The first thing wrong in a share.
struct FileError {
  ErrorKind kind = ErrorKind::kBadCopyFormat;
  uint64_t line = 0;   ///< lines before the record's first, in the share
  std::string column;  ///< empty if the error is not one column's
  std::string message;
  std::string hint;  ///< what can be done; "": nothing in particular
};

struct FileRows {
  RowBatch batch;        ///< the rows before the error, if there is one
  uint64_t lines = 0;    ///< in the share
  uint64_t ignored = 0;  ///< records with an error that were left out
  std::optional<FileError> error;
};

/// A piece of a file. It belongs to one thread at a time.
class FileShare {
 public:
  virtual ~FileShare() = default;
  /// Its rows, with the columns of the reader's schema. Errors of the file are in what is returned.
  virtual FileRows Read() const = 0;
  virtual uint64_t bytes() const = 0;  ///< of the file, for progress
  /// The file that it is of, and the number of its first line if that is known; 0: it follows the share before it.
  virtual const std::string& path() const = 0;
  virtual uint64_t first_line() const = 0;
  /// Where it is in a file that has no lines, as an error names it: "row group 2".
  virtual std::string place() const { return {}; }
};

class FileReader {
 public:
  virtual ~FileReader() = default;
  virtual const TableSchema& schema() const = 0;
  /// The next share; *share becomes nullptr at the end. What it was before may be used again. Errors: kIo, kUnsupported.
  virtual Status Next(std::unique_ptr<FileShare>* share) = 0;
  /// Of all shares, as far as is known now; 0: it is not known.
  virtual uint64_t bytes() const = 0;
};

}  // namespace tessera
