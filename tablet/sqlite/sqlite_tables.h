// The tables of an SQLite database: which there are, and what types their columns have here.
//
// SQLite stores values, each with a type of its own; what a column is declared as is only an advice (its affinity). Here it is
// the column's type, and what is stored must fit.
//
// Start at: DescribeSqliteTable. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/files/file_identity.h"

namespace tessera {

/// Whether a file that begins so is an SQLite database.
bool IsSqlite(std::string_view start);

/// The file with what is in its write-ahead log. Errors: as IdentifyFile.
Result<FileIdentity> IdentifySqlite(const std::string& path);

/// The type of a column that is declared as `declared`: "VARCHAR(10)"; "": nothing is said.
SqlType TypeOfDeclared(std::string_view declared);

struct SqliteTable {
  std::string name;    ///< as SQLite has it; views are tables, too
  TableSchema schema;  ///< columns only; their names are in lower case and differ
  /// What numbers its rows, of `rowid`, `_rowid_` and `oid` one that no column is called; "": nothing does.
  std::string rowid;
  std::vector<std::string> columns;  ///< as SQLite calls them
  double rows = 0;                   ///< a guess
};

/// All that can be described, in the order of their names. Errors: kIo; kSql, it is no database; kCorrupt.
Result<std::vector<SqliteTable>> DescribeSqliteTables(const std::string& path, const std::string& name);

/// `all_text`: every column is TEXT. `table`: "": an error that lists the tables. Errors: also kSql, there is no such table.
Result<SqliteTable> DescribeSqliteTable(const std::string& path, const std::string& name, const std::string& table,
                                        bool all_text);

/// How many rows a table has, of which no value is read. `table`: as SQLite calls it. `cancel`: see SqliteConnection::Open.
/// Errors: as DescribeSqliteTable.
Result<uint64_t> CountSqliteRows(const std::string& path, const std::string& name, const std::string& table,
                                 const std::atomic<bool>* cancel);

}  // namespace tessera
