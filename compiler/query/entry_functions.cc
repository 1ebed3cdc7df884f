#include "compiler/query/entry_functions.h"

#include <cstdint>

#include "compiler/query/expr_builder.h"
#include "compiler/query/functions.h"

namespace tessera {
namespace {

/// The functions that work on entries with some arguments only.
bool ServesOwn(const Expr& e) {
  if (e.function == Function::kCast) return e.type.id == TypeId::kText && e.args[0]->type.id == TypeId::kText;
  const auto is_within = [&](size_t i, int64_t least, int64_t greatest) {
    const Expr& a = *e.args[i];
    return IsConstant(a) && !a.constant.null && a.constant.i64 >= least && a.constant.i64 <= greatest;
  };
  // What makes an entry longer could fail for one that no row needs: so only a little.
  constexpr int64_t kLonger = 64, kPadded = 1024;
  switch (e.function) {
    case Function::kReplace:
    case Function::kTranslate:
      return IsConstant(*e.args[1]) && IsConstant(*e.args[2]) && e.args[2]->constant.text.size() <= kLonger;
    case Function::kRegexReplace:
      return e.args[2]->constant.text.size() <= kLonger;
    case Function::kRepeat:
      return is_within(1, INT64_MIN, kLonger);
    case Function::kLpad:
    case Function::kRpad:
      return is_within(1, INT64_MIN, kPadded);
    case Function::kSplitPart:
      return is_within(2, INT64_MIN, INT64_MAX) && e.args[2]->constant.i64 != 0;
    default:  // SUBSTRING: a negative length is an error
      return e.args.size() < 3 || is_within(2, 0, INT64_MAX);
  }
}

bool IsOfEntries(const Expr& e, const Expr** column) {
  switch (e.kind) {
    case Expr::Kind::kConstant:
      return !e.constant.null;
    case Expr::Kind::kColumn:
      if (e.type.storage() != StorageClass::kText) return false;
      if (*column == nullptr) *column = &e;
      return (*column)->relation == e.relation && (*column)->column == e.column;
    case Expr::Kind::kFunction:
      break;
    default:
      return false;
  }
  switch (Info(e.function).entries) {
    case EntryRule::kNo:
      return false;
    case EntryRule::kYes:
      break;
    case EntryRule::kOwn:
      if (!ServesOwn(e)) return false;
      break;
  }
  for (const ExprPtr& a : e.args) {
    if (!IsOfEntries(*a, column)) return false;
  }
  return *column != nullptr;
}

}  // namespace

const Expr* ColumnOfEntries(const Expr& e) {
  const Expr* column = nullptr;
  return IsOfEntries(e, &column) ? column : nullptr;
}

}  // namespace tessera
