#include "compiler/bind/materialized_view_binder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/relation_name.h"
#include "compiler/bind/table_binder.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/nearest_name.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

std::string Quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

Status NoSuchView(std::string_view name, int position, const Snapshot& snapshot) {
  std::vector<std::string_view> names;
  for (const auto& table : snapshot.tables) {
    if (table->schema.materialized) names.push_back(table->schema.name);
  }
  const std::string nearest = NearestName(name, names);
  return SqlError(ErrorKind::kUndefinedTable, "materialized view " + Quoted(name) + " does not exist", position,
                  nearest.empty() ? "" : "Perhaps you meant materialized view " + Quoted(nearest) + ".");
}

Status NotMaterialized(std::string_view name, int position, const std::string& hint) {
  return SqlError(ErrorKind::kWrongObjectType, Quoted(name) + " is not a materialized view", position, hint);
}

/// The query between AS and WITH [NO] DATA.
std::string QueryText(std::string_view sql, size_t begin) {
  std::vector<Token> tokens;
  for (Token t = NextToken(sql, begin); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    if (t.kind == Token::Kind::kSpace) continue;
    if (t.kind == Token::Kind::kSymbol && sql[t.begin] == ';') break;
    tokens.push_back(t);
  }
  const auto ends_with = [&](std::string_view word) {
    if (tokens.empty() || tokens.back().kind != Token::Kind::kWord) return false;
    const std::string_view last = sql.substr(tokens.back().begin, tokens.back().end - tokens.back().begin);
    if (!std::ranges::equal(last, word, [](char a, char b) { return (a | 0x20) == b; })) return false;
    tokens.pop_back();
    return true;
  };
  const std::vector<Token> all = tokens;
  const bool data = ends_with("data");
  (void)(data && ends_with("no"));
  if (!data || !ends_with("with")) tokens = all;
  if (tokens.empty()) return {};
  return std::string(sql.substr(tokens.front().begin, tokens.back().end - tokens.front().begin));
}

}  // namespace

Status BindCreateMaterialized(const ParseNode& create, std::string_view sql, const Dialect& dialect,
                              const Snapshot& snapshot, Statement* out) {
  const ParseNode& into = *create.Get(Field::k_into);
  const int position = into.Get(Field::k_rel)->location();
  if (dialect.or_replace)
    return Unsupported("CREATE OR REPLACE MATERIALIZED VIEW is not supported", position,
                       "DROP MATERIALIZED VIEW first, or REFRESH it.");
  // What others read reads nothing that is of this session alone.
  Snapshot without = snapshot;
  std::erase_if(without.views, [](const auto& view) { return view->temporary; });
  std::erase_if(without.tables, [](const auto& table) { return IsTemporaryName(table->schema.name); });
  TESSERA_TRY(BindCreateTableAs(create, sql, dialect, without, out));
  const auto* const tables = NotedTables();
  const auto attached = [](const Dependencies::Table& table) { return !AttachedOfName(table.name).empty(); };
  if (tables != nullptr && std::ranges::any_of(*tables, attached))
    return SqlError("a materialized view cannot read an attached database", position, "Write CREATE TABLE AS.");
  if (IsTemporaryName(out->table)) return Unsupported("a temporary materialized view is not supported", position);
  const int as = FindKeyword(sql, position, "as");
  std::string text = QueryText(sql, static_cast<size_t>(as) + 2);
  if (const auto* const names = NotedNames(); names != nullptr && !text.empty()) {
    const auto offset = static_cast<int>(sql.find(text, static_cast<size_t>(as)));
    TESSERA_ASSIGN(text, WithSchemas(text, offset, *names));
  }
  out->definition.schema.materialized = {std::move(text), into.Get(Field::k_skipData) == nullptr};
  return {};
}

Status BindRefresh(const ParseNode& refresh, int position, const Snapshot& snapshot, Statement* out) {
  const ParseNode& relation = *refresh.Get(Field::k_relation);
  out->kind = Statement::Kind::kRefreshView;
  TESSERA_ASSIGN(out->table, RelationName(relation, snapshot));
  const std::shared_ptr<const TableInfo> table = snapshot.Find(out->table);
  const int at = relation.location() >= 0 ? relation.location() : position;
  if (table == nullptr) {
    if (FindView(snapshot.views, out->table) == nullptr) return NoSuchView(out->table, at, snapshot);
    return NotMaterialized(out->table, at, "A view is computed whenever it is read.");
  }
  if (!table->schema.materialized) return NotMaterialized(out->table, at, "");
  NoteTable(*table);
  out->definition.schema = table->schema;
  out->definition.schema.materialized->populated = refresh.Get(Field::k_skipData) == nullptr;
  return {};
}

Status BindDropMaterialized(const ParseNode& drop, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kDropTable;
  out->notice = "DROP MATERIALIZED VIEW";
  out->definition.if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  const ParseNode* objects = drop.Get(Field::k_objects);
  if (objects->first()->next() != nullptr)
    return Unsupported("DROP MATERIALIZED VIEW of several views is not supported", -1, "Drop one after the other.");
  TESSERA_ASSIGN(out->table, NameOfDropped(*objects->first(), snapshot));
  const std::shared_ptr<const TableInfo> table = snapshot.Find(out->table);
  if (table != nullptr && !table->schema.materialized) return NotMaterialized(out->table, -1, "Write DROP TABLE.");
  if (table == nullptr && FindView(snapshot.views, out->table) != nullptr)
    return NotMaterialized(out->table, -1, "Write DROP VIEW.");
  if (table == nullptr && !out->definition.if_exists) return NoSuchView(out->table, -1, snapshot);
  return {};
}

}  // namespace tessera
