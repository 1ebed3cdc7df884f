// The actions of ALTER TABLE, one after the other, on a copy of the table's schema.
#include "compiler/bind/alter_binder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/foreign_key_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/query_block.h"
#include "compiler/bind/relation_name.h"
#include "compiler/bind/renamed_expression.h"
#include "compiler/bind/role_binder.h"
#include "compiler/bind/row_rules.h"
#include "compiler/bind/schema_binder.h"
#include "compiler/bind/sequence_binder.h"
#include "compiler/bind/table_binder.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/query_walk.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

std::string Quoted(const std::string& name) { return "\"" + name + "\""; }

/// The name of the primary key, which is stored without one.
std::string KeyName(const TableSchema& schema) { return BaseName(schema.name) + "_pkey"; }

/// Calls f(text, type, what): for the expressions of a schema that name columns, until one is an error.
template <class F>
Status ForEachExpression(TableSchema* schema, F f) {
  for (CheckConstraint& check : schema->checks)
    TESSERA_TRY(f(&check.text, kBoolean, "check constraint " + Quoted(check.name)));
  for (ColumnSchema& column : schema->columns) {
    if (column.generated_text)
      TESSERA_TRY(f(&*column.generated_text, column.type, "generated column " + Quoted(column.name)));
  }
  return {};
}

Result<bool> Names(const std::string& text, const TableSchema& schema, const SqlType& type, int column) {
  TESSERA_ASSIGN(const ExprPtr e, ReadRowExpression(text, schema, type));
  bool named = false;
  ForEachColumn(*e, [&](const Expr& c) { named = named || c.column == column; });
  return named;
}

/// What is done to a table of that name; nullptr: nothing, as it need not be there, and is not.
Result<std::shared_ptr<const TableInfo>> FindTarget(const ParseNode& statement, const char* command,
                                                    const Snapshot& snapshot, Statement* out) {
  const ParseNode& relation = *statement.Get(Field::k_relation);
  Result<std::shared_ptr<const TableInfo>> table = FindTable(relation, snapshot);
  TESSERA_ASSIGN(const std::string name, RelationName(relation, snapshot));
  if (table.ok() || statement.Get(Field::k_missing_ok) == nullptr || snapshot.Find(name) != nullptr) return table;
  out->kind = Statement::Kind::kNotice;
  out->notice = std::string(command) + ": no effect, table " + Quoted(name) + " does not exist";
  return std::shared_ptr<const TableInfo>();
}

/// The statement that gives `table` the schema, with the rows as they are.
void SetSchema(const TableInfo& table, TableSchema schema, const char* command, Statement* out) {
  out->kind = Statement::Kind::kAlterTable;
  out->table = table.schema.name;
  out->target = NumberRows(table);
  out->definition.schema = std::move(schema);
  out->notice = command;
}

bool HasSubquery(const ParseNode& expression) {
  std::vector<const ParseNode*> open = {&expression};
  while (!open.empty()) {
    const ParseNode& node = *open.back();
    open.pop_back();
    if (node.Is(Tag::kSubLink)) return true;
    for (const ParseNode& child : node) open.push_back(&child);
  }
  return false;
}

class Alteration {
 public:
  Alteration(const TableInfo& table, const ParseNode& relation, std::string_view sql, const Dialect& dialect,
             const Snapshot& snapshot)
      : table_(table), relation_(relation), sql_(sql), dialect_(dialect), snapshot_(snapshot), schema_(table.schema) {
    for (size_t c = 0; c < schema_.columns.size(); ++c) from_.push_back({static_cast<int>(c), nullptr, -1});
  }

  Status Apply(const ParseNode& command, int position);
  Status Finish(const char* command, int position, Statement* out);

  // (CREATE UNIQUE INDEX, too.)
  void AddUnique(UniqueKey key) {
    schema_.unique_keys.push_back(std::move(key));
    changed_ = true;
  }

 private:
  /// Where the values of a column come from.
  struct Source {
    int column;              ///< of the old table; -1: it is a new one
    const ParseNode* value;  ///< USING, or nullptr
    int position;            ///< of the new type; -1: the type stays
  };

  Status AddColumn(const ParseNode& command, int position);
  Status DropColumn(const ParseNode& command, int position);
  Status DropDependents(const std::string& name, int column, bool cascade, int position);
  void RemoveColumn(int column);
  Status ChangeType(const ParseNode& command, int position);
  Status ChangeDefault(const ParseNode& command, int position);
  Status SetNotNull(const ParseNode& command, int position);
  Status DropNotNull(const ParseNode& command, int position);
  Status AddConstraint(const ParseNode& command, int position);
  Status DropConstraint(const ParseNode& command, int position);
  Status AddIdentity(const ParseNode& command, int position);
  Status ChangeIdentity(const ParseNode& command, int position);
  Status DropIdentity(const ParseNode& command, int position);
  Status DoNothing(const ParseNode& command, int) {
    nothing_ = command.Text(Field::k_subtype) == "AT_ChangeOwner" ? "there are no users" : "the table is as it says";
    return {};
  }

