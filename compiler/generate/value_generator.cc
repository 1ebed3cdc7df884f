// Values as instructions.
#include "compiler/generate/value_generator.h"

#include <algorithm>
#include <vector>

#include "compiler/generate/conversion_generator.h"
#include "compiler/generate/dictionary_sections.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;
using vm::OperandKind;

namespace {

Opcode After(Opcode op) { return static_cast<Opcode>(static_cast<int>(op) + 1); }

/// The type of a register for a value of `type` that was computed in that width.
SqlType TypeIn(bool wide, const SqlType& type) {
  if (wide == IsWide(type)) return type;
  return wide ? SqlType::Decimal(38, 0) : SqlType::Of(TypeId::kBigint);
}

}  // namespace

Status ValueGenerator::Value(const Expr& e) {
  Operand o;
  if (b_->FindOperand(e, &o)) {
    b_->Load(o, e.type);
    return Status::Ok();
  }
  if (IsWide(e.type) && b_->FindOperand(e, false, &o)) {
    b_->Load(o, SqlType::Of(TypeId::kBigint));
    b_->Widen();
    return Status::Ok();
  }
  const int from = b_->next();
  TESSERA_TRY(Compute(e));
  b_->KeepValue(e, from);
  return Status::Ok();
}

Status ValueGenerator::Compute(const Expr& e) {
  if (e.kind != Expr::Kind::kFunction) return b_->scope()->Compute(e, b_);
  if (const Expr* const column = IsWide(e.type) ? nullptr : DictionarySections(b_).Serve(e)) {
    int map = -1;
    TESSERA_TRY(DictionarySections(b_).AddValue(e, *column, &map));
    const int plain = b_->scope()->TableSlot(*column, b_);
    vm::Slot slot{b_->section.slots[static_cast<size_t>(plain)].column, e.type, map};
    b_->section.slots.push_back(slot);
    b_->Load(Operand::Slot(static_cast<int>(b_->section.slots.size()) - 1), e.type);
    return Status::Ok();
  }
  switch (Info(e.function).translation) {
    case Translation::kOpcode:
      return ByOpcode(e);
    case Translation::kRounding:
      return ConversionGenerator(b_).Round(e);
    case Translation::kCase:
      return Case(e);
    case Translation::kCast:
      return ConversionGenerator(b_).Cast(e);
    case Translation::kSubstring:
      return WithOperands(e, false, e.type.id == TypeId::kBytea ? Opcode::SubbytesT : Opcode::SubstringT);
    case Translation::kExtract:
      return Extract(e);
    case Translation::kAddMonths: {
      const bool timestamp = e.args[0]->type.IsTimestamp();
      return Operands(*e.args[0], *e.args[1], false, timestamp ? Opcode::AddMonthsT : Opcode::AddMonthsD, kNoOpcode);
    }
    case Translation::kMath:
      return Math(e);
    case Translation::kCharacter:
      TESSERA_TRY(Value(*e.args[0]));
      b_->Emit(Opcode::ChrT, 0, 0, vm::PackType(e.args[0]->type));
      return Status::Ok();
    case Translation::kInterval:
      return Interval(e);
    case Translation::kZone:
      TESSERA_TRY(Value(*e.args[0]));
      b_->Emit(Info(e.function).opcodes.For(e.args[0]->type.storage()), 0, b_->constants()->Add(e.args[1]->constant),
               e.args.size() > 2 ? 1 : 0);
      return Status::Ok();
    case Translation::kRegex: {
      const auto constant = [&](size_t i) {
        if (i >= e.args.size()) return 0;
        const tessera::Value& v = e.args[i]->constant;
        return v.type.id == TypeId::kText ? b_->constants()->Add(v) : static_cast<int32_t>(v.i64);
      };
      TESSERA_TRY(Value(*e.args[0]));
      b_->Emit(Info(e.function).opcodes.text, 0, constant(1), constant(2), constant(3));
      return Status::Ok();
    }
    case Translation::kFormat: {
      const SqlType& type = e.args[0]->type;
      TESSERA_TRY(Value(*e.args[0]));
      b_->Emit(IsWide(type)     ? Opcode::FormatW
               : type.IsFloat() ? Opcode::FormatF
                                : Opcode::FormatI,
               0, b_->constants()->Add(e.args[1]->constant), vm::PackType(type),
               static_cast<int32_t>(e.args[2]->constant.i64));
      return Status::Ok();
    }
    case Translation::kRandom: {
      if (e.function == Function::kSetSeed) {
        b_->LoadConstant(tessera::Value::Null(e.type));
        return Status::Ok();
      }
      const auto constant = [&](size_t i) {
        return Operand::Constant(b_->constants()->Int(e.args[i]->constant.i64)).Pack();
      };
      b_->Emit(Opcode::PlaceI);
      if (e.function == Function::kRandomUuid) {
        b_->Emit(Opcode::RandomUuidI, 0, constant(0), constant(1));
        return Status::Ok();
      }
      if (e.args[1]->constant.i64 > 0) b_->Emit(Opcode::ShiftRightI, 0, constant(1));
      b_->Emit(Opcode::XorI, 0, constant(0));
      b_->Emit(Opcode::RandomF);
      return Status::Ok();
    }
    case Translation::kComparison:
    case Translation::kJunction:
    case Translation::kNegation:
    case Translation::kNullTest:
    case Translation::kInList:
    case Translation::kLike:
      return b_->Truth(e);
  }
  return Status(ErrorCode::kInternal, "an expression has no instructions").At(e.position);
}

