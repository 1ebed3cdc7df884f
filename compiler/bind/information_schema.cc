// information_schema: what the standard says of tables, columns, views and constraints.
#include <algorithm>
#include <string>
#include <vector>

#include "base/lower_case.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/query/schema_text.h"

namespace tessera {
namespace {

using Rows = std::vector<std::vector<Value>>;

constexpr TypeId kText = TypeId::kText, kNumber = TypeId::kBigint;

Value Database() { return CatalogText(kTheDatabase); }

Rows Schemata(const Snapshot& snapshot) {
  Rows rows;
  for (const char* name : {kTheSchema, "information_schema", "pg_catalog"})
    rows.push_back({Database(), CatalogText(name), NoText()});
  for (const std::string& name : snapshot.names.schemas) rows.push_back({Database(), CatalogText(name), NoText()});
  return rows;
}

Rows Tables(const Snapshot& snapshot) {
  Rows rows;
  const auto add = [&](const std::string& schema, const std::string& name, const char* kind, bool view) {
    rows.push_back({Database(), CatalogText(schema), CatalogText(name), CatalogText(kind), YesOrNo(!view)});
  };
  // (Materialised views are not of the standard: pg_matviews has them.)
  for (const auto& table : snapshot.tables) {
    if (table->schema.materialized) continue;
    const std::string& name = table->schema.name;
    add(SchemaOf(*table), BaseName(name), IsTemporaryName(name) ? "LOCAL TEMPORARY" : "BASE TABLE", false);
  }
  for (const auto& view : snapshot.views) add(SchemaOf(*view), BaseName(view->name), "VIEW", true);
  return rows;
}

Rows Columns(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogColumnOf& c : CatalogColumnsOf(snapshot)) {
    const CatalogType* const type = c.type;
    Value value = NoText(), generated = NoText();
    if (c.schema != nullptr && c.schema->default_text) value = CatalogText(*c.schema->default_text);
    const bool is_identity = c.identity != ' ';
    if (c.schema != nullptr && c.schema->default_expression && !is_identity)
      value = CatalogText(*c.schema->default_expression);
    if (c.schema != nullptr && c.schema->generated_text) generated = CatalogText(*c.schema->generated_text);
    const bool is_moment = type != nullptr && (type->category == 'D' || type->category == 'T');
    const bool is_integer = type != nullptr && type->precision >= 0 && type->internal[0] == 'i';
    const bool is_generated = !generated.null;
    rows.push_back({Database(), CatalogText(c.schema_name), CatalogText(c.relation), CatalogText(c.name),
                    CatalogNumber(c.number), std::move(value), YesOrNo(c.schema == nullptr || !c.schema->not_null),
                    CatalogText(type != nullptr ? type->name : "USER-DEFINED"), NumberOrNull(c.length),
                    NumberOrNull(c.precision >= 0 || type == nullptr ? c.precision : type->precision),
                    NumberOrNull(type != nullptr ? type->radix : -1),
                    NumberOrNull(c.scale >= 0 ? c.scale
                                 : is_integer ? 0
                                              : -1),
                    NumberOrNull(!is_moment          ? -1
                                 : type->oid == 1082 ? 0
                                                     : 6),
                    CatalogText(type != nullptr ? type->internal : c.type_name), YesOrNo(is_identity),
                    is_identity ? CatalogText(c.identity == 'a' ? "ALWAYS" : "BY DEFAULT") : NoText(),
                    CatalogText(is_generated ? "ALWAYS" : "NEVER"), std::move(generated), YesOrNo(!c.is_view)});
  }
  return rows;
}

Rows ViewRows(const Snapshot& snapshot) {
  Rows rows;
  for (const auto& view : snapshot.views) {
    rows.push_back({Database(), CatalogText(SchemaOf(*view)), CatalogText(BaseName(view->name)),
                    CatalogText(view->query), CatalogText("NONE"), YesOrNo(false), YesOrNo(false)});
  }
  return rows;
}

Rows SequenceRows(const Snapshot& snapshot) {
  Rows rows;
  const auto number = [](int64_t n) { return CatalogText(std::to_string(n)); };
  for (const Sequence& s : snapshot.names.sequences) {
    if (s.identity != Sequence::Identity::kNone) continue;  // as in PostgreSQL
    const int64_t bits = s.type == "SMALLINT" ? 16 : s.type == "INTEGER" ? 32 : 64;
    rows.push_back({Database(), CatalogText(ShownSchema(s.name)), CatalogText(BaseName(s.name)),
                    CatalogText(LowerCase(s.type)), CatalogNumber(bits), CatalogNumber(2), CatalogNumber(0),
                    number(s.start), number(s.least), number(s.greatest), number(s.increment), YesOrNo(s.cycles)});
  }
  return rows;
}

Rows TableConstraints(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    const char* const kind = c.kind == 'p'   ? "PRIMARY KEY"
                             : c.kind == 'u' ? "UNIQUE"
                             : c.kind == 'f' ? "FOREIGN KEY"
                                             : "CHECK";
    const Value schema = CatalogText(SchemaOf(*c.table));
    rows.push_back({Database(), schema, CatalogText(c.name), Database(), schema,
                    CatalogText(BaseName(c.table->schema.name)), CatalogText(kind),
                    YesOrNo(c.foreign != nullptr && c.foreign->deferrable),
                    YesOrNo(c.foreign != nullptr && c.foreign->deferred)});
  }
  return rows;
}

