#include "compiler/bind/relation_name.h"

#include <algorithm>
#include <utility>

#include "base/lower_case.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/schema_text.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// The qualified name of `name` in a schema that is written. Errors: there is none, or it can only be read.
Result<std::string> NameIn(std::string_view schema, std::string_view name, int position, const Snapshot& snapshot) {
  if (const std::optional<std::string> found = FindSchema(schema, snapshot)) return QualifiedName(*found, name);
  if (snapshot.FindAttached(schema) != nullptr) return AttachedIsRead(schema, position);
  const bool is_catalog = schema == "information_schema" || schema == "pg_catalog";
  if (!is_catalog) return SchemaNotFound(schema, position, snapshot);
  if (FindCatalogTable(schema, name) != nullptr)
    return SqlError(ErrorKind::kWrongObjectType, "tables of " + std::string(schema) + " can only be read", position);
  return SqlError(ErrorKind::kUndefinedTable,
                  "table \"" + std::string(schema) + "." + std::string(name) + "\" does not exist", position,
                  "There are " + NamesOfCatalogTables(schema) + ".");
}

/// The first of `text`, which it loses: a name in double quotes, or one that is folded.
std::string TakeName(std::string_view* text) {
  std::string name;
  if (!text->starts_with('"')) {
    const size_t end = std::min(text->find('.'), text->size());
    name = LowerCase(text->substr(0, end));
    text->remove_prefix(end);
    return name;
  }
  text->remove_prefix(1);
  while (!text->empty()) {
    const bool quote = text->front() == '"';
    if (quote && !text->starts_with("\"\"")) break;
    name += text->front();
    text->remove_prefix(quote ? 2 : 1);
  }
  text->remove_prefix(std::min<size_t>(1, text->size()));
  return name;
}

}  // namespace

bool IsDefaultSchema(std::string_view schema) { return schema == "main" || schema == "public"; }

std::optional<std::string> FindSchema(std::string_view schema, const Snapshot& snapshot) {
  if (IsDefaultSchema(schema)) return std::string();
  if (schema == kTemporarySchema || std::ranges::binary_search(snapshot.names.schemas, schema))
    return std::string(schema);
  return std::nullopt;
}

Status SchemaNotFound(std::string_view schema, int position, const Snapshot& snapshot) {
  std::vector<std::string_view> names(snapshot.names.schemas.begin(), snapshot.names.schemas.end());
  names.insert(names.end(), {"public", "main"});
  const std::string nearest = NearestName(schema, names);
  return SqlError(ErrorKind::kUndefinedSchema, "schema \"" + std::string(schema) + "\" does not exist", position,
                  nearest.empty() ? "CREATE SCHEMA makes one." : "Perhaps you meant schema \"" + nearest + "\".");
}

std::string RelationName(std::string_view name, const Snapshot& snapshot) {
  std::string qualified = snapshot.Resolve(name);
  if (!snapshot.path.empty()) NoteName(name, qualified, -1);
  return qualified;
}

Result<std::string> RelationName(const ParseNode& range_var, const Snapshot& snapshot, bool temporary, bool by_path) {
  const std::string_view schema = range_var.Text(Field::k_schemaname), name = range_var.Text(Field::k_relname);
  if (const std::string_view database = range_var.Text(Field::k_catalogname);
      !database.empty() && database != kTheDatabase) {
    if (snapshot.FindAttached(database) != nullptr) return AttachedIsRead(database, range_var.location());
    return SqlError(ErrorKind::kUndefinedObject, "there is no attached database \"" + std::string(database) + "\"",
                    range_var.location(),
                    "Write schema.table, or ATTACH 'directory' AS " + std::string(database) + ".");
  }
  if (!schema.empty()) return NameIn(schema, name, range_var.location(), snapshot);
  if (!by_path || snapshot.path.empty()) {
    std::string hiding = QualifiedName(kTemporarySchema, name);
    return temporary && snapshot.Find(hiding) != nullptr ? hiding : std::string(name);
  }
  std::string qualified = snapshot.Resolve(name);
  if (IsTemporaryName(qualified) && !temporary) return std::string(name);
  NoteName(name, qualified, range_var.location());
  return qualified;
}

Status AttachedIsRead(std::string_view database, int position) {
  return SqlError(ErrorKind::kReadOnlyTransaction,
                  "database \"" + std::string(database) + "\" is attached, and can only be read", position,
                  "Open that database to change it.");
}

