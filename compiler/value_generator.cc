// Values as instructions.
#include "compiler/value_generator.h"

#include <vector>

#include "compiler/conversion_generator.h"
#include "compiler/dictionary_sections.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;

Status ValueGenerator::Value(const Expr& e) {
  Operand o;
  if (b_->FindOperand(e, &o)) {
    b_->Load(o, e.type);
    return Status::Ok();
  }
  if (e.kind != Expr::Kind::kFunction) return b_->scope()->Compute(e, b_);
  const Expr* column = nullptr;
  if (!IsWide(e.type) && DictionarySections(b_).Serve(e, &column)) {
    int map = -1;
    TESSERA_TRY(DictionarySections(b_).AddValue(e, *column, &map));
    const int plain = b_->scope()->TableSlot(*column, b_);
    vm::Slot slot{b_->section.slots[static_cast<size_t>(plain)].column, e.type, map};
    b_->section.slots.push_back(slot);
    b_->Load(Operand::Slot(static_cast<int>(b_->section.slots.size()) - 1), e.type);
    return Status::Ok();
  }
  switch (e.function) {
    case Function::kAdd:
    case Function::kSub:
    case Function::kMul:
    case Function::kDiv:
    case Function::kMod:
    case Function::kNeg:
    case Function::kAbs:
      return Arithmetic(e);
    case Function::kRound:
    case Function::kFloor:
    case Function::kCeil:
      return ConversionGenerator(b_).Round(e);
    case Function::kEq:
    case Function::kNe:
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
    case Function::kAnd:
    case Function::kOr:
    case Function::kNot:
    case Function::kIsNull:
    case Function::kIsNotNull:
    case Function::kIn:
    case Function::kLike:
      return Truth(e);
    case Function::kCase:
      return Case(e);
    case Function::kCast:
      return ConversionGenerator(b_).Cast(e);
    case Function::kConcat:
    case Function::kUpper:
    case Function::kLower:
    case Function::kLength:
    case Function::kSubstring:
    case Function::kTrim:
    case Function::kLtrim:
    case Function::kRtrim:
      return TextFunction(e);
    case Function::kExtract:
    case Function::kAddMonths:
    case Function::kAddDays:
    case Function::kAddMicros:
    case Function::kDateDiff:
      return DateFunction(e);
  }
  return Status(ErrorCode::kInternal, "an expression has no instructions").At(e.position);
}

Status ValueGenerator::Operands(const Expr& left, const Expr& right, bool wide, Opcode op, Opcode reversed,
                                bool has_reversed) {
  auto compute = [&](const Expr& e) { return wide ? b_->WideValue(e) : Value(e); };
  auto simple = [&](const Expr& e, Operand* o) { return wide == IsWide(e.type) && b_->FindOperand(e, o); };
  Operand o;
  if (simple(right, &o)) {
    TESSERA_TRY(compute(left));
    b_->Emit(op, 0, o.Pack());
    return Status::Ok();
  }
  if (has_reversed && simple(left, &o)) {
    TESSERA_TRY(compute(right));
    b_->Emit(reversed, 0, o.Pack());
    return Status::Ok();
  }
  TESSERA_TRY(compute(right));
  const int r = b_->NewRegister(wide && !IsWide(right.type) ? SqlType::Decimal(38, 0) : right.type);
  b_->Store(r);
  TESSERA_TRY(compute(left));
  b_->Emit(op, 0, Operand::Register(r).Pack());
  b_->FreeRegister(r);
  return Status::Ok();
}