/// Of the key that a foreign key refers to: which of its columns column `i` of the foreign key stands for, from 1.
int64_t PlaceInKey(const CatalogConstraint& c, size_t i) {
  const TableSchema& schema = c.referenced->schema;
  const std::vector<int>* key = &schema.primary_key;
  for (const UniqueKey& unique : schema.unique_keys) {
    if (unique.name == c.referenced_key) key = &unique.columns;
  }
  return std::ranges::find(*key, c.referenced_columns[i]) - key->begin() + 1;
}

Rows KeyColumns(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    for (size_t i = 0; i < c.columns.size(); ++i) {
      const ColumnSchema& column = c.table->schema.columns[static_cast<size_t>(c.columns[i])];
      const Value schema = CatalogText(SchemaOf(*c.table));
      rows.push_back({Database(), schema, CatalogText(c.name), Database(), schema,
                      CatalogText(BaseName(c.table->schema.name)), CatalogText(column.name),
                      CatalogNumber(static_cast<int64_t>(i) + 1),
                      c.foreign != nullptr ? CatalogNumber(PlaceInKey(c, i)) : NoNumber()});
    }
  }
  return rows;
}

Rows ReferentialConstraints(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (c.foreign == nullptr) continue;
    rows.push_back({Database(), CatalogText(SchemaOf(*c.table)), CatalogText(c.name), Database(),
                    CatalogText(SchemaOf(*c.referenced)), CatalogText(c.referenced_key), CatalogText("NONE"),
                    CatalogText(std::string(ActionText(c.foreign->on_update))),
                    CatalogText(std::string(ActionText(c.foreign->on_delete)))});
  }
  return rows;
}

Rows CheckConstraints(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (c.kind == 'c')
      rows.push_back({Database(), CatalogText(SchemaOf(*c.table)), CatalogText(c.name), CatalogText(c.check)});
  }
  return rows;
}

constexpr const char* kSchema = "information_schema";

/// Of schemas, tables, columns and views.
std::vector<CatalogTable> RelationTables() {
  return {
      {kSchema, "schemata", {{"catalog_name", kText}, {"schema_name", kText}, {"schema_owner", kText}}, Schemata},
      {kSchema,
       "tables",
       {{"table_catalog", kText},
        {"table_schema", kText},
        {"table_name", kText},
        {"table_type", kText},
        {"is_insertable_into", kText}},
       Tables},
      {kSchema,
       "columns",
       {{"table_catalog", kText},
        {"table_schema", kText},
        {"table_name", kText},
        {"column_name", kText},
        {"ordinal_position", kNumber},
        {"column_default", kText},
        {"is_nullable", kText},
        {"data_type", kText},
        {"character_maximum_length", kNumber},
        {"numeric_precision", kNumber},
        {"numeric_precision_radix", kNumber},
        {"numeric_scale", kNumber},
        {"datetime_precision", kNumber},
        {"udt_name", kText},
        {"is_identity", kText},
        {"identity_generation", kText},
        {"is_generated", kText},
        {"generation_expression", kText},
        {"is_updatable", kText}},
       Columns},
      {kSchema,
       "views",
       {{"table_catalog", kText},
        {"table_schema", kText},
        {"table_name", kText},
        {"view_definition", kText},
        {"check_option", kText},
        {"is_updatable", kText},
        {"is_insertable_into", kText}},
       ViewRows},
      {kSchema,
       "sequences",
       {{"sequence_catalog", kText},
        {"sequence_schema", kText},
        {"sequence_name", kText},
        {"data_type", kText},
        {"numeric_precision", kNumber},
        {"numeric_precision_radix", kNumber},
        {"numeric_scale", kNumber},
        {"start_value", kText},
        {"minimum_value", kText},
        {"maximum_value", kText},
        {"increment", kText},
        {"cycle_option", kText}},
       SequenceRows},
  };
}

std::vector<CatalogTable> ConstraintTables() {
  return {
      {kSchema,
       "table_constraints",
       {{"constraint_catalog", kText},
        {"constraint_schema", kText},
        {"constraint_name", kText},
        {"table_catalog", kText},
        {"table_schema", kText},
        {"table_name", kText},
        {"constraint_type", kText},
        {"is_deferrable", kText},
        {"initially_deferred", kText}},
       TableConstraints},
      {kSchema,
       "key_column_usage",
       {{"constraint_catalog", kText},
        {"constraint_schema", kText},
        {"constraint_name", kText},
        {"table_catalog", kText},
        {"table_schema", kText},
        {"table_name", kText},
        {"column_name", kText},
        {"ordinal_position", kNumber},
        {"position_in_unique_constraint", kNumber}},
       KeyColumns},
      {kSchema,
       "referential_constraints",
       {{"constraint_catalog", kText},
        {"constraint_schema", kText},
        {"constraint_name", kText},
        {"unique_constraint_catalog", kText},
        {"unique_constraint_schema", kText},
        {"unique_constraint_name", kText},
        {"match_option", kText},
        {"update_rule", kText},
        {"delete_rule", kText}},
       ReferentialConstraints},
      {kSchema,
       "check_constraints",
       {{"constraint_catalog", kText},
        {"constraint_schema", kText},
        {"constraint_name", kText},
        {"check_clause", kText}},
       CheckConstraints},
  };
}

}  // namespace

const std::vector<CatalogTable>& InformationSchema() {
  static const std::vector<CatalogTable> tables = [] {
    std::vector<CatalogTable> all = RelationTables(), constraints = ConstraintTables();
    for (CatalogTable& table : constraints) all.push_back(std::move(table));
    return all;
  }();
  return tables;
}

}  // namespace tessera
