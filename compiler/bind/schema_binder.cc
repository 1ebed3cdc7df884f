#include "compiler/bind/schema_binder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/foreign_key_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/relation_name.h"
#include "compiler/bind/sequence_binder.h"
#include "compiler/query/schema_text.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

std::string Quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

void Notice(std::string text, Statement* out) {
  out->kind = Statement::Kind::kNotice;
  out->notice = std::move(text);
}

bool IsIn(std::string_view qualified, const std::vector<std::string>& schemas) {
  return std::ranges::count(schemas, SchemaOfName(qualified)) > 0;
}

/// What a schema holds, for the error of one that is not empty; "": nothing.
std::string FirstIn(const std::string& schema, const Snapshot& snapshot) {
  for (const auto& table : snapshot.tables) {
    if (SchemaOfName(table->schema.name) == schema) return "table " + Quoted(table->schema.name);
  }
  for (const auto& view : snapshot.views) {
    if (SchemaOfName(view->name) == schema) return "view " + Quoted(view->name);
  }
  for (const Sequence& sequence : snapshot.names.sequences) {
    if (SchemaOfName(sequence.name) == schema) return "sequence " + Quoted(sequence.name);
  }
  return {};
}

/// Sequences get new names: `out` has them, and the tables with a DEFAULT of one but for `altered`, whose schema is changed.
void RenameSequences(const std::vector<std::pair<Sequence, std::string>>& renamed, const Snapshot& snapshot,
                     TableSchema* altered, Statement* out) {
  const auto rename = [&](TableSchema* schema) {
    bool any = false;
    for (ColumnSchema& column : schema->columns) {
      if (!column.default_expression) continue;
      const std::optional<std::string> sequence = SequenceOfDefault(*column.default_expression);
      for (const auto& [old, name] : renamed) {
        if (sequence != old.name) continue;
        column.default_expression = NextValueText(name);
        any = true;
      }
    }
    return any;
  };
  for (const auto& [old, name] : renamed) {
    Sequence sequence = old;
    sequence.name = name;
    out->definition.dropped_sequences.push_back(old.name);
    out->definition.sequences.push_back(std::move(sequence));
  }
  if (altered != nullptr) rename(altered);
  for (const auto& table : snapshot.tables) {
    if (out->target != nullptr && table->id == out->target->id) continue;
    TableSchema schema = table->schema;
    if (rename(&schema)) out->definition.dependents.push_back(std::move(schema));
  }
}

Status CheckFree(const std::string& name, int position, const Snapshot& snapshot) {
  const bool taken = snapshot.Find(name) != nullptr || FindView(snapshot.views, name, false) != nullptr ||
                     FindSequence(snapshot.names.sequences, name) != nullptr;
  return taken ? SqlError(ErrorKind::kDuplicateTable, "relation " + Quoted(name) + " already exists", position)
               : Status::Ok();
}

/// A table as it is, to be given another schema.
void AlterTable(const TableInfo& table, const char* command, Statement* out) {
  out->kind = Statement::Kind::kAlterTable;
  out->table = table.schema.name;
  out->target = NumberRows(table);
  out->definition.schema = table.schema;
  out->notice = command;
}

Result<const Sequence*> FindNamed(const ParseNode& relation, const Snapshot& snapshot) {
  TESSERA_ASSIGN(const std::string name, RelationName(relation, snapshot));
  const Sequence* const found = FindSequence(snapshot.names.sequences, name);
  if (found != nullptr) return found;
  return SqlError(ErrorKind::kUndefinedTable, "sequence " + Quoted(name) + " does not exist", relation.location());
}

}  // namespace

