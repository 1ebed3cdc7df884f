#include "compiler/bind/conflict_binder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/query_binder.h"
#include "compiler/bind/query_block.h"
#include "compiler/bind/returning_binder.h"
#include "compiler/bind/set_list.h"
#include "compiler/parse/parser.h"
#include "compiler/query/expr_builder.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// No table of the catalog has such a name or number.
constexpr char kIncoming[] =
    "\x06"
    "new rows";
constexpr int64_t kIncomingId = -2;
constexpr char kExcluded[] = "excluded";

using Key = std::vector<int>;  ///< its columns

std::string Quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    out += c;
    if (c == '"') out += c;
  }
  return out + "\"";
}

std::vector<Key> KeysOf(const TableSchema& schema) {
  std::vector<Key> keys;
  if (!schema.primary_key.empty()) keys.push_back(schema.primary_key);
  for (const UniqueKey& unique : schema.unique_keys) keys.push_back(unique.columns);
  return keys;
}

/// For a hint: the keys that a table has.
std::string KeysText(const TableSchema& schema) {
  const auto columns = [&](const Key& key) {
    std::string text;
    for (const int c : key) text += (text.empty() ? "(" : ", ") + schema.columns[static_cast<size_t>(c)].name;
    return text + ")";
  };
  std::string text;
  if (!schema.primary_key.empty())
    text = "PRIMARY KEY " + columns(schema.primary_key) + " named " + BaseName(schema.name) + "_pkey";
  for (const UniqueKey& unique : schema.unique_keys)
    text += (text.empty() ? "" : ", ") + ("UNIQUE " + columns(unique.columns) + " named " + unique.name);
  return text.empty() ? "It has no PRIMARY KEY and no UNIQUE." : "Its keys are " + text + ".";
}

/// The key that ON CONSTRAINT names.
Result<Key> NamedKey(std::string_view name, const TableSchema& schema, int position) {
  for (const UniqueKey& unique : schema.unique_keys) {
    if (unique.name == name) return unique.columns;
  }
  if (!schema.primary_key.empty() && name == BaseName(schema.name) + "_pkey") return schema.primary_key;
  return SqlError(ErrorKind::kUndefinedObject,
                  "key \"" + std::string(name) + "\" for table \"" + schema.name + "\" does not exist", position,
                  KeysText(schema));
}

/// The key of the columns that the clause names.
Result<Key> ListedKey(const ParseNode& list, const TableInfo& table, int position) {
  Key key;
  for (const ParseNode& element : list) {
    if (element.Get(Field::k_name) == nullptr)
      return Unsupported("an expression in ON CONFLICT (...) is not supported", position, KeysText(table.schema));
    TESSERA_ASSIGN(const int column, FindTableColumn(table, element.Text(Field::k_name), position));
    if (std::ranges::count(key, column) == 0) key.push_back(column);
  }
  std::ranges::sort(key);
  for (const Key& of_table : KeysOf(table.schema)) {
    Key sorted = of_table;
    std::ranges::sort(sorted);
    if (sorted == key) return of_table;
  }
  return SqlError(ErrorKind::kColumnReference,
                  "there is no key of table \"" + table.schema.name + "\" that has the columns of ON CONFLICT",
                  position, KeysText(table.schema));
}

/// The keys whose conflicts the clause is about.
Result<std::vector<Key>> KeysOfClause(const ParseNode& clause, const TableInfo& table) {
  const ParseNode* const infer = clause.Get(Field::k_infer);
  const int position = infer != nullptr ? infer->location() : clause.location();
  if (infer != nullptr && infer->Get(Field::k_whereClause) != nullptr)
    return Unsupported("WHERE after the columns of ON CONFLICT is not supported", position,
                       "It chooses a partial index, which there is none of.");
  if (infer != nullptr && infer->Get(Field::k_conname) != nullptr) {
    TESSERA_ASSIGN(Key key, NamedKey(infer->Text(Field::k_conname), table.schema, position));
    return std::vector<Key>{std::move(key)};
  }
  if (infer != nullptr) {
    TESSERA_ASSIGN(Key key, ListedKey(*infer->Get(Field::k_indexElems), table, position));
    return std::vector<Key>{std::move(key)};
  }
  std::vector<Key> keys = KeysOf(table.schema);
  if (clause.Text(Field::k_action) == "ONCONFLICT_UPDATE" && keys.size() != 1) {
    return SqlError(
        ErrorKind::kColumnReference,
        "ON CONFLICT DO UPDATE of table \"" + table.schema.name + "\" needs the columns of a key", position,
        keys.empty() ? KeysText(table.schema) : "Write ON CONFLICT (column, ...) DO UPDATE. " + KeysText(table.schema));
  }
  return keys;
}

/// Pairs of an old row, of relation 0, and a new one, of relation 1, that are equal in the key.
Status BindPairs(const ParseNode& relation, const Key& key, const Statement& s, QueryBlock* block) {
  TESSERA_TRY(FromBinder(block).BindTarget(relation, s.target));
  block->query->relations.push_back(RelationOf(s.change.on_conflict->incoming, kExcluded));
  ExpressionBinder binder(&block->context, nullptr, Clause::kWhere);
  for (const int c : key) {
    TESSERA_ASSIGN(ExprPtr equal,
                   binder.Comparison(Function::kEq, binder.Column(0, c, -1), binder.Column(1, c, -1), -1));
    SplitConjuncts(std::move(equal), &block->query->conjuncts);
  }
  return {};
}

