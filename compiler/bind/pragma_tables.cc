#include "compiler/bind/pragma_tables.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/bind/catalog_query.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/query/schema_text.h"

namespace tessera {
namespace {

using Rows = std::vector<std::vector<Value>>;

constexpr TypeId kText = TypeId::kText, kNumber = TypeId::kBigint;

Value NumberOf(size_t n) { return CatalogNumber(static_cast<int64_t>(n)); }
Value ZeroOrOne(bool b) { return CatalogNumber(b ? 1 : 0); }

Result<Rows> TableInfoRows(const std::string& name, const Snapshot& snapshot, int) {
  Rows rows;
  const int64_t oid = OidOfName(name, snapshot);
  for (const CatalogColumnOf& c : CatalogColumnsOf(snapshot)) {
    if (c.relation_oid != oid) continue;
    Value value = NoText();
    int64_t key = 0;
    if (c.schema != nullptr) {
      if (c.schema->default_text)
        value = CatalogText(c.schema->type.IsQuoted() ? QuotedText(*c.schema->default_text) : *c.schema->default_text);
      if (c.schema->default_expression) value = CatalogText(*c.schema->default_expression);
      const std::vector<int>& keys = c.table->primary_key;
      const auto found = std::ranges::find(keys, static_cast<int>(c.number) - 1);
      if (found != keys.end()) key = found - keys.begin() + 1;
    }
    rows.push_back({CatalogNumber(c.number - 1), CatalogText(c.name), CatalogText(c.type_name),
                    ZeroOrOne(c.schema != nullptr && c.schema->not_null), std::move(value), CatalogNumber(key)});
  }
  return rows;
}

Result<Rows> IndexListRows(const std::string& name, const Snapshot& snapshot, int) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (!c.IsIndex() || OidOf(*c.table) != OidOfName(name, snapshot)) continue;
    rows.push_back({NumberOf(rows.size()), CatalogText(c.name), ZeroOrOne(true),
                    CatalogText(c.kind == 'p' ? "pk" : "u"), ZeroOrOne(false)});
  }
  return rows;
}

Result<Rows> IndexInfoRows(const std::string& name, const Snapshot& snapshot, int position) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (!c.IsIndex() || c.name != name) continue;
    for (const int column : c.columns) {
      rows.push_back({NumberOf(rows.size()), CatalogNumber(column),
                      CatalogText(c.table->schema.columns[static_cast<size_t>(column)].name)});
    }
  }
  if (rows.empty())
    return SqlError("index \"" + name + "\" does not exist", position, "PRAGMA index_list('t') lists them.");
  return rows;
}

Result<Rows> ForeignKeyRows(const std::string& name, const Snapshot& snapshot, int) {
  Rows rows;
  size_t id = 0;
  const int64_t oid = OidOfName(name, snapshot);
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (c.foreign == nullptr || OidOf(*c.table) != oid) continue;
    for (size_t i = 0; i < c.columns.size(); ++i) {
      rows.push_back({NumberOf(id), NumberOf(i), CatalogText(c.foreign->referenced),
                      CatalogText(c.table->schema.columns[static_cast<size_t>(c.columns[i])].name),
                      CatalogText(c.foreign->to[i]), CatalogText(std::string(ActionText(c.foreign->on_update))),
                      CatalogText(std::string(ActionText(c.foreign->on_delete))), CatalogText("NONE")});
    }
    ++id;
  }
  return rows;
}

/// Of an attached table: its database, and its schema there.
std::string ShownPlace(std::string_view name) {
  std::string shown = ShownName(name);
  shown.resize(shown.size() - BaseName(name).size() - 1);
  return shown;
}

