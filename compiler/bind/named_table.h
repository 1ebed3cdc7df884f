// The table and the column that a name means, and the errors where there is none. Private to compiler/.
//
// Start at: FindTable. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "tablet/catalog/table_info.h"
#include "tablet/sqlite/lake_catalog.h"

namespace tessera {

/// The table that a RangeVar node names, which is to be changed. Errors: it does not exist (with a hint), it is a view, also a
/// materialised one, it has a schema.
Result<std::shared_ptr<const TableInfo>> FindTable(const ParseNode& range_var, const Snapshot& snapshot);
/// The same of what has rows: also a materialised view.
Result<std::shared_ptr<const TableInfo>> FindStored(const ParseNode& range_var, const Snapshot& snapshot);
/// A table of a file of SQLite that is attached, or of a DuckLake catalog, as the file's, which has rows; another table as it
/// is. Errors: as FileTables::Find and FindLake.
Result<std::shared_ptr<const TableInfo>> WithRows(std::shared_ptr<const TableInfo> table, const Dialect* dialect,
                                                  const Snapshot& snapshot, int position);
/// A table of a DuckLake catalog as it was then. `name`: AttachedName. Errors: as FileTables::FindLake; kSql, the database is
/// none.
Result<std::shared_ptr<const TableInfo>> LakeTableAt(const AttachedDatabase& database, const std::string& name,
                                                     const LakeMoment& moment, const Dialect* dialect, int position);
/// The error of a statement that takes a table, about a view.
Status NotATable(std::string_view view, int position);
/// The error of a statement that changes rows of the program around the session.
Status FrameIsRead(std::string_view name, int position);
Status TableNotFound(std::string_view name, int position, const Snapshot& snapshot);
/// The column `name` of the table, or an error with a hint.
Result<int> FindTableColumn(const TableInfo& table, std::string_view name, int position);

}  // namespace tessera
