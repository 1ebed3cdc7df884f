// Casts between all types, and rounding to digits.
#include "compiler/generate/conversion_generator.h"

#include "compiler/query/expr_builder.h"
#include "tablet/values/enum_type.h"
#include "vm/meaning/meaning.h"
#include "vm/meaning/text_functions.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;

void ConversionGenerator::Exact(Opcode wide, Opcode narrow, int128_t operand) {
  ConstantPool& constants = *b_->constants();
  b_->Emit(wide_ ? wide : narrow, 0,
           Operand::Constant(wide_ ? constants.Wide(operand) : constants.Int(Low64(operand))).Pack());
}

void ConversionGenerator::Remainder(int128_t divisor) {
  const int x = b_->NewRegister(wide_ ? SqlType::Decimal(38, 0) : SqlType::Of(TypeId::kBigint));
  b_->Store(x);
  Exact(Opcode::FloorDivW, Opcode::FloorDivI, divisor);
  Exact(Opcode::MulW, Opcode::MulI, divisor);
  b_->Emit(wide_ ? Opcode::RSubW : Opcode::RSubI, 0, Operand::Register(x).Pack());
  b_->FreeRegister(x);
  range_ = {0, divisor - 1};
}

void ConversionGenerator::Step(const ConversionStep& step) {
  using Kind = ConversionStep::Kind;
  const int128_t f = step.factor;
  if (f > INT64_MAX && !wide_) {
    b_->Widen();
    wide_ = true;
  }
  const auto floats = [&](Opcode op) {
    b_->Emit(op, 0, Operand::Constant(b_->constants()->Float(static_cast<double>(f))).Pack());
  };
  switch (step.kind) {
    case Kind::kTimes:
      range_ = Product(range_, {f, f});
      Exact(Opcode::MulW, range_.Fits64() ? Opcode::MulI : Opcode::MulIX, f);
      break;
    case Kind::kDivide:
      Exact(Opcode::DivW, Opcode::DivI, f);
      range_ = {range_.low / f - 1, range_.high / f + 1};
      break;
    case Kind::kDivideRound:
      Exact(Opcode::DivRoundW, Opcode::DivRoundI, f);
      range_ = {range_.low / f - 1, range_.high / f + 1};
      break;
    case Kind::kDivideDown:
      Exact(Opcode::FloorDivW, Opcode::FloorDivI, f);
      for (int128_t* bound : {&range_.low, &range_.high}) *bound = *bound / f - (*bound % f < 0 ? 1 : 0);
      break;
    case Kind::kRemainder:
      Remainder(f);
      break;
    case Kind::kNegate:
      Exact(Opcode::RSubW, Opcode::RSubIX, 0);
      range_ = Minus(range_);
      break;
    case Kind::kZero:
      Exact(Opcode::MulW, Opcode::MulI, 0);
      range_ = {0, 0};
      break;
    case Kind::kToFloat:
      b_->Emit(wide_ ? Opcode::WToF : Opcode::IToF);
      break;
    case Kind::kToInteger:
      b_->Emit(Opcode::FToI);
      range_ = {INT64_MIN, INT64_MAX};
      wide_ = false;
      break;
    case Kind::kToExact:
      b_->Emit(Opcode::FToW);
      range_ = {};
      wide_ = true;
      break;
    case Kind::kFloatTimes:
      floats(Opcode::MulF);
      break;
    case Kind::kFloatDivide:
      floats(Opcode::DivF);
      break;
    case Kind::kFloatRound:
      b_->Emit(Opcode::RoundF);
      break;
    case Kind::kFloatRoundDigits:
      b_->Emit(Opcode::RoundDigitsF, 0, 0, step.digits);
      break;
    case Kind::kFloatFloor:
      b_->Emit(Opcode::FloorF);
      break;
    case Kind::kFloatCeil:
      b_->Emit(Opcode::CeilF);
      break;
    case Kind::kSingle:
      b_->Emit(Opcode::SingleF);
      break;
  }
}

void ConversionGenerator::Convert(const SqlType& to, const ConversionSteps& steps) {
  for (const ConversionStep& step : steps) Step(step);
  if (to.IsFloat()) return;
  b_->CheckType(to, wide_, range_);
  if (wide_ && !IsWide(to)) b_->Narrow();
  if (!wide_ && IsWide(to)) b_->Widen();
}

bool ConversionGenerator::NeedsWide(const SqlType& from, const SqlType& to, const ConversionSteps& steps) const {
  ValueRange range = range_;
  bool fits = range.Fits64();
  for (const ConversionStep& step : steps) {
    if (step.factor > INT64_MAX) return true;
    if (step.kind == ConversionStep::Kind::kTimes) range = Product(range, {step.factor, step.factor});
    fits = fits && range.Fits64();
  }
  return (IsWide(from) || IsWide(to)) && !fits;
}

Status ConversionGenerator::Round(const Expr& e) {
  const Expr& a = *e.args[0];
  const int64_t* digits = nullptr;
  if (e.args.size() > 1) {
    const Expr& n = *e.args[1];
    if (!IsConstant(n))
      return Unsupported("ROUND with a number of digits that is not a constant is not supported", n.position);
    if (n.constant.null) {
      b_->LoadConstant(tessera::Value::Null(e.type));
      return Status::Ok();
    }
    digits = &n.constant.i64;
  }
  wide_ = IsWide(a.type) || IsWide(e.type);
  range_ = b_->Range(a);
  TESSERA_TRY(wide_ ? b_->WideValue(a) : b_->Value(a));
  Convert(e.type, RoundingSteps(e.function, a.type, e.type, digits));
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
    return b_->Truth(compare);
  }
  const ConversionSteps steps = CastSteps(from, to);
  range_ = b_->Range(a);
  if (from.IsFloat()) {
    TESSERA_TRY(b_->Value(a));
  } else if (to.IsFloat()) {
    wide_ = IsWide(from) && !range_.Fits64();
    TESSERA_TRY(wide_ ? b_->Value(a) : b_->NarrowValue(a));
  } else {
    wide_ = NeedsWide(from, to, steps);
    TESSERA_TRY(wide_ ? b_->WideValue(a) : b_->NarrowValue(a));
  }
  Convert(to, steps);
  return Status::Ok();
}

}  // namespace tessera
