// Values of constants. If a function has an opcode for 128 bits, integers and decimals of any width are computed by it.
// The result is checked against the range of its type, as in the machine, so the two agree.
#include "compiler/query/evaluate.h"

#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>

#include "compiler/query/conversion.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/type_rules.h"
#include "vm/meaning/format.h"
#include "vm/meaning/lane_error.h"
#include "vm/meaning/math_meaning.h"
#include "vm/meaning/meaning.h"
#include "vm/meaning/text_meaning.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

namespace meaning = vm::meaning;
using vm::Lane;
using vm::LaneError;
using vm::Opcode;
using vm::Shape;

Status ErrorOf(LaneError error, const SqlType& type) {
  vm::Instruction in;
  in.p4 = vm::PackType(type);
  return vm::LaneErrorStatus(error, in);
}

/// The value as `type`, or the machine's error if it is out of range.
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
Result<Value> FloatValue(const SqlType& type, double v, Lane lane = {}) {
  if (lane.null) return Value::Null(type);
  if (type.id == TypeId::kReal) v = meaning::SingleF::Apply(v, lane);
  if (lane.error == LaneError::kRealOverflow) return ErrorOf(lane.error, type);
  return Value::Float(type, v);
}

// ---- Opcodes --------------------------------------------------------------------------------------------------------

/// A value in the form that an opcode of that class takes.
template <class T>
T As(const Value& v) {
  if constexpr (std::is_same_v<T, double>) {
    return v.f64;
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return v.text;
  } else {
    return static_cast<T>(IntegerOf(v));
  }
}

Result<Value> ResultOf(const SqlType& type, int128_t r, Lane lane) { return Narrow(type, r, lane); }
Result<Value> ResultOf(const SqlType& type, int64_t r, Lane lane) { return Narrow(type, r, lane); }
Result<Value> ResultOf(const SqlType& type, double r, Lane lane) {
  if (lane.error != LaneError::kNone) return ErrorOf(lane.error, type);
  return FloatValue(type, r, lane);
}