  Result<size_t> ColumnOf(const ParseNode& command, int position) const;
  /// Whether all rows may have the same value in a new column.
  bool IsConstant(const ColumnSchema& column) const;
  /// A NULL that is stored, also in a row that was deleted, is found as rows are written anew, or is not there any more.
  void RewriteIfNull(size_t column);
  /// The text of SET DEFAULT.
  std::string DefaultText(const ParseNode& expression) const;
  Status BindNewRows(Statement* out);
  Result<ExprPtr> ValueOf(size_t column, ExpressionBinder* binder) const;
  Status BindWrongRows(Statement* out);

  const TableInfo& table_;
  const ParseNode& relation_;
  const std::string_view sql_;
  const Dialect& dialect_;
  const Snapshot& snapshot_;
  TableSchema schema_;
  std::vector<Source> from_;
  std::vector<const ParseNode*> checks_;  ///< new ones
  bool rewrites_ = false, changed_ = false;
  bool cascade_ = false;        ///< foreign keys to keys that are dropped go, too
  bool moves_columns_ = false;  ///< columns were added or dropped
  bool only_columns_ = true;    ///< ... and nothing else was done
  std::string nothing_;         ///< why an action has no effect
  Sequences sequences_;         ///< new ones, and those that change
  std::vector<std::string> dropped_sequences_;
};

Status Alteration::Apply(const ParseNode& command, int position) {
  struct Action {
    std::string_view subtype;
    Status (Alteration::*apply)(const ParseNode&, int);
  };
  constexpr Action kActions[] = {
      {"AT_AddColumn", &Alteration::AddColumn},          {"AT_DropColumn", &Alteration::DropColumn},
      {"AT_AlterColumnType", &Alteration::ChangeType},   {"AT_ColumnDefault", &Alteration::ChangeDefault},
      {"AT_SetNotNull", &Alteration::SetNotNull},        {"AT_DropNotNull", &Alteration::DropNotNull},
      {"AT_AddConstraint", &Alteration::AddConstraint},  {"AT_DropConstraint", &Alteration::DropConstraint},
      {"AT_AddIdentity", &Alteration::AddIdentity},      {"AT_SetIdentity", &Alteration::ChangeIdentity},
      {"AT_DropIdentity", &Alteration::DropIdentity},    {"AT_ChangeOwner", &Alteration::DoNothing},
      {"AT_SetStatistics", &Alteration::DoNothing},      {"AT_SetStorage", &Alteration::DoNothing},
      {"AT_SetCompression", &Alteration::DoNothing},     {"AT_ReplicaIdentity", &Alteration::DoNothing},
      {"AT_ClusterOn", &Alteration::DoNothing},          {"AT_SetTableSpace", &Alteration::DoNothing},
      {"AT_ValidateConstraint", &Alteration::DoNothing},
  };
  struct Refused {
    std::string_view subtype;
    const char* name;
    const char* hint;
  };
  constexpr Refused kRefused[] = {
      {"AT_SetRelOptions", "ALTER TABLE ... SET (...)", "Options of WITH are those of CREATE TABLE."},
      {"AT_DropExpression", "ALTER COLUMN ... DROP EXPRESSION", "Add a column, fill it by UPDATE, drop the other."},
      {"AT_AttachPartition", "ATTACH PARTITION", ""},
      {"AT_AddInherit", "INHERIT", ""},
      {"AT_EnableRowSecurity", "ROW LEVEL SECURITY", "There are no users."},
  };
  const std::string_view subtype = command.Text(Field::k_subtype);
  only_columns_ &= subtype == "AT_AddColumn" || subtype == "AT_DropColumn";
  for (const Action& action : kActions) {
    if (action.subtype == subtype) return (this->*action.apply)(command, position);
  }
  for (const Refused& refused : kRefused) {
    if (refused.subtype == subtype)
      return Unsupported(std::string(refused.name) + " is not supported", position, refused.hint);
  }
  return Unsupported("this action of ALTER TABLE (" + std::string(subtype) + ") is not supported", position,
                     "There are ADD, DROP, ALTER COLUMN and RENAME.");
}

Result<size_t> Alteration::ColumnOf(const ParseNode& command, int position) const {
  TableInfo now;
  now.schema = schema_;
  TESSERA_ASSIGN(const int column, FindTableColumn(now, command.Text(Field::k_name), position));
  return static_cast<size_t>(column);
}

bool Alteration::IsConstant(const ColumnSchema& column) const {
  if (column.generated_text || column.default_expression) return false;
  if (!column.default_text) return !column.not_null || table_.stored_rows == 0;
  return ParseValue(*column.default_text, column.type).ok();
}

void Alteration::RewriteIfNull(size_t column) {
  const int old = from_[column].column;
  if (old >= 0 && table_.statistics[static_cast<size_t>(old)].null_count > 0) rewrites_ = true;
}

Status Alteration::AddColumn(const ParseNode& command, int position) {
  const ParseNode& definition = *command.Get(Field::k_def);
  const std::string name(definition.Text(Field::k_colname));
  if (schema_.Find(name) >= 0) {
    if (command.Get(Field::k_missing_ok) == nullptr) {
      return SqlError(ErrorKind::kDuplicateColumn,
                      "column " + Quoted(name) + " of table " + Quoted(schema_.name) + " already exists",
                      definition.location() >= 0 ? definition.location() : position);
    }
    nothing_ = "column " + Quoted(name) + " exists";
    return {};
  }
  const TableSchema before = schema_;
  TESSERA_TRY(tessera::AddColumn(definition, sql_, dialect_, snapshot_, &schema_, &sequences_));
  from_.push_back({-1, nullptr, -1});
  moves_columns_ = changed_ = true;
  // Rows that it breaks a rule for are found as they are written anew.
  const bool has_rules = schema_.primary_key != before.primary_key || schema_.checks.size() != before.checks.size() ||
                         schema_.unique_keys.size() != before.unique_keys.size();
  if (has_rules || !IsConstant(schema_.columns.back())) rewrites_ = true;
  return {};
}

