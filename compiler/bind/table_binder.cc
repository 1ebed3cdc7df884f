#include "compiler/bind/table_binder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/foreign_key_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/populated_check.h"
#include "compiler/bind/query_binder.h"
#include "compiler/bind/relation_name.h"
#include "compiler/bind/row_rules.h"
#include "compiler/bind/sequence_binder.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/parse/statement_option.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/evaluate.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/fold.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/query_copy.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/values/array_type.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

/// The columns that a text names, with commas between: cluster_by and distribute_by.
Status BindColumns(const ParseNode& option, const TableSchema& schema, std::vector<int>* columns) {
  const std::string what(option.Text(Field::k_defname)), text = OptionText(option);
  if (!columns->empty()) return SqlError(what + " is given twice", option.location());
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    begin = end + 1;
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    const int column = schema.Find(name);
    if (column < 0) {
      return SqlError(ErrorKind::kUndefinedColumn,
                      what + " names column \"" + name + "\", which table \"" + schema.name + "\" does not have",
                      option.location(), "Write " + what + " = a, or " + what + " = 'a, b' for several columns.");
    }
    if (schema.columns[static_cast<size_t>(column)].generated_text)
      return Unsupported(what + " of a generated column is not supported", option.location());
    if (std::ranges::count(*columns, column) > 0)
      return SqlError(what + " names column \"" + name + "\" twice", option.location());
    columns->push_back(column);
  }
  return {};
}

Status BindDistribution(const ParseNode& option, TableSchema* schema) {
  TESSERA_TRY(BindColumns(option, *schema, &schema->distribute_by));
  for (const int c : schema->distribute_by) {
    const ColumnSchema& column = schema->columns[static_cast<size_t>(c)];
    // (Equal ones may differ as they are stored.)
    if (!column.type.IsFloat() && column.type.id != TypeId::kInterval) continue;
    return Unsupported(
        "distribute_by of column \"" + column.name + "\" of type " + column.type.ToString() + " is not supported",
        option.location());
  }
  return {};
}

Status BindTableOptions(const ParseNode& options, TableSchema* schema) {
  for (const ParseNode& option : options) {
    const std::string_view name = option.Text(Field::k_defname);
    if (name == "cluster_by") {
      TESSERA_TRY(BindColumns(option, *schema, &schema->cluster_by));
      continue;
    }
    if (name == "distribute_by") {
      TESSERA_TRY(BindDistribution(option, schema));
      continue;
    }
    if (name != "tablet_rows") {
      return SqlError(ErrorKind::kInvalidParameterValue, "unrecognized parameter \"" + std::string(name) + "\"",
                      option.location(), "There are tablet_rows, cluster_by and distribute_by.");
    }
    const ParseNode* arg = option.Get(Field::k_arg);
    const int64_t rows = arg != nullptr && arg->Is(Tag::kInteger) ? arg->Number(Field::k_ival) : 0;
    if (rows < 1 || rows > kGreatestTabletRows) {
      return SqlError(ErrorKind::kInvalidParameterValue,
                      "tablet_rows must be an integer between 1 and " + std::to_string(kGreatestTabletRows),
                      option.location());
    }
    schema->tablet_rows = static_cast<uint32_t>(rows);
  }
  return {};
}

/// The name of an unsupported constraint; "" for a supported one.
std::string UnsupportedConstraint(std::string_view type) {
  struct Row {
    std::string_view type, name;
  };
  constexpr Row kRows[] = {{"CONSTR_EXCLUSION", "EXCLUDE"}};
  for (const Row& row : kRows) {
    if (row.type == type) return std::string(row.name);
  }
  constexpr std::string_view kKnown[] = {"CONSTR_NOTNULL",   "CONSTR_NULL",    "CONSTR_PRIMARY",
                                         "CONSTR_DEFAULT",   "CONSTR_CHECK",   "CONSTR_UNIQUE",
                                         "CONSTR_GENERATED", "CONSTR_FOREIGN", "CONSTR_IDENTITY"};
  if (std::find(std::begin(kKnown), std::end(kKnown), type) != std::end(kKnown)) return {};
  return "this constraint (" + std::string(type) + ")";
}

class TableBinder {
 public:
  TableBinder(std::string_view sql, const Dialect& dialect, const Snapshot& snapshot, TableSchema* schema)
      : schema_(schema), snapshot_(snapshot) {
    context_.sql = sql;
    context_.dialect = &dialect;
    context_.relations = &no_relations_;
  }

