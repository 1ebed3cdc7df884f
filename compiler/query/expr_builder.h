// Makes bound expressions: nodes with their type, and with `nullable` derived from their arguments. Private to
// compiler/.
//
// Start at: MakeFunction.
#pragma once

#include <utility>
#include <vector>

#include "compiler/query/bound_query.h"

namespace tessera {

ExprPtr MakeColumn(int relation, int column, const SqlType& type, bool nullable, int position);
ExprPtr MakeConstant(Value value, int position);
ExprPtr MakeBoolean(bool value, int position);
/// A NULL of that type.
ExprPtr MakeNull(const SqlType& type, int position);
ExprPtr MakeFunction(Function function, const SqlType& type, int position, std::vector<ExprPtr> args);
/// x as `type`; x itself if it has that type.
ExprPtr MakeCast(ExprPtr x, const SqlType& type);

/// A std::vector<ExprPtr> of the arguments. (An initializer list cannot be moved from.)
template <class... Args>
std::vector<ExprPtr> ExprList(Args... args) {
  std::vector<ExprPtr> list;
  list.reserve(sizeof...(args));
  (list.push_back(std::move(args)), ...);
  return list;
}

inline bool IsConstant(const Expr& e) { return e.kind == Expr::Kind::kConstant; }
/// A constant, or a parameter that stands for one: it has one value in a run, which is not known in general.
inline bool IsFixed(const Expr& e) { return IsConstant(e) || e.kind == Expr::Kind::kParameter; }
inline bool IsNullConstant(const Expr& e) { return IsConstant(e) && e.constant.null; }
/// A BOOLEAN constant of that value, not NULL.
inline bool IsBoolean(const Expr& e, bool value) {
  return IsConstant(e) && !e.constant.null && e.type.id == TypeId::kBoolean && (e.constant.i64 != 0) == value;
}
inline bool IsFunction(const Expr& e, Function f) { return e.kind == Expr::Kind::kFunction && e.function == f; }

}  // namespace tessera