Status Alteration::DropColumn(const ParseNode& command, int position) {
  const std::string name(command.Text(Field::k_name));
  if (schema_.Find(name) < 0 && command.Get(Field::k_missing_ok) != nullptr) {
    nothing_ = "column " + Quoted(name) + " does not exist";
    return {};
  }
  TESSERA_ASSIGN(const size_t column, ColumnOf(command, position));
  const bool cascade = command.Text(Field::k_behavior) == "DROP_CASCADE";
  cascade_ = cascade_ || cascade;
  TESSERA_TRY(DropDependents(name, static_cast<int>(column), cascade, position));
  RemoveColumn(schema_.Find(name));
  moves_columns_ = changed_ = true;
  return {};
}

/// As in PostgreSQL, constraints that name the column go with it, and columns that are computed from it if asked for.
Status Alteration::DropDependents(const std::string& name, int column, bool cascade, int position) {
  for (const auto* list : {&schema_.cluster_by, &schema_.distribute_by}) {
    if (std::ranges::count(*list, column) == 0) continue;
    const std::string option = list == &schema_.cluster_by ? "cluster_by" : "distribute_by";
    return SqlError(ErrorKind::kDependentObjects,
                    "cannot drop column " + Quoted(name) + ": table " + Quoted(schema_.name) + " has it in " + option,
                    position,
                    "Make the table anew: CREATE OR REPLACE TABLE t WITH (" + option + " = '...') AS SELECT ...");
  }
  std::vector<CheckConstraint> kept;
  for (const CheckConstraint& check : schema_.checks) {
    TESSERA_ASSIGN(const bool named, Names(check.text, schema_, kBoolean, column));
    if (!named) kept.push_back(check);
  }
  std::vector<std::string> computed;
  for (const ColumnSchema& other : schema_.columns) {
    if (!other.generated_text || other.name == name) continue;
    TESSERA_ASSIGN(const bool named, Names(*other.generated_text, schema_, other.type, column));
    if (named) computed.push_back(other.name);
  }
  if (!computed.empty() && !cascade) {
    return SqlError(
        ErrorKind::kDependentObjects,
        "cannot drop column " + Quoted(name) + ": generated column " + Quoted(computed[0]) + " is computed from it",
        position, "Write DROP COLUMN " + name + " CASCADE to drop both.");
  }
  schema_.checks = std::move(kept);
  for (const std::string& other : computed) {
    TESSERA_TRY(DropDependents(other, schema_.Find(other), true, position));
    RemoveColumn(schema_.Find(other));
  }
  return {};
}

void Alteration::RemoveColumn(int column) {
  for (const Sequence& sequence : snapshot_.names.sequences) {
    if (sequence.table_id == table_.id && sequence.column == schema_.columns[static_cast<size_t>(column)].name)
      dropped_sequences_.push_back(sequence.name);
  }
  const auto names = [&](const std::vector<int>& list) { return std::ranges::count(list, column) > 0; };
  if (names(schema_.primary_key)) schema_.primary_key.clear();
  std::erase_if(schema_.unique_keys, [&](const UniqueKey& key) { return names(key.columns); });
  std::erase_if(schema_.foreign_keys, [&](const ForeignKey& key) { return names(key.columns); });
  std::vector<std::vector<int>*> lists = {&schema_.primary_key, &schema_.cluster_by, &schema_.distribute_by};
  for (UniqueKey& key : schema_.unique_keys) lists.push_back(&key.columns);
  for (ForeignKey& key : schema_.foreign_keys) lists.push_back(&key.columns);
  for (std::vector<int>* list : lists) {
    for (int& c : *list) c -= c > column ? 1 : 0;
  }
  schema_.columns.erase(schema_.columns.begin() + column);
  from_.erase(from_.begin() + column);
}