  /// Where new sequences of SERIAL and IDENTITY go; without it they are an error.
  void SetSequences(Sequences* sequences) { sequences_ = sequences; }

  Status AddColumn(const ParseNode& definition) {
    const int position = definition.location();
    if (schema_->columns.size() == kGreatestColumns) {
      return SqlError(ErrorKind::kTooManyColumns,
                      "table \"" + schema_->name + "\" has more than " + std::to_string(kGreatestColumns) + " columns",
                      position);
    }
    ColumnSchema column;
    column.name = definition.Text(Field::k_colname);
    for (const ColumnSchema& other : schema_->columns) {
      if (other.name == column.name)
        return SqlError(ErrorKind::kDuplicateColumn, "column \"" + column.name + "\" specified more than once",
                        position);
    }
    const std::optional<SqlType> serial = SerialType(definition);
    if (serial) {
      column.type = *serial;
    } else {
      TESSERA_ASSIGN(column.type, TypeOf(definition));
    }
    bool is_null = false;
    schema_->columns.push_back(column);
    if (serial)
      TESSERA_TRY(AddColumnSequence(nullptr, context_.sql, schema_->columns.size() - 1, position, *context_.dialect,
                                    snapshot_, schema_, sequences_));
    if (const ParseNode* constraints = definition.Get(Field::k_constraints)) {
      bool of_foreign_key = false;
      for (const ParseNode& c : *constraints) {
        const std::string_view kind = c.Text(Field::k_contype);
        if (IsConstraintAttribute(c)) {
          if (of_foreign_key) continue;  // BindForeignKey reads it
          return Unsupported("a constraint that is DEFERRABLE is not supported", c.location(),
                             "A foreign key may be DEFERRABLE.");
        }
        of_foreign_key = kind == "CONSTR_FOREIGN";
        if (const std::string name = UnsupportedConstraint(kind); !name.empty()) {
          return Unsupported(name + " is not supported", c.location());
        }
        if (kind == "CONSTR_DEFAULT") TESSERA_TRY(SetDefault(c));
        if (kind == "CONSTR_IDENTITY")
          TESSERA_TRY(AddColumnSequence(&c, context_.sql, schema_->columns.size() - 1, c.location(), *context_.dialect,
                                        snapshot_, schema_, sequences_));
        bool& not_null = schema_->columns.back().not_null;
        if (kind == "CONSTR_NULL") is_null = true;
        if (kind == "CONSTR_NOTNULL") not_null = true;
        if (is_null && not_null) {
          return SqlError(ErrorKind::kSyntax,
                          "conflicting NULL/NOT NULL declarations for column \"" + column.name + "\"", c.location());
        }
        const int number = static_cast<int>(schema_->columns.size()) - 1;
        if (kind == "CONSTR_PRIMARY") TESSERA_TRY(SetPrimaryKey({number}, c.location()));
        if (kind == "CONSTR_UNIQUE") TESSERA_TRY(AddUnique(c, {number}));
        if (kind == "CONSTR_CHECK" || kind == "CONSTR_GENERATED") expressions_.push_back({&c, number});
        if (of_foreign_key) foreign_keys_.push_back({&c, number});
      }
    }
    return {};
  }

  Result<SqlType> TypeOf(const ParseNode& definition) {
    const int position = definition.location();
    const ParseNode* node = definition.Get(Field::k_typeName);
    if (node == nullptr) return Unsupported("a column without a type is not supported", position);
    if (definition.Get(Field::k_collClause) != nullptr) return Unsupported("COLLATE is not supported", position);
    ExpressionBinder types(&context_, nullptr, Clause::kValues);
    TESSERA_ASSIGN(const SqlType type, types.BindType(*node, node->location()));
    if (type.id == TypeId::kInterval && node->Get(Field::k_typmods) != nullptr)
      return Unsupported("a column of type INTERVAL with fields is not supported", node->location(), "Write INTERVAL.");
    return type;
  }

