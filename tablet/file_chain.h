// Several files, one after the other, as one reader with the columns of a table.
//
// Start at: OpenFileChain, FirstRows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/files/file_identity.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"
#include "tablet/load/file_spec.h"

namespace tessera {

class ColumnarGroups;

/// A file and how it is read: what the user said, and what was guessed.
struct FileSource {
  FileIdentity identity;  ///< with the name that the user gave
  std::string path;       ///< where it can be read
  FileFormat format = FileFormat::kCsv;
  CopyFromOptions options;
  TableSchema schema;                                      ///< the columns that it has
  std::vector<int> columns;                                ///< of the table, by column of the file
  std::vector<std::string> keys;                           ///< of JSON: the member that each column is
  std::string table;                                       ///< of an SQLite database
  std::vector<FileConstant> constants;                     ///< columns of the table that are not in the file
  std::shared_ptr<const ColumnarGroups> groups = nullptr;  ///< of Parquet that is scanned in place
};

/// The file as it is now. Errors: as IdentifyFile.
Result<FileIdentity> IdentifySource(FileFormat format, const std::string& path);

/// Errors: kIo, the file is another one than it was.
Status CheckSame(const FileSource& source);

/// `read`: by column of the table: whether it is read; the others become NULL, but for those that are constants. `options`: the time
/// zone. Errors of Next: also kIo, a file is another one than it was, or changes meanwhile.
std::unique_ptr<FileReader> OpenFileChain(std::vector<FileSource> sources, const TableSchema& schema,
                                          const std::vector<bool>& read, const CopyFromOptions& options);

/// Of the shares of `reader` the first ones, which have that many rows together. One thread.
std::unique_ptr<FileReader> FirstRows(std::unique_ptr<FileReader> reader, uint64_t rows);

}  // namespace tessera