Status Alteration::ChangeType(const ParseNode& command, int position) {
  TESSERA_ASSIGN(const size_t number, ColumnOf(command, position));
  ColumnSchema& column = schema_.columns[number];
  const ParseNode& definition = *command.Get(Field::k_def);
  TESSERA_ASSIGN(const SqlType type, BindColumnType(definition, sql_, dialect_));
  const ParseNode* const value = definition.Get(Field::k_raw_default);
  const ParseNode* const written = definition.Get(Field::k_typeName);
  const int at = written != nullptr ? written->location() : position;
  if (value != nullptr && HasSubquery(*value))
    return Unsupported("a subquery in USING is not supported", value->FirstLocation(), "Write UPDATE afterwards.");
  if (column.generated_text)
    return Unsupported("another type of a generated column is not supported", at, "Drop it and add it again.");
  if (type == column.type && value == nullptr) return DoNothing(command, position);
  for (const ColumnSchema& other : schema_.columns) {
    if (!other.generated_text) continue;
    TESSERA_ASSIGN(const bool named, Names(*other.generated_text, schema_, other.type, static_cast<int>(number)));
    if (!named) continue;
    return SqlError(ErrorKind::kDependentObjects,
                    "cannot alter the type of column " + Quoted(column.name) + ": generated column " +
                        Quoted(other.name) + " is computed from it",
                    at, "Drop that column first, and add it again.");
  }
  if (std::ranges::count(schema_.distribute_by, static_cast<int>(number)) > 0 &&
      (type.IsFloat() || type.id == TypeId::kInterval)) {
    return Unsupported(
        "distribute_by of column " + Quoted(column.name) + " of type " + type.ToString() + " is not supported", at);
  }
  if (column.default_text) {
    const Result<Value> converted = ParseValue(*column.default_text, type);
    if (!converted.ok()) {
      return SqlError("the default of column " + Quoted(column.name) + " is no " + type.ToString(), at,
                      "Drop it in the same statement, before: ALTER COLUMN " + column.name + " DROP DEFAULT.");
    }
    column.default_text = ToText(*converted);
  }
  column.type = type;
  if (column.default_expression) TESSERA_TRY(DefaultValue(column, dialect_).status());
  from_[number].value = value;
  from_[number].position = at;
  rewrites_ = changed_ = true;
  return {};
}

std::string Alteration::DefaultText(const ParseNode& expression) const {
  const auto first = static_cast<size_t>(std::max(expression.FirstLocation(), 0));
  size_t begin = 0;
  for (int at = FindKeyword(sql_, 0, "default"); at >= 0 && static_cast<size_t>(at) < first;
       at = FindKeyword(sql_, at + 1, "default")) {
    begin = static_cast<size_t>(at) + std::string_view("default").size();
  }
  int depth = 0;
  size_t end = sql_.size();
  for (Token t = NextToken(sql_, begin); t.kind != Token::Kind::kEnd && t.begin < end; t = NextToken(sql_, t.end)) {
    if (t.kind != Token::Kind::kSymbol) continue;
    const char c = sql_[t.begin];
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ';' || (c == ',' && depth == 0)) end = t.begin;
  }
  return std::string(TrimBlanks(sql_.substr(begin, end - begin)));
}

Status Alteration::ChangeDefault(const ParseNode& command, int position) {
  TESSERA_ASSIGN(const size_t number, ColumnOf(command, position));
  ColumnSchema& column = schema_.columns[number];
  if (column.generated_text)
    return SqlError(ErrorKind::kGeneratedAlways,
                    "column " + Quoted(column.name) + " of table " + Quoted(schema_.name) + " is a generated column",
                    position, "It is computed from others.");
  if (IdentityOfColumn(table_, column.name, snapshot_.names.sequences) != nullptr)
    return SqlError(ErrorKind::kSyntax,
                    "column " + Quoted(column.name) + " of table " + Quoted(schema_.name) + " is an identity column",
                    position, "ALTER TABLE t ALTER COLUMN " + column.name + " DROP IDENTITY first.");
  column.default_text.reset();
  column.default_expression.reset();
  changed_ = true;
  const ParseNode* const expression = command.Get(Field::k_def);
  if (expression == nullptr) return {};
  return SetColumnDefault(*expression, DefaultText(*expression), sql_, dialect_, &column);
}

Status Alteration::SetNotNull(const ParseNode& command, int position) {
  TESSERA_ASSIGN(const size_t number, ColumnOf(command, position));
  schema_.columns[number].not_null = changed_ = true;
  RewriteIfNull(number);
  return {};
}

Status Alteration::DropNotNull(const ParseNode& command, int position) {
  TESSERA_ASSIGN(const size_t number, ColumnOf(command, position));
  ColumnSchema& column = schema_.columns[number];
  if (std::ranges::count(schema_.primary_key, static_cast<int>(number)) > 0)
    return SqlError(ErrorKind::kTableDefinition, "column " + Quoted(column.name) + " is in a primary key", position,
                    "ALTER TABLE t DROP CONSTRAINT " + KeyName(schema_) + " drops the key.");
  column.not_null = false;
  changed_ = true;
  return {};
}

Status Alteration::AddConstraint(const ParseNode& command, int) {
  const ParseNode& constraint = *command.Get(Field::k_def);
  TESSERA_TRY(tessera::AddConstraint(constraint, sql_, dialect_, snapshot_, &schema_));
  const std::string_view kind = constraint.Text(Field::k_contype);
  if (kind == "CONSTR_CHECK") checks_.push_back(&constraint);
  if (kind == "CONSTR_PRIMARY") {
    for (const int c : schema_.primary_key) RewriteIfNull(static_cast<size_t>(c));
  }
  changed_ = true;
  return {};
}