  /// A constraint of the table; its columns are all known.
  Status AddConstraint(const ParseNode& constraint) {
    const std::string_view kind = constraint.Text(Field::k_contype);
    const int position = constraint.location();
    if (const std::string name = UnsupportedConstraint(kind); !name.empty())
      return Unsupported(name + " is not supported", position);
    if (kind == "CONSTR_CHECK") {
      expressions_.push_back({&constraint, -1});
      return {};
    }
    if (kind == "CONSTR_FOREIGN") {
      foreign_keys_.push_back({&constraint, -1});
      return {};
    }
    std::vector<int> key;
    const ParseNode* keys = constraint.Get(Field::k_keys);
    const bool unique = kind == "CONSTR_UNIQUE";
    if ((kind != "CONSTR_PRIMARY" && !unique) || keys == nullptr)
      return Unsupported("this constraint is not supported", position);
    for (const ParseNode& k : *keys) {
      const std::string_view name = k.Text(Field::k_sval);
      const int column = schema_->Find(name);
      if (column < 0)
        return SqlError(ErrorKind::kUndefinedColumn, "column \"" + std::string(name) + "\" named in key does not exist",
                        position);
      if (std::find(key.begin(), key.end(), column) != key.end()) {
        return SqlError(ErrorKind::kDuplicateColumn,
                        "column \"" + std::string(name) + "\" appears twice in " + (unique ? "unique" : "primary key") +
                            " constraint",
                        position);
      }
      key.push_back(column);
    }
    return unique ? AddUnique(constraint, std::move(key)) : SetPrimaryKey(key, position);
  }

  /// A constant as text of the column's type, or what each row computes: `text`.
  Status SetDefault(const ParseNode& expression, std::string_view text, ColumnSchema* column) {
    ExpressionBinder binder(&context_, nullptr, Clause::kDefault);
    TESSERA_ASSIGN(const bool varies, CheckDefault(&binder, expression, *column, context_.sql, *context_.dialect));
    if (varies) {
      const std::optional<std::string> sequence = SequenceOfDefault(expression, context_.dialect->relations);
      column->default_expression = sequence ? NextValueText(*sequence) : std::string(text);
      return Status::Ok();
    }
    TESSERA_ASSIGN(const Value value, InsertValue(&binder, expression, *column));
    if (!value.null) column->default_text = ToText(value);
    return Status::Ok();
  }

  /// FOREIGN KEY: all columns and keys are known.
  Status AddForeignKeys() {
    for (const auto& [constraint, column] : foreign_keys_) {
      const ParseNode& relation = *constraint->Get(Field::k_pktable);
      std::shared_ptr<const TableInfo> other;  // nullptr: the table itself
      if (IsTemporaryName(schema_->name))
        return Unsupported("a foreign key of a temporary table is not supported", constraint->location());
      TESSERA_ASSIGN(const std::string name, RelationName(relation, snapshot_));
      if (name != schema_->name) {
        TESSERA_ASSIGN(other, FindTable(relation, snapshot_));
      }
      if (IsTemporaryName(name)) {
        return SqlError(ErrorKind::kTableDefinition,
                        "constraints on permanent tables may reference only permanent tables", constraint->location(),
                        "Write main." + BaseName(name) + " for the permanent table of that name.");
      }
      TESSERA_ASSIGN(ForeignKey key,
                     BindForeignKey(*constraint, column, *schema_, other != nullptr ? other->schema : *schema_));
      TESSERA_ASSIGN(key.name, NameOf(*constraint, key.columns, "fkey"));
      schema_->foreign_keys.push_back(std::move(key));
    }
    return {};
  }

  /// CHECK and GENERATED: all columns are known.
  Status AddExpressions() {
    const Dialect& dialect = *context_.dialect;
    for (const auto& [constraint, column] : expressions_) {
      if (constraint->Text(Field::k_contype) != "CONSTR_GENERATED") continue;
      ColumnSchema& generated = schema_->columns[static_cast<size_t>(column)];
      if (generated.HasDefault()) {
        return SqlError(ErrorKind::kSyntax,
                        "both default and generation expression specified for column \"" + generated.name + "\"",
                        constraint->location());
      }
      if (generated.generated_text) {
        return SqlError(ErrorKind::kSyntax,
                        "multiple generation clauses specified for column \"" + generated.name + "\"",
                        constraint->location());
      }
      generated.generated_text = ExpressionTextOf(*constraint);
    }
    for (const auto& [constraint, column] : expressions_) {
      const ParseNode& expression = *constraint->Get(Field::k_raw_expr);
      const bool generated = constraint->Text(Field::k_contype) == "CONSTR_GENERATED";
      const ColumnSchema* of = generated ? &schema_->columns[static_cast<size_t>(column)] : nullptr;
      TESSERA_TRY(CheckRowExpression(expression, context_.sql, dialect, *schema_, of));
      if (generated) continue;
      std::vector<int> named = {column};
      if (column < 0) {
        TESSERA_ASSIGN(named, ColumnsOfRowExpression(expression, context_.sql, dialect, *schema_));
        if (named.size() != 1) named.clear();
      }
      TESSERA_ASSIGN(std::string name, NameOf(*constraint, named, "check"));
      schema_->checks.push_back({std::move(name), ExpressionTextOf(*constraint)});
    }
    return {};
  }

