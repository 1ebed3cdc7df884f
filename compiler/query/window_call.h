// A call of a window function as the binder leaves it for SplitWindows. Private to compiler/.
//
// Start at: WindowCall. Plain data, owned by one thread.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/query/bound_query.h"

namespace tessera {

struct WindowKey {
  ExprPtr expr;
  bool descending = false, nulls_first = false;
};

/// All expressions are over what the outputs of the block are over.
struct WindowCall {
  vm::WindowFunction function = vm::WindowFunction::kAggregate;
  AggregateFunction aggregate = AggregateFunction::kCountStar;
  ExprPtr value, count, fallback;  ///< arguments as in vm::WindowSpec; nullptr: there is none
  int64_t number = 1;
  bool ignore_nulls = false;
  bool distinct = false;
  std::vector<AggregateOrder> value_order;  ///< kFold
  Value parameter;                          ///< kFold
  std::vector<ExprPtr> partition_by;        ///< no duplicates
  std::vector<WindowKey> order_by;
  vm::WindowFrame frame;                      ///< but for its columns, which are:
  ExprPtr range_key, range_start, range_end;  ///< all of one type, or counts of rows or groups; nullptr: none
  SqlType type;
  bool nullable = true;
  int position = -1;

  bool SameAs(const WindowCall& other) const;
};

/// Calls f(ExprPtr&) for every expression of the call.
template <class Call, class F>
void ForEachExpr(Call& call, F f) {
  for (auto* e : {&call.value, &call.count, &call.fallback, &call.range_key, &call.range_start, &call.range_end}) {
    if (*e != nullptr) f(*e);
  }
  for (auto& e : call.partition_by) f(e);
  for (auto& k : call.order_by) f(k.expr);
  for (auto& k : call.value_order) f(k.expr);
}

bool SameOrder(const std::vector<AggregateOrder>& a, const std::vector<AggregateOrder>& b);

/// Whether a window call of its block is in the expression.
bool HasWindow(const Expr& e);

/// Whether it is the name of a window function that is no aggregate.
bool IsWindowFunctionName(std::string_view name);

}  // namespace tessera
