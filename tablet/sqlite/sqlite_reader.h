// A table of an SQLite database as a reader of a table's columns. Its shares are ranges of row numbers, which threads read by
// connections of their own; a table whose rows have no numbers is read by one thread at a time.
//
// Start at: OpenSqliteReader.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"

namespace tessera {

/// `name`: of the file, for messages. `table`: see DescribeSqliteTable. Of `options`: columns (of `schema`, by column of the
/// table), read, zone and cancel. Until the reader goes no other process can commit to a database that keeps no write-ahead
/// log. Errors: as DescribeSqliteTable; those of values are in what a share gives.
Result<std::unique_ptr<FileReader>> OpenSqliteReader(const std::string& path, const std::string& name,
                                                     const std::string& table, const TableSchema& schema,
                                                     const CopyFromOptions& options);

}  // namespace tessera