Status BindCreateSchema(const ParseNode& create, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kCreateSchema;
  out->value = create.Text(Field::k_schemaname);
  out->definition.if_exists = create.Get(Field::k_if_not_exists) != nullptr;
  if (out->value.empty())
    return Unsupported("CREATE SCHEMA without a name is not supported", position, "Write CREATE SCHEMA name.");
  if (create.Get(Field::k_schemaElts) != nullptr)
    return Unsupported("CREATE SCHEMA with statements in it is not supported", position,
                       "Write them afterwards, with the schema before the names.");
  if (out->value.find(kSchemaSeparator) != std::string::npos)
    return SqlError("a name cannot have the character U+001F", position, "Choose another name.");
  const bool is_system = out->value.starts_with("pg_") || out->value == "information_schema";
  const bool is_there = is_system || FindSchema(out->value, snapshot).has_value();
  if (is_there && out->definition.if_exists) {
    Notice("CREATE SCHEMA: no effect, schema " + Quoted(out->value) + " exists", out);
    return {};
  }
  if (is_system)
    return SqlError("unacceptable schema name " + Quoted(out->value), position,
                    "The prefix pg_ and information_schema are the system's.");
  if (snapshot.FindAttached(out->value) != nullptr)
    return SqlError(ErrorKind::kDuplicateSchema, "a database is attached as " + Quoted(out->value), position,
                    "Enter DETACH " + QuotedName(out->value) + " first, or choose another name.");
  if (is_there)
    return SqlError(ErrorKind::kDuplicateSchema, "schema " + Quoted(out->value) + " already exists", position,
                    "Write CREATE SCHEMA IF NOT EXISTS.");
  return {};
}

Status BindDropSchema(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kDropSchema;
  out->definition.if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  const bool cascades = drop.Text(Field::k_behavior) == "DROP_CASCADE";
  for (const ParseNode& object : *drop.Get(Field::k_objects)) {
    const std::string name(object.Text(Field::k_sval));
    if (IsDefaultSchema(name) || name == kTemporarySchema || name == "pg_catalog" || name == "information_schema")
      return SqlError(ErrorKind::kDependentObjects, "cannot drop schema " + Quoted(name), position,
                      "It is always there.");
    if (!FindSchema(name, snapshot)) {
      if (out->definition.if_exists) continue;
      return SchemaNotFound(name, position, snapshot);
    }
    const std::string first = FirstIn(name, snapshot);
    if (!cascades && !first.empty())
      return SqlError(ErrorKind::kDependentObjects,
                      "cannot drop schema " + Quoted(name) + " because other objects depend on it: " + first, position,
                      "Write DROP SCHEMA " + QuotedName(name) + " CASCADE to drop them, too.");
    out->definition.dropped_schemas.push_back(name);
  }
  for (const auto& table : snapshot.tables) {
    TableSchema schema = table->schema;
    size_t gone = std::erase_if(schema.foreign_keys, [&](const ForeignKey& key) {
      return IsIn(key.referenced, out->definition.dropped_schemas);
    });
    for (ColumnSchema& column : schema.columns) {
      const auto sequence = column.default_expression ? SequenceOfDefault(*column.default_expression) : std::nullopt;
      if (!sequence || !IsIn(*sequence, out->definition.dropped_schemas)) continue;
      column.default_expression.reset();
      ++gone;
    }
    if (gone > 0) out->definition.dependents.push_back(std::move(schema));
  }
  return {};
}

namespace {

/// The view goes, and comes again in the other schema.
Status MoveView(const ParseNode& alter, const std::string& to, int position, const Snapshot& snapshot, Statement* out) {
  const ParseNode& relation = *alter.Get(Field::k_relation);
  TESSERA_ASSIGN(const std::string old, RelationName(relation, snapshot));
  const ViewSchema* const view = FindView(snapshot.views, old);
  if (view == nullptr && alter.Get(Field::k_missing_ok) != nullptr) {
    Notice("ALTER VIEW: no effect, view " + Quoted(old) + " does not exist", out);
    return {};
  }
  if (view == nullptr && snapshot.Find(old) != nullptr)
    return SqlError(ErrorKind::kWrongObjectType, Quoted(old) + " is not a view", position, "Write ALTER TABLE.");
  if (view == nullptr)
    return SqlError(ErrorKind::kUndefinedTable, "view " + Quoted(old) + " does not exist", relation.location());
  if (view->temporary)
    return SqlError("cannot move objects into or out of temporary schemas", position, "CREATE VIEW makes another.");
  auto moved = std::make_shared<ViewSchema>(*view);
  moved->name = QualifiedName(to, BaseName(old));
  if (moved->name == old) {
    Notice("ALTER VIEW: no effect, the view is in that schema", out);
    return {};
  }
  TESSERA_TRY(CheckFree(moved->name, position, snapshot));
  out->kind = Statement::Kind::kCreateView;
  out->tables = {old};
  out->definition.view = std::move(moved);
  return {};
}

}  // namespace

