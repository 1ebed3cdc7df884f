// Conditions as instructions.
#include "compiler/generate/condition_generator.h"

#include <algorithm>

#include "compiler/generate/dictionary_sections.h"
#include "compiler/generate/value_generator.h"
#include "compiler/query/expr_builder.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;
using vm::Predicate;

namespace {

bool IsComparison(const Expr& e) { return e.kind == Expr::Kind::kFunction && IsComparison(e.function); }

/// The second bound of a BETWEEN is merged with the first, which may be any of the filters directly before: one range test
/// instead of two (bench/HISTORY.md has the measurements). False: there is none that it can be merged with.
bool MergeBound(const Predicate& p, SectionBuilder* b) {
  const bool one_bound = p.kind == Predicate::Kind::kRange && !p.negated && (p.low < 0) != (p.high < 0);
  for (size_t i = b->section.code.size(); one_bound && i-- > 0 && b->section.code[i].op == Opcode::Filter;) {
    Predicate& other = b->section.predicates[b->section.code[i].p1];
    const bool only_use = b->FilterUses(b->section.code[i].p1) == 1;
    if (!only_use || other.kind != Predicate::Kind::kRange || other.negated || other.slot != p.slot ||
        (other.low < 0) == (other.high < 0) || (other.low < 0) == (p.low < 0)) {
      continue;
    }
    if (p.low >= 0) {
      other.low = p.low;
      other.low_inclusive = p.low_inclusive;
    } else {
      other.high = p.high;
      other.high_inclusive = p.high_inclusive;
    }
    return true;
  }
  return false;
}

}  // namespace

bool ConditionGenerator::KeepByPredicate(const Expr& e, bool truth) {
  if (e.kind != Expr::Kind::kFunction || e.args.empty()) return false;
  Predicate p;
  const bool swapped = IsComparison(e) && IsFixed(*e.args[0]);
  const Expr& column = *e.args[swapped ? 1 : 0];
  if (column.kind != Expr::Kind::kColumn) return false;
  auto constant = [&](const Expr& c) {
    return IsConstant(c) ? b_->constants()->Add(c.constant) : b_->constants()->AddHeld(c.constant, c.index);
  };
  if (IsComparison(e)) {
    const Expr& c = *e.args[swapped ? 0 : 1];
    if (!IsFixed(c)) return false;
    if (c.constant.null) {
      b_->KeepNone();
      return true;
    }
    if (c.constant.type.storage() != column.type.storage() || c.constant.type.scale != column.type.scale) return false;
    Function f = swapped ? Mirrored(e.function) : e.function;
    if (!truth) f = Negated(f);
    const int k = constant(c);
    switch (f) {
      case Function::kNe:
        p.negated = true;
        [[fallthrough]];
      case Function::kEq:
        p.low = p.high = k;
        break;
      case Function::kLt:
        p.high = k;
        p.high_inclusive = false;
        break;
      case Function::kLe:
        p.high = k;
        break;
      case Function::kGt:
        p.low = k;
        p.low_inclusive = false;
        break;
      default:
        p.low = k;
        break;
    }
  } else if (e.function == Function::kIsNull || e.function == Function::kIsNotNull) {
    p.kind = (e.function == Function::kIsNull) == truth ? Predicate::Kind::kIsNull : Predicate::Kind::kIsNotNull;
  } else if (e.function == Function::kIn) {
    p.kind = Predicate::Kind::kIn;
    p.negated = !truth;
    for (size_t i = 1; i < e.args.size(); ++i) {
      const Expr& c = *e.args[i];
      if (!IsConstant(c)) return false;
      if (c.constant.null) {
        if (!truth) {  // x NOT IN (..., NULL) is never true
          b_->KeepNone();
          return true;
        }
        continue;
      }
      if (c.constant.type.storage() != column.type.storage() || c.constant.type.scale != column.type.scale)
        return false;
      p.list.push_back(constant(c));
    }
  } else {
    return false;
  }
  p.slot = b_->scope()->TableSlot(column, b_);
  if (p.slot < 0) return false;
  if (MergeBound(p, b_)) return true;
  b_->Emit(Opcode::Filter, b_->AddPredicate(p));
  return true;
}

Status ConditionGenerator::Any(const std::vector<const Expr*>& args, bool truth) {
  const int entry = b_->NewMask(), found = b_->NewMask();
  b_->Emit(Opcode::MaskSave, entry);
  b_->Emit(Opcode::MaskClear, found);
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) {
      b_->Emit(Opcode::MaskLoad, entry);
      b_->Emit(Opcode::MaskAndNot, found);
    }
    TESSERA_TRY(Keep(*args[i], truth));
    b_->Emit(Opcode::MaskOr, found);
  }
  b_->Emit(Opcode::MaskLoad, found);
  b_->FreeMask(entry);
  b_->FreeMask(found);
  return Status::Ok();
}

Status ConditionGenerator::Compare(Function f, const Expr& a, const Expr& b) {
  const bool wide = IsWide(a.type) || IsWide(b.type);
  const StorageClass storage = wide ? StorageClass::kWide : a.type.storage();
  return ValueGenerator(b_).Operands(a, b, wide, Info(f).opcodes.For(storage), Info(Mirrored(f)).opcodes.For(storage));
}

