#include "compiler/bind/foreign_key_binder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "compiler/query/dependencies.h"
#include "compiler/query/type_rules.h"

namespace tessera {
namespace {

std::string Quoted(const std::string& name) { return "\"" + name + "\""; }

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return "(" + text + ")";
}

bool CanCompare(const SqlType& a, const SqlType& b) {
  const auto implicit = [](const SqlType& from, const SqlType& to) {
    return FindCast(from, to) == CastContext::kImplicit;
  };
  if (a == b) return true;
  return (a.storage() == StorageClass::kText) == (b.storage() == StorageClass::kText) &&
         (implicit(a, b) || implicit(b, a));
}

/// Whether no two rows of a table of that schema are equal in these columns.
bool IsKey(const TableSchema& schema, const std::vector<std::string>& names) {
  std::vector<int> columns;
  for (const std::string& name : names) columns.push_back(schema.Find(name));
  std::ranges::sort(columns);
  const auto same = [&](std::vector<int> key) {
    std::ranges::sort(key);
    return key == columns;
  };
  return (!schema.primary_key.empty() && same(schema.primary_key)) ||
         std::ranges::any_of(schema.unique_keys, [&](const UniqueKey& key) { return same(key.columns); });
}

/// Errors: a column of one cannot be compared with that of the other.
Status CheckTypes(const ForeignKey& key, const TableSchema& schema, const TableSchema& referenced, int position) {
  for (size_t i = 0; i < key.columns.size(); ++i) {
    const ColumnSchema& from = schema.columns[static_cast<size_t>(key.columns[i])];
    const ColumnSchema& to = referenced.columns[static_cast<size_t>(referenced.Find(key.to[i]))];
    if (CanCompare(from.type, to.type)) continue;
    return SqlError(ErrorKind::kDatatypeMismatch,
                    "a foreign key cannot compare column " + Quoted(from.name) + " of table " + Quoted(schema.name) +
                        ", of type " + from.type.ToString() + ", with column " + Quoted(to.name) + " of table " +
                        Quoted(referenced.name) + ", of type " + to.type.ToString(),
                    position, "Give both the same type.");
  }
  return {};
}

ForeignKey::Action ActionOf(std::string_view letter) {
  using Action = ForeignKey::Action;
  if (letter == "r") return Action::kRestrict;
  if (letter == "c") return Action::kCascade;
  if (letter == "n") return Action::kSetNull;
  return letter == "d" ? Action::kSetDefault : Action::kNoAction;
}

Status BindTiming(const ParseNode& constraint, ForeignKey* key) {
  key->deferrable = constraint.Number(Field::k_deferrable) != 0;
  key->deferred = constraint.Number(Field::k_initdeferred) != 0;
  bool denied = false;
  for (const ParseNode* n = constraint.next(); n != nullptr && IsConstraintAttribute(*n); n = n->next()) {
    const std::string_view kind = n->Text(Field::k_contype);
    if (kind == "CONSTR_ATTR_DEFERRABLE") key->deferrable = true;
    if (kind == "CONSTR_ATTR_NOT_DEFERRABLE") denied = true;
    if (kind == "CONSTR_ATTR_DEFERRED") key->deferred = true;
  }
  if (key->deferred && denied) {
    return SqlError(ErrorKind::kSyntax, "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
                    constraint.location());
  }
  key->deferrable = key->deferrable || key->deferred;
  return {};
}

/// What is not supported.
Status CheckForm(const ParseNode& constraint, const ForeignKey& key, const TableSchema& schema) {
  const int position = constraint.location();
  if (constraint.Text(Field::k_fk_matchtype) == "f" && key.columns.size() > 1)
    return Unsupported("MATCH FULL is not supported", position, "Declare the columns NOT NULL, and leave it out.");
  if (constraint.Get(Field::k_fk_del_set_cols) != nullptr)
    return Unsupported("a list of columns after ON DELETE SET is not supported", position,
                       "All columns of the key are set.");
  if (constraint.Get(Field::k_skip_validation) != nullptr)
    return Unsupported("NOT VALID is not supported", position, "Leave it out: the rows are checked at once.");
  const auto writes = [](ForeignKey::Action action) { return action > ForeignKey::Action::kRestrict; };
  for (const int c : key.columns) {
    const ColumnSchema& column = schema.columns[static_cast<size_t>(c)];
    const bool sets = writes(key.on_update) || (writes(key.on_delete) && key.on_delete != ForeignKey::Action::kCascade);
    if (column.generated_text && sets) {
      return SqlError(ErrorKind::kSyntax,
                      "a foreign key over generated column " + Quoted(column.name) + " cannot change it", position,
                      "Leave out ON UPDATE, and ON DELETE SET.");
    }
  }
  return {};
}

Status BindOwnColumns(const ParseNode& constraint, int column, const TableSchema& schema, ForeignKey* key) {
  if (column >= 0) key->columns = {column};
  const ParseNode* const names = constraint.Get(Field::k_fk_attrs);
  if (names == nullptr) return {};
  for (const ParseNode& node : *names) {
    const std::string name(node.Text(Field::k_sval));
    const int number = schema.Find(name);
    if (number < 0) {
      return SqlError(ErrorKind::kUndefinedColumn,
                      "column " + Quoted(name) + " referenced in foreign key constraint does not exist",
                      constraint.location());
    }
    if (std::ranges::count(key->columns, number) > 0) {
      return SqlError(ErrorKind::kDuplicateColumn, "column " + Quoted(name) + " appears twice in a foreign key",
                      constraint.location());
    }
    key->columns.push_back(number);
  }
  return {};
}

Status BindReferenced(const ParseNode& constraint, const TableSchema& referenced, ForeignKey* key) {
  const int position = constraint.location();
  if (const ParseNode* const names = constraint.Get(Field::k_pk_attrs)) {
    for (const ParseNode& node : *names) {
      key->to.emplace_back(node.Text(Field::k_sval));
      if (referenced.Find(key->to.back()) >= 0) continue;
      return SqlError(ErrorKind::kUndefinedColumn,
                      "column " + Quoted(key->to.back()) + " of table " + Quoted(referenced.name) +
                          " referenced in foreign key constraint does not exist",
                      position);
    }
  } else if (referenced.primary_key.empty()) {
    return SqlError(ErrorKind::kUndefinedObject,
                    "there is no primary key for referenced table " + Quoted(referenced.name), position,
                    "Name the columns of one of its keys: REFERENCES " + referenced.name + " (c).");
  } else {
    for (const int c : referenced.primary_key) key->to.push_back(referenced.columns[static_cast<size_t>(c)].name);
  }
  if (key->to.size() != key->columns.size()) {
    return SqlError(ErrorKind::kForeignKeyDefinition,
                    "number of referencing and referenced columns for foreign key disagree", position,
                    "The key of table " + Quoted(referenced.name) + " is " + Listed(key->to) + ".");
  }
  if (IsKey(referenced, key->to)) return {};
  return SqlError(ErrorKind::kForeignKeyDefinition,
                  "there is no unique constraint matching given keys for referenced table " + Quoted(referenced.name),
                  position, "Add one first: ALTER TABLE " + referenced.name + " ADD UNIQUE " + Listed(key->to) + ".");
}

}  // namespace