Status BindSetSchema(const ParseNode& alter, int position, const Snapshot& snapshot, Statement* out) {
  const std::string_view type = alter.Text(Field::k_objectType);
  const std::string_view written = alter.Text(Field::k_newschema);
  if (type != "OBJECT_TABLE" && type != "OBJECT_SEQUENCE" && type != "OBJECT_VIEW") {
    return Unsupported("ALTER " + std::string(type.starts_with("OBJECT_") ? type.substr(7) : type) +
                           " ... SET SCHEMA is not supported",
                       position, "Tables, views and sequences can be moved.");
  }
  const std::optional<std::string> to = FindSchema(written, snapshot);
  if (!to) return SchemaNotFound(written, position, snapshot);
  const ParseNode& relation = *alter.Get(Field::k_relation);
  if (*to == kTemporarySchema)
    return SqlError("cannot move objects into or out of temporary schemas", position,
                    "CREATE TEMP TABLE AS copies it.");
  if (type == "OBJECT_VIEW") return MoveView(alter, *to, position, snapshot, out);
  if (type == "OBJECT_SEQUENCE") {
    out->kind = Statement::Kind::kAlterSequence;
    TESSERA_ASSIGN(const Sequence* const sequence, FindNamed(relation, snapshot));
    if (sequence->table_id != 0)
      return Unsupported("SET SCHEMA of a sequence that a column owns is not supported", position,
                         "It moves with its table.");
    const std::string name = QualifiedName(*to, BaseName(sequence->name));
    if (name == sequence->name) return {};
    TESSERA_TRY(CheckFree(name, position, snapshot));
    RenameSequences({{*sequence, name}}, snapshot, nullptr, out);
    return {};
  }
  TESSERA_ASSIGN(const std::string old, RelationName(relation, snapshot));
  if (snapshot.Find(old) == nullptr && alter.Get(Field::k_missing_ok) != nullptr) {
    Notice("ALTER TABLE: no effect, table " + Quoted(old) + " does not exist", out);
    return {};
  }
  TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindTable(relation, snapshot));
  if (IsTemporaryName(old))
    return SqlError("cannot move objects into or out of temporary schemas", position, "CREATE TABLE AS copies it.");
  const std::string name = QualifiedName(*to, BaseName(old));
  if (name == old) {
    Notice("ALTER TABLE: no effect, the table is in that schema", out);
    return {};
  }
  TESSERA_TRY(CheckFree(name, position, snapshot));
  AlterTable(*table, "ALTER TABLE", out);
  out->definition.schema.name = name;
  std::vector<std::pair<Sequence, std::string>> moved;
  for (const Sequence& sequence : snapshot.names.sequences) {
    if (sequence.table_id != table->id) continue;
    moved.emplace_back(sequence, QualifiedName(*to, BaseName(sequence.name)));
    TESSERA_TRY(CheckFree(moved.back().second, position, snapshot));
  }
  RenameSequences(moved, snapshot, &out->definition.schema, out);
  RenameInForeignKeys(*table, snapshot, &out->definition);
  return {};
}

Status BindRenameSequence(const ParseNode& rename, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kAlterSequence;
  TESSERA_ASSIGN(const Sequence* const sequence, FindNamed(*rename.Get(Field::k_relation), snapshot));
  const std::string name = QualifiedName(SchemaOfName(sequence->name), rename.Text(Field::k_newname));
  TESSERA_TRY(CheckFree(name, position, snapshot));
  RenameSequences({{*sequence, name}}, snapshot, nullptr, out);
  return {};
}