 private:
  /// The constraint's own name, or one as PostgreSQL makes it: table_column_check, with a number if that is taken.
  Result<std::string> NameOf(const ParseNode& constraint, const std::vector<int>& columns, const char* kind) {
    const auto taken = [&](const std::string& name) {
      const auto same = [&](const auto& other) { return other.name == name; };
      return std::any_of(schema_->checks.begin(), schema_->checks.end(), same) ||
             std::any_of(schema_->unique_keys.begin(), schema_->unique_keys.end(), same) ||
             std::any_of(schema_->foreign_keys.begin(), schema_->foreign_keys.end(), same);
    };
    std::string name(constraint.Text(Field::k_conname));
    if (!name.empty()) {
      if (taken(name))
        return SqlError(ErrorKind::kDuplicateObject, "constraint \"" + name + "\" already exists",
                        constraint.location());
      return name;
    }
    name = BaseName(schema_->name);
    for (const int c : columns) name += "_" + schema_->columns[static_cast<size_t>(c)].name;
    name += std::string("_") + kind;
    const std::string base = name;
    for (int i = 1; taken(name); ++i) name = base + std::to_string(i);
    return name;
  }

  Status AddUnique(const ParseNode& constraint, std::vector<int> columns) {
    const int position = constraint.location();
    if (constraint.Get(Field::k_nulls_not_distinct) != nullptr)
      return Unsupported("UNIQUE NULLS NOT DISTINCT is not supported", position, "Declare the columns NOT NULL.");
    if (constraint.Get(Field::k_deferrable) != nullptr)
      return Unsupported("a constraint that is DEFERRABLE is not supported", position);
    TESSERA_ASSIGN(std::string name, NameOf(constraint, columns, "key"));
    schema_->unique_keys.push_back({std::move(name), std::move(columns)});
    return {};
  }

  /// The text between the parentheses of CHECK (...) or AS (...).
  std::string ExpressionTextOf(const ParseNode& constraint) const {
    const std::string_view sql = context_.sql;
    size_t begin = 0, depth = 0;
    for (Token t = NextToken(sql, static_cast<size_t>(constraint.location())); t.kind != Token::Kind::kEnd;
         t = NextToken(sql, t.end)) {
      if (t.kind != Token::Kind::kSymbol) continue;
      if (sql[t.begin] == '(' && depth++ == 0) begin = t.end;
      if (sql[t.begin] == ')' && --depth == 0) return std::string(sql.substr(begin, t.begin - begin));
    }
    return {};
  }

  /// Of the last column.
  Status SetDefault(const ParseNode& constraint) {
    ColumnSchema& column = schema_->columns.back();
    if (column.HasDefault()) {
      return SqlError(ErrorKind::kSyntax, "multiple default values specified for column \"" + column.name + "\"",
                      constraint.location());
    }
    return SetDefault(*constraint.Get(Field::k_raw_expr), DefaultTextOf(constraint), &column);
  }

  /// The text between DEFAULT and the next constraint, the next column or the end.
  std::string DefaultTextOf(const ParseNode& constraint) const {
    const std::string_view sql = context_.sql;
    Token t = NextToken(sql, static_cast<size_t>(constraint.location()));
    const size_t begin = t.end;
    size_t end = constraint.next() != nullptr ? static_cast<size_t>(constraint.next()->location()) : sql.size();
    int depth = 0;
    for (t = NextToken(sql, begin); t.kind != Token::Kind::kEnd && t.begin < end; t = NextToken(sql, t.end)) {
      if (t.kind != Token::Kind::kSymbol) continue;
      if (sql[t.begin] == '(') ++depth;
      if (sql[t.begin] == ';' || (sql[t.begin] == ')' && depth-- == 0) || (sql[t.begin] == ',' && depth == 0))
        end = t.begin;
    }
    return std::string(TrimBlanks(sql.substr(begin, end - begin)));
  }

  Status SetPrimaryKey(const std::vector<int>& key, int position) {
    if (!schema_->primary_key.empty()) {
      return SqlError(ErrorKind::kTableDefinition,
                      "multiple primary keys for table \"" + schema_->name + "\" are not allowed", position);
    }
    schema_->primary_key = key;
    for (int c : key) schema_->columns[static_cast<size_t>(c)].not_null = true;
    return {};
  }