Status Alteration::DropConstraint(const ParseNode& command, int position) {
  const std::string name(command.Text(Field::k_name));
  const bool is_key = !schema_.primary_key.empty() && name == KeyName(schema_);
  if (is_key) schema_.primary_key.clear();  // its columns stay NOT NULL, as in PostgreSQL
  const auto named = [&](const auto& constraint) { return constraint.name == name; };
  const size_t dropped = std::erase_if(schema_.checks, named) + std::erase_if(schema_.unique_keys, named) +
                         std::erase_if(schema_.foreign_keys, named);
  if (is_key || dropped > 0) {
    cascade_ = cascade_ || command.Text(Field::k_behavior) == "DROP_CASCADE";
    changed_ = true;
    return {};
  }
  if (command.Get(Field::k_missing_ok) != nullptr) {
    nothing_ = "constraint " + Quoted(name) + " does not exist";
    return {};
  }
  std::string all;
  const auto add = [&](const std::string& one) { all += (all.empty() ? "" : ", ") + one; };
  if (!schema_.primary_key.empty()) add(KeyName(schema_));
  for (const UniqueKey& key : schema_.unique_keys) add(key.name);
  for (const CheckConstraint& check : schema_.checks) add(check.name);
  for (const ForeignKey& key : schema_.foreign_keys) add(key.name);
  return SqlError(ErrorKind::kUndefinedObject,
                  "constraint " + Quoted(name) + " of table " + Quoted(schema_.name) + " does not exist", position,
                  all.empty() ? "It has no constraints." : "It has " + all + ".");
}

Status Alteration::AddIdentity(const ParseNode& command, int position) {
  TESSERA_ASSIGN(const size_t number, ColumnOf(command, position));
  const ColumnSchema& column = schema_.columns[number];
  const std::string what = "column " + Quoted(column.name) + " of table " + Quoted(schema_.name);
  if (IdentityOfColumn(table_, column.name, snapshot_.names.sequences) != nullptr)
    return SqlError(ErrorKind::kNotInPrerequisiteState, what + " is already an identity column", position);
  if (!column.not_null) {
    return SqlError(ErrorKind::kNotInPrerequisiteState,
                    what + " must be declared NOT NULL before identity can be added", position,
                    "ALTER TABLE t ALTER COLUMN " + column.name + " SET NOT NULL.");
  }
  if (column.HasDefault())
    return SqlError(ErrorKind::kNotInPrerequisiteState, what + " already has a default value", position,
                    "ALTER TABLE t ALTER COLUMN " + column.name + " DROP DEFAULT first.");
  changed_ = true;
  return AddColumnSequence(command.Get(Field::k_def), sql_, number, position, dialect_, snapshot_, &schema_,
                           &sequences_);
}

Status Alteration::ChangeIdentity(const ParseNode& command, int position) {
  TESSERA_ASSIGN(const size_t number, ColumnOf(command, position));
  const std::string& name = schema_.columns[number].name;
  const Sequence* const identity = IdentityOfColumn(table_, name, snapshot_.names.sequences);
  if (identity == nullptr)
    return SqlError(ErrorKind::kNotInPrerequisiteState,
                    "column " + Quoted(name) + " of table " + Quoted(schema_.name) + " is not an identity column",
                    position, "Write ADD GENERATED BY DEFAULT AS IDENTITY.");
  changed_ = true;
  return SetIdentity(*command.Get(Field::k_def)->Get(Field::k_items), sql_, *identity, position, dialect_, snapshot_,
                     &sequences_);
}

Status Alteration::DropIdentity(const ParseNode& command, int position) {
  TESSERA_ASSIGN(const size_t number, ColumnOf(command, position));
  ColumnSchema& column = schema_.columns[number];
  const Sequence* const identity = IdentityOfColumn(table_, column.name, snapshot_.names.sequences);
  if (identity == nullptr && command.Get(Field::k_missing_ok) != nullptr) {
    nothing_ = "column " + Quoted(column.name) + " is not an identity column";
    return {};
  }
  if (identity == nullptr)
    return SqlError(
        ErrorKind::kNotInPrerequisiteState,
        "column " + Quoted(column.name) + " of table " + Quoted(schema_.name) + " is not an identity column", position);
  column.default_expression.reset();
  dropped_sequences_.push_back(identity->name);
  changed_ = true;
  return {};
}

Result<ExprPtr> Alteration::ValueOf(size_t number, ExpressionBinder* binder) const {
  const ColumnSchema& column = schema_.columns[number];
  const Source& from = from_[number];
  SqlType type = column.type;
  if (type.id == TypeId::kText) type.length = 0;  // a text that is too long is an error when it is stored
  if (from.value != nullptr) {
    TESSERA_ASSIGN(ExprPtr value, binder->Bind(*from.value));
    return binder->Resolve(std::move(value), type);
  }
  const ColumnSchema& old = table_.schema.columns[static_cast<size_t>(from.column)];
  if (FindCast(old.type, type) > CastContext::kAssignment) {
    return SqlError(ErrorKind::kCannotCoerce,
                    "column " + Quoted(column.name) + " cannot be cast automatically to type " + column.type.ToString(),
                    from.position,
                    FindCast(old.type, type) == CastContext::kNone
                        ? "Write USING and an expression of the new type."
                        : "Write USING " + column.name + "::" + column.type.ToString() + " if that is what is meant.");
  }
  return MakeColumn(0, from.column, old.type, !old.not_null, -1);
}

