#include "compiler/bind/unreached_branch.h"

#include <algorithm>

namespace tessera {
namespace {

/// Whether all rows of the output are constants, and none is `value`.
bool LacksValue(const Query& query, size_t output, const Value& value) {
  if (output >= query.outputs.size()) return false;
  const Expr& e = *query.outputs[output].expr;
  bool lacks = false;
  if (e.kind == Expr::Kind::kConstant) {
    lacks = e.constant.null || e.constant.text != value.text;
  } else if (e.kind == Expr::Kind::kColumn) {
    const Relation& from = query.relations[static_cast<size_t>(e.relation)];
    lacks = from.query != nullptr && LacksValue(*from.query, static_cast<size_t>(e.column), value);
  }
  return lacks &&
         std::ranges::all_of(query.union_all, [&](const auto& arm) { return LacksValue(*arm, output, value); });
}

}  // namespace

bool IsNeverTrue(const Expr& condition, const std::vector<Relation>& relations) {
  if (condition.kind != Expr::Kind::kFunction || condition.function != Function::kEq) return false;
  const Expr *column = condition.args[0].get(), *constant = condition.args[1].get();
  if (column->kind == Expr::Kind::kConstant) std::swap(column, constant);
  if (column->kind != Expr::Kind::kColumn || constant->kind != Expr::Kind::kConstant) return false;
  if (constant->type.id != TypeId::kText || column->type.id != TypeId::kText || constant->constant.null) return false;
  const Relation& relation = relations[static_cast<size_t>(column->relation)];
  return relation.query != nullptr &&
         LacksValue(*relation.query, static_cast<size_t>(column->column), constant->constant);
}

}  // namespace tessera
