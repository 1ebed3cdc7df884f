#include "compiler/query_walk.h"

#include <algorithm>
#include <utility>

namespace tessera {

uint64_t RelationsOf(const Expr& e) {
  uint64_t set = 0;
  ForEachColumn(e, [&](const Expr& c) { set |= uint64_t{1} << c.relation; });
  return set;
}

int HeightOf(const Expr& e) {
  int height = 0;
  for (const ExprPtr& a : e.args) height = std::max(height, HeightOf(*a));
  return height + 1;
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
