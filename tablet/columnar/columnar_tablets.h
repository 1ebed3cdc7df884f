// Parquet files scanned in place: each row group is a tablet. Its least and greatest values are those of the footer, so that a
// scan skips it as it does a tablet of a table; a column of it is read, and encoded, when it is first asked for, by the thread
// that asks, and is kept like unpacked chunks (tablet/files/unpacked_chunks.h).
//
// A footer may lie: values that are not within what it says are an error of the column that is read.
//
// Start at: AddColumnarTablets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/columnar/columnar_plugin.h"
#include "tablet/files/file_identity.h"

namespace tessera {

/// A file of a table.
struct ColumnarFile {
  ColumnarSource source;
  FileIdentity identity;     ///< as the user named it; a chunk of another file is an error
  std::vector<int> columns;  ///< of the table, by field of the file; -1: none
  std::vector<FileConstant> constants;
  std::shared_ptr<const ColumnarGroups> groups = nullptr;  ///< nullptr: the file is to be opened
  std::vector<std::string> problems = {};  ///< by column of the table: why it cannot be read; "" and too few: it can
};

/// Gives `table`, which has its schema, the row groups of the files as tablets, with rows and statistics. false: a row group
/// is larger than a tablet, and nothing was done. Errors: kIo; kSql, a file is broken.
Result<bool> AddColumnarTablets(const std::vector<ColumnarFile>& files, TableInfo* table);

}  // namespace tessera
