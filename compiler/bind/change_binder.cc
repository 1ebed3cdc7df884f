#include "compiler/bind/change_binder.h"

#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/query_binder.h"
#include "compiler/bind/query_block.h"
#include "compiler/bind/row_rules.h"
#include "compiler/bind/table_binder.h"
#include "compiler/parse/parser.h"
#include "compiler/query/conditions.h"
#include "compiler/query/expr_builder.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/schema_check.h"

namespace tessera {
namespace {

/// WITH, the target, `others` (the items of USING or FROM, or nullptr) and WHERE.
Status BindRows(const ParseNode& node, Field others, const Snapshot& snapshot, Statement* out, QueryBlock* block) {
  const ParseNode& relation = *node.Get(Field::k_relation);
  if (const ParseNode* returning = node.Get(Field::k_returningList))
    return Unsupported("RETURNING is not supported", returning->first()->FirstLocation());
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

void AddRowNumber(const TableInfo& target, Query* query) {
  query->outputs.push_back({MakeColumn(0, RowNumberColumn(target), SqlType::Of(TypeId::kBigint), false, -1), "row"});
  query->visible = static_cast<int>(query->outputs.size());
}

/// The new value of a column; nullptr for one that is computed of others, where DEFAULT is said.
Result<ExprPtr> NewValue(const ParseNode& value, const ColumnSchema& column, ExpressionBinder* binder) {
  if (value.Is(Tag::kSetToDefault)) {
    if (column.generated_text) return ExprPtr();
    if (column.default_expression) {
      return Unsupported("DEFAULT of a column whose default is computed for each row is not supported in UPDATE",
                         value.location(), "Write the expression.");
    }
    return MakeConstant(DefaultOf(column), value.location());
  }
  if (column.generated_text) {
    return SqlError("column \"" + column.name + "\" can only be updated to DEFAULT", value.FirstLocation(),
                    "It is a generated column.");
  }
  SqlType type = column.type;
  if (type.id == TypeId::kText) type.length = 0;  // a text that is too long is an error when it is stored
  TESSERA_ASSIGN(ExprPtr e, binder->Bind(value));
  return binder->Resolve(std::move(e), type);
}

/// The value of each column after SET; nullptr: it stays as it is.
Status BindSetList(const ParseNode& targets, const TableInfo& table, QueryBlock* block, std::vector<ExprPtr>* values,
                   std::vector<bool>* is_set) {
  ExpressionBinder binder(&block->context, &block->scope, Clause::kSelect);
  for (const ParseNode& target : targets) {
    const std::string_view name = target.Text(Field::k_name);
    if (target.Get(Field::k_indirection) != nullptr)
      return Unsupported("a subscript or field of a column is not supported", target.location());
    TESSERA_ASSIGN(const int column, FindTableColumn(table, name, target.location()));
    const auto c = static_cast<size_t>(column);
    if ((*is_set)[c])
      return SqlError("multiple assignments to same column \"" + std::string(name) + "\"", target.location());
    (*is_set)[c] = true;
    const ParseNode& value = *target.Get(Field::k_val);
    if (value.Is(Tag::kOther))
      return Unsupported("SET of several columns at once is not supported", target.location(),
                         "Write SET a = ..., b = ...");
    TESSERA_ASSIGN((*values)[c], NewValue(value, table.schema.columns[c], &binder));
    if (!block->query->aggregates.empty() || !block->windows.empty()) {
      return SqlError("aggregate and window functions are not allowed in UPDATE", value.FirstLocation(),
                      "Compute them in a subquery.");
    }
  }
  return {};
}

}  // namespace

Status BindDelete(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                  Statement* out) {
  out->kind = Statement::Kind::kDelete;
  QueryBlock block(sql, &dialect, snapshot);
  TESSERA_TRY(BindRows(node, Field::k_usingClause, snapshot, out, &block));
  AddRowNumber(*out->target, block.query.get());
  out->query = block.Take();
  return {};
}

Status BindUpdate(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                  Statement* out) {
  out->kind = Statement::Kind::kUpdate;
  QueryBlock block(sql, &dialect, snapshot);
  TESSERA_TRY(BindRows(node, Field::k_fromClause, snapshot, out, &block));
  const TableSchema& schema = out->target->schema;
  std::vector<ExprPtr> values(schema.columns.size());
  std::vector<bool> is_set(values.size());
  TESSERA_TRY(BindSetList(*node.Get(Field::k_targetList), *out->target, &block, &values, &is_set));
  std::vector<int> given;
  for (size_t c = 0; c < values.size(); ++c) {
    const ColumnSchema& column = schema.columns[c];
    if (column.generated_text) continue;
    const int number = static_cast<int>(c);
    if (!is_set[c]) values[c] = MakeColumn(0, number, column.type, !column.not_null, -1);
    given.push_back(number);
    block.query->outputs.push_back({std::move(values[c]), column.name});
  }
  block.query->visible = static_cast<int>(given.size());
  out->query = block.Take();
  TESSERA_ASSIGN(out->rules, MakeRowRules(schema, given, dialect));
  TESSERA_TRY(FitToTable(out->query.get(), *out->target, given, dialect));
  AddRowNumber(*out->target, out->query.get());
  return {};
}

}  // namespace tessera