Status ValueGenerator::Operands(const Expr& left, const Expr& right, bool wide, Opcode op, Opcode reversed) {
  auto compute = [&](const Expr& e) { return wide ? b_->WideValue(e) : b_->NarrowValue(e); };
  auto simple = [&](const Expr& e, Operand* o) { return b_->FindOperand(e, wide, o); };
  Operand o;
  if (simple(right, &o)) {
    TESSERA_TRY(compute(left));
    b_->Emit(op, 0, o.Pack());
    return Status::Ok();
  }
  if (reversed != kNoOpcode && simple(left, &o)) {
    TESSERA_TRY(compute(right));
    b_->Emit(reversed, 0, o.Pack());
    return Status::Ok();
  }
  TESSERA_TRY(compute(right));
  const int r = b_->NewRegister(TypeIn(wide, right.type));
  b_->Store(r);
  TESSERA_TRY(compute(left));
  b_->Emit(op, 0, Operand::Register(r).Pack());
  b_->FreeRegister(r);
  return Status::Ok();
}

Status ValueGenerator::WithOperands(const Expr& e, bool wide, Opcode op) {
  auto compute = [&](const Expr& a) { return wide ? b_->WideValue(a) : b_->NarrowValue(a); };
  int32_t operands[2] = {0, vm::Info(op).p[2] == vm::OperandSpec::SrcInt ? -1 : 0};  // -1: there is none
  std::vector<int> scratch;
  for (size_t k = 1; k < e.args.size(); ++k) {
    const Expr& a = *e.args[k];
    Operand o;
    const bool found = b_->FindOperand(a, wide, &o);
    const bool fits = o.kind != OperandKind::kPayload || vm::Info(op).p[k] != vm::OperandSpec::SrcPlain;
    if (!found || !fits) {
      TESSERA_TRY(compute(a));
      const int r = b_->NewRegister(TypeIn(wide, a.type));
      b_->Store(r);
      scratch.push_back(r);
      o = Operand::Register(r);
    }
    operands[k - 1] = o.Pack();
  }
  TESSERA_TRY(compute(*e.args[0]));
  b_->Emit(op, 0, operands[0], operands[1]);
  for (int r : scratch) b_->FreeRegister(r);
  return Status::Ok();
}

Status ValueGenerator::Apply(const Expr& e, bool wide, Opcode op) {
  if (op == kNoOpcode) return Status(ErrorCode::kInternal, "a function has no opcode for its arguments").At(e.position);
  if (e.args.size() > 2) return WithOperands(e, wide, op);
  if (e.args.size() == 2) {
    Opcode reversed = kNoOpcode;
    if (Info(e.function).operands == OperandOrder::kCommutative) reversed = op;
    if (Info(e.function).operands == OperandOrder::kReversible) reversed = After(op);
    return Operands(*e.args[0], *e.args[1], wide, op, reversed);
  }
  TESSERA_TRY(wide ? b_->WideValue(*e.args[0]) : b_->NarrowValue(*e.args[0]));
  if (vm::Info(op).shape == vm::Shape::Binary) {
    b_->Emit(op, 0, Operand::Constant(wide ? b_->constants()->Wide(0) : b_->constants()->Int(0)).Pack());
  } else {
    b_->Emit(op);
  }
  return Status::Ok();
}