/// Calls one meaning, by the signature of its Apply. `a` are the arguments; a missing one is 0.
template <class R, class T>
Result<Value> Call(R (*apply)(T, Lane&), const SqlType& type, std::span<const ExprPtr> a) {
  Lane lane;
  const R r = apply(As<T>(a[0]->constant), lane);
  return ResultOf(type, r, lane);
}
template <class T>
Result<Value> Call(T (*apply)(T, T, Lane&), const SqlType& type, std::span<const ExprPtr> a) {
  Lane lane;
  const T r = apply(As<T>(a[0]->constant), a.size() > 1 ? As<T>(a[1]->constant) : T{0}, lane);
  return ResultOf(type, r, lane);
}
template <class T>
Result<Value> Call(T (*apply)(T, T, T, Lane&), const SqlType& type, std::span<const ExprPtr> a) {
  Lane lane;
  const T r = apply(As<T>(a[0]->constant), As<T>(a[1]->constant), As<T>(a[2]->constant), lane);
  return ResultOf(type, r, lane);
}
template <class T>
Result<Value> Call(bool (*apply)(T, T), const SqlType& type, std::span<const ExprPtr> a) {
  const Value &x = a[0]->constant, &y = a[1]->constant;
  if constexpr (std::is_same_v<T, int64_t>) {
    // Texts are equal if their identifiers are.
    if (x.type.storage() == StorageClass::kText) return Value::Int(type, apply(0, x.text == y.text ? 0 : 1) ? 1 : 0);
  }
  return Value::Int(type, apply(As<T>(x), As<T>(y)) ? 1 : 0);
}
Result<Value> Call(void (*apply)(std::string_view, std::string*), const SqlType& type, std::span<const ExprPtr> a) {
  Value result = Value::Text({});
  apply(a[0]->constant.text, &result.text);
  result.type = type;
  return result;
}
Result<Value> Call(int64_t (*apply)(std::string_view), const SqlType& type, std::span<const ExprPtr> a) {
  return Value::Int(type, apply(a[0]->constant.text));
}
Result<Value> Call(int64_t (*apply)(std::string_view, std::string_view), const SqlType& type,
                   std::span<const ExprPtr> a) {
  return Value::Int(type, apply(a[0]->constant.text, a[1]->constant.text));
}
Result<Value> Call(Result<int64_t> (*apply)(std::string_view, std::string_view), const SqlType& type,
                   std::span<const ExprPtr> a) {
  TESSERA_ASSIGN(const int64_t found, apply(a[0]->constant.text, a[1]->constant.text));
  return Value::Int(type, found);
}
/// Of a regular expression that is not a constant where the program runs.
template <class Third>
Result<Value> Call(Status (*apply)(std::string_view, std::string_view, Third, std::string*), const SqlType& type,
                   std::span<const ExprPtr> a) {
  Value result = Value::Text({});
  TESSERA_TRY(apply(a[0]->constant.text, a[1]->constant.text, As<Third>(a[2]->constant), &result.text));
  result.type = type;
  return result;
}
/// Texts of one to three arguments that may fail.
template <class... T, class F>
Result<Value> CallForText(F apply, const SqlType& type, std::span<const ExprPtr> a) {
  Value result = Value::Text({});
  Lane lane;
  [&]<size_t... k>(std::index_sequence<k...>) { apply(As<T>(a[k]->constant)..., &result.text, lane); }
  (std::index_sequence_for<T...>());
  if (lane.error != LaneError::kNone) return ErrorOf(lane.error, type);
  result.type = type;
  return result;
}
Result<Value> Call(void (*apply)(int64_t, std::string*, Lane&), const SqlType& type, std::span<const ExprPtr> a) {
  return CallForText<int64_t>(apply, type, a);
}
Result<Value> Call(void (*apply)(std::string_view, int64_t, std::string*, Lane&), const SqlType& type,
                   std::span<const ExprPtr> a) {
  return CallForText<std::string_view, int64_t>(apply, type, a);
}
Result<Value> Call(void (*apply)(std::string_view, std::string_view, std::string_view, std::string*, Lane&),
                   const SqlType& type, std::span<const ExprPtr> a) {
  return CallForText<std::string_view, std::string_view, std::string_view>(apply, type, a);
}
Result<Value> Call(void (*apply)(std::string_view, int64_t, std::string_view, std::string*, Lane&), const SqlType& type,
                   std::span<const ExprPtr> a) {
  return CallForText<std::string_view, int64_t, std::string_view>(apply, type, a);
}
Result<Value> Call(void (*apply)(std::string_view, std::string_view, int64_t, std::string*, Lane&), const SqlType& type,
                   std::span<const ExprPtr> a) {
  return CallForText<std::string_view, std::string_view, int64_t>(apply, type, a);
}

template <class Meaning, Shape kShape>
Result<Value> Evaluate(const SqlType& type, std::span<const ExprPtr> a) {
  if constexpr (kShape == Shape::TextConcat) {
    Value result = Value::Text(a[0]->constant.text + a[1]->constant.text);
    result.type = type;
    return result;
  } else if constexpr (requires { Call(&Meaning::Apply, type, a); }) {
    return Call(&Meaning::Apply, type, a);
  } else {
    return Status(ErrorCode::kInternal, "an opcode has no value for constants");
  }
}

/// The value that an opcode gives for constants, by its meaning.
Result<Value> EvaluateOpcode(Opcode op, const SqlType& type, std::span<const ExprPtr> args) {
  switch (op) {
#define OPCODE(Name, ShapeName, ...) \
  case Opcode::Name:                 \
    return Evaluate<meaning::Name, Shape::ShapeName>(type, args);
#include "vm/program/opcodes.def"
#undef OPCODE
    case Opcode::kCount:
      break;
  }
  return Status(ErrorCode::kInternal, "no such opcode");
}

Result<Value> ByOpcode(Function function, const SqlType& type, std::span<const ExprPtr> args) {
  const OpcodesByClass& opcodes = Info(function).opcodes;
  StorageClass storage = args[0]->constant.type.storage();
  if (storage == StorageClass::kInt && opcodes.wide != kNoOpcode) storage = StorageClass::kWide;
  return EvaluateOpcode(opcodes.For(storage), type, args);
}

// ---- Functions with code of their own -------------------------------------------------------------------------------

