// The catalog as tables that a query reads: information_schema, the simple part of PostgreSQL's pg_catalog,
// sqlite_master and duckdb_tables() with its kin. Private to compiler/.
//
// Start at: FindCatalogTable. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/query/bound_query.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"

namespace tessera {

class ActivitySource;
struct SessionReport;

/// The schema of all tables and views, as these tables name it, and the database.
inline constexpr const char* kTheSchema = "public";
inline constexpr const char* kTheDatabase = "tessera";

struct CatalogColumn {
  const char* name;
  TypeId type;
  TypeId element = TypeId::kNull;  ///< of an array; kNull: it is none
  bool is_vector = false;          ///< see VectorOf
};

struct CatalogTable {
  const char* schema;
  const char* name;
  std::vector<CatalogColumn> columns;
  std::vector<std::vector<Value>> (*rows)(const Snapshot&);
  /// Its rows if they are of the process's sessions; nullptr: they are `rows`.
  std::vector<std::vector<Value>> (*of_sessions)(const std::vector<SessionReport>&) = nullptr;
};

/// information_schema.cc, pg_catalog.cc, pg_server_catalog.cc, duckdb_catalog.cc
const std::vector<CatalogTable>& InformationSchema();
const std::vector<CatalogTable>& PgCatalog();
/// What PostgreSQL says of the server, and tables that are empty here.
const std::vector<CatalogTable>& PgServerCatalog();
/// What SHOW says of a setting of PostgreSQL; nullptr: it is none of pg_settings.
const char* ServerSetting(std::string_view name);
/// They are also called: duckdb_tables().
const std::vector<CatalogTable>& DuckdbCatalog();

/// activity_tables.cc: what goes on in the process. tessera_queries() and tessera_sessions() are called.
const std::vector<CatalogTable>& ActivityCatalog();

/// The table of that name, or nullptr. `schema`: "" is any whose tables are named without it.
const CatalogTable* FindCatalogTable(std::string_view schema, std::string_view name);
/// "columns, tables, ...": those of a schema.
std::string NamesOfCatalogTables(std::string_view schema);
/// `activity`: nullptr, there are no sessions to tell of.
std::unique_ptr<Query> CatalogTableQuery(const CatalogTable& table, const Snapshot& snapshot, ActivitySource* activity);

// ---- For these tables

/// What PostgreSQL says of a type.
struct CatalogType {
  const char* sql;       ///< as SqlType::ToString() begins
  const char* name;      ///< in information_schema
  const char* internal;  ///< in pg_type
  int64_t oid;
  int64_t bytes;  ///< -1: it varies
  int64_t precision, radix;
  char category;
  int64_t array_oid;  ///< of its arrays
};
const std::vector<CatalogType>& CatalogTypes();

/// A column of a table or a view.
struct CatalogColumnOf {
  std::string relation, schema_name;
  bool is_view = false;
  int64_t relation_oid = 0;
  int64_t number = 1;
  std::string name;
  const CatalogType* type = nullptr;  ///< nullptr: a type of CREATE TYPE
  std::string type_name;
  int64_t precision = -1, scale = -1, length = -1;  ///< as they are declared
  const ColumnSchema* schema = nullptr;             ///< of a table
  const TableSchema* table = nullptr;               ///< the table
  char identity = ' ';                              ///< a: GENERATED ALWAYS AS IDENTITY; d: BY DEFAULT

  int64_t type_oid() const;
  /// PostgreSQL's number for what stands after the type in parentheses; -1: nothing.
  int64_t modifier() const;
};
std::vector<CatalogColumnOf> CatalogColumnsOf(const Snapshot& snapshot);

/// PRIMARY KEY, UNIQUE or CHECK.
struct CatalogConstraint {
  const TableInfo* table = nullptr;
  std::string name;
  char kind = 'p';           ///< p, u, c, f
  std::vector<int> columns;  ///< of a key
  std::string check;
  int64_t oid = 0;
  const ForeignKey* foreign = nullptr;    ///< of f
  const TableInfo* referenced = nullptr;  ///< of f
  std::vector<int> referenced_columns = {};
  std::string referenced_key = {};  ///< the name of the constraint that it refers to

  bool IsIndex() const { return kind == 'p' || kind == 'u'; }
};
std::vector<CatalogConstraint> CatalogConstraintsOf(const Snapshot& snapshot);

inline int64_t OidOf(const TableInfo& table) { return 16384 + table.id; }
/// Of the view with that number in the snapshot, and of a type.
inline int64_t OidOfView(size_t number) { return (int64_t{1} << 29) + static_cast<int64_t>(number); }
/// ... and of a sequence.
inline int64_t OidOfSequence(size_t number) { return (int64_t{3} << 28) + static_cast<int64_t>(number); }
int64_t OidOfEnum(std::string_view name);
int64_t OidOfRole(std::string_view name);
/// What 'public.t'::regclass is: the number of a table or view; -1: there is none.
int64_t OidOfName(std::string_view text, const Snapshot& snapshot);
/// format_type(x, y) as an expression of SQL. `types`: those of CREATE TYPE, or nullptr.
std::string FormatTypeText(const std::vector<EnumType>* types);

inline Value CatalogText(std::string text) { return Value::Text(std::move(text)); }
inline Value CatalogNumber(int64_t n) { return Value::Int(SqlType::Of(TypeId::kBigint), n); }
inline Value CatalogFlag(bool b) { return Value::Int(SqlType::Of(TypeId::kBoolean), b ? 1 : 0); }
inline Value YesOrNo(bool b) { return Value::Text(b ? "YES" : "NO"); }
inline Value NoText() { return Value::Null(SqlType::Text()); }
inline Value NoNumber() { return Value::Null(SqlType::Of(TypeId::kBigint)); }
/// NULL if it is below 0.
inline Value NumberOrNull(int64_t n) { return n < 0 ? NoNumber() : CatalogNumber(n); }
/// The schema of a qualified name.
inline std::string ShownSchema(std::string_view qualified) {
  const std::string_view schema = SchemaOfName(qualified);
  return std::string(schema.empty() ? kTheSchema : schema);
}
inline std::string SchemaOf(const ViewSchema& view) {
  return view.temporary ? std::string(kTemporarySchema) : ShownSchema(view.name);
}
inline std::string SchemaOf(const TableInfo& table) { return ShownSchema(table.schema.name); }
/// Its number in pg_namespace.
int64_t OidOfSchema(std::string_view schema);
/// The text of the session's path, as SHOW search_path has it.
std::string PathText(const Snapshot& snapshot);

}  // namespace tessera
