// Walking over the expressions of a query block. Private to compiler/.
//
// Start at: ForEachRoot, Substitute. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/query/bound_query.h"

namespace tessera {

/// Calls f(ExprPtr&) for every expression of the block itself, not of blocks inside it.
template <class Q, class F>
void ForEachRoot(Q& q, F f) {
  for (auto& r : q.relations) {
    for (auto& e : r.on) f(e);
  }
  for (auto& e : q.conjuncts) f(e);
  for (auto& e : q.group_by) f(e);
  for (auto& a : q.aggregates) {
    if (a.argument != nullptr) f(a.argument);
    for (auto& o : a.order) f(o.expr);
  }
  for (auto& e : q.having) f(e);
  for (auto& o : q.outputs) f(o.expr);
}

/// Calls f(const Expr&) for every kColumn in `e`.
template <class F>
void ForEachColumn(const Expr& e, F f) {
  if (e.kind == Expr::Kind::kColumn) f(e);
  for (const ExprPtr& a : e.args) ForEachColumn(*a, f);
}

/// The relations that `e` refers to, as bits. REQUIRES: at most 64 relations.
uint64_t RelationsOf(const Expr& e);

/// Whether it refers to columns of relation `r`, and to no others.
inline bool IsOver(const Expr& e, size_t r) { return RelationsOf(e) == uint64_t{1} << r; }
/// The conditions of an inner relation, or of the join of another one, that are over it alone.
std::vector<const Expr*> FiltersOf(const Query& q, size_t r);

/// Whether `e` compares bare columns with constants or with each other: a test of encoded values, which cannot fail.
bool IsColumnTest(const Expr& e);

/// Whether `e` has a value of its own in each row, even if the row has no columns (random()). Then it is computed once,
/// where the query has it.
bool IsVolatile(const Expr& e);
/// Whether an expression of the block itself is.
bool HasVolatile(const Query& q);
/// Whether its rows, or those that it groups, are those of its joins: none is left out, repeated, folded, made in turns or
/// numbered, and none has values of its own.
bool HasRowsOfJoins(const Query& q);

/// Levels of `e`: 1 for a leaf.
int HeightOf(const Expr& e);
/// The most levels of a key of the block's grouping, and of an expression above it; 1 if there is none.
int HeightOfKeys(const Query& q);
int HeightAboveGroups(const Query& q);

/// Replaces leaves: f gives the new expression, or nullptr to leave one as it is. Types must stay.
void Substitute(ExprPtr* e, const std::function<ExprPtr(const Expr&)>& f);

}  // namespace tessera