/// The value after the steps of a conversion, as one of `type`.
Result<Value> Convert(const Value& v, const SqlType& type, const ConversionSteps& steps) {
  using Kind = ConversionStep::Kind;
  double d = v.f64;
  int128_t x = v.type.IsFloat() ? 0 : IntegerOf(v);
  Lane lane;
  for (const ConversionStep& step : steps) {
    const int128_t f = step.factor;
    switch (step.kind) {
      case Kind::kTimes:
        x = meaning::MulW::Apply(x, f, lane);
        break;
      case Kind::kDivide:
        x = meaning::DivW::Apply(x, f, lane);
        break;
      case Kind::kDivideRound:
        x = meaning::DivRoundW::Apply(x, f, lane);
        break;
      case Kind::kDivideDown:
        x = meaning::FloorDivW::Apply(x, f, lane);
        break;
      case Kind::kRemainder:
        x -= meaning::FloorDivW::Apply(x, f, lane) * f;
        break;
      case Kind::kNegate:
        x = meaning::RSubW::Apply(x, 0, lane);
        break;
      case Kind::kZero:
        x = 0;
        break;
      case Kind::kToFloat:
        d = meaning::WToF::Apply(x, lane);
        break;
      case Kind::kToInteger:
        x = meaning::FToI::Apply(d, lane);
        break;
      case Kind::kToExact:
        x = meaning::FToW::Apply(d, lane);
        break;
      case Kind::kFloatTimes:
        d = meaning::MulF::Apply(d, static_cast<double>(f), lane);
        break;
      case Kind::kFloatDivide:
        d = meaning::DivF::Apply(d, static_cast<double>(f), lane);
        break;
      case Kind::kFloatRound:
        d = meaning::RoundF::Apply(d, lane);
        break;
      case Kind::kFloatRoundDigits:
        d = meaning::RoundDigitsF::Apply(d, step.digits, lane);
        break;
      case Kind::kFloatFloor:
        d = meaning::FloorF::Apply(d, lane);
        break;
      case Kind::kFloatCeil:
        d = meaning::CeilF::Apply(d, lane);
        break;
      case Kind::kSingle:
        d = meaning::SingleF::Apply(d, lane);
        break;
    }
  }
  return type.IsFloat() ? FloatValue(type, d, lane) : Narrow(type, x, lane);
}

Result<Value> Substring(const SqlType& type, std::span<const ExprPtr> args) {
  const bool has_length = args.size() > 2;
  const int64_t length = has_length ? args[2]->constant.i64 : 0;
  if (length < 0) return ErrorOf(LaneError::kNegativeLength, type);
  const auto piece = type.id == TypeId::kBytea ? vm::Subbytes : vm::Substring;
  Value result = Value::Text(std::string(piece(args[0]->constant.text, args[1]->constant.i64, has_length, length)));
  result.type = type;
  return result;
}

Result<Value> Extract(const SqlType& type, DateField field, const Value& a) {
  if (type.id == TypeId::kDouble) {
    return Value::Float(type, static_cast<double>(vm::FloorMod(a.i64, 60'000'000)) / 1e6);
  }
  Lane lane;
  return Value::Int(type, a.type.id == TypeId::kDate ? meaning::DatePartD::Apply(a.i64, static_cast<int>(field), lane)
                                                     : meaning::DatePartT::Apply(a.i64, static_cast<int>(field), lane));
}

/// REQUIRES: the second argument is a regular expression.
Result<Value> ByRegex(Function function, const SqlType& type, std::span<const ExprPtr> args) {
  const std::string& s = args[0]->constant.text;
  const vm::Regex regex(args[1]->constant.text);
  const auto number = [&](size_t i) { return static_cast<int>(args[i]->constant.i64); };
  Value result = Value::Text({});
  result.type = type;
  Lane lane;
  switch (function) {
    case Function::kRegexCount:
      return Value::Int(type, meaning::RegexCountT::Apply(regex, s));
    case Function::kRegexPlace:
      return Value::Int(type, meaning::RegexPlaceT::Apply(regex, s));
    case Function::kRegexPart:
      result.null = !meaning::RegexPartT::Apply(regex, s, number(2), number(3), &result.text);
      return result;
    case Function::kRegexReplace:
      meaning::RegexReplaceT::Apply(regex, s, args[2]->constant.text, number(3) != 0, &result.text, lane);
      if (lane.error != LaneError::kNone) return ErrorOf(lane.error, type);
      return result;
    default:
      return Status(ErrorCode::kInternal, "a function of regular expressions has no value for constants");
  }
}

