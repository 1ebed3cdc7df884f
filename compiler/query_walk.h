// Walking over the expressions of a query block. Private to compiler/.
//
// Start at: ForEachRoot, Substitute.
#pragma once

#include <functional>

#include "compiler/bound_query.h"

namespace tessera {

/// Calls f(ExprPtr&) for every expression of the block itself.
template <class Q, class F>
void ForEachRoot(Q& q, F f) {
  for (auto& r : q.relations) {
    for (auto& e : r.on) f(e);
  }
  for (auto& e : q.conjuncts) f(e);
  for (auto& e : q.group_by) f(e);
  for (auto& a : q.aggregates) {
    if (a.argument != nullptr) f(a.argument);
  }
  for (auto& e : q.having) f(e);
  for (auto& o : q.outputs) f(o.expr);
}

/// Replaces leaves: f gives the new expression, or nullptr to leave one as it is. Types must stay.
void Substitute(ExprPtr* e, const std::function<ExprPtr(const Expr&)>& f);

}  // namespace tessera
