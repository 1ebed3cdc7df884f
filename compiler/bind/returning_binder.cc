#include "compiler/bind/returning_binder.h"

#include <map>
#include <utility>

#include "compiler/bind/query_block.h"
#include "compiler/bind/select_list.h"
#include "compiler/bind/with_clause.h"
#include "compiler/query/expr_builder.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// No table of the catalog has such a name or number.
constexpr char kChanged[] =
    "\x06"
    "changed rows";
constexpr int64_t kChangedId = -1;

}  // namespace

std::shared_ptr<TableInfo> MakeRowsTable(const TableInfo& target, const char* name, int64_t id) {
  auto rows = std::make_shared<TableInfo>();
  rows->id = id;
  rows->schema.name = name;
  for (const ColumnSchema& c : target.schema.columns) {
    ColumnSchema& column = rows->schema.columns.emplace_back();
    column.name = c.name;
    column.type = c.type;
    column.not_null = c.not_null;
  }
  return rows;
}

void FinishRows(TableInfo* rows) {
  ColumnSchema& number = rows->schema.columns.emplace_back();
  number.name = "\x06row";
  number.type = SqlType::Of(TypeId::kBigint);
  number.not_null = true;
}

NameScope ScopeOf(const ParseNode& relation, const TableInfo& table) {
  const std::string name = BaseName(table.schema.name);
  RangeVariable variable{name, name, relation.location(), {}};
  if (const ParseNode* alias = relation.Get(Field::k_alias)) variable.alias = alias->Text(Field::k_aliasname);
  for (const ColumnSchema& c : table.schema.columns)
    variable.columns.push_back({c.name, 0, static_cast<int>(variable.columns.size())});
  NameScope scope;
  scope.columns = variable.columns;
  scope.variables.push_back(std::move(variable));
  return scope;
}

Relation RelationOf(std::shared_ptr<const TableInfo> rows, std::string alias) {
  Relation relation;
  relation.alias = std::move(alias);
  for (const ColumnSchema& c : rows->schema.columns) {
    relation.column_names.push_back(c.name);
    relation.column_types.push_back(c.type);
  }
  relation.table = std::move(rows);
  return relation;
}

Status BindReturning(const ParseNode& node, const NameScope& scope, const BindContext& around, Query* rows,
                     Statement* out) {
  const ParseNode& list = *node.Get(Field::k_returningList);
  out->change.changed = MakeRowsTable(*out->target, kChanged, kChangedId);
  QueryBlock block(around.sql, around.dialect, *around.snapshot);
  block.scope = scope;
  block.context.now = around.now;
  BindContext context = around;
  const ExpressionBinder columns(&context, nullptr, Clause::kSelect);
  std::map<std::pair<int, int>, int> places;
  const auto place = [&](ScopeColumn* c) {
    if (c->relation == 0) return;
    std::vector<ColumnSchema>& all = out->change.changed->schema.columns;
    const auto [at, is_new] = places.try_emplace({c->relation, c->column}, static_cast<int>(all.size()));
    if (is_new) {
      ExprPtr e = columns.Column(c->relation, c->column, -1);
      ColumnSchema& column = all.emplace_back();
      column.name = c->name;
      column.type = e->type;
      column.not_null = !e->nullable;
      rows->outputs.push_back({std::move(e), c->name});
    }
    c->relation = 0;
    c->column = at->second;
  };
  for (ScopeColumn& c : block.scope.columns) place(&c);
  for (RangeVariable& v : block.scope.variables) {
    for (ScopeColumn& c : v.columns) place(&c);
  }
  if (rows != nullptr) rows->visible = static_cast<int>(rows->outputs.size());
  const int number = static_cast<int>(out->change.changed->schema.columns.size());
  FinishRows(out->change.changed.get());

  if (const ParseNode* with = node.Get(Field::k_withClause)) TESSERA_TRY(BindWith(*with, &block));
  Query& query = *block.query;
  query.relations.push_back(RelationOf(out->change.changed, scope.variables[0].alias));
  TESSERA_TRY(BindTargetList(list, &block));
  const int position = list.first()->FirstLocation();
  if (!query.aggregates.empty())
    return SqlError(ErrorKind::kGrouping, "aggregate functions are not allowed in RETURNING", position,
                    "SELECT them after the statement.");
  if (!block.windows.empty())
    return SqlError(ErrorKind::kWindowing, "window functions are not allowed in RETURNING", position,
                    "SELECT them after the statement.");
  if (block.rows_of != nullptr)
    return SqlError("a function that makes rows is not allowed in RETURNING", block.rows_of->location());
  query.order_by.push_back({static_cast<int>(query.outputs.size()), false, false});
  query.outputs.push_back({MakeColumn(0, number, SqlType::Of(TypeId::kBigint), false, -1), ""});
  out->change.returning = block.Take();
  return {};
}

}  // namespace tessera