bool IsConstraintAttribute(const ParseNode& constraint) {
  return constraint.Text(Field::k_contype).starts_with("CONSTR_ATTR_");
}

Result<ForeignKey> BindForeignKey(const ParseNode& constraint, int column, const TableSchema& schema,
                                  const TableSchema& referenced) {
  ForeignKey key;
  key.referenced = referenced.name;
  key.on_delete = ActionOf(constraint.Text(Field::k_fk_del_action));
  key.on_update = ActionOf(constraint.Text(Field::k_fk_upd_action));
  TESSERA_TRY(BindOwnColumns(constraint, column, schema, &key));
  TESSERA_TRY(CheckForm(constraint, key, schema));
  TESSERA_TRY(BindTiming(constraint, &key));
  TESSERA_TRY(BindReferenced(constraint, referenced, &key));
  TESSERA_TRY(CheckTypes(key, schema, referenced, constraint.location()));
  return key;
}

std::vector<TableSchema> WithoutReferencesTo(const std::string& table, const Snapshot& snapshot) {
  std::vector<TableSchema> others;
  for (const auto& other : snapshot.tables) {
    if (other->schema.name == table) continue;
    TableSchema left = other->schema;
    const auto refers = [&](const ForeignKey& key) { return key.referenced == table; };
    if (std::erase_if(left.foreign_keys, refers) == 0) continue;
    NoteTable(*other);
    others.push_back(std::move(left));
  }
  return others;
}

Status KeepForeignKeys(const TableInfo& table, bool cascade, int position, const Snapshot& snapshot, Definition* out) {
  const std::string& name = table.schema.name;
  // `of`: the schema that has the keys, which is that of another table or of this one.
  const auto keep = [&](TableSchema* of, bool* changed) -> Status {
    std::vector<ForeignKey> kept;
    for (const ForeignKey& key : of->foreign_keys) {
      if (key.referenced != name) {
        if (of == &out->schema)
          if (const auto other = snapshot.Find(key.referenced))
            TESSERA_TRY(CheckTypes(key, *of, other->schema, position));
        kept.push_back(key);
        continue;
      }
      if (IsKey(out->schema, key.to)) {
        TESSERA_TRY(CheckTypes(key, *of, out->schema, position));
        kept.push_back(key);
        continue;
      }
      *changed = true;
      if (cascade) continue;
      return SqlError(ErrorKind::kDependentObjects,
                      "cannot drop key " + Listed(key.to) + " of table " + Quoted(name) + ": foreign key " +
                          Quoted(key.name) + " of table " + Quoted(of->name) + " refers to it",
                      position, "Write CASCADE to drop that, too.");
    }
    of->foreign_keys = std::move(kept);
    return Status::Ok();
  };
  bool changed = false;
  TESSERA_TRY(keep(&out->schema, &changed));
  for (const auto& other : snapshot.tables) {
    if (other->schema.name == name) continue;
    TableSchema left = other->schema;
    changed = false;
    TESSERA_TRY(keep(&left, &changed));
    if (changed) out->dependents.push_back(std::move(left));
  }
  return {};
}

void RenameInForeignKeys(const TableInfo& table, const Snapshot& snapshot, Definition* out) {
  const auto rename = [&](TableSchema* of) {
    bool any = false;
    for (ForeignKey& key : of->foreign_keys) {
      if (key.referenced != table.schema.name) continue;
      any = true;
      key.referenced = out->schema.name;
      for (std::string& column : key.to)
        column = out->schema.columns[static_cast<size_t>(table.schema.Find(column))].name;
    }
    return any;
  };
  rename(&out->schema);
  for (const auto& other : snapshot.tables) {
    if (other->schema.name == table.schema.name) continue;
    TableSchema renamed = other->schema;
    if (rename(&renamed) && renamed.foreign_keys != other->schema.foreign_keys)
      out->dependents.push_back(std::move(renamed));
  }
}

}  // namespace tessera