/// Outputs of the numbers of the new row and of the old one.
void AddNumbers(const Statement& s, Query* query) {
  const int number = static_cast<int>(s.target->schema.columns.size());
  query->outputs.push_back({MakeColumn(1, number, SqlType::Of(TypeId::kBigint), false, -1), "new"});
  AddRowNumber(*s.target, query);
}

/// New rows whose key another new row has, too, and that one: the first of them, or the last.
Result<std::unique_ptr<Query>> RepeatsQuery(const Key& key, const OnConflict& conflict, const Snapshot& snapshot) {
  const TableInfo& incoming = *conflict.incoming;
  std::string columns, filter;
  for (const int c : key) {
    const ColumnSchema& column = incoming.schema.columns[static_cast<size_t>(c)];
    columns += (columns.empty() ? "" : ", ") + Quoted(column.name);
    if (!column.not_null) filter += (filter.empty() ? " WHERE " : " AND ") + Quoted(column.name) + " IS NOT NULL";
  }
  const std::string number = Quoted(incoming.schema.columns.back().name);
  const char* const decides = conflict.action == OnConflict::Action::kReplace ? "max" : "min";
  const std::string sql = "SELECT n, d FROM (SELECT " + number + " AS n, " + decides + "(" + number +
                          ") OVER (PARTITION BY " + columns + ") AS d FROM " + Quoted(incoming.schema.name) + filter +
                          ") AS q WHERE n <> d";
  Snapshot with;
  with.types = snapshot.types;
  with.tables.push_back(conflict.incoming);
  TESSERA_ASSIGN(ParsedStatement parsed, Parse(sql));
  parsed.dialect.types = &with.types;
  return BindQuery(*parsed.statement, sql, parsed.dialect, with);
}

Status BindUpdates(const ParseNode& clause, const ParseNode& relation, const Key& key, std::string_view sql,
                   const Dialect& dialect, const Snapshot& snapshot, Statement* out) {
  OnConflict& conflict = *out->change.on_conflict;
  QueryBlock block(sql, &dialect, snapshot);
  TESSERA_TRY(BindPairs(relation, key, *out, &block));
  // Names without a table are the target's alone.
  NameScope excluded;
  excluded.variables.push_back({kExcluded, "", -1, {}});
  for (const ColumnSchema& c : out->target->schema.columns) {
    std::vector<ScopeColumn>& columns = excluded.variables[0].columns;
    columns.push_back({c.name, 1, static_cast<int>(columns.size())});
  }
  TESSERA_TRY(AddVariables(excluded, &block.scope));
  std::vector<ExprPtr> values;
  TESSERA_TRY(BindSetList(*clause.Get(Field::k_targetList), *out->target, block.scope, "ON CONFLICT DO UPDATE", &block,
                          &values));
  TESSERA_TRY(AddNewValues(std::move(values), *out->target, dialect, block.query.get(), &conflict.rules));
  if (const ParseNode* where = clause.Get(Field::k_whereClause)) {
    ExpressionBinder binder(&block.context, &block.scope, Clause::kWhere);
    TESSERA_ASSIGN(ExprPtr condition, binder.BindBoolean(*where, "argument of WHERE"));
    SplitConjuncts(std::move(condition), &block.query->conjuncts);
  }
  AddNumbers(*out, block.query.get());
  conflict.updates = block.Take();
  return {};
}

}  // namespace

Status BindOnConflict(const ParseNode& insert, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                      Statement* out) {
  const ParseNode& relation = *insert.Get(Field::k_relation);
  const ParseNode* const clause = insert.Get(Field::k_onConflictClause);
  if (clause == nullptr && dialect.insert_or == Dialect::InsertOr::kFail) return {};
  if (clause != nullptr && dialect.insert_or != Dialect::InsertOr::kFail)
    return SqlError("ON CONFLICT of INSERT OR REPLACE or OR IGNORE is not valid", clause->location(),
                    "Leave out one of them.");
  std::vector<Key> keys = KeysOf(out->target->schema);
  if (clause != nullptr) {
    TESSERA_ASSIGN(keys, KeysOfClause(*clause, *out->target));
  }
  out->target = NumberRows(*out->target);
  out->change.on_conflict = std::make_unique<OnConflict>();
  OnConflict& conflict = *out->change.on_conflict;
  conflict.action = clause != nullptr && clause->Text(Field::k_action) == "ONCONFLICT_UPDATE"
                        ? OnConflict::Action::kUpdate
                    : dialect.insert_or == Dialect::InsertOr::kReplace ? OnConflict::Action::kReplace
                                                                       : OnConflict::Action::kNothing;
  conflict.incoming = MakeRowsTable(*out->target, kIncoming, kIncomingId);
  FinishRows(conflict.incoming.get());
  for (const Key& key : keys) {
    OnConflict::Key& k = conflict.keys.emplace_back();
    QueryBlock block(sql, &dialect, snapshot);
    TESSERA_TRY(BindPairs(relation, key, *out, &block));
    AddNumbers(*out, block.query.get());
    k.matches = block.Take();
    TESSERA_ASSIGN(k.repeats, RepeatsQuery(key, conflict, snapshot));
  }
  if (conflict.action != OnConflict::Action::kUpdate) return {};
  return BindUpdates(*clause, relation, keys[0], sql, dialect, snapshot, out);
}

}  // namespace tessera