Status Alteration::BindNewRows(Statement* out) {
  QueryBlock block(sql_, &dialect_, snapshot_);
  TESSERA_TRY(FromBinder(&block).BindTarget(relation_, out->target));
  ExpressionBinder binder(&block.context, &block.scope, Clause::kSelect);
  std::vector<int> given;
  for (size_t c = 0; c < schema_.columns.size(); ++c) {
    if (schema_.columns[c].generated_text || from_[c].column < 0) continue;
    TESSERA_ASSIGN(ExprPtr value, ValueOf(c, &binder));
    if (!block.query->aggregates.empty() || !block.windows.empty()) {
      return SqlError(ErrorKind::kGrouping, "aggregate and window functions are not allowed in USING",
                      from_[c].value->FirstLocation(), "It is computed from one row.");
    }
    block.query->outputs.push_back({std::move(value), schema_.columns[c].name});
    given.push_back(static_cast<int>(c));
  }
  block.query->visible = static_cast<int>(given.size());
  out->query = block.Take();
  out->definition.rewrites = true;
  TableInfo after;
  after.schema = schema_;
  TESSERA_ASSIGN(out->change.rules, MakeRowRules(schema_, given, dialect_));
  return FitToTable(out->query.get(), after, given, dialect_);
}

Status Alteration::BindWrongRows(Statement* out) {
  QueryBlock block(sql_, &dialect_, snapshot_);
  TESSERA_TRY(FromBinder(&block).BindTarget(relation_, out->target));
  ExpressionBinder binder(&block.context, &block.scope, Clause::kWhere);
  ExprPtr all;
  for (const ParseNode* check : checks_) {
    TESSERA_ASSIGN(ExprPtr one, binder.BindBoolean(*check->Get(Field::k_raw_expr), "argument of CHECK"));
    all = all == nullptr ? std::move(one)
                         : MakeFunction(Function::kAnd, kBoolean, -1, ExprList(std::move(all), std::move(one)));
  }
  block.query->conjuncts.push_back(MakeFunction(Function::kNot, kBoolean, -1, ExprList(std::move(all))));
  std::vector<int> given;
  for (size_t c = 0; c < schema_.columns.size(); ++c) {
    const ColumnSchema& column = table_.schema.columns[c];
    const int number = static_cast<int>(c);
    block.query->outputs.push_back({MakeColumn(0, number, column.type, !column.not_null, -1), column.name});
    given.push_back(number);
  }
  const int number = RowNumberColumn(*out->target);
  block.query->outputs.push_back({MakeColumn(0, number, SqlType::Of(TypeId::kBigint), false, -1), "row"});
  block.query->visible = static_cast<int>(block.query->outputs.size());
  out->query = block.Take();
  TESSERA_ASSIGN(out->change.rules, MakeRowRules(schema_, given, dialect_));
  return {};
}

Status Alteration::Finish(const char* command, int position, Statement* out) {
  if (!changed_) {
    out->kind = Statement::Kind::kNotice;
    out->notice = std::string(command) + ": no effect, " + nothing_;
    return {};
  }
  if (schema_.columns.empty()) {
    return SqlError(ErrorKind::kTableDefinition, "table " + Quoted(schema_.name) + " must have at least one column", -1,
                    "DROP TABLE " + schema_.name + " drops the table.");
  }
  SetSchema(table_, schema_, command, out);
  TESSERA_TRY(KeepForeignKeys(table_, cascade_, position, snapshot_, &out->definition));
  schema_ = out->definition.schema;
  out->definition.sequences = sequences_;
  out->definition.dropped_sequences = dropped_sequences_;
  if (rewrites_ || (moves_columns_ && !only_columns_)) return BindNewRows(out);
  for (size_t c = 0; moves_columns_ && c < from_.size(); ++c) out->definition.sources.push_back(from_[c].column);
  if (!checks_.empty()) return BindWrongRows(out);
  return {};
}

/// `sequences`: those of all tables; the column's own go to `changed`.
Status RenameColumn(const ParseNode& rename, const TableInfo& table, int position, const Sequences& sequences,
                    TableSchema* schema, Sequences* changed) {
  const std::string to(rename.Text(Field::k_newname));
  TESSERA_ASSIGN(const int column, FindTableColumn(table, rename.Text(Field::k_subname), position));
  if (schema->Find(to) >= 0)
    return SqlError(ErrorKind::kDuplicateColumn,
                    "column " + Quoted(to) + " of table " + Quoted(schema->name) + " already exists", position);
  std::string& name = schema->columns[static_cast<size_t>(column)].name;
  for (const Sequence& sequence : sequences) {
    if (sequence.table_id != table.id || sequence.column != name) continue;
    changed->push_back(sequence);
    changed->back().column = to;
  }
  name = to;
  return {};
}

/// The tables with a UNIQUE constraint of that name.
std::vector<std::shared_ptr<const TableInfo>> TablesWithKey(std::string_view name, const Snapshot& snapshot) {
  std::vector<std::shared_ptr<const TableInfo>> tables;
  for (const auto& table : snapshot.tables) {
    const auto named = [&](const UniqueKey& key) { return key.name == name; };
    if (std::ranges::any_of(table->schema.unique_keys, named)) tables.push_back(table);
  }
  return tables;
}

Status RenameConstraint(const std::string& from, const std::string& to, int position, TableSchema* schema) {
  std::vector<std::string*> names;
  for (CheckConstraint& check : schema->checks) names.push_back(&check.name);
  for (UniqueKey& key : schema->unique_keys) names.push_back(&key.name);
  for (ForeignKey& key : schema->foreign_keys) names.push_back(&key.name);
  std::string* found = nullptr;
  for (std::string* name : names) {
    if (*name == to)
      return SqlError(ErrorKind::kDuplicateObject, "constraint " + Quoted(to) + " already exists", position);
    if (*name == from) found = name;
  }
  if (found == nullptr && !schema->primary_key.empty() && from == KeyName(*schema))
    return Unsupported("another name of a primary key is not supported", position, "It is called after its table.");
  if (found == nullptr)
    return SqlError(ErrorKind::kUndefinedObject,
                    "constraint " + Quoted(from) + " of table " + Quoted(schema->name) + " does not exist", position);
  *found = to;
  return {};
}

