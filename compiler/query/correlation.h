// What a query block refers to of the blocks around it, and the subqueries in its expressions. Private to compiler/.
//
// Start at: RefersOutward, ForEachOuter. Pure functions; any thread.
#pragma once

#include <functional>

#include "compiler/query/bound_query.h"
#include "compiler/query/query_walk.h"

namespace tessera {

/// Calls f(Expr&, depth) for every column of a block around `q`, where depth is how many blocks lie between. Subqueries
/// and correlated derived tables inside are searched.
template <class Q, class F>
void ForEachOuter(Q& q, int depth, const F& f) {
  const auto walk = [&](auto& self, auto& e) -> void {
    if (e.kind == Expr::Kind::kOuter && e.index > depth) f(e, depth);
    if (e.kind == Expr::Kind::kSubquery) ForEachOuter(*e.subquery->query, depth + 1, f);
    for (auto& a : e.args) self(self, *a);
  };
  ForEachRoot(q, [&](auto& e) { walk(walk, *e); });
  for (auto& r : q.relations) {
    if (r.correlated) ForEachOuter(*r.query, depth + 1, f);
  }
  for (auto& more : q.union_all) ForEachOuter(*more, depth, f);
}

/// Whether the block, or a subquery in it, refers to a column of a block around it.
bool RefersOutward(const Query& query);

/// Whether it refers to a column of the block around it, not only to blocks around that.
bool RefersToNext(const Query& query);

/// `query` comes `levels` blocks further in: its columns of blocks around it are that much further out.
void MoveInward(Query* query, int levels);

/// Whether the expression itself holds a column of a block around it, or of its own block.
bool HasOuter(const Expr& e);
bool HasColumn(const Expr& e);

/// Calls f for every column of this block in `e`: those that subqueries in it refer to, too.
void ForEachColumnOfBlock(Expr& e, const std::function<void(Expr&)>& f);

/// The first subquery in an expression, or nullptr.
const Expr* FindSubquery(const Expr& e);

}  // namespace tessera