Result<Rows> TableListRows(const std::string&, const Snapshot& snapshot, int) {
  Rows rows;
  const auto add = [&](const std::string& name, const char* type, size_t columns, std::string schema) {
    rows.push_back({CatalogText(schema), CatalogText(name), CatalogText(type), NumberOf(columns), ZeroOrOne(false),
                    ZeroOrOne(true)});
  };
  const auto shown = [](std::string_view name, bool temporary) -> std::string {
    const std::string_view schema = SchemaOfName(name);
    return temporary || schema == kTemporarySchema ? "temp" : schema.empty() ? "main" : std::string(schema);
  };
  for (const auto& table : snapshot.tables) {
    const TableSchema& schema = table->schema;
    add(BaseName(schema.name), schema.materialized ? "view" : "table", schema.columns.size(),
        shown(schema.name, false));
  }
  for (const auto& view : snapshot.views)
    add(BaseName(view->name), "view", view->columns.size(), shown(view->name, view->temporary));
  for (const auto& database : snapshot.attached) {
    for (const auto& table : database->tables) {
      const TableSchema& schema = table->schema;
      add(BaseName(schema.name), schema.materialized ? "view" : "table", schema.columns.size(),
          ShownPlace(schema.name));
    }
  }
  std::ranges::sort(rows, {}, [](const std::vector<Value>& row) { return row[1].text; });
  return rows;
}

/// (The compiler does not know where the files of the session's own database are.)
Result<Rows> DatabaseListRows(const std::string&, const Snapshot& snapshot, int) {
  Rows rows = {{CatalogNumber(0), CatalogText("main"), NoText()}};
  // (SQLite has a temporary one as number 1.)
  for (const auto& database : snapshot.attached)
    rows.push_back({NumberOf(rows.size() + 1), CatalogText(database->name), CatalogText(database->directory)});
  return rows;
}

struct PragmaTable {
  std::string_view name;
  bool takes_name;
  std::vector<CatalogColumn> columns;
  Result<Rows> (*rows)(const std::string&, const Snapshot&, int position);
};

const std::vector<PragmaTable>& PragmaTables() {
  static const std::vector<CatalogColumn> info = {{"cid", kNumber},     {"name", kText},       {"type", kText},
                                                  {"notnull", kNumber}, {"dflt_value", kText}, {"pk", kNumber}};
  static const std::vector<PragmaTable> tables = {
      {"pragma_table_info", true, info, TableInfoRows},
      {"pragma_table_xinfo", true, info, TableInfoRows},
      {"pragma_index_list",
       true,
       {{"seq", kNumber}, {"name", kText}, {"unique", kNumber}, {"origin", kText}, {"partial", kNumber}},
       IndexListRows},
      {"pragma_index_info", true, {{"seqno", kNumber}, {"cid", kNumber}, {"name", kText}}, IndexInfoRows},
      {"pragma_foreign_key_list",
       true,
       {{"id", kNumber},
        {"seq", kNumber},
        {"table", kText},
        {"from", kText},
        {"to", kText},
        {"on_update", kText},
        {"on_delete", kText},
        {"match", kText}},
       ForeignKeyRows},
      {"pragma_table_list",
       false,
       {{"schema", kText}, {"name", kText}, {"type", kText}, {"ncol", kNumber}, {"wr", kNumber}, {"strict", kNumber}},
       TableListRows},
      {"pragma_database_list", false, {{"seq", kNumber}, {"name", kText}, {"file", kText}}, DatabaseListRows},
  };
  return tables;
}

}  // namespace

Result<std::unique_ptr<Query>> PragmaQuery(std::string_view function, const std::string* argument,
                                           const Snapshot& snapshot, int position) {
  const auto table = std::ranges::find(PragmaTables(), function, &PragmaTable::name);
  if (table == PragmaTables().end()) {
    std::string names;
    for (const PragmaTable& t : PragmaTables()) names += (names.empty() ? "" : ", ") + std::string(t.name);
    return Unsupported("function " + std::string(function) + " in FROM is not supported", position,
                       "There are " + names + ".");
  }
  const std::string shown(function);
  if (table->takes_name != (argument != nullptr)) {
    return SqlError(shown + (table->takes_name ? " takes a name" : " takes no argument"), position,
                    "Write " + shown + (table->takes_name ? "('name')." : "()."));
  }
  TESSERA_ASSIGN(const Rows rows, table->rows(argument == nullptr ? "" : *argument, snapshot, position));
  std::vector<std::string> names;
  std::vector<SqlType> types;
  for (const CatalogColumn& column : table->columns) {
    names.emplace_back(column.name);
    types.push_back(SqlType::Of(column.type));
  }
  return ConstantRows(names, types, rows);
}

}  // namespace tessera