/// ALTER INDEX: of a UNIQUE constraint, or without effect.
Status RenameIndex(const ParseNode& rename, int position, const Snapshot& snapshot, Statement* out) {
  const std::string from(rename.Get(Field::k_relation)->Text(Field::k_relname)), to(rename.Text(Field::k_newname));
  const auto tables = TablesWithKey(from, snapshot);
  if (tables.empty()) {
    out->kind = Statement::Kind::kNotice;
    out->notice = "ALTER INDEX: no effect, scans need no index";
    return {};
  }
  if (tables.size() > 1) {
    return Unsupported(
        "several tables have a unique index " + Quoted(from), position,
        "Write ALTER TABLE " + tables[0]->schema.name + " RENAME CONSTRAINT " + from + " TO " + to + ".");
  }
  TableSchema schema = tables[0]->schema;
  TESSERA_TRY(RenameConstraint(from, to, position, &schema));
  SetSchema(*tables[0], std::move(schema), "ALTER INDEX", out);
  return {};
}

}  // namespace

Status BindAlterTable(const ParseNode& alter, int position, std::string_view sql, const Dialect& dialect,
                      const Snapshot& snapshot, Statement* out) {
  const ParseNode& commands = *alter.Get(Field::k_cmds);
  const std::string_view type = alter.Text(Field::k_objtype);
  if (type != "OBJECT_TABLE") {
    const std::string name(type.starts_with("OBJECT_") ? type.substr(7) : type);
    for (const ParseNode& command : commands) {
      if (command.Text(Field::k_subtype) != "AT_ChangeOwner")
        return Unsupported("ALTER " + name + " is not supported", position);
    }
    out->kind = Statement::Kind::kNotice;
    out->notice = "ALTER " + name + ": no effect, there are no users";
    return {};
  }
  const ParseNode& relation = *alter.Get(Field::k_relation);
  TESSERA_ASSIGN(const std::string name, RelationName(relation, snapshot));
  // (A dump of PostgreSQL gives views and sequences an owner so, too.)
  bool only_owner =
      FindView(snapshot.views, name) != nullptr || FindSequence(snapshot.names.sequences, name) != nullptr;
  for (const ParseNode& command : commands) only_owner &= command.Text(Field::k_subtype) == "AT_ChangeOwner";
  if (only_owner) {
    out->kind = Statement::Kind::kNotice;
    out->notice = "ALTER TABLE: no effect, there are no users";
    return {};
  }
  TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindTarget(alter, "ALTER TABLE", snapshot, out));
  if (table == nullptr) return {};
  Alteration alteration(*table, relation, sql, dialect, snapshot);
  for (const ParseNode& command : commands) TESSERA_TRY(alteration.Apply(command, position));
  return alteration.Finish("ALTER TABLE", position, out);
}

Status BindRename(const ParseNode& rename, int position, const Snapshot& snapshot, Statement* out) {
  const std::string_view type = rename.Text(Field::k_renameType);
  if (type == "OBJECT_INDEX") return RenameIndex(rename, position, snapshot, out);
  if (type == "OBJECT_ROLE") return BindRenameRole(rename, position, snapshot, out);
  if (type == "OBJECT_SEQUENCE") return BindRenameSequence(rename, position, snapshot, out);
  if (type != "OBJECT_TABLE" && type != "OBJECT_COLUMN" && type != "OBJECT_TABCONSTRAINT") {
    const std::string name(type.starts_with("OBJECT_") ? type.substr(7) : type);
    return Unsupported("ALTER " + name + " ... RENAME is not supported", position);
  }
  TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindTarget(rename, "ALTER TABLE", snapshot, out));
  if (table == nullptr) return {};
  TableSchema schema = table->schema;
  if (type == "OBJECT_TABCONSTRAINT") {
    TESSERA_TRY(RenameConstraint(std::string(rename.Text(Field::k_subname)), std::string(rename.Text(Field::k_newname)),
                                 position, &schema));
  }
  if (type == "OBJECT_COLUMN")
    TESSERA_TRY(RenameColumn(rename, *table, position, snapshot.names.sequences, &schema, &out->definition.sequences));
  if (type == "OBJECT_TABLE") {
    schema.name = QualifiedName(SchemaOfName(schema.name), rename.Text(Field::k_newname));
    if (snapshot.Find(schema.name) != nullptr)
      return SqlError(ErrorKind::kDuplicateTable, "table " + Quoted(schema.name) + " already exists", position);
    if (FindSequence(snapshot.names.sequences, schema.name) != nullptr)
      return SqlError(ErrorKind::kDuplicateTable, "sequence " + Quoted(schema.name) + " already exists", position);
  }
  const TableSchema renamed = schema;
  TESSERA_TRY(ForEachExpression(&schema, [&](std::string* text, const SqlType& of, const std::string& what) -> Status {
    Result<std::string> now = RenamedExpression(*text, table->schema, renamed, of);
    if (!now.ok())
      return Unsupported("cannot rename: " + what + ": " + now.status().message(), position, "Drop it first.");
    *text = std::move(now).value();
    return {};
  }));
  SetSchema(*table, std::move(schema), "ALTER TABLE", out);
  RenameInForeignKeys(*table, snapshot, &out->definition);
  return {};
}

