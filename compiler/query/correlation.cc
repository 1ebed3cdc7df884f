#include "compiler/query/correlation.h"

#include <algorithm>
#include <set>

namespace tessera {

bool HasOuter(const Expr& e) {
  return e.kind == Expr::Kind::kOuter ||
         std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return HasOuter(*a); });
}
bool HasColumn(const Expr& e) {
  return e.kind == Expr::Kind::kColumn ||
         std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return HasColumn(*a); });
}

void ForEachColumnOfBlock(Expr& e, const std::function<void(Expr&)>& f) {
  if (e.kind == Expr::Kind::kColumn && e.relation != kSubqueryColumn) f(e);
  for (const ExprPtr& a : e.args) ForEachColumnOfBlock(*a, f);
  if (e.kind != Expr::Kind::kSubquery) return;
  ForEachOuter(*e.subquery->query, 0, [&](Expr& outer, int depth) {
    if (outer.index == depth + 1) f(outer);
  });
}

const Expr* FindSubquery(const Expr& e) {
  if (e.kind == Expr::Kind::kSubquery) return &e;
  for (const ExprPtr& a : e.args) {
    if (const Expr* found = FindSubquery(*a)) return found;
  }
  return nullptr;
}

bool RefersToNext(const Query& query) {
  bool found = false;
  ForEachOuter(query, 0, [&](const Expr& e, int depth) { found = found || e.index == depth + 1; });
  return found;
}

void MoveInward(Query* query, int levels) {
  std::set<Expr*> moved;  // copies of an expression share a subquery
  ForEachOuter(*query, 0, [&](Expr& e, int) {
    if (moved.insert(&e).second) e.index += levels;
  });
}

bool RefersOutward(const Query& query) {
  bool found = false;
  ForEachOuter(query, 0, [&](const Expr&, int) { found = true; });
  return found;
}

}  // namespace tessera
