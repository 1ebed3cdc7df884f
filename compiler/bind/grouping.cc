#include "compiler/bind/grouping.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/select_list.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/window_call.h"

namespace tessera {
namespace {

bool HasAggregate(const Expr& e) {
  return e.kind == Expr::Kind::kAggregate ||
         std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return HasAggregate(*a); });
}

/// Replaces keys and aggregates in an expression above the grouping by those of the groups.
/// `sets`: there are GROUPING SETS, whose keys may be NULL where a set leaves them out.
Status ReplaceIn(Query& query, bool sets, ExprPtr* e) {
  Expr& x = **e;
  if (x.kind == Expr::Kind::kConstant || x.kind == Expr::Kind::kAggregate || x.kind == Expr::Kind::kGroup ||
      x.kind == Expr::Kind::kWindow || x.kind == Expr::Kind::kOuter) {
    return {};
  }
  for (size_t i = 0; i < query.group_by.size(); ++i) {
    const Expr& key = *query.group_by[i];
    if (key.SameAs(x)) {
      auto group = std::make_unique<Expr>();
      group->kind = Expr::Kind::kGroup;
      group->type = key.type;
      group->nullable = key.nullable;
      group->position = x.position;
      group->index = static_cast<int>(i);
      *e = std::move(group);
      return {};
    }
  }
  if (x.type.id == TypeId::kInterval && !HasAggregate(x)) {
    // Intervals of one length are one group; it shows one of them.
    const ExprPtr length = OrderedForm(x.Clone());
    const auto same = [&](const ExprPtr& key) { return key->SameAs(*length); };
    const auto at = std::find_if(query.group_by.begin(), query.group_by.end(), same);
    if (at != query.group_by.end()) {
      Aggregate least;
      least.function = AggregateFunction::kMin;
      least.type = x.type;
      least.position = x.position;
      auto leaf = std::make_unique<Expr>();
      leaf->kind = Expr::Kind::kAggregate;
      leaf->type = x.type;
      leaf->nullable = x.nullable;
      leaf->position = x.position;
      leaf->index = static_cast<int>(query.aggregates.size());
      least.argument = std::move(*e);
      query.aggregates.push_back(std::move(least));
      *e = std::move(leaf);
      if (!sets) return {};
      const SqlType type = (*e)->type, boolean = SqlType::Of(TypeId::kBoolean);
      const int position = (*e)->position;
      ExprPtr key = MakeLeaf(Expr::Kind::kGroup, static_cast<int>(at - query.group_by.begin()), (*at)->type, true);
      ExprPtr left_out = MakeFunction(Function::kIsNull, boolean, position, ExprList(std::move(key)));
      *e = MakeFunction(Function::kCase, type, position,
                        ExprList(std::move(left_out), MakeNull(type, position), std::move(*e)));
      return {};
    }
  }
  if (x.kind == Expr::Kind::kColumn) {
    if (x.relation == kSubqueryColumn) return {};
    const Relation& relation = query.relations[static_cast<size_t>(x.relation)];
    return SqlError(ErrorKind::kGrouping,
                    "column \"" + relation.alias + "." + relation.column_names[static_cast<size_t>(x.column)] +
                        "\" must appear in the GROUP BY clause or be used in an aggregate function",
                    x.position);
  }
  for (ExprPtr& a : x.args) TESSERA_TRY(ReplaceIn(query, sets, &a));
  return {};
}

/// A key that is there already is none.
void AddKey(ExprPtr key, Query* query, std::vector<ExprPtr>* constants) {
  if (IsConstant(*key)) {
    constants->push_back(std::move(key));
    return;
  }
  const auto same = [&](const ExprPtr& k) { return k->SameAs(*key); };
  if (std::none_of(query->group_by.begin(), query->group_by.end(), same)) query->group_by.push_back(std::move(key));
}

}  // namespace