namespace {

std::vector<std::string_view> PartsOf(const ParseNode& object) {
  std::vector<std::string_view> parts;
  const ParseNode* names = object.Get(Field::k_items);
  if (names == nullptr) names = object.Get(Field::k_names);
  if (names == nullptr) names = object.Get(Field::k_objname);
  if (names == nullptr) return {object.Text(Field::k_sval)};
  for (const ParseNode& name : *names) parts.push_back(name.Text(Field::k_sval));
  return parts;
}

/// Of a table, a view or a column of one. `type`: what is written.
Status CommentRelation(std::string_view type, std::vector<std::string_view> parts, const std::string& text,
                       int position, const Snapshot& snapshot, Statement* out) {
  const bool of_column = type == "OBJECT_COLUMN";
  const std::string column(of_column ? parts.back() : std::string_view());
  if (of_column) parts.pop_back();
  if (parts.empty()) return SqlError(ErrorKind::kSyntax, "column name must be qualified", position, "Write t.c.");
  TESSERA_ASSIGN(const std::string name, NameOfParts(std::move(parts), snapshot));
  const std::shared_ptr<const TableInfo> table = snapshot.Find(name);
  const ViewSchema* const view = table == nullptr ? FindView(snapshot.views, name) : nullptr;
  if (table == nullptr && view == nullptr) return TableNotFound(name, position, snapshot);
  const std::string_view is = view != nullptr              ? "OBJECT_VIEW"
                              : table->schema.materialized ? "OBJECT_MATVIEW"
                                                           : "OBJECT_TABLE";
  if (!of_column && is != type) {
    const char* const what = type == "OBJECT_TABLE"  ? "a table"
                             : type == "OBJECT_VIEW" ? "a view"
                                                     : "a materialized view";
    return SqlError(ErrorKind::kWrongObjectType, Quoted(name) + " is not " + what, position);
  }
  if (table != nullptr) {
    AlterTable(*table, "COMMENT", out);
    if (!of_column) {
      out->definition.schema.comment = text;
      return {};
    }
    TESSERA_ASSIGN(const int number, FindTableColumn(*table, column, position));
    out->definition.schema.columns[static_cast<size_t>(number)].comment = text;
    return {};
  }
  if (view->temporary) return Unsupported("a comment of a temporary view is not supported", position);
  if (of_column && std::ranges::count(view->columns, column, &ViewColumn::name) == 0)
    return SqlError(ErrorKind::kUndefinedColumn,
                    "column " + Quoted(column) + " of view " + Quoted(name) + " does not exist", position);
  out->definition.comment = {"view", name, column, text};
  return {};
}

Status NoSuch(const std::string& what, const std::string& name, int position) {
  return SqlError(ErrorKind::kUndefinedObject, what + " " + Quoted(name) + " does not exist", position);
}

}  // namespace

Status BindComment(const ParseNode& comment, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kComment;
  const std::string_view type = comment.Text(Field::k_objtype);
  const std::string text(comment.Text(Field::k_comment));
  const std::vector<std::string_view> parts = PartsOf(*comment.Get(Field::k_object));
  const bool of_relation = type == "OBJECT_TABLE" || type == "OBJECT_VIEW" || type == "OBJECT_MATVIEW";
  if (of_relation || type == "OBJECT_COLUMN") return CommentRelation(type, parts, text, position, snapshot, out);
  const std::string last(parts.empty() ? std::string_view() : parts.back());
  if (type == "OBJECT_SEQUENCE") {
    TESSERA_ASSIGN(const std::string name, NameOfParts(parts, snapshot));
    out->definition.comment = {"sequence", name, "", text};
    return FindSequence(snapshot.names.sequences, name) != nullptr ? Status::Ok() : NoSuch("sequence", name, position);
  }
  if (type == "OBJECT_SCHEMA") {
    const std::optional<std::string> schema = FindSchema(last, snapshot);
    out->definition.comment = {"schema", IsDefaultSchema(last) ? "public" : last, "", text};
    return schema ? Status::Ok() : SchemaNotFound(last, position, snapshot);
  }
  if (type == "OBJECT_TYPE") {
    out->definition.comment = {"type", last, "", text};
    return std::ranges::count(snapshot.types, last, &EnumType::name) > 0 ? Status::Ok()
                                                                         : NoSuch("type", last, position);
  }
  if (type == "OBJECT_FUNCTION") {
    out->definition.comment = {"macro", last, "", text};
    return std::ranges::count(snapshot.macros, last, &Macro::name) > 0 ? Status::Ok() : NoSuch("macro", last, position);
  }
  Notice("COMMENT: no effect, comments of " + std::string(type.starts_with("OBJECT_") ? type.substr(7) : type) +
             " are not kept",
         out);
  return {};
}

}  // namespace tessera