Result<std::string> ReadRelationName(const ParseNode& range_var, const Snapshot& snapshot, bool temporary,
                                     bool by_path) {
  const std::string_view database = range_var.Text(Field::k_catalogname);
  const std::string_view schema = range_var.Text(Field::k_schemaname), name = range_var.Text(Field::k_relname);
  const AttachedDatabase* found = nullptr;
  if (!database.empty()) {
    found = snapshot.FindAttached(database);
  } else if (!schema.empty() && !FindSchema(schema, snapshot)) {
    found = snapshot.FindAttached(schema);
  }
  if (found == nullptr) return RelationName(range_var, snapshot, temporary, by_path);
  const int position = range_var.location();
  const Snapshot& other = *found->snapshot;
  std::string qualified(name);
  if (!database.empty()) {
    const std::optional<std::string> there = FindSchema(schema, other);
    if (!there) return SchemaNotFound(schema, position, other);
    qualified = QualifiedName(*there, name);
  }
  if (FindView(other.views, qualified) != nullptr) {
    return Unsupported(
        "a view of an attached database (" + found->name + "." + std::string(name) + ") is not supported", position,
        "Write its query over the tables of " + found->name + ".");
  }
  return AttachedName(found->name, qualified);
}

Result<std::string> NewRelationName(const ParseNode& range_var, const Snapshot& snapshot) {
  const std::string_view schema = range_var.Text(Field::k_schemaname), name = range_var.Text(Field::k_relname);
  if (name.find(kSchemaSeparator) != std::string_view::npos)
    return SqlError("a name cannot have the character U+001F", range_var.location(), "Choose another name.");
  if (range_var.Text(Field::k_relpersistence) == "t") {
    if (!schema.empty() && schema != kTemporarySchema) {
      return SqlError("cannot create temporary relation in non-temporary schema", range_var.location(),
                      "Leave out the schema.");
    }
    return QualifiedName(kTemporarySchema, name);
  }
  if (!schema.empty()) return RelationName(range_var, snapshot);
  return QualifiedName(snapshot.path.empty() ? "" : snapshot.path[0], name);
}

Result<std::string> NameOfDropped(const ParseNode& object, const Snapshot& snapshot) {
  std::vector<std::string_view> parts;
  for (const ParseNode& name : *object.Get(Field::k_items)) parts.push_back(name.Text(Field::k_sval));
  return NameOfParts(std::move(parts), snapshot);
}

Result<std::string> NameOfParts(std::vector<std::string_view> parts, const Snapshot& snapshot) {
  if (parts.size() > 2 && parts.front() == kTheDatabase) parts.erase(parts.begin());
  if (parts.size() == 1) return RelationName(parts[0], snapshot);
  if (parts.size() > 2 && snapshot.FindAttached(parts.front()) != nullptr) return AttachedIsRead(parts.front(), -1);
  if (parts.size() == 2) return NameIn(parts[0], parts[1], -1, snapshot);
  return Unsupported("a name of more than a schema and a table is not supported", -1, "Write schema.table.");
}

std::string NameOfText(std::string_view text, const Snapshot* snapshot) {
  std::string name = TakeName(&text);
  if (!text.starts_with('.')) return snapshot != nullptr ? RelationName(name, *snapshot) : name;
  text.remove_prefix(1);
  return QualifiedName(IsDefaultSchema(name) || name == "pg_catalog" ? "" : name, TakeName(&text));
}

std::vector<std::string> NamesOfPath(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const size_t first = one.find_first_not_of(" \t"), last = one.find_last_not_of(" \t");
    if (first == std::string_view::npos) continue;
    std::string_view name = one.substr(first, last - first + 1);
    names.push_back(TakeName(&name));
  }
  return names;
}

std::string TextOfName(std::string_view qualified) {
  // (A name that needs no quotes in a text may need them in a statement, which does no harm.)
  return QuotedName(qualified);
}

Result<std::string> WithSchemas(std::string_view text, int offset, const std::vector<Dependencies::Name>& names) {
  std::string out(text);
  std::vector<std::pair<size_t, std::string>> added;
  for (const Dependencies::Name& name : names) {
    const std::string schema(SchemaOfName(name.qualified));
    if (name.position < 0 || schema.empty() || schema == kTemporarySchema) continue;
    const auto at = static_cast<size_t>(name.position - offset);
    if (name.position < offset || at >= text.size()) continue;
    const std::string_view rest = text.substr(at);
    const bool is_there =
        rest.starts_with('"') || LowerCase(rest.substr(0, name.written.size())) == LowerCase(name.written);
    if (!is_there) {
      return Unsupported("a name that a view reads by the search path is not supported here", name.position,
                         "Write " + QuotedName(name.qualified) + ".");
    }
    added.emplace_back(at, QuotedName(schema) + ".");
  }
  std::ranges::sort(added);
  added.erase(std::unique(added.begin(), added.end()), added.end());
  for (auto one = added.rbegin(); one != added.rend(); ++one) out.insert(one->first, one->second);
  return out;
}

}  // namespace tessera
