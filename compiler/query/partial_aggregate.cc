#include "compiler/query/partial_aggregate.h"

#include <utility>

#include "compiler/query/subquery_expr.h"

namespace tessera {

bool Merges(const Aggregate& a) {
  switch (a.function) {
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      return true;
    case AggregateFunction::kCount:
    case AggregateFunction::kCountStar:
    case AggregateFunction::kSum:
      return !a.distinct;
    default:
      return false;
  }
}

Aggregate MergeOf(const Aggregate& part, ExprPtr values) {
  Aggregate a;
  a.function = IsCount(part) ? AggregateFunction::kSum : part.function;
  a.argument = std::move(values);
  a.type = part.type;
  a.position = part.position;
  return a;
}

ExprPtr CountOr(ExprPtr x, int64_t otherwise) {
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  x->nullable = true;
  ExprPtr is_null = MakeTest(Function::kIsNull, x->Clone());
  return MakeFunction(Function::kCase, bigint, -1,
                      ExprList(std::move(is_null), MakeConstant(Value::Int(bigint, otherwise), -1), std::move(x)));
}

}  // namespace tessera