Result<ExprPtr> BindGroupKey(const ParseNode& node, QueryBlock* block) {
  const Query& query = *block->query;
  TESSERA_ASSIGN(int output, OutputByPosition(node, *block, "GROUP BY"));
  std::string_view name;
  if (output < 0 && IsBareName(node, &name)) {
    // As in PostgreSQL a column of FROM comes before an output of that name.
    const auto same = [&](const ScopeColumn& c) { return c.name == name; };
    if (std::none_of(block->scope.columns.begin(), block->scope.columns.end(), same)) {
      TESSERA_ASSIGN(output, OutputByName(node, *block, "GROUP BY"));
    }
  }
  if (query.group_by.size() >= kMaxItems) {
    return Unsupported("GROUP BY of more than 4096 expressions is not supported", node.location());
  }
  ExprPtr key;
  if (output >= 0) {
    const Expr& e = *query.outputs[static_cast<size_t>(output)].expr;
    if (HasAggregate(e))
      return SqlError(ErrorKind::kGrouping, "aggregate functions are not allowed in GROUP BY", node.location());
    if (HasWindow(e))
      return SqlError(ErrorKind::kWindowing, "window functions are not allowed in GROUP BY", node.location());
    key = e.Clone();
  } else {
    ExpressionBinder binder(&block->context, &block->scope, Clause::kGroupBy);
    TESSERA_ASSIGN(key, binder.BindTyped(node));
  }
  TESSERA_ASSIGN(key, ExpressionBinder::Resolve(std::move(key), SqlType::Text(), nullptr));
  return OrderedForm(std::move(key));
}

bool IsGroupByAll(const ParseNode& list, const QueryBlock& block) {
  return FindMark(block.context, Dialect::Mark::Kind::kAll, list.first()->location()) != nullptr;
}

Status BindGroupBy(const ParseNode& list, QueryBlock* block) {
  Query& query = *block->query;
  std::vector<ExprPtr> constants;
  if (IsGroupByAll(list, *block)) {
    for (int i = 0; i < query.visible; ++i) {
      const Expr& e = *query.outputs[static_cast<size_t>(i)].expr;
      if (!HasAggregate(e) && !HasWindow(e)) AddKey(OrderedForm(e.Clone()), &query, &constants);
    }
  } else {
    for (const ParseNode& node : list) {
      TESSERA_ASSIGN(ExprPtr key, BindGroupKey(node, block));
      AddKey(std::move(key), &query, &constants);
    }
  }
  // A constant key adds no groups and is dropped, unless it is the only key: then there is a group only if there is a
  // row.
  if (query.group_by.empty() && !constants.empty()) query.group_by.push_back(std::move(constants[0]));
  return {};
}

Status BindHaving(const ParseNode& having, QueryBlock* block) {
  Query& query = *block->query;
  ExpressionBinder binder(&block->context, &block->scope, Clause::kHaving);
  binder.SetOutputs(&query.outputs);
  TESSERA_ASSIGN(ExprPtr condition, binder.BindBoolean(having, "argument of HAVING"));
  if (HasWindow(*condition))
    return SqlError(ErrorKind::kWindowing, "window functions are not allowed in HAVING", condition->position);
  query.having.push_back(std::move(condition));
  return {};
}

Status ReplaceGrouped(QueryBlock* block) {
  Query* const query = block->query.get();
  if (!query->grouped) return {};
  const bool sets = block->grouping.used;
  for (Output& o : query->outputs) TESSERA_TRY(ReplaceIn(*query, sets, &o.expr));
  if (block->qualify != nullptr) TESSERA_TRY(ReplaceIn(*query, sets, &block->qualify));
  Status status;
  for (WindowCall& w : block->windows) {
    ForEachExpr(w, [&](ExprPtr& e) {
      if (status.ok()) status = ReplaceIn(*query, sets, &e);
    });
  }
  TESSERA_TRY(status);
  // Split only then: a part may change where only "is true" matters, and would no longer be the key that it names.
  std::vector<ExprPtr> having = std::move(query->having);
  query->having.clear();
  for (ExprPtr& h : having) {
    TESSERA_TRY(ReplaceIn(*query, sets, &h));
    SplitConjuncts(std::move(h), &query->having);
  }
  return {};
}

}  // namespace tessera
