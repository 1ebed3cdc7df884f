#include "compiler/bind/relation_name.h"

#include "compiler/bind/catalog_tables.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

constexpr const char* kOneSchemaHint =
    "There is one schema, main or public, beside pg_temp for temporary tables; names of tables stand alone.";

/// The one schema is "main", as in DuckDB and SQLite, and "public", as in PostgreSQL.
bool IsTheSchema(std::string_view schema) { return schema == "main" || schema == "public"; }

}  // namespace

Status CheckSchemaName(const ParseNode& range_var) {
  const std::string_view schema = range_var.Text(Field::k_schemaname);
  const bool has_catalog = range_var.Get(Field::k_catalogname) != nullptr;
  if (!has_catalog && (schema.empty() || schema == kTemporarySchema || IsTheSchema(schema))) return {};
  const bool is_catalog = schema == "information_schema" || schema == "pg_catalog";
  if (is_catalog && FindCatalogTable(schema, range_var.Text(Field::k_relname)) != nullptr)
    return SqlError(ErrorKind::kWrongObjectType, "tables of " + std::string(schema) + " can only be read",
                    range_var.location());
  if (is_catalog) {
    return SqlError(
        ErrorKind::kUndefinedTable,
        "table \"" + std::string(schema) + "." + std::string(range_var.Text(Field::k_relname)) + "\" does not exist",
        range_var.location(), "There are " + NamesOfCatalogTables(schema) + ".");
  }
  return Unsupported("a table name with a schema is not supported", range_var.location(), kOneSchemaHint);
}

Result<std::string> RelationName(const ParseNode& range_var, const Snapshot& snapshot, bool temporary) {
  TESSERA_TRY(CheckSchemaName(range_var));
  const std::string_view schema = range_var.Text(Field::k_schemaname), name = range_var.Text(Field::k_relname);
  if (schema == kTemporarySchema) return QualifiedName(schema, name);
  return schema.empty() && temporary ? RelationName(name, snapshot) : std::string(name);
}

std::string RelationName(std::string_view name, const Snapshot& snapshot) {
  std::string hiding = QualifiedName(kTemporarySchema, name);
  return snapshot.Find(hiding) != nullptr ? hiding : std::string(name);
}

Result<std::string> NewRelationName(const ParseNode& range_var) {
  TESSERA_TRY(CheckSchemaName(range_var));
  const std::string_view schema = range_var.Text(Field::k_schemaname), name = range_var.Text(Field::k_relname);
  if (name.find(kSchemaSeparator) != std::string_view::npos)
    return SqlError("a name cannot have the character U+001F", range_var.location(), "Choose another name.");
  const bool temporary = range_var.Text(Field::k_relpersistence) == "t";
  if (temporary && !schema.empty() && schema != kTemporarySchema) {
    return SqlError("cannot create temporary relation in non-temporary schema", range_var.location(),
                    "Leave out the schema.");
  }
  return temporary || schema == kTemporarySchema ? QualifiedName(kTemporarySchema, name) : std::string(name);
}

Result<std::string> NameOfDropped(const ParseNode& object, const Snapshot& snapshot) {
  const ParseNode& names = *object.Get(Field::k_items);
  const ParseNode* name = names.first();
  const std::string_view first = name->Text(Field::k_sval);
  const bool in_schema = names.size() == 2 && (IsTheSchema(first) || first == kTemporarySchema);
  if (in_schema) name = name->next();
  if (name->next() != nullptr) return Unsupported("a table name with a schema is not supported", -1, kOneSchemaHint);
  const std::string_view base = name->Text(Field::k_sval);
  if (!in_schema) return RelationName(base, snapshot);
  return first == kTemporarySchema ? QualifiedName(first, base) : std::string(base);
}

}  // namespace tessera