/// REQUIRES: the second argument is the name of a time zone.
Result<Value> InZone(Function function, const SqlType& type, std::span<const ExprPtr> args) {
  TESSERA_ASSIGN(const TimeZone* const zone, FindTimeZone(args[1]->constant.text));
  const Value& a = args[0]->constant;
  Lane lane;
  switch (function) {
    case Function::kLocalTime:
      return Narrow(type, meaning::ZoneLocalI::Apply(*zone, a.i64, lane), lane);
    case Function::kMomentOfLocal:
      return Narrow(type, meaning::ZoneMomentI::Apply(*zone, a.i64, lane), lane);
    case Function::kZonedText: {
      Value result = Value::Text({});
      meaning::ZoneTextT::Apply(*zone, a.i64, &result.text);
      return result;
    }
    case Function::kZonedMoment: {
      const Result<int64_t> moment = meaning::ZoneParseT::Apply(*zone, a.text);
      if (moment.ok()) return Value::Int(type, *moment);
      return args.size() > 2 ? Result<Value>(Value::Null(type)) : moment.status();
    }
    default:
      return Status(ErrorCode::kInternal, "a function of time zones has no value for constants");
  }
}

/// An opcode of an interval or to one, by the signature of its meaning.
template <class R, class... T, class F>
Result<Value> CallInOrder(F apply, const SqlType& type, std::span<const ExprPtr> args) {
  Lane lane;
  const R r = [&]<size_t... k>(std::index_sequence<k...>) { return apply(As<T>(args[k]->constant)..., lane); }
  (std::index_sequence_for<T...>());
  return ResultOf(type, r, lane);
}

Result<Value> OfInterval(Function function, const SqlType& type, std::span<const ExprPtr> args) {
  switch (Info(function).opcodes.For(args[0]->constant.type.storage())) {
#define TESSERA_CASE(Name, R, ...) \
  case Opcode::Name:               \
    return CallInOrder<R, __VA_ARGS__>(&meaning::Name::Apply, type, args);
    TESSERA_CASE(AddIntervalW, int128_t, int128_t, int128_t)
    TESSERA_CASE(SubIntervalW, int128_t, int128_t, int128_t)
    TESSERA_CASE(FloorDivW, int128_t, int128_t, int128_t)
    TESSERA_CASE(AddIntervalT, int64_t, int64_t, int128_t)
    TESSERA_CASE(SubIntervalT, int64_t, int64_t, int128_t)
    TESSERA_CASE(BetweenT, int128_t, int64_t, int64_t)
    TESSERA_CASE(AgeT, int128_t, int64_t, int64_t)
    TESSERA_CASE(TimesIntervalF, int128_t, double, int128_t)
    TESSERA_CASE(ByIntervalF, int128_t, double, int128_t)
    TESSERA_CASE(MakeIntervalI, int128_t, int64_t, int64_t, int64_t)
    TESSERA_CASE(IntervalMonthsW, int64_t, int128_t)
    TESSERA_CASE(IntervalDaysW, int64_t, int128_t)
    TESSERA_CASE(IntervalMicrosW, int64_t, int128_t)
    TESSERA_CASE(JustifyHoursW, int128_t, int128_t)
    TESSERA_CASE(JustifyDaysW, int128_t, int128_t)
    TESSERA_CASE(JustifyIntervalW, int128_t, int128_t)
#undef TESSERA_CASE
    default:
      return Status(ErrorCode::kInternal, "a function of intervals has no value for constants");
  }
}

bool IsEqual(const Value& a, const Value& b) {
  switch (a.type.storage()) {
    case StorageClass::kFloat:
      return meaning::FilterEqF::Apply(a.f64, b.f64);
    case StorageClass::kText:
      return a.text == b.text;
    default:
      return meaning::FilterEqW::Apply(IntegerOf(a), IntegerOf(b));
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
    } else if (IsEqual(x, a->constant)) {
      return Value::Int(type, 1);
    }
  }
  return null ? Value::Null(type) : Value::Int(type, 0);
}

}  // namespace

