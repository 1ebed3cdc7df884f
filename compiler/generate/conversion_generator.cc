// Casts between all types, and rounding to digits.
#include "compiler/generate/conversion_generator.h"

#include <algorithm>

#include "compiler/generate/value_generator.h"
#include "compiler/query/expr_builder.h"
#include "tablet/values/enum_type.h"
#include "vm/meaning/meaning.h"
#include "vm/meaning/text_functions.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;

void ConversionGenerator::ScaleBy(int digits, bool wide, ValueRange* range) {
  if (digits == 0) return;
  const int128_t factor = PowerOf10(digits < 0 ? -digits : digits);
  const Operand c = Operand::Constant(wide || factor > INT64_MAX ? b_->constants()->Wide(factor)
                                                                 : b_->constants()->Int(Low64(factor)));
  if (digits > 0) {
    *range = Product(*range, {factor, factor});
    b_->Emit(wide ? Opcode::MulW : range->Fits64() ? Opcode::MulI : Opcode::MulIX, 0, c.Pack());
  } else {
    b_->Emit(wide ? Opcode::DivRoundW : Opcode::DivRoundI, 0, c.Pack());
    *range = {range->low / factor - 1, range->high / factor + 1};
  }
}

Status ConversionGenerator::Round(const Expr& e) {
  const Expr& a = *e.args[0];
  int digits = 0;
  if (e.args.size() > 1) {
    const Expr& n = *e.args[1];
    if (!IsConstant(n))
      return Unsupported("ROUND with a number of digits that is not a constant is not supported", n.position);
    if (n.constant.null) {
      b_->LoadConstant(tessera::Value::Null(e.type));
      return Status::Ok();
    }
    digits = static_cast<int>(std::clamp<int64_t>(n.constant.i64, -400, 400));
  }
  if (e.type.IsFloat()) {
    TESSERA_TRY(b_->Value(a));
    if (e.function == Function::kFloor) {
      b_->Emit(Opcode::FloorF);
    } else if (e.function == Function::kCeil) {
      b_->Emit(Opcode::CeilF);
    } else if (e.args.size() > 1) {
      b_->Emit(Opcode::RoundDigitsF, 0, 0, digits);
    } else {
      b_->Emit(Opcode::RoundF);
    }
    if (e.type.id == TypeId::kReal) b_->Emit(Opcode::SingleF);
    return Status::Ok();
  }
  // Exact. `drop` digits of the argument's scale go; the result keeps e.type.scale of them.
  bool wide = IsWide(a.type) || IsWide(e.type);
  const int scale = a.type.scale;
  const int kept = digits;  // of FLOOR and CEIL 0
  const int drop = scale - kept;
  ValueRange range = b_->Range(a);
  TESSERA_TRY(wide ? b_->WideValue(a) : b_->Value(a));
  if (drop > 0) {
    if (drop > 38) {  // nothing is left of it
      b_->LoadConstant(IsWide(e.type) ? tessera::Value::Wide(e.type, 0) : tessera::Value::Int(e.type, 0));
      return Status::Ok();
    }
    const int128_t factor = PowerOf10(drop);
    if (factor > INT64_MAX && !wide) {
      b_->Widen();
      wide = true;
    }
    const int32_t c =
        Operand::Constant(wide ? b_->constants()->Wide(factor) : b_->constants()->Int(Low64(factor))).Pack();
    const int32_t zero = Operand::Constant(wide ? b_->constants()->Wide(0) : b_->constants()->Int(0)).Pack();
    if (e.function == Function::kRound) {
      b_->Emit(wide ? Opcode::DivRoundW : Opcode::DivRoundI, 0, c);
    } else if (e.function == Function::kTrunc) {
      b_->Emit(wide ? Opcode::DivW : Opcode::DivI, 0, c);
    } else if (e.function == Function::kFloor) {
      b_->Emit(wide ? Opcode::FloorDivW : Opcode::FloorDivI, 0, c);
    } else {  // ceil(x) = -floor(-x)
      b_->Emit(wide ? Opcode::RSubW : Opcode::RSubIX, 0, zero);
      b_->Emit(wide ? Opcode::FloorDivW : Opcode::FloorDivI, 0, c);
      b_->Emit(wide ? Opcode::RSubW : Opcode::RSubIX, 0, zero);
    }
    range = {range.low / factor - 1, range.high / factor + 1};
    ScaleBy(static_cast<int>(e.type.scale) - kept, wide, &range);
  } else {
    ScaleBy(static_cast<int>(e.type.scale) - scale, wide, &range);
  }
  b_->CheckType(e.type, wide, range);
  if (wide && !IsWide(e.type)) b_->Narrow();
  return Status::Ok();
}

