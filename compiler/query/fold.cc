// Constant folding: AND, OR and CASE are taken apart here; functions of constants are in evaluate.cc.
#include "compiler/query/fold.h"

#include <utility>

#include "compiler/query/expr_builder.h"

namespace tessera {
namespace {

/// AND and OR of three values. `absorbing` is FALSE for AND, TRUE for OR.
ExprPtr FoldLogic(ExprPtr e) {
  const bool absorbing = e->function == Function::kOr;
  std::vector<ExprPtr> kept;
  kept.reserve(e->args.size());
  bool null = false;
  for (ExprPtr& a : e->args) {
    if (IsBoolean(*a, absorbing)) return MakeBoolean(absorbing, e->position);
    if (IsBoolean(*a, !absorbing)) continue;
    if (IsNullConstant(*a)) {
      if (null) continue;
      null = true;
    }
    if (IsFunction(*a, e->function)) {
      for (ExprPtr& inner : a->args) {
        if (IsNullConstant(*inner)) {
          if (null) continue;
          null = true;
        }
        kept.push_back(std::move(inner));
      }
    } else {
      kept.push_back(std::move(a));
    }
  }
  if (kept.empty()) return MakeBoolean(!absorbing, e->position);
  if (kept.size() == 1) return std::move(kept[0]);
  return MakeFunction(e->function, e->type, e->position, std::move(kept));
}

/// Removes branches that can never be taken. A condition that is TRUE ends the list.
ExprPtr FoldCase(ExprPtr e) {
  std::vector<ExprPtr> kept;
  for (size_t i = 0; i + 1 < e->args.size(); i += 2) {
    const Expr& when = *e->args[i];
    if (IsBoolean(when, false) || IsNullConstant(when)) continue;
    if (IsBoolean(when, true)) {
      kept.push_back(std::move(e->args[i + 1]));
      break;
    }
    kept.push_back(std::move(e->args[i]));
    kept.push_back(std::move(e->args[i + 1]));
  }
  if (kept.size() % 2 == 0) kept.push_back(std::move(e->args.back()));
  if (kept.size() == 1) return MakeCast(std::move(kept[0]), e->type);
  return MakeFunction(Function::kCase, e->type, e->position, std::move(kept));
}

}  // namespace

Result<ExprPtr> Fold(ExprPtr e, bool may_skip) {
  if (e->kind != Expr::Kind::kFunction) return e;
  if (Info(e->function).translation == Translation::kJunction) return FoldLogic(std::move(e));
  if (e->function == Function::kCase) {
    e = FoldCase(std::move(e));
    // A single branch that is left is cast to the common type; that cast may fold, too.
    if (!IsFunction(*e, Function::kCast)) return e;
  }
  if (Info(e->function).translation == Translation::kNullTest) {
    if (!e->args[0]->nullable) return MakeBoolean(e->function == Function::kIsNotNull, e->position);
  }
  bool constant = true;
  bool null = false;
  for (const ExprPtr& a : e->args) {
    constant = constant && IsConstant(*a);
    null = null || IsNullConstant(*a);
  }
  // One NULL operand makes the result NULL, whatever the others are.
  if (null && Info(e->function).IsStrict()) return MakeNull(e->type, e->position);
  if (!constant || Info(e->function).translation == Translation::kRandom) return e;
  Result<Value> value = EvaluateFunction(e->function, e->type, e->field, e->args);
  if (value.ok()) return MakeConstant(std::move(value).value(), e->position);
  if (may_skip) return e;
  return value.status().At(e->position);
}

}  // namespace tessera