  /// CHECK and GENERATED, and the column that has each; -1: the table.
  std::vector<std::pair<const ParseNode*, int>> expressions_, foreign_keys_;
  TableSchema* schema_;
  const Snapshot& snapshot_;
  Sequences* sequences_ = nullptr;
  std::vector<Relation> no_relations_;  ///< stays empty: a DEFAULT has no columns to speak of
  BindContext context_;
};

/// The name of a new table, and what is in its place.
Status BindNewTable(const ParseNode& relation, bool if_not_exists, const Dialect& dialect, const Snapshot& snapshot,
                    Statement* out) {
  out->kind = Statement::Kind::kCreateTable;
  const int position = relation.location();
  if (relation.Text(Field::k_relpersistence) == "u")
    return Unsupported("an unlogged table is not supported", position, "Write CREATE TABLE, or CREATE TEMP TABLE.");
  TESSERA_ASSIGN(out->table, NewRelationName(relation, snapshot));
  const bool temporary = IsTemporaryName(out->table);
  out->definition.schema.name = out->table;
  out->definition.if_exists = if_not_exists;
  out->definition.or_replace = dialect.or_replace;
  if (out->definition.or_replace && out->definition.if_exists)
    return SqlError("CREATE OR REPLACE TABLE with IF NOT EXISTS is not valid", position, "Leave out one of them.");
  const ViewSchema* const view = FindView(snapshot.views, temporary ? BaseName(out->table) : out->table, temporary);
  if (view != nullptr && view->temporary == temporary)
    return SqlError(ErrorKind::kWrongObjectType, "\"" + out->table + "\" is a view", position, "DROP VIEW removes it.");
  const std::shared_ptr<const TableInfo> there = snapshot.Find(out->table);
  if (out->definition.or_replace && there != nullptr && there->schema.materialized)
    return SqlError(ErrorKind::kWrongObjectType, "\"" + out->table + "\" is a materialized view", position,
                    "DROP MATERIALIZED VIEW removes it.");
  if (!out->definition.if_exists && !out->definition.or_replace && there != nullptr)
    return SqlError(ErrorKind::kDuplicateTable, "table \"" + out->table + "\" already exists", position);
  return {};
}

Status BindOnCommit(std::string_view action, int position, Statement* out) {
  if (action == "ONCOMMIT_NOOP") return {};
  if (!IsTemporaryName(out->table)) return SqlError("ON COMMIT can only be used on temporary tables", position);
  if (action == "ONCOMMIT_DROP") out->value = "drop";
  if (action == "ONCOMMIT_DELETE_ROWS") out->value = "delete rows";
  return {};
}

}  // namespace

Status BindCreateTable(const ParseNode& create, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                       Statement* out) {
  const ParseNode& relation = *create.Get(Field::k_relation);
  const int position = relation.location();
  TESSERA_TRY(BindNewTable(relation, create.Get(Field::k_if_not_exists) != nullptr, dialect, snapshot, out));
  if (create.Get(Field::k_inhRelations) != nullptr) return Unsupported("INHERITS is not supported", position);
  if (create.Get(Field::k_partspec) != nullptr) return Unsupported("PARTITION BY is not supported", position);
  if (create.Get(Field::k_ofTypename) != nullptr) return Unsupported("CREATE TABLE OF is not supported", position);
  if (create.Get(Field::k_tablespacename) != nullptr) return Unsupported("TABLESPACE is not supported", position);
  TESSERA_TRY(BindOnCommit(create.Text(Field::k_oncommit), position, out));

  TableBinder binder(sql, dialect, snapshot, &out->definition.schema);
  binder.SetSequences(&out->definition.sequences);
  const ParseNode* elements = create.Get(Field::k_tableElts);
  if (elements == nullptr)
    return SqlError(ErrorKind::kTableDefinition, "table \"" + out->table + "\" must have at least one column",
                    position);
  for (const ParseNode& e : *elements) {
    if (e.Is(Tag::kColumnDef)) {
      TESSERA_TRY(binder.AddColumn(e));
    } else if (!e.Is(Tag::kConstraint)) {
      return Unsupported("LIKE in CREATE TABLE is not supported", position);
    }
  }
  for (const ParseNode& e : *elements) {
    if (e.Is(Tag::kConstraint)) TESSERA_TRY(binder.AddConstraint(e));
  }
  TESSERA_TRY(binder.AddExpressions());
  TESSERA_TRY(binder.AddForeignKeys());
  if (out->definition.schema.columns.empty())
    return SqlError(ErrorKind::kTableDefinition, "table \"" + out->table + "\" must have at least one column",
                    position);
  if (const ParseNode* options = create.Get(Field::k_options))
    TESSERA_TRY(BindTableOptions(*options, &out->definition.schema));
  return {};
}