Status ValueGenerator::ByOpcode(const Expr& e) {
  const OpcodesByClass& opcodes = Info(e.function).opcodes;
  const StorageClass storage = e.args[0]->type.storage();
  if (storage == StorageClass::kText || storage == StorageClass::kFloat) {
    TESSERA_TRY(Apply(e, false, opcodes.For(storage)));
    if (e.type.id == TypeId::kReal) b_->Emit(Opcode::SingleF);
    return Status::Ok();
  }
  // Exact numbers: the ranges of arguments and result, and not their types, decide between 64 bits unchecked, 64 bits
  // checked and 128 bits.
  const ValueRange exact = b_->ranges().ExactRange(e);
  const bool args_wide = std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return IsWide(a->type); });
  const bool args_fit = std::all_of(e.args.begin(), e.args.end(),
                                    [&](const ExprPtr& a) { return !IsWide(a->type) || b_->Range(*a).Fits64(); });
  const bool fits = exact.Fits64() && args_fit && opcodes.integer != kNoOpcode;
  const bool wide = (args_wide || IsWide(e.type)) && !fits;
  const bool checked = !exact.Fits64() && opcodes.checked_integer != kNoOpcode;
  TESSERA_TRY(Apply(e, wide, wide ? opcodes.wide : (checked ? opcodes.checked_integer : opcodes.integer)));
  b_->CheckType(e.type, wide, exact);
  if (wide && !IsWide(e.type)) b_->Narrow();
  if (!wide && IsWide(e.type)) b_->Widen();
  return Status::Ok();
}

Status ValueGenerator::Math(const Expr& e) {
  const Opcode op = Info(e.function).opcodes.real;
  const auto function = static_cast<int32_t>(MathOf(e.function));
  if (e.args.size() == 1) {
    TESSERA_TRY(Value(*e.args[0]));
    b_->Emit(op, 0, 0, function);
    return Status::Ok();
  }
  const Expr& right = *e.args[1];
  Operand o;
  int scratch = -1;
  if (!b_->FindOperand(right, &o)) {
    TESSERA_TRY(Value(right));
    scratch = b_->NewRegister(right.type);
    b_->Store(scratch);
    o = Operand::Register(scratch);
  }
  TESSERA_TRY(Value(*e.args[0]));
  b_->Emit(op, 0, o.Pack(), function);
  if (scratch >= 0) b_->FreeRegister(scratch);
  return Status::Ok();
}

Status ValueGenerator::Interval(const Expr& e) {
  const Opcode op = Info(e.function).opcodes.For(e.args[0]->type.storage());
  int32_t operands[2] = {0, 0};
  std::vector<int> scratch;
  for (size_t k = 1; k < e.args.size(); ++k) {
    const Expr& a = *e.args[k];
    Operand o;
    if (!b_->FindOperand(a, &o) ||
        (o.kind == OperandKind::kPayload && vm::Info(op).p[k] == vm::OperandSpec::SrcPlain)) {
      TESSERA_TRY(Value(a));
      const int r = b_->NewRegister(a.type);
      b_->Store(r);
      scratch.push_back(r);
      o = Operand::Register(r);
    }
    operands[k - 1] = o.Pack();
  }
  TESSERA_TRY(Value(*e.args[0]));
  b_->Emit(op, 0, operands[0], operands[1]);
  for (int r : scratch) b_->FreeRegister(r);
  return Status::Ok();
}

Status ValueGenerator::Extract(const Expr& e) {
  const Expr& a = *e.args[0];
  const bool timestamp = a.type.IsTimestamp();
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

Status ValueGenerator::Case(const Expr& e) {
  const Expr& otherwise = *e.args.back();
  // An ELSE that cannot fail is computed first, for all rows. Then no mask of the rows that are left is needed.
  const bool otherwise_first = !b_->ranges().CanFailAnywhere(otherwise);
  const bool one = otherwise_first && e.args.size() == 3;
  // Of exact numbers the range of the branches, not their type, decides between 64 and 128 bits.
  const bool wide = IsWide(e.type) && (e.type.id != TypeId::kDecimal || !b_->Range(e).Fits64());
  const SqlType type = TypeIn(wide, e.type);
  auto compute = [&](const Expr& branch) { return wide ? b_->WideValue(branch) : b_->NarrowValue(branch); };
  const int result = b_->NewRegister(type), entry = b_->NewMask(), taken = one ? -1 : b_->NewMask();
  if (otherwise_first) {
    TESSERA_TRY(compute(otherwise));
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
    TESSERA_TRY(compute(*e.args[i + 1]));
    b_->Store(result);
  }
  b_->Emit(Opcode::MaskLoad, entry);
  if (!otherwise_first) {
    b_->Emit(Opcode::MaskAndNot, taken);
    TESSERA_TRY(compute(otherwise));
    b_->Store(result);
    b_->Emit(Opcode::MaskLoad, entry);
  }
  b_->Load(Operand::Register(result), type);
  if (!wide && IsWide(e.type)) b_->Widen();
  b_->FreeRegister(result);
  b_->FreeMask(entry);
  if (!one) b_->FreeMask(taken);
  return Status::Ok();
}

}  // namespace tessera
