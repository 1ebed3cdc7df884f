// Makes the expression nodes that unnesting needs. Private to compiler/.
//
// Start at: SubqueryOutput.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "compiler/query/expr_builder.h"

namespace tessera {

/// Output `i` of the subquery that is being unnested, until its relation is known.
inline ExprPtr SubqueryOutput(int i, const SqlType& type, int position) {
  return MakeColumn(kSubqueryColumn, i, type, true, position);
}
inline bool IsSubqueryOutput(const Expr& e) { return e.kind == Expr::Kind::kColumn && e.relation == kSubqueryColumn; }

/// A value above a grouping: `kind` is kGroup or kAggregate.
inline ExprPtr MakeLeaf(Expr::Kind kind, int index, const SqlType& type, bool nullable) {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->index = index;
  e->type = type;
  e->nullable = nullable;
  return e;
}

/// A subquery in an expression.
inline ExprPtr MakeSubquery(Subquery::Kind kind, std::shared_ptr<Query> query, const SqlType& type, bool nullable,
                            int position, std::vector<ExprPtr> args) {
  auto e = std::make_unique<Expr>();
  e->kind = Expr::Kind::kSubquery;
  e->type = type;
  e->nullable = nullable;
  e->position = position;
  e->args = std::move(args);
  e->subquery = std::make_shared<Subquery>();
  e->subquery->kind = kind;
  e->subquery->query = std::move(query);
  return e;
}

/// NOT x, x IS NULL, x IS NOT NULL.
inline ExprPtr MakeTest(Function f, ExprPtr x) {
  const int position = x->position;
  return MakeFunction(f, SqlType::Of(TypeId::kBoolean), position, ExprList(std::move(x)));
}

inline bool IsCount(const Aggregate& a) {
  return a.function == AggregateFunction::kCount || a.function == AggregateFunction::kCountStar;
}

}  // namespace tessera
