#include "compiler/bind/named_table.h"

#include <string>
#include <vector>

#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/populated_check.h"
#include "compiler/bind/relation_name.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/nearest_name.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/file_tables.h"
#include "tablet/load/file_spec.h"

namespace tessera {
namespace {

constexpr const char* kCatalogHint =
    "information_schema.tables and information_schema.columns have the tables and their columns; there are also ";

}  // namespace

Status NotATable(std::string_view view, int position) {
  return SqlError(ErrorKind::kWrongObjectType, "\"" + std::string(view) + "\"" + " is a view, not a table", position,
                  "A view has no rows of its own: name the table that its query reads.");
}

Status TableNotFound(std::string_view name, int position, const Snapshot& snapshot) {
  std::vector<std::string_view> names;
  for (const auto& t : snapshot.tables) {
    const std::string_view qualified = t->schema.name;
    names.push_back(IsTemporaryName(qualified) ? qualified.substr(kTemporarySchema.size() + 1) : qualified);
  }
  for (const auto& v : snapshot.views) names.push_back(v->name);
  if (const AttachedDatabase* const database = snapshot.FindAttached(AttachedOfName(name))) {
    names.clear();
    for (const auto& t : database->tables) names.push_back(t->schema.name);
  }
  const std::string nearest = NearestName(name, names);
  const char* const kind = FindView(snapshot.views, nearest) != nullptr ? "view" : "table";
  const bool is_catalog = name.starts_with("sqlite_") || name.starts_with("pg_") || name.starts_with("duckdb_");
  return SqlError(ErrorKind::kUndefinedTable, "table \"" + std::string(name) + "\" does not exist", position,
                  is_catalog        ? kCatalogHint + NamesOfCatalogTables("pg_catalog") + ", sqlite_master."
                  : nearest.empty() ? ""
                                    : "Perhaps you meant " + std::string(kind) + " \"" + nearest + "\".");
}

Status FrameIsRead(std::string_view name, int position) {
  return SqlError(ErrorKind::kWrongObjectType,
                  "\"" + std::string(name) + "\" is a data frame or a table of the program, and can only be read",
                  position, "CREATE TABLE t AS SELECT * FROM " + std::string(name) + " makes a table of it.");
}

Result<std::shared_ptr<const TableInfo>> FindTable(const ParseNode& range_var, const Snapshot& snapshot) {
  TESSERA_ASSIGN(std::shared_ptr<const TableInfo> table, FindStored(range_var, snapshot));
  TESSERA_TRY(CheckChangeable(table->schema, range_var.location()));
  if (!table->files.empty()) return FrameIsRead(BaseName(table->schema.name), range_var.location());
  return table;
}

Result<std::shared_ptr<const TableInfo>> FindStored(const ParseNode& range_var, const Snapshot& snapshot) {
  TESSERA_ASSIGN(const std::string name, RelationName(range_var, snapshot));
  if (FindView(snapshot.views, name) != nullptr) return NotATable(name, range_var.location());
  std::shared_ptr<const TableInfo> table = snapshot.Find(name);
  if (table == nullptr) return TableNotFound(name, range_var.location(), snapshot);
  NoteTable(*table);
  return table;
}

Result<std::shared_ptr<const TableInfo>> LakeTableAt(const AttachedDatabase& database, const std::string& name,
                                                     const LakeMoment& moment, const Dialect* dialect, int position) {
  FileTables* const files = dialect != nullptr ? dialect->files : nullptr;
  const AttachedLake* const lake = files != nullptr ? files->LakeOf(database.name) : nullptr;
  if (lake == nullptr) {
    return SqlError("\"" + database.name + "\" is no attached DuckLake catalog: AT is for its tables", position,
                    "Write FROM lake.t AT (VERSION => 3), after ATTACH 'ducklake:sqlite:FILE' AS lake.");
  }
  const LakeSpec spec{lake->catalog, lake->data_path, moment, name.substr(AttachedName(database.name, "").size())};
  NoteMoment();  // the catalog is looked at again each time
  Result<std::shared_ptr<const TableInfo>> found = files->FindLake(spec, name);
  if (!found.ok()) return Status(found.status().kind(), found.status().message(), found.status().hint(), position);
  return found;
}

Result<std::shared_ptr<const TableInfo>> WithRows(std::shared_ptr<const TableInfo> table, const Dialect* dialect,
                                                  const Snapshot& snapshot, int position) {
  if (snapshot.attached.empty()) return table;
  const AttachedDatabase* const database = snapshot.FindAttached(AttachedOfName(table->schema.name));
  if (database == nullptr || !database->is_sqlite) return table;
  FileTables* const files = dialect != nullptr ? dialect->files : nullptr;
  if (const AttachedLake* const lake = files != nullptr ? files->LakeOf(database->name) : nullptr)
    return LakeTableAt(*database, table->schema.name, {lake->version, std::nullopt}, dialect, position);
  if (files == nullptr) return Unsupported("a table of an SQLite database here is not supported", position);
  FileSpec spec;
  spec.patterns = {database->directory};
  spec.format = FileFormat::kSqlite;
  spec.table = BaseName(table->schema.name);
  NoteMoment();  // the file is looked at again each time
  Result<std::shared_ptr<const TableInfo>> found = files->Find(spec);
  if (!found.ok()) return Status(found.status().kind(), found.status().message(), found.status().hint(), position);
  return found;
}

Result<int> FindTableColumn(const TableInfo& table, std::string_view name, int position) {
  const int column = table.schema.Find(name);
  if (column >= 0) return column;
  std::vector<std::string_view> names;
  for (const ColumnSchema& c : table.schema.columns) names.push_back(c.name);
  const std::string nearest = NearestName(name, names);
  return SqlError(ErrorKind::kUndefinedColumn,
                  "column \"" + std::string(name) + "\" of table \"" + table.schema.name + "\" does not exist",
                  position, nearest.empty() ? "" : "Perhaps you meant column \"" + nearest + "\".");
}

}  // namespace tessera