Status BindCreateTableAs(const ParseNode& create, std::string_view sql, const Dialect& dialect,
                         const Snapshot& snapshot, Statement* out) {
  const ParseNode& into = *create.Get(Field::k_into);
  const ParseNode& relation = *into.Get(Field::k_rel);
  const int position = relation.location();
  const ParseNode& select = *create.Get(Field::k_query);
  if (!select.Is(Tag::kSelectStmt))
    return Unsupported("CREATE TABLE AS of a statement other than SELECT is not supported", position);
  const bool if_not_exists = create.Get(Field::k_if_not_exists) != nullptr || dialect.if_not_exists;
  TESSERA_TRY(BindNewTable(relation, if_not_exists, dialect, snapshot, out));
  if (into.Get(Field::k_tableSpaceName) != nullptr) return Unsupported("TABLESPACE is not supported", position);
  TESSERA_TRY(BindOnCommit(into.Text(Field::k_onCommit), position, out));
  TESSERA_ASSIGN(std::unique_ptr<Query> query, BindQuery(select, sql, dialect, snapshot));
  const auto count = static_cast<size_t>(query->visible);
  const ParseNode* name = nullptr;
  if (const ParseNode* names = into.Get(Field::k_colNames)) {
    if (names->size() > count) {
      return SqlError("too many column names were specified: the query has " + std::to_string(count) + " columns",
                      position);
    }
    name = names->first();
  }
  for (size_t i = 0; i < count; ++i) {
    Output& o = query->outputs[i];
    if (name != nullptr) {
      o.name = name->Text(Field::k_sval);
      name = name->next();
    }
    ColumnSchema& column = out->definition.schema.columns.emplace_back();
    column.name = o.name;
    column.type = StoredType(o.expr->type);
    const auto same = [&](const ColumnSchema& c) { return &c != &column && c.name == o.name; };
    if (std::any_of(out->definition.schema.columns.begin(), out->definition.schema.columns.end(), same)) {
      return SqlError(ErrorKind::kDuplicateColumn, "column \"" + o.name + "\" specified more than once",
                      o.expr->position, "Name it in the query: SELECT x AS name.");
    }
  }
  if (const ParseNode* options = into.Get(Field::k_options))
    TESSERA_TRY(BindTableOptions(*options, &out->definition.schema));
  const bool is_there = out->definition.if_exists && snapshot.Find(out->table) != nullptr;
  if (!is_there && into.Get(Field::k_skipData) == nullptr) out->query = std::move(query);
  return {};
}

Status BindDropTable(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kDropTable;
  const std::string_view type = drop.Text(Field::k_removeType);
  if (type != "OBJECT_TABLE") {
    std::string name(type.starts_with("OBJECT_") ? type.substr(7) : type);
    return Unsupported("DROP " + name + " is not supported", position);
  }
  const ParseNode* objects = drop.Get(Field::k_objects);
  if (objects->first()->next() != nullptr)
    return Unsupported("DROP TABLE of several tables is not supported", position);
  TESSERA_ASSIGN(out->table, NameOfDropped(*objects->first(), snapshot));
  out->definition.if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  if (snapshot.Find(out->table) == nullptr && FindView(snapshot.views, out->table) != nullptr)
    return SqlError(ErrorKind::kWrongObjectType, "\"" + out->table + "\" is a view, not a table", -1,
                    "Write DROP VIEW.");
  const std::shared_ptr<const TableInfo> table = snapshot.Find(out->table);
  if (!out->definition.if_exists && table == nullptr) return TableNotFound(out->table, -1, snapshot);
  if (table != nullptr && !table->files.empty()) return FrameIsRead(BaseName(out->table), -1);
  if (table != nullptr && table->schema.materialized) {
    return SqlError(ErrorKind::kWrongObjectType, "\"" + out->table + "\" is a materialized view, not a table", -1,
                    "Write DROP MATERIALIZED VIEW.");
  }
  if (drop.Text(Field::k_behavior) == "DROP_CASCADE")
    out->definition.dependents = WithoutReferencesTo(out->table, snapshot);
  return {};
}