/// The label of a place, a field of the text of all: the type's name is the first.
Status ConversionGenerator::Label(const Expr& e) {
  const EnumType& type = EnumOf(e.args[0]->type);
  TESSERA_TRY(b_->Value(*e.args[0]));
  b_->Emit(Opcode::AddI, 0, Operand::Constant(b_->constants()->Int(2)).Pack());
  const int place = b_->NewRegister(SqlType::Of(TypeId::kBigint));
  b_->Store(place);
  b_->LoadConstant(tessera::Value::Text(EnumText(type)));
  const tessera::Value separator = tessera::Value::Text(std::string(1, kLabelSeparator));
  b_->Emit(Opcode::SplitPartT, 0, Operand::Constant(b_->constants()->Add(separator)).Pack(),
           Operand::Register(place).Pack());
  b_->FreeRegister(place);
  if (e.type.length > 0) b_->Emit(Opcode::CutT, 0, 0, e.type.length);
  return Status::Ok();
}

Status ConversionGenerator::Cast(const Expr& e) {
  const Expr& a = *e.args[0];
  const SqlType from = a.type, to = e.type;
  if (from.id == TypeId::kNull) {
    b_->LoadConstant(tessera::Value::Null(to));
    return Status::Ok();
  }
  if (from.id == TypeId::kEnum && to.id == TypeId::kText) return Label(e);
  if (to.id == TypeId::kText) {
    TESSERA_TRY(b_->Value(a));
    if (from.id == TypeId::kBytea) {
      b_->Emit(Opcode::EncodeT, 0, Operand::Constant(b_->constants()->Int(vm::meaning::kByteaForm)).Pack());
    } else if (from.id != TypeId::kText) {
      b_->Emit(IsWide(from) ? Opcode::WToT : from.IsFloat() ? Opcode::FToT : Opcode::IToT, 0, 0, vm::PackType(from));
    }
    if (to.length > 0 && (from.id != TypeId::kText || from.length == 0 || from.length > to.length))
      b_->Emit(Opcode::CutT, 0, 0, to.length);
    return Status::Ok();
  }
  if (from.id == TypeId::kText) {
    TESSERA_TRY(b_->Value(a));
    if (to.id == TypeId::kEnum) {
      const tessera::Value list = tessera::Value::Text(EnumText(EnumOf(to)));
      b_->Emit(Opcode::LabelT, 0, Operand::Constant(b_->constants()->Add(list)).Pack());
      return Status::Ok();
    }
    if (to.id == TypeId::kBytea) {
      b_->Emit(Opcode::DecodeT, 0, Operand::Constant(b_->constants()->Int(vm::meaning::kByteaForm)).Pack());
      return Status::Ok();
    }
    b_->Emit(IsWide(to)     ? Opcode::TToW
             : to.IsFloat() ? Opcode::TToF
                            : Opcode::TToI,
             0, 0, vm::PackType(to), e.function == Function::kTryCast ? 1 : 0);
    return Status::Ok();
  }
  if (to.id == TypeId::kBoolean && from.id != TypeId::kBoolean) {
    // x <> 0, with NULL for NULL.
    Expr zero;
    zero.kind = Expr::Kind::kConstant;
    zero.type = from;
    zero.constant = from.IsFloat() ? tessera::Value::Float(from, 0)
                    : IsWide(from) ? tessera::Value::Wide(from, 0)
                                   : tessera::Value::Int(from, 0);
    Expr compare;
    compare.kind = Expr::Kind::kFunction;
    compare.function = Function::kNe;
    compare.type = to;
    compare.nullable = a.nullable;
    compare.args.push_back(a.Clone());
    compare.args.push_back(zero.Clone());
    return ValueGenerator(b_).Truth(compare);
  }
  if (from.IsFloat() && to.IsFloat()) {
    TESSERA_TRY(b_->Value(a));
    if (to.id == TypeId::kReal && from.id != TypeId::kReal) b_->Emit(Opcode::SingleF);
    return Status::Ok();
  }
  if (to.IsFloat()) {
    const bool wide = IsWide(from) && !b_->Range(a).Fits64();
    TESSERA_TRY(wide ? b_->Value(a) : b_->NarrowValue(a));
    b_->Emit(wide ? Opcode::WToF : Opcode::IToF);
    if (from.scale > 0)
      b_->Emit(Opcode::DivF, 0,
               Operand::Constant(b_->constants()->Float(static_cast<double>(PowerOf10(from.scale)))).Pack());
    if (to.id == TypeId::kReal) b_->Emit(Opcode::SingleF);
    return Status::Ok();
  }
  if (from.IsFloat()) {
    TESSERA_TRY(b_->Value(a));
    if (to.id == TypeId::kDecimal) {
      if (to.scale > 0)
        b_->Emit(Opcode::MulF, 0,
                 Operand::Constant(b_->constants()->Float(static_cast<double>(PowerOf10(to.scale)))).Pack());
      b_->Emit(Opcode::FToW);
      b_->CheckType(to, true, {});
      if (!IsWide(to)) b_->Narrow();
    } else {
      b_->Emit(Opcode::FToI);
      b_->CheckType(to, false, {INT64_MIN, INT64_MAX});
    }
    return Status::Ok();
  }
  if (to.IsTimestamp() && from.id == TypeId::kDate) {
    TESSERA_TRY(b_->Value(a));
    b_->Emit(Opcode::MulI, 0, Operand::Constant(b_->constants()->Int(vm::kMicrosPerDay)).Pack());
    return Status::Ok();
  }
  if (to.id == TypeId::kDate && from.IsTimestamp()) {
    TESSERA_TRY(b_->Value(a));
    ValueRange range = b_->Range(a);
    for (int128_t* bound : {&range.low, &range.high})
      *bound = *bound / vm::kMicrosPerDay - (*bound % vm::kMicrosPerDay < 0 ? 1 : 0);
    b_->Emit(Opcode::FloorDivI, 0, Operand::Constant(b_->constants()->Int(vm::kMicrosPerDay)).Pack());
    b_->CheckType(to, false, range);
    return Status::Ok();
  }
  if (to.id == TypeId::kTime && from.IsTimestamp()) {
    TESSERA_TRY(b_->Value(a));
    const int32_t day = Operand::Constant(b_->constants()->Int(vm::kMicrosPerDay)).Pack();
    const int r = b_->NewRegister(from);
    b_->Store(r);
    b_->Emit(Opcode::FloorDivI, 0, day);
    b_->Emit(Opcode::MulI, 0, day);
    b_->Emit(Opcode::RSubI, 0, Operand::Register(r).Pack());
    b_->FreeRegister(r);
    return Status::Ok();
  }
  // Integers and decimals of any scale.
  const int digits = static_cast<int>(to.scale) - static_cast<int>(from.scale);
  ValueRange range = b_->Range(a);
  const ValueRange scaled = digits > 0 ? Product(range, {PowerOf10(digits), PowerOf10(digits)}) : range;
  const bool factor_wide = (digits < 0 ? -digits : digits) > 18;
  const bool fits = range.Fits64() && scaled.Fits64();
  const bool wide = factor_wide || ((IsWide(from) || IsWide(to)) && !fits);
  TESSERA_TRY(wide ? b_->WideValue(a) : b_->NarrowValue(a));
  ScaleBy(digits, wide, &range);
  b_->CheckType(to, wide, range);
  if (wide && !IsWide(to)) b_->Narrow();
  if (!wide && IsWide(to)) b_->Widen();
  return Status::Ok();
}

}  // namespace tessera
