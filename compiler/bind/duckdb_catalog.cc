// duckdb_tables(), duckdb_views() and duckdb_columns().
#include <string>
#include <vector>

#include "compiler/bind/catalog_tables.h"
#include "compiler/query/schema_text.h"

namespace tessera {
namespace {

using Rows = std::vector<std::vector<Value>>;

constexpr TypeId kText = TypeId::kText, kNumber = TypeId::kBigint, kFlag = TypeId::kBoolean;

Value WithoutNewline(std::string sql) {
  sql.resize(sql.rfind(';') + 1);
  return CatalogText(std::move(sql));
}

Rows Tables(const Snapshot& snapshot) {
  Rows rows;
  for (const auto& table : snapshot.tables) {
    const TableSchema& schema = table->schema;
    rows.push_back(
        {CatalogText(kTheDatabase), CatalogText(SchemaOf(*table)), CatalogText(BaseName(schema.name)),
         CatalogFlag(IsTemporaryName(schema.name)), CatalogFlag(!schema.primary_key.empty()),
         CatalogNumber(static_cast<int64_t>(table->rows)), CatalogNumber(static_cast<int64_t>(schema.columns.size())),
         CatalogNumber(static_cast<int64_t>(schema.checks.size())), WithoutNewline(CreateTableText(schema))});
  }
  return rows;
}

Rows ViewRows(const Snapshot& snapshot) {
  Rows rows;
  for (const auto& view : snapshot.views) {
    rows.push_back({CatalogText(kTheDatabase), CatalogText(SchemaOf(*view)), CatalogText(BaseName(view->name)),
                    CatalogFlag(view->temporary), CatalogNumber(static_cast<int64_t>(view->columns.size())),
                    WithoutNewline(CreateViewText(*view))});
  }
  return rows;
}

Rows Columns(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogColumnOf& c : CatalogColumnsOf(snapshot)) {
    Value value = NoText();
    if (c.schema != nullptr && c.schema->default_text) value = CatalogText(*c.schema->default_text);
    if (c.schema != nullptr && c.schema->default_expression) value = CatalogText(*c.schema->default_expression);
    rows.push_back({CatalogText(kTheDatabase), CatalogText(c.schema_name), CatalogText(c.relation), CatalogText(c.name),
                    CatalogNumber(c.number), std::move(value), CatalogFlag(c.schema == nullptr || !c.schema->not_null),
                    CatalogText(c.type_name)});
  }
  return rows;
}

}  // namespace

const std::vector<CatalogTable>& DuckdbCatalog() {
  static const char* const kSchema = "main";
  static const std::vector<CatalogTable> tables = {
      {kSchema,
       "duckdb_tables",
       {{"database_name", kText},
        {"schema_name", kText},
        {"table_name", kText},
        {"temporary", kFlag},
        {"has_primary_key", kFlag},
        {"estimated_size", kNumber},
        {"column_count", kNumber},
        {"check_constraint_count", kNumber},
        {"sql", kText}},
       Tables},
      {kSchema,
       "duckdb_views",
       {{"database_name", kText},
        {"schema_name", kText},
        {"view_name", kText},
        {"temporary", kFlag},
        {"column_count", kNumber},
        {"sql", kText}},
       ViewRows},
      {kSchema,
       "duckdb_columns",
       {{"database_name", kText},
        {"schema_name", kText},
        {"table_name", kText},
        {"column_name", kText},
        {"column_index", kNumber},
        {"column_default", kText},
        {"is_nullable", kFlag},
        {"data_type", kText}},
       Columns},
  };
  return tables;
}

}  // namespace tessera