Status BindVacuum(const ParseNode& vacuum, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kVacuum;
  if (const ParseNode* options = vacuum.Get(Field::k_options)) {
    for (const ParseNode& option : *options) {
      const std::string_view name = option.Text(Field::k_defname);
      if (name == "compression") {
        out->value = OptionText(option);
      } else if (name != "full" && name != "analyze" && name != "verbose" && name != "freeze") {
        return SqlError(ErrorKind::kInvalidParameterValue, "unrecognized VACUUM option \"" + std::string(name) + "\"",
                        option.location(), "There is compression: VACUUM (compression ratio) t.");
      }
    }
  }
  if (const ParseNode* tables = vacuum.Get(Field::k_rels)) {
    for (const ParseNode& entry : *tables) {
      if (entry.Get(Field::k_va_cols) != nullptr)
        return Unsupported("VACUUM of columns is not supported", position, "Name the table alone.");
      TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindStored(*entry.Get(Field::k_relation), snapshot));
      out->tables.push_back(table->schema.name);
    }
    return {};
  }
  for (const auto& table : snapshot.tables) {
    if (!IsTemporaryName(table->schema.name)) out->tables.push_back(table->schema.name);
  }
  return {};
}

Status BindAnalyze(const ParseNode& analyze, const Snapshot& snapshot, Statement* out) {
  if (const ParseNode* options = analyze.Get(Field::k_options)) {
    for (const ParseNode& option : *options) {
      const std::string_view name = option.Text(Field::k_defname);
      if (name != "verbose" && name != "skip_locked" && name != "buffer_usage_limit") {
        return SqlError(ErrorKind::kInvalidParameterValue,
                        "unrecognized ANALYZE option \"" + std::string(name) + "\"", option.location());
      }
    }
  }
  if (const ParseNode* tables = analyze.Get(Field::k_rels)) {
    for (const ParseNode& entry : *tables) {
      const ParseNode& name = *entry.Get(Field::k_relation);
      TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindStored(name, snapshot));
      const ParseNode* const columns = entry.Get(Field::k_va_cols);
      for (const ParseNode* c = columns != nullptr ? columns->first() : nullptr; c != nullptr; c = c->next())
        TESSERA_TRY(FindTableColumn(*table, c->Text(Field::k_sval), name.location()).status());
    }
  }
  out->kind = Statement::Kind::kNotice;
  out->notice = "ANALYZE: no effect, each change keeps the statistics";
  return {};
}

Status AddColumn(const ParseNode& definition, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                 TableSchema* schema, Sequences* sequences) {
  TableBinder binder(sql, dialect, snapshot, schema);
  binder.SetSequences(sequences);
  TESSERA_TRY(binder.AddColumn(definition));
  TESSERA_TRY(binder.AddExpressions());
  return binder.AddForeignKeys();
}

Status AddConstraint(const ParseNode& constraint, std::string_view sql, const Dialect& dialect,
                     const Snapshot& snapshot, TableSchema* schema) {
  TableBinder binder(sql, dialect, snapshot, schema);
  TESSERA_TRY(binder.AddConstraint(constraint));
  TESSERA_TRY(binder.AddExpressions());
  return binder.AddForeignKeys();
}

Status SetColumnDefault(const ParseNode& expression, std::string_view text, std::string_view sql,
                        const Dialect& dialect, ColumnSchema* column) {
  TableSchema none;
  const Snapshot no_tables;
  return TableBinder(sql, dialect, no_tables, &none).SetDefault(expression, text, column);
}

Result<SqlType> BindColumnType(const ParseNode& definition, std::string_view sql, const Dialect& dialect) {
  TableSchema none;
  const Snapshot no_tables;
  return TableBinder(sql, dialect, no_tables, &none).TypeOf(definition);
}