Status ValueGenerator::Arithmetic(const Expr& e) {
  const Expr& a = *e.args[0];
  const bool unary = e.function == Function::kNeg || e.function == Function::kAbs;
  if (e.type.IsFloat()) {
    if (unary) {
      TESSERA_TRY(Value(a));
      b_->Emit(e.function == Function::kNeg ? Opcode::NegF : Opcode::AbsF);
    } else {
      Opcode op = Opcode::AddF, reversed = Opcode::AddF;
      bool has_reversed = true;
      switch (e.function) {
        case Function::kSub:
          op = Opcode::SubF;
          reversed = Opcode::RSubF;
          break;
        case Function::kMul:
          op = reversed = Opcode::MulF;
          break;
        case Function::kDiv:
          op = Opcode::DivF;
          has_reversed = false;
          break;
        case Function::kMod:
          op = Opcode::ModF;
          has_reversed = false;
          break;
        default:
          break;
      }
      TESSERA_TRY(Operands(a, *e.args[1], false, op, reversed, has_reversed));
    }
    if (e.type.id == TypeId::kReal) b_->Emit(Opcode::SingleF);
    return Status::Ok();
  }
  // Exact: the range of the result decides between 64 bits unchecked, 64 bits checked and 128 bits.
  const ValueRange exact = b_->ranges().ExactRange(e);
  Opcode narrow = Opcode::AddI, checked = Opcode::AddIX, reversed = Opcode::AddI, reversed_checked = Opcode::AddIX;
  Opcode wide = Opcode::AddW, wide_reversed = Opcode::AddW;
  bool has_reversed = true;
  switch (e.function) {
    case Function::kSub:
      narrow = Opcode::SubI, checked = Opcode::SubIX, reversed = Opcode::RSubI, reversed_checked = Opcode::RSubIX;
      wide = Opcode::SubW, wide_reversed = Opcode::RSubW;
      break;
    case Function::kMul:
      narrow = reversed = Opcode::MulI, checked = reversed_checked = Opcode::MulIX;
      wide = wide_reversed = Opcode::MulW;
      break;
    case Function::kDiv:
      narrow = checked = Opcode::DivI, wide = Opcode::DivW;
      has_reversed = false;
      break;
    case Function::kMod:
      narrow = checked = Opcode::ModI, wide = Opcode::ModW;
      has_reversed = false;
      break;
    default:
      break;
  }
  const bool args_wide = IsWide(a.type) || (!unary && IsWide(e.args[1]->type));
  const bool in_wide = args_wide || (IsWide(e.type) && !exact.Fits64());
  const bool safe = exact.Fits64();
  if (unary) {
    TESSERA_TRY(in_wide ? b_->WideValue(a) : Value(a));
    if (e.function == Function::kAbs) {
      b_->Emit(in_wide ? Opcode::AbsW : Opcode::AbsI);
    } else if (in_wide) {
      b_->Emit(Opcode::RSubW, 0, Operand::Constant(b_->constants()->Wide(0)).Pack());
    } else {
      b_->Emit(safe ? Opcode::RSubI : Opcode::RSubIX, 0, Operand::Constant(b_->constants()->Int(0)).Pack());
    }
  } else if (in_wide) {
    TESSERA_TRY(Operands(a, *e.args[1], true, wide, wide_reversed, has_reversed));
  } else {
    TESSERA_TRY(
        Operands(a, *e.args[1], false, safe ? narrow : checked, safe ? reversed : reversed_checked, has_reversed));
  }
  b_->CheckType(e.type, in_wide, exact);
  if (in_wide && !IsWide(e.type)) b_->Narrow();
  if (!in_wide && IsWide(e.type)) b_->Widen();
  return Status::Ok();
}

Status ValueGenerator::DateFunction(const Expr& e) {
  const Expr& a = *e.args[0];
  const bool timestamp = a.type.id == TypeId::kTimestamp;
  switch (e.function) {
    case Function::kExtract: {
      TESSERA_TRY(Value(a));
      if (timestamp && (e.field == DateField::kSecond || e.field == DateField::kEpoch) && e.type.IsFloat()) {
        // Seconds with their fraction.
        if (e.field == DateField::kSecond) {
          const int r = b_->NewRegister(a.type);
          b_->Store(r);
          const int32_t minute = Operand::Constant(b_->constants()->Int(60'000'000)).Pack();
          b_->Emit(Opcode::FloorDivI, 0, minute);
          b_->Emit(Opcode::MulI, 0, minute);
          b_->Emit(Opcode::RSubI, 0, Operand::Register(r).Pack());
          b_->FreeRegister(r);
        }
        b_->Emit(Opcode::IToF);
        b_->Emit(Opcode::DivF, 0, Operand::Constant(b_->constants()->Float(1e6)).Pack());
        return Status::Ok();
      }
      b_->Emit(timestamp ? Opcode::DatePartT : Opcode::DatePartD, 0, 0, static_cast<int32_t>(e.field));
      if (e.type.IsFloat()) b_->Emit(Opcode::IToF);
      return Status::Ok();
    }
    case Function::kAddMonths:
      return Operands(a, *e.args[1], false, timestamp ? Opcode::AddMonthsT : Opcode::AddMonthsD, Opcode::AddI, false);
    case Function::kAddDays:
    case Function::kAddMicros: {
      const ValueRange range = Sum(b_->Range(a), b_->Range(*e.args[1]));
      TESSERA_TRY(Operands(a, *e.args[1], false, range.Fits64() ? Opcode::AddI : Opcode::AddIX,
                           range.Fits64() ? Opcode::AddI : Opcode::AddIX, true));
      b_->CheckType(e.type, false, range);
      return Status::Ok();
    }
    default:
      return Operands(a, *e.args[1], false, Opcode::SubI, Opcode::RSubI, true);
  }
}