Status BindTruncate(const ParseNode& truncate, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kTruncate;
  for (const ParseNode& relation : *truncate.Get(Field::k_relations)) {
    TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindTable(relation, snapshot));
    out->tables.push_back(table->schema.name);
  }
  const bool cascade = truncate.Text(Field::k_behavior) == "DROP_CASCADE";
  for (size_t t = 0; cascade && t < out->tables.size(); ++t) {
    for (const TableSchema& other : WithoutReferencesTo(out->tables[t], snapshot)) {
      if (std::ranges::count(out->tables, other.name) == 0) out->tables.push_back(other.name);
    }
  }
  return {};
}

namespace {

/// As PostgreSQL calls it: table_column_idx, with a number if that is taken.
std::string IndexName(const TableSchema& schema, const std::vector<int>& columns, const Snapshot& snapshot) {
  std::string base = BaseName(schema.name);
  for (const int c : columns) base += "_" + schema.columns[static_cast<size_t>(c)].name;
  base += "_idx";
  const auto taken = [&](const std::string& name) {
    return !TablesWithKey(name, snapshot).empty() ||
           std::ranges::any_of(schema.checks, [&](const CheckConstraint& check) { return check.name == name; });
  };
  std::string name = base;
  for (int i = 1; taken(name); ++i) name = base + std::to_string(i);
  return name;
}

}  // namespace

Status BindCreateIndex(const ParseNode& create, int position, std::string_view sql, const Dialect& dialect,
                       const Snapshot& snapshot, Statement* out) {
  const ParseNode& relation = *create.Get(Field::k_relation);
  const bool unique = create.Get(Field::k_unique) != nullptr;
  TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindTable(relation, snapshot));
  UniqueKey key;
  for (const ParseNode& element : *create.Get(Field::k_indexParams)) {
    if (element.Get(Field::k_name) == nullptr) {
      if (!unique) continue;
      return Unsupported("CREATE UNIQUE INDEX of an expression is not supported", position,
                         "Add a column that is GENERATED ALWAYS AS (...) STORED, and make it UNIQUE.");
    }
    const std::string_view name = element.Text(Field::k_name);
    TESSERA_ASSIGN(const int column, FindTableColumn(*table, name, FindKeyword(sql, position, name)));
    if (unique && std::ranges::count(key.columns, column) > 0)
      return SqlError(ErrorKind::kDuplicateColumn,
                      "column " + Quoted(std::string(name)) + " appears twice in unique index", position);
    key.columns.push_back(column);
  }
  if (!unique) {
    out->kind = Statement::Kind::kNotice;
    out->notice = "CREATE INDEX: no effect, scans need no index";
    return {};
  }
  if (create.Get(Field::k_whereClause) != nullptr)
    return Unsupported("CREATE UNIQUE INDEX with WHERE is not supported", position);
  if (create.Get(Field::k_nulls_not_distinct) != nullptr)
    return Unsupported("UNIQUE NULLS NOT DISTINCT is not supported", position, "Declare the columns NOT NULL.");
  key.name = create.Text(Field::k_idxname);
  if (key.name.empty()) key.name = IndexName(table->schema, key.columns, snapshot);
  if (const auto others = TablesWithKey(key.name, snapshot); !others.empty()) {
    const std::string what = "unique index " + Quoted(key.name) + " of table " + Quoted(others[0]->schema.name);
    if (create.Get(Field::k_if_not_exists) == nullptr)
      return SqlError(ErrorKind::kDuplicateObject, what + " already exists", position);
    out->kind = Statement::Kind::kNotice;
    out->notice = "CREATE INDEX: no effect, " + what + " exists";
    return {};
  }
  Alteration alteration(*table, relation, sql, dialect, snapshot);
  alteration.AddUnique(std::move(key));
  return alteration.Finish("CREATE INDEX", position, out);
}

Status BindDropIndex(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out) {
  std::shared_ptr<const TableInfo> table;
  std::vector<std::string> names;
  for (const ParseNode& object : *drop.Get(Field::k_objects)) {
    std::string name;
    for (const ParseNode& part : *object.Get(Field::k_items)) name = part.Text(Field::k_sval);
    for (const auto& found : TablesWithKey(name, snapshot)) {
      if (table != nullptr && (found != table || std::ranges::count(names, name) > 0)) {
        return Unsupported("DROP INDEX of unique indexes of several tables is not supported", position,
                           "Write ALTER TABLE " + found->schema.name + " DROP CONSTRAINT " + name + ".");
      }
      table = found;
      names.push_back(name);
    }
  }
  if (table == nullptr) {
    out->kind = Statement::Kind::kNotice;
    out->notice = "DROP INDEX: no effect, scans need no index";
    return {};
  }
  TableSchema schema = table->schema;
  std::erase_if(schema.unique_keys, [&](const UniqueKey& key) { return std::ranges::count(names, key.name) > 0; });
  SetSchema(*table, std::move(schema), "DROP INDEX", out);
  return KeepForeignKeys(*table, drop.Text(Field::k_behavior) == "DROP_CASCADE", position, snapshot, &out->definition);
}

}  // namespace tessera