Result<Value> InsertValue(ExpressionBinder* binder, const ParseNode& node, const ColumnSchema& column) {
  if (node.Is(Tag::kSetToDefault)) return DefaultValue(column, binder->dialect());
  TESSERA_ASSIGN(ExprPtr e, binder->Bind(node));
  const int position = e->position;
  const bool untyped = e->type.id == TypeId::kNull;
  // SQLite writes booleans so, and DuckDB takes them.
  const bool is_bit = column.type.id == TypeId::kBoolean && e->type.id == TypeId::kInteger && IsConstant(*e) &&
                      !e->constant.null && (e->constant.i64 == 0 || e->constant.i64 == 1);
  if (!untyped && !is_bit && FindCast(e->type, column.type) > CastContext::kAssignment) {
    return SqlError(ErrorKind::kDatatypeMismatch,
                    "column \"" + column.name + "\" is of type " + column.type.ToString() +
                        " but expression is of type " + e->type.ToString(),
                    position, "You will need to rewrite or cast the expression.");
  }
  if (!IsConstant(*e))
    return Unsupported("VALUES with an expression that is not a constant is not supported", position);
  // Text that is longer than VARCHAR(n) is an error here; CAST would cut it. A text literal is read as the column's
  // type.
  if (!e->constant.null && (untyped || (e->type.id == TypeId::kText && column.type.id == TypeId::kText))) {
    Result<Value> value = ParseValue(e->constant.text, column.type, binder->zone());
    if (!value.ok()) return value.status().At(position);
    return value;
  }
  if (e->constant.null) {
    TESSERA_TRY(binder->Resolve(std::move(e), column.type).status());  // a parameter gets its type there
    return Value::Null(column.type);
  }
  SqlType type = column.type;
  if (type.id == TypeId::kText) type.length = 0;
  TESSERA_ASSIGN(e, binder->Cast(std::move(e), type));
  if (type.id == TypeId::kText) return ParseValue(e->constant.text, column.type);
  return std::move(e->constant);
}

Status FitToTable(Query* query, const TableInfo& target, const std::vector<int>& columns, const Dialect& dialect) {
  BindContext context;
  context.dialect = &dialect;
  context.relations = &query->relations;
  ExpressionBinder binder(&context, nullptr, Clause::kSelect);
  const size_t count = target.schema.columns.size();
  std::vector<Output> fitted(count);
  // Where each old output is now, for ORDER BY, which sorts by the value before its cast.
  std::vector<int> place(query->outputs.size(), -1);
  std::vector<Output> hidden;
  for (size_t i = 0; i < query->outputs.size(); ++i) {
    Output& old = query->outputs[i];
    const auto sorted = [&](const OrderKey& k) { return k.output == static_cast<int>(i); };
    const bool is_sorted = std::any_of(query->order_by.begin(), query->order_by.end(), sorted);
    if (static_cast<int>(i) >= query->visible) {
      place[i] = static_cast<int>(count + hidden.size());
      hidden.push_back(std::move(old));
      continue;
    }
    const auto to = static_cast<size_t>(columns[i]);
    const ColumnSchema& column = target.schema.columns[to];
    const int position = old.expr->position;
    const SqlType from = old.expr->type;
    SqlType type = column.type;
    // A text that is too long is an error when it is stored; a cast would cut it.
    if (type.id == TypeId::kText) type.length = 0;
    const bool same = from == type || (from.id == TypeId::kText && type.id == TypeId::kText);
    if (!same && FindCast(from, type) > CastContext::kAssignment) {
      return SqlError(ErrorKind::kDatatypeMismatch,
                      "column \"" + column.name + "\" is of type " + column.type.ToString() +
                          " but expression is of type " + from.ToString(),
                      position, "You will need to rewrite or cast the expression.");
    }
    place[i] = static_cast<int>(to);
    if (!same && is_sorted) {
      place[i] = static_cast<int>(count + hidden.size());
      hidden.push_back({old.expr->Clone(), ""});
    }
    // Distinct values may be equal after a cast. DISTINCT applies to what is selected, not to what is stored.
    if (!same && query->distinct && FindCast(from, type) != CastContext::kImplicit) {
      return Unsupported("INSERT of SELECT DISTINCT with a narrowing cast is not supported", position,
                         "Cast in the select list.");
    }
    if (!same) {
      TESSERA_ASSIGN(old.expr, binder.Cast(std::move(old.expr), type));
    }
    fitted[to] = {std::move(old.expr), column.name};
  }
  if (query->distinct && !hidden.empty()) {
    return Unsupported("INSERT of SELECT DISTINCT with a cast and ORDER BY is not supported", -1,
                       "Cast in the select list.");
  }
  for (size_t c = 0; c < count; ++c) {
    if (fitted[c].expr == nullptr)
      fitted[c] = {MakeConstant(DefaultOf(target.schema.columns[c]), -1), target.schema.columns[c].name};
  }
  for (OrderKey& k : query->order_by) k.output = place[static_cast<size_t>(k.output)];
  for (Output& h : hidden) fitted.push_back(std::move(h));
  query->outputs = std::move(fitted);
  query->visible = static_cast<int>(count);
  return {};
}

}  // namespace tessera