Status ValueGenerator::TextFunction(const Expr& e) {
  const Expr& a = *e.args[0];
  switch (e.function) {
    case Function::kConcat:
      return Operands(a, *e.args[1], false, Opcode::ConcatT, Opcode::ConcatT, false);
    case Function::kSubstring: {
      // From and length are operands; what is not at hand goes through registers.
      int32_t operands[2] = {0, -1};
      std::vector<int> scratch;
      for (size_t k = 1; k < e.args.size(); ++k) {
        Operand o;
        if (!b_->FindOperand(*e.args[k], &o)) {
          TESSERA_TRY(Value(*e.args[k]));
          const int r = b_->NewRegister(e.args[k]->type);
          b_->Store(r);
          scratch.push_back(r);
          o = Operand::Register(r);
        }
        operands[k - 1] = o.Pack();
      }
      TESSERA_TRY(Value(a));
      b_->Emit(Opcode::SubstringT, 0, operands[0], operands[1]);
      for (int r : scratch) b_->FreeRegister(r);
      return Status::Ok();
    }
    default:
      break;
  }
  TESSERA_TRY(Value(a));
  switch (e.function) {
    case Function::kUpper:
      b_->Emit(Opcode::UpperT);
      break;
    case Function::kLower:
      b_->Emit(Opcode::LowerT);
      break;
    case Function::kLength:
      b_->Emit(Opcode::LengthT);
      break;
    case Function::kTrim:
      b_->Emit(Opcode::TrimT);
      break;
    case Function::kLtrim:
      b_->Emit(Opcode::TrimLeftT);
      break;
    default:
      b_->Emit(Opcode::TrimRightT);
      break;
  }
  return Status::Ok();
}

Status ValueGenerator::Case(const Expr& e) {
  const Expr& otherwise = *e.args.back();
  // An ELSE that cannot fail is computed for all rows before the others: then nobody has to know which are left.
  const bool otherwise_first = !b_->CanFail(otherwise);
  const bool one = otherwise_first && e.args.size() == 3;
  const int result = b_->NewRegister(e.type), entry = b_->NewMask(), taken = one ? -1 : b_->NewMask();
  if (otherwise_first) {
    TESSERA_TRY(Value(otherwise));
    b_->Store(result);
  }
  b_->Emit(Opcode::MaskSave, entry);
  if (!one) b_->Emit(Opcode::MaskClear, taken);
  for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
    if (i > 0) {
      b_->Emit(Opcode::MaskLoad, entry);
      b_->Emit(Opcode::MaskAndNot, taken);
    }
    TESSERA_TRY(b_->Keep(*e.args[i]));
    if (!one) b_->Emit(Opcode::MaskOr, taken);
    TESSERA_TRY(Value(*e.args[i + 1]));
    b_->Store(result);
  }
  b_->Emit(Opcode::MaskLoad, entry);
  if (!otherwise_first) {
    b_->Emit(Opcode::MaskAndNot, taken);
    TESSERA_TRY(Value(otherwise));
    b_->Store(result);
    b_->Emit(Opcode::MaskLoad, entry);
  }
  b_->Load(Operand::Register(result), e.type);
  b_->FreeRegister(result);
  b_->FreeMask(entry);
  if (!one) b_->FreeMask(taken);
  return Status::Ok();
}

Status ValueGenerator::Truth(const Expr& e) {
  const SqlType boolean = SqlType::Of(TypeId::kBoolean);
  const int result = b_->NewRegister(boolean), entry = b_->NewMask();
  b_->Emit(Opcode::MaskSave, entry);
  b_->LoadConstant(e.nullable ? tessera::Value::Null(boolean) : tessera::Value::Int(boolean, 0));
  b_->Store(result);
  TESSERA_TRY(b_->Keep(e));
  b_->LoadConstant(tessera::Value::Int(boolean, 1));
  b_->Store(result);
  b_->Emit(Opcode::MaskLoad, entry);
  if (e.nullable) {
    TESSERA_TRY(b_->Keep(e, false));
    b_->LoadConstant(tessera::Value::Int(boolean, 0));
    b_->Store(result);
    b_->Emit(Opcode::MaskLoad, entry);
  }
  b_->Load(Operand::Register(result), boolean);
  b_->FreeRegister(result);
  b_->FreeMask(entry);
  return Status::Ok();
}

}  // namespace tessera
