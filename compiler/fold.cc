// Constant folding. Integers and decimals are computed in 128 bits whatever their width: the result is checked against
// the range of its type, as the machine does, so the two agree.
#include "compiler/fold.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/expr_builder.h"
#include "compiler/type_rules.h"
#include "vm/lane_error.h"
#include "vm/meaning.h"
#include "vm/text_meaning.h"

namespace tessera {
namespace {

namespace meaning = vm::meaning;
using vm::Lane;
using vm::LaneError;

Status ErrorOf(LaneError error, const SqlType& type) {
  vm::Instruction in;
  in.p4 = vm::PackType(type);
  return vm::LaneErrorStatus(error, in);
}

/// The value as `type`, or the machine's error if its range does not hold it.
Result<Value> Narrow(const SqlType& type, int128_t v, Lane lane) {
  if (lane.null) return Value::Null(type);
  if (lane.error != LaneError::kNone) return ErrorOf(lane.error, type);
  const IntegerRange range = RangeOf(type);
  if (v < range.least || v > range.greatest) {
    return ErrorOf(type.id == TypeId::kBigint ? LaneError::kOverflow : LaneError::kRange, type);
  }
  return FromInteger(type, v);
}

/// A double as REAL or DOUBLE PRECISION.
Value FloatValue(const SqlType& type, double v, Lane lane = {}) {
  if (lane.null) return Value::Null(type);
  Lane none;
  return Value::Float(type, type.id == TypeId::kReal ? meaning::SingleF::Apply(v, none) : v);
}

double DoublePowerOf10(int n) {
  Lane lane;
  return meaning::WToF::Apply(PowerOf10(n), lane);
}

int128_t Rescale(int128_t v, int from, int to, Lane& lane) {
  if (to >= from) return meaning::MulW::Apply(v, PowerOf10(to - from), lane);
  return meaning::DivRoundW::Apply(v, PowerOf10(from - to), lane);
}

Result<Value> Arithmetic(Function function, const SqlType& type, const Value& a, const Value& b) {
  Lane lane;
  if (type.storage() == StorageClass::kFloat) {
    double r = 0;
    switch (function) {
      case Function::kAdd:
        r = meaning::AddF::Apply(a.f64, b.f64, lane);
        break;
      case Function::kSub:
        r = meaning::SubF::Apply(a.f64, b.f64, lane);
        break;
      case Function::kMul:
        r = meaning::MulF::Apply(a.f64, b.f64, lane);
        break;
      case Function::kDiv:
        r = meaning::DivF::Apply(a.f64, b.f64, lane);
        break;
      default:
        r = meaning::ModF::Apply(a.f64, b.f64, lane);
        break;
    }
    return FloatValue(type, r, lane);
  }
  const int128_t x = IntegerOf(a), y = IntegerOf(b);
  int128_t r = 0;
  switch (function) {
    case Function::kAdd:
      r = meaning::AddW::Apply(x, y, lane);
      break;
    case Function::kSub:
      r = meaning::SubW::Apply(x, y, lane);
      break;
    case Function::kMul:
      r = meaning::MulW::Apply(x, y, lane);
      break;
    case Function::kDiv:
      r = meaning::DivW::Apply(x, y, lane);
      break;
    default:
      r = meaning::ModW::Apply(x, y, lane);
      break;
  }
  return Narrow(type, r, lane);
}

bool Compare(Function function, const Value& a, const Value& b) {
  int order = 0;  // -1, 0, 1
  switch (a.type.storage()) {
    case StorageClass::kFloat:
      order = meaning::FilterEqF::Apply(a.f64, b.f64) ? 0 : (meaning::FilterLtF::Apply(a.f64, b.f64) ? -1 : 1);
      break;
    case StorageClass::kText:
      order = meaning::FilterLtT::Apply(a.text, b.text) ? -1 : (meaning::FilterGtT::Apply(a.text, b.text) ? 1 : 0);
      break;
    default: {
      const int128_t x = IntegerOf(a), y = IntegerOf(b);
      order = meaning::FilterLtW::Apply(x, y) ? -1 : (meaning::FilterGtW::Apply(x, y) ? 1 : 0);
    }
  }
  switch (function) {
    case Function::kEq:
      return order == 0;
    case Function::kNe:
      return order != 0;
    case Function::kLt:
      return order < 0;
    case Function::kLe:
      return order <= 0;
    case Function::kGt:
      return order > 0;
    default:
      return order >= 0;
  }
}

Result<Value> Rounding(Function function, const SqlType& type, std::span<const ExprPtr> args) {
  const Value& a = args[0]->constant;
  Lane lane;
  if (a.type.storage() == StorageClass::kFloat) {
    switch (function) {
      case Function::kRound:
        if (args.size() < 2) return FloatValue(type, meaning::RoundF::Apply(a.f64, lane));
        return FloatValue(type, meaning::RoundDigitsF::Apply(a.f64, static_cast<int>(args[1]->constant.i64), lane));
      case Function::kFloor:
        return FloatValue(type, meaning::FloorF::Apply(a.f64, lane));
      default:
        return FloatValue(type, meaning::CeilF::Apply(a.f64, lane));
    }
  }
  const int128_t x = IntegerOf(a);
  const int128_t unit = PowerOf10(a.type.scale - type.scale);
  switch (function) {
    case Function::kRound:
      return Narrow(type, meaning::DivRoundW::Apply(x, unit, lane), lane);
    case Function::kFloor:
      return Narrow(type, meaning::FloorDivW::Apply(x, unit, lane), lane);
    default: {
      const int128_t down = meaning::FloorDivW::Apply(-x, unit, lane);
      return Narrow(type, -down, lane);
    }
  }
}

Result<Value> TextFunction(Function function, const SqlType& type, std::span<const ExprPtr> args) {
  const std::string& s = args[0]->constant.text;
  Value result = Value::Text({});
  switch (function) {
    case Function::kUpper:
      meaning::UpperT::Apply(s, &result.text);
      break;
    case Function::kLower:
      meaning::LowerT::Apply(s, &result.text);
      break;
    case Function::kTrim:
      meaning::TrimT::Apply(s, &result.text);
      break;
    case Function::kLtrim:
      meaning::TrimLeftT::Apply(s, &result.text);
      break;
    case Function::kRtrim:
      meaning::TrimRightT::Apply(s, &result.text);
      break;
    case Function::kConcat:
      result.text = s + args[1]->constant.text;
      break;
    case Function::kLength:
      return Value::Int(type, vm::CharacterCount(s));
    default: {  // kSubstring
      const bool has_length = args.size() > 2;
      const int64_t length = has_length ? args[2]->constant.i64 : 0;
      if (length < 0) return ErrorOf(LaneError::kNegativeLength, type);
      result.text = vm::Substring(s, args[1]->constant.i64, has_length, length);
    }
  }
  result.type = type;
  return result;
}

Result<Value> DateFunction(Function function, const SqlType& type, DateField field, std::span<const ExprPtr> args) {
  const Value& a = args[0]->constant;
  const bool is_date = a.type.id == TypeId::kDate;
  Lane lane;
  switch (function) {
    case Function::kExtract:
      if (type.id == TypeId::kDouble) {
        return Value::Float(type, static_cast<double>(vm::FloorMod(a.i64, 60'000'000)) / 1e6);
      }
      return Value::Int(type, is_date ? meaning::DatePartD::Apply(a.i64, static_cast<int>(field), lane)
                                      : meaning::DatePartT::Apply(a.i64, static_cast<int>(field), lane));
    default:
      break;
  }
  const int64_t b = args[1]->constant.i64;
  switch (function) {
    case Function::kAddMonths: {
      const int64_t r =
          is_date ? meaning::AddMonthsD::Apply(a.i64, b, lane) : meaning::AddMonthsT::Apply(a.i64, b, lane);
      return Narrow(type, r, lane);
    }
    case Function::kDateDiff:
      return Narrow(type, static_cast<int128_t>(a.i64) - b, lane);
    default:  // kAddDays, kAddMicros
      return Narrow(type, static_cast<int128_t>(a.i64) + b, lane);
  }
}

/// x IN (list): NULL if nothing matches and the list has a NULL.
Value EvaluateIn(const SqlType& type, std::span<const ExprPtr> args) {
  const Value& x = args[0]->constant;
  if (x.null) return Value::Null(type);
  bool null = false;
  for (const ExprPtr& a : args.subspan(1)) {
    if (a->constant.null) {
      null = true;
    } else if (Compare(Function::kEq, x, a->constant)) {
      return Value::Int(type, 1);
    }
  }
  return null ? Value::Null(type) : Value::Int(type, 0);
}

bool IsStrict(Function function) {
  switch (function) {
    case Function::kAnd:
    case Function::kOr:
    case Function::kIsNull:
    case Function::kIsNotNull:
    case Function::kIn:
    case Function::kCase:
      return false;
    default:
      return true;
  }
}

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

/// Branches that can never be taken go; a condition that is TRUE ends the list.
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

int128_t IntegerOf(const Value& v) { return v.type.storage() == StorageClass::kWide ? v.wide : v.i64; }

Value FromInteger(const SqlType& type, int128_t v) {
  return type.storage() == StorageClass::kWide ? Value::Wide(type, v) : Value::Int(type, Low64(v));
}

Result<Value> EvaluateCast(const Value& v, const SqlType& type) {
  if (v.null) return Value::Null(type);
  if (v.type == type) return v;
  Lane lane;
  const SqlType& from = v.type;
  if (type.id == TypeId::kText) {
    Value text = v;
    text.text = ToText(v);
    text.type = type;
    if (type.length > 0) text.text.resize(vm::CharacterOffset(text.text, type.length));
    return text;
  }
  if (from.id == TypeId::kText) return ParseValue(v.text, type);
  if (from.IsFloat()) {
    if (type.IsFloat()) return FloatValue(type, v.f64);
    if (type.id == TypeId::kDecimal) {
      const double scaled = meaning::MulF::Apply(v.f64, DoublePowerOf10(type.scale), lane);
      return Narrow(type, meaning::FToW::Apply(scaled, lane), lane);
    }
    return Narrow(type, meaning::FToI::Apply(v.f64, lane), lane);
  }
  const int128_t x = IntegerOf(v);
  if (type.IsFloat()) {
    // Digits that 53 bits do not hold would be rounded twice by the division: a literal is the number that is written.
    constexpr int128_t kExact = int128_t{1} << 53;
    if (from.scale > 0 && (x > kExact || x < -kExact)) return ParseValue(ToText(v), type);
    const double d =
        from.storage() == StorageClass::kWide ? meaning::WToF::Apply(x, lane) : meaning::IToF::Apply(v.i64, lane);
    return FloatValue(type, from.scale > 0 ? meaning::DivF::Apply(d, DoublePowerOf10(from.scale), lane) : d);
  }
  if (type.id == TypeId::kBoolean) return Value::Int(type, x != 0 ? 1 : 0);
  if (from.id == TypeId::kDate && type.id == TypeId::kTimestamp) return Narrow(type, x * vm::kMicrosPerDay, lane);
  if (from.id == TypeId::kTimestamp && type.id == TypeId::kDate) {
    return Narrow(type, meaning::FloorDivW::Apply(x, vm::kMicrosPerDay, lane), lane);
  }
  return Narrow(type, Rescale(x, from.scale, type.scale, lane), lane);
}

Result<Value> EvaluateFunction(Function function, const SqlType& type, DateField field, std::span<const ExprPtr> args) {
  if (IsStrict(function)) {
    for (const ExprPtr& a : args) {
      if (a->constant.null) return Value::Null(type);
    }
  }
  const Value& a = args[0]->constant;
  Lane lane;
  switch (function) {
    case Function::kAdd:
    case Function::kSub:
    case Function::kMul:
    case Function::kDiv:
    case Function::kMod:
      return Arithmetic(function, type, a, args[1]->constant);
    case Function::kNeg:
      if (type.IsFloat()) return FloatValue(type, meaning::NegF::Apply(a.f64, lane));
      return Narrow(type, -IntegerOf(a), lane);
    case Function::kAbs: {
      if (type.IsFloat()) return FloatValue(type, meaning::AbsF::Apply(a.f64, lane));
      const int128_t r = meaning::AbsW::Apply(IntegerOf(a), lane);
      return Narrow(type, r, lane);
    }
    case Function::kRound:
    case Function::kFloor:
    case Function::kCeil:
      return Rounding(function, type, args);
    case Function::kEq:
    case Function::kNe:
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
      return Value::Int(type, Compare(function, a, args[1]->constant) ? 1 : 0);
    case Function::kNot:
      return Value::Int(type, a.i64 == 0 ? 1 : 0);
    case Function::kIsNull:
      return Value::Int(type, a.null ? 1 : 0);
    case Function::kIsNotNull:
      return Value::Int(type, a.null ? 0 : 1);
    case Function::kIn:
      return EvaluateIn(type, args);
    case Function::kLike:
      return Value::Int(type, vm::LikeMatches(a.text, args[1]->constant.text) ? 1 : 0);
    case Function::kCast:
      return EvaluateCast(a, type);
    case Function::kConcat:
    case Function::kUpper:
    case Function::kLower:
    case Function::kLength:
    case Function::kSubstring:
    case Function::kTrim:
    case Function::kLtrim:
    case Function::kRtrim:
      return TextFunction(function, type, args);
    case Function::kExtract:
    case Function::kAddMonths:
    case Function::kAddDays:
    case Function::kAddMicros:
    case Function::kDateDiff:
      return DateFunction(function, type, field, args);
    case Function::kAnd:
    case Function::kOr:
    case Function::kCase:
      break;  // Fold takes them apart without this
  }
  return Status(ErrorCode::kInternal, "a function of constants cannot be folded");
}

Result<ExprPtr> Fold(ExprPtr e, bool may_skip) {
  if (e->kind != Expr::Kind::kFunction) return e;
  if (e->function == Function::kAnd || e->function == Function::kOr) return FoldLogic(std::move(e));
  if (e->function == Function::kCase) {
    e = FoldCase(std::move(e));
    // What is left may be the cast of one branch to the type of all.
    if (!IsFunction(*e, Function::kCast)) return e;
  }
  if (e->function == Function::kIsNull || e->function == Function::kIsNotNull) {
    if (!e->args[0]->nullable) return MakeBoolean(e->function == Function::kIsNotNull, e->position);
  }
  bool constant = true;
  bool null = false;
  for (const ExprPtr& a : e->args) {
    constant = constant && IsConstant(*a);
    null = null || IsNullConstant(*a);
  }
  // A NULL operand decides, whatever the others are.
  if (null && IsStrict(e->function)) return MakeNull(e->type, e->position);
  if (!constant) return e;
  Result<Value> value = EvaluateFunction(e->function, e->type, e->field, e->args);
  if (value.ok()) return MakeConstant(std::move(value).value(), e->position);
  if (may_skip) return e;
  return value.status().At(e->position);
}

}  // namespace tessera