int128_t IntegerOf(const Value& v) { return IsWide(v.type) ? v.wide : v.i64; }

Value FromInteger(const SqlType& type, int128_t v) {
  return IsWide(type) ? Value::Wide(type, v) : Value::Int(type, Low64(v));
}

Result<Value> EvaluateCast(const Value& v, const SqlType& type) {
  if (v.null) return Value::Null(type);
  if (v.type == type) return v;
  const SqlType& from = v.type;
  if (type.id == TypeId::kText) {
    Value text = v;
    text.text = ToText(v);
    text.type = type;
    if (type.length > 0) text.text.resize(vm::CharacterOffset(text.text, type.length));
    return text;
  }
  if (from.id == TypeId::kText) return ParseValue(v.text, type);
  if (type.id == TypeId::kBoolean) return Value::Int(type, IntegerOf(v) != 0 ? 1 : 0);
  // Digits beyond 53 bits would be rounded twice, by the machine, too; a literal is read as it is written.
  constexpr int128_t kExact = int128_t{1} << 53;
  if (type.IsFloat() && from.scale > 0 && (IntegerOf(v) > kExact || IntegerOf(v) < -kExact))
    return ParseValue(ToText(v), type);
  return Convert(v, type, CastSteps(from, type));
}

Result<Value> EvaluateFunction(Function function, const SqlType& type, DateField field, std::span<const ExprPtr> args) {
  const FunctionInfo& info = Info(function);
  if (info.IsStrict()) {
    for (const ExprPtr& a : args) {
      if (a->constant.null) return Value::Null(type);
    }
  }
  const Value& a = args[0]->constant;
  switch (info.translation) {
    case Translation::kOpcode:
    case Translation::kComparison:
      return ByOpcode(function, type, args);
    case Translation::kCharacter:
      return EvaluateOpcode(Opcode::ChrT, type, args);
    case Translation::kMath: {
      const auto math = static_cast<int>(MathOf(function));
      Lane lane;
      const double r = args.size() == 1 ? meaning::MathF::Apply(a.f64, math, lane)
                                        : meaning::MathPairF::Apply(a.f64, args[1]->constant.f64, math, lane);
      return ResultOf(type, r, lane);
    }
    case Translation::kRounding:
      return Convert(a, type,
                     RoundingSteps(function, a.type, type, args.size() > 1 ? &args[1]->constant.i64 : nullptr));
    case Translation::kCast: {
      Result<Value> value = EvaluateCast(a, type);
      if (!value.ok() && function == Function::kTryCast) return Value::Null(type);
      return value;
    }
    case Translation::kSubstring:
      return Substring(type, args);
    case Translation::kExtract:
      return Extract(type, field, a);
    case Translation::kAddMonths:
      return EvaluateOpcode(a.type.id == TypeId::kDate ? Opcode::AddMonthsD : Opcode::AddMonthsT, type, args);
    case Translation::kNegation:
      return Value::Int(type, a.i64 == 0 ? 1 : 0);
    case Translation::kNullTest:
      return Value::Int(type, a.null == (function == Function::kIsNull) ? 1 : 0);
    case Translation::kInList:
      return EvaluateIn(type, args);
    case Translation::kLike:
      if (function == Function::kRegexMatch)
        return Value::Int(type, vm::Regex(args[1]->constant.text).Matches(a.text) ? 1 : 0);
      return Value::Int(type, vm::LikeMatches(a.text, args[1]->constant.text) ? 1 : 0);
    case Translation::kInterval:
      return OfInterval(function, type, args);
    case Translation::kZone:
      return InZone(function, type, args);
    case Translation::kRegex:
      return ByRegex(function, type, args);
    case Translation::kFormat: {
      const auto language = static_cast<vm::Format::Language>(args[2]->constant.i64);
      Value result = Value::Text({});
      vm::Format(args[1]->constant.text, a.type, language).Append(a, &result.text);
      return result;
    }
    case Translation::kJunction:
    case Translation::kCase:
    case Translation::kRandom:
      break;  // Fold takes them apart without this
  }
  return Status(ErrorCode::kInternal, "a function of constants cannot be folded");
}

}  // namespace tessera