Status ConditionGenerator::Keep(const Expr& e, bool truth) {
  TESSERA_TRY(b_->CheckLimits());  // checked here, because KeepByPredicate searches all code so far
  if (IsConstant(e)) {
    if (e.constant.null || IsBoolean(e, true) != truth) b_->KeepNone();
    return Status::Ok();
  }
  Operand computed;
  if (e.kind != Expr::Kind::kFunction || b_->FindOperand(e, &computed)) {
    TESSERA_TRY(b_->Value(e));
    b_->Emit(truth ? Opcode::FilterTrue : Opcode::FilterFalse);
    return Status::Ok();
  }
  // (What is negated may be a predicate.)
  if (Info(e.function).translation == Translation::kNegation) return Keep(*e.args[0], !truth);
  if (KeepByPredicate(e, truth)) return Status::Ok();
  const Expr* const column = e.function == Function::kAnd ? nullptr : DictionarySections(b_).Serve(e);
  if (column != nullptr) {
    Predicate p;
    p.kind = Predicate::Kind::kMapped;
    TESSERA_TRY(DictionarySections(b_).AddCondition(e, *column, truth, &p.map));
    p.slot = b_->scope()->TableSlot(*column, b_);
    b_->Emit(Opcode::Filter, b_->AddPredicate(p));
    return Status::Ok();
  }
  switch (Info(e.function).translation) {
    case Translation::kComparison:
      return Compare(truth ? e.function : Negated(e.function), *e.args[0], *e.args[1]);
    case Translation::kJunction: {
      if ((e.function == Function::kAnd) == truth) {
        for (const ExprPtr& a : e.args) TESSERA_TRY(Keep(*a, truth));
        return Status::Ok();
      }
      std::vector<const Expr*> args;
      for (const ExprPtr& a : e.args) args.push_back(a.get());
      return Any(args, truth);
    }
    case Translation::kNullTest: {
      const bool null = (e.function == Function::kIsNull) == truth;
      const Expr& a = *e.args[0];
      TESSERA_TRY(b_->Value(a));
      if (IsWide(a.type)) {
        b_->Emit(null ? Opcode::FilterNullW : Opcode::FilterNotNullW);
      } else {
        b_->Emit(null ? Opcode::FilterNull : Opcode::FilterNotNull);
      }
      return Status::Ok();
    }
    case Translation::kInList:
      return InList(e, truth);
    case Translation::kLike:
      return Like(e, truth);
    default:
      break;
  }
  TESSERA_TRY(b_->Value(e));
  b_->Emit(truth ? Opcode::FilterTrue : Opcode::FilterFalse);
  return Status::Ok();
}

Status ConditionGenerator::InList(const Expr& e, bool truth) {
  // Kept in a register, then compared with each constant.
  const Expr& a = *e.args[0];
  const bool has_null = std::any_of(e.args.begin() + 1, e.args.end(),
                                    [](const ExprPtr& c) { return IsConstant(*c) && c->constant.null; });
  if (has_null && !truth) {
    b_->KeepNone();
    return Status::Ok();
  }
  const Opcode equal = Info(Function::kEq).opcodes.For(a.type.storage());
  const Opcode different = Info(Function::kNe).opcodes.For(a.type.storage());
  const int r = b_->NewRegister(a.type);
  TESSERA_TRY(b_->Value(a));
  b_->Store(r);
  const int entry = b_->NewMask(), found = b_->NewMask();
  b_->Emit(Opcode::MaskSave, entry);
  b_->Emit(Opcode::MaskClear, found);
  for (size_t i = 1; i < e.args.size(); ++i) {
    const Expr& c = *e.args[i];
    if (IsConstant(c) && c.constant.null) continue;
    Operand o;
    if (!b_->FindOperand(c, &o))
      return Status(ErrorCode::kInternal, "an IN list holds more than constants").At(c.position);
    if (!truth) {  // must differ from every one
      b_->Load(Operand::Register(r), a.type);
      b_->Emit(different, 0, o.Pack());
      continue;
    }
    if (i > 1) {
      b_->Emit(Opcode::MaskLoad, entry);
      b_->Emit(Opcode::MaskAndNot, found);
    }
    b_->Load(Operand::Register(r), a.type);
    b_->Emit(equal, 0, o.Pack());
    b_->Emit(Opcode::MaskOr, found);
  }
  if (truth) b_->Emit(Opcode::MaskLoad, found);
  b_->FreeMask(entry);
  b_->FreeMask(found);
  b_->FreeRegister(r);
  return Status::Ok();
}

Status ConditionGenerator::Like(const Expr& e, bool truth) {
  const Expr& pattern = *e.args[1];
  if (!IsConstant(pattern))
    return Unsupported("LIKE with a pattern that is not a constant is not supported", pattern.position);
  if (pattern.constant.null) {
    b_->KeepNone();
    return Status::Ok();
  }
  TESSERA_TRY(b_->Value(*e.args[0]));
  const bool regex = e.function == Function::kRegexMatch;
  const Opcode yes = regex ? Opcode::FilterRegex : Opcode::FilterLike;
  const Opcode no = regex ? Opcode::FilterNotRegex : Opcode::FilterNotLike;
  b_->Emit(truth ? yes : no, 0, b_->constants()->Add(pattern.constant));
  return Status::Ok();
}

}  // namespace tessera
