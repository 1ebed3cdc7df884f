#include "compiler/bind/change_binder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/query_block.h"
#include "compiler/bind/returning_binder.h"
#include "compiler/bind/set_list.h"
#include "compiler/bind/table_binder.h"
#include "compiler/bind/with_clause.h"
#include "compiler/query/expr_builder.h"
#include "tablet/catalog/live_tablet.h"

namespace tessera {
namespace {

/// WITH, the target, `others` (the items of USING or FROM, or nullptr) and WHERE.
Status BindRows(const ParseNode& node, Field others, const Snapshot& snapshot, Statement* out, QueryBlock* block) {
  const ParseNode& relation = *node.Get(Field::k_relation);
  TESSERA_ASSIGN(const std::shared_ptr<const TableInfo> table, FindTable(relation, snapshot));
  out->table = table->schema.name;
  out->target = NumberRows(*table);
  if (const ParseNode* with = node.Get(Field::k_withClause)) TESSERA_TRY(BindWith(*with, block));
  FromBinder from(block);
  TESSERA_TRY(from.BindTarget(relation, out->target));
  if (const ParseNode* list = node.Get(others)) TESSERA_TRY(from.Bind(*list));
  if (const ParseNode* where = node.Get(Field::k_whereClause)) {
    ExpressionBinder binder(&block->context, &block->scope, Clause::kWhere);
    TESSERA_ASSIGN(ExprPtr condition, binder.BindBoolean(*where, "argument of WHERE"));
    SplitConjuncts(std::move(condition), &block->query->conjuncts);
  }
  return {};
}

bool HasGenerated(const TableSchema& schema) {
  return std::ranges::any_of(schema.columns, [](const ColumnSchema& c) { return c.generated_text.has_value(); });
}

/// See Statement::set_columns. What is computed of others may get another value.
std::vector<int> SetColumns(const std::vector<ExprPtr>& values, const TableSchema& schema) {
  std::vector<int> columns;
  for (size_t c = 0; c < values.size(); ++c) {
    if (values[c] != nullptr || schema.columns[c].generated_text) columns.push_back(static_cast<int>(c));
  }
  std::vector<const std::vector<int>*> fixed = {&schema.primary_key, &schema.cluster_by, &schema.distribute_by};
  for (const UniqueKey& key : schema.unique_keys) fixed.push_back(&key.columns);
  const auto is_fixed = [&](int c) {
    return std::ranges::any_of(fixed, [&](const std::vector<int>* list) { return std::ranges::count(*list, c) > 0; });
  };
  return std::ranges::any_of(columns, is_fixed) ? std::vector<int>() : columns;
}

}  // namespace

Status BindDelete(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                  Statement* out) {
  out->kind = Statement::Kind::kDelete;
  QueryBlock block(sql, &dialect, snapshot);
  TESSERA_TRY(BindRows(node, Field::k_usingClause, snapshot, out, &block));
  if (node.Get(Field::k_returningList) != nullptr) {
    const TableSchema& schema = out->target->schema;
    for (const ColumnSchema& column : schema.columns) {
      const int number = static_cast<int>(block.query->outputs.size());
      block.query->outputs.push_back({MakeColumn(0, number, column.type, !column.not_null, -1), column.name});
    }
    TESSERA_TRY(BindReturning(node, block.scope, block.context, block.query.get(), out));
  }
  AddRowNumber(*out->target, block.query.get());
  out->query = block.Take();
  return {};
}

Status BindUpdate(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                  Statement* out) {
  out->kind = Statement::Kind::kUpdate;
  QueryBlock block(sql, &dialect, snapshot);
  TESSERA_TRY(BindRows(node, Field::k_fromClause, snapshot, out, &block));
  std::vector<ExprPtr> values;
  TESSERA_TRY(BindSetList(*node.Get(Field::k_targetList), *out->target, block.scope, "UPDATE", &block, &values));
  const bool returns = node.Get(Field::k_returningList) != nullptr;
  const TableSchema& schema = out->target->schema;
  out->change.set_columns = SetColumns(values, schema);
  out->change.sets_alone =
      !out->change.set_columns.empty() && !returns && schema.checks.empty() && !HasGenerated(schema);
  if (out->change.sets_alone) {
    TableInfo set;
    set.schema.name = schema.name;
    std::vector<int> given;
    for (const int c : out->change.set_columns) {
      const ColumnSchema& column = schema.columns[static_cast<size_t>(c)];
      given.push_back(static_cast<int>(given.size()));
      set.schema.columns.push_back(column);
      block.query->outputs.push_back({std::move(values[static_cast<size_t>(c)]), column.name});
    }
    block.query->visible = static_cast<int>(given.size());
    TESSERA_TRY(FitToTable(block.query.get(), set, given, dialect));
  } else {
    TESSERA_TRY(AddNewValues(std::move(values), *out->target, dialect, block.query.get(), &out->change.rules));
  }
  if (returns) TESSERA_TRY(BindReturning(node, block.scope, block.context, block.query.get(), out));
  AddRowNumber(*out->target, block.query.get());
  out->query = block.Take();
  return {};
}

}  // namespace tessera
