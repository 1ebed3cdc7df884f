#include "compiler/query/query_walk.h"

#include <algorithm>
#include <utility>

#include "compiler/query/functions.h"

namespace tessera {

uint64_t RelationsOf(const Expr& e) {
  uint64_t set = 0;
  ForEachColumn(e, [&](const Expr& c) { set |= uint64_t{1} << c.relation; });
  return set;
}

std::vector<const Expr*> FiltersOf(const Query& q, size_t r) {
  std::vector<const Expr*> filters;
  const Relation& relation = q.relations[r];
  for (const ExprPtr& e : relation.join == JoinKind::kInner ? q.conjuncts : relation.on) {
    if (IsOver(*e, r)) filters.push_back(e.get());
  }
  return filters;
}

bool IsVolatile(const Expr& e) {
  if (e.kind == Expr::Kind::kFunction && Info(e.function).translation == Translation::kRandom) return true;
  return std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return IsVolatile(*a); });
}

bool HasVolatile(const Query& q) {
  bool found = false;
  ForEachRoot(q, [&](const ExprPtr& e) { found = found || IsVolatile(*e); });
  return found;
}

bool HasRowsOfJoins(const Query& q) {
  return q.limit < 0 && q.offset == 0 && !q.folds() && q.windows.empty() && q.repeat < 0 && q.series < 0 &&
         q.working == nullptr && !q.is_working && !HasVolatile(q);
}

bool IsColumnTest(const Expr& e) {
  if (e.kind != Expr::Kind::kFunction) return e.kind == Expr::Kind::kColumn;
  if (e.function == Function::kAnd || e.function == Function::kOr || e.function == Function::kNot) {
    return std::all_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return IsColumnTest(*a); });
  }
  const bool test = IsComparison(e.function) || e.function == Function::kIsNull || e.function == Function::kIsNotNull ||
                    e.function == Function::kIn || e.function == Function::kLike || e.function == Function::kRegexMatch;
  return test &&
         std::all_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return a->kind != Expr::Kind::kFunction; });
}

int HeightOf(const Expr& e) {
  int height = 0;
  for (const ExprPtr& a : e.args) height = std::max(height, HeightOf(*a));
  return height + 1;
}

int HeightOfKeys(const Query& q) {
  int height = 1;
  for (const ExprPtr& key : q.group_by) height = std::max(height, HeightOf(*key));
  return height;
}

int HeightAboveGroups(const Query& q) {
  int height = 1;
  for (const Output& o : q.outputs) height = std::max(height, HeightOf(*o.expr));
  for (const ExprPtr& e : q.having) height = std::max(height, HeightOf(*e));
  return height;
}

void Substitute(ExprPtr* e, const std::function<ExprPtr(const Expr&)>& f) {
  if (ExprPtr other = f(**e)) {
    *e = std::move(other);
    return;
  }
  bool nullable = false;
  for (ExprPtr& a : (*e)->args) {
    Substitute(&a, f);
    nullable = nullable || a->nullable;
  }
  // A column of an outer join's filled side may be NULL where the column itself is not.
  Expr& x = **e;
  if (x.kind == Expr::Kind::kFunction && nullable && x.function != Function::kIsNull &&
      x.function != Function::kIsNotNull) {
    x.nullable = true;
  }
}

}  // namespace tessera
