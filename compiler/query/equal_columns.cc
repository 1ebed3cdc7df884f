#include "compiler/query/equal_columns.h"

#include "compiler/query/expr_builder.h"

namespace tessera {
namespace {

bool IsPlain(const Query& q, const Expr& e) {
  return e.kind == Expr::Kind::kColumn && e.column != kMarkColumn &&
         q.relations[static_cast<size_t>(e.relation)].join == JoinKind::kInner;
}

}  // namespace

EqualColumns::EqualColumns(const Query& q) {
  for (const ExprPtr& c : q.conjuncts) {
    if (!IsFunction(*c, Function::kEq)) continue;
    const Expr &a = *c->args[0], &b = *c->args[1];
    if (IsPlain(q, a) && IsPlain(q, b) && a.type == b.type) Relate(a, b);
  }
}

const std::vector<const Expr*>* EqualColumns::Of(const Expr& column) const {
  const auto found = class_of_.find(NumberOf(column));
  return found == class_of_.end() ? nullptr : &classes_[found->second];
}

void EqualColumns::Relate(const Expr& a, const Expr& b) {
  const size_t left = ClassOf(a), right = ClassOf(b);
  if (left == right) return;
  for (const Expr* e : classes_[right]) class_of_[NumberOf(*e)] = left;
  classes_[left].insert(classes_[left].end(), classes_[right].begin(), classes_[right].end());
  classes_[right].clear();
}

size_t EqualColumns::ClassOf(const Expr& e) {
  const auto [found, added] = class_of_.emplace(NumberOf(e), classes_.size());
  if (added) classes_.push_back({&e});
  return found->second;
}

}  // namespace tessera
