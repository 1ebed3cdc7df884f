// Binding TRY_CAST, which gives NULL where CAST is an error.
#include <limits>

#include "compiler/bind/expression_binder.h"
#include "compiler/query/evaluate.h"
#include "vm/meaning/meaning.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);

/// What ParseBytea takes: \x and pairs of hexadecimal digits, or bytes, where \\ is one and \ooo an octal number.
constexpr const char* kByteaPattern = R"(\A(?:\\x(?:\s*[0-9A-Fa-f]{2})*\s*|(?:[^\\]|\\\\|\\[0-3][0-7][0-7])*)\z)";

}  // namespace

Result<ExprPtr> ExpressionBinder::BindTryCast(ExprPtr e, const SqlType& type, int position) {
  const SqlType from = e->type;
  if (IsConstant(*e)) {
    Result<ExprPtr> value = Cast(std::move(e), type);
    return value.ok() ? std::move(value) : MakeNull(type, position);
  }
  if (const TimeZone* const zone = ZoneOf(*context_); zone != nullptr && type.id == TypeId::kTimestampTz) {
    if (from.id != TypeId::kText) return Cast(std::move(e), type);
    std::vector<ExprPtr> args = ExprList(std::move(e), MakeConstant(Value::Text(zone->name()), position),
                                         MakeConstant(Value::Int(kBoolean, 1), position));
    return Folded(MakeFunction(Function::kZonedMoment, type, position, std::move(args)));
  }
  const bool to_local = type.id == TypeId::kDate || type.id == TypeId::kTimestamp;
  if (from.id == TypeId::kTimestampTz && !to_local) return Cast(std::move(e), type);
  if (from.id == TypeId::kText && (type.id == TypeId::kBytea || type.id == TypeId::kEnum)) {
    // CASE WHEN the text is one of the type THEN CAST(x) END.
    ExprPtr good;
    TESSERA_ASSIGN(ExprPtr x, Copy(*e));
    if (type.id == TypeId::kBytea) {
      ExprPtr pattern = MakeConstant(Value::Text(kByteaPattern), position);
      TESSERA_ASSIGN(good, BindMatch(std::move(x), std::move(pattern), position));
    } else {
      std::vector<ExprPtr> labels;
      for (const std::string& label : EnumOf(type).labels) labels.push_back(MakeConstant(Value::Text(label), position));
      if (labels.empty()) return MakeNull(type, position);
      TESSERA_ASSIGN(good, InList(std::move(x), std::move(labels), position));
    }
    ++may_skip_;
    ExprPtr value = MakeCast(std::move(e), type);
    value->position = position;
    TESSERA_ASSIGN(value, Folded(std::move(value)));
    --may_skip_;
    return Folded(MakeFunction(Function::kCase, type, position,
                               ExprList(std::move(good), std::move(value), MakeNull(type, position))));
  }
  if (from.id == TypeId::kText && type.id != TypeId::kText)
    return Folded(MakeFunction(Function::kTryCast, type, position, ExprList(std::move(e))));

  // Casts of numbers and moments fail where the type does not hold them: CASE WHEN x >= least AND x <= greatest THEN
  // CAST(x) END.
  ExprPtr fits;
  const auto require = [&](Function compare, ExprPtr x, Value bound) -> Status {
    TESSERA_ASSIGN(x, Comparison(compare, std::move(x), MakeConstant(std::move(bound), position), position));
    if (fits != nullptr) {
      TESSERA_ASSIGN(x,
                     Folded(MakeFunction(Function::kAnd, kBoolean, position, ExprList(std::move(fits), std::move(x)))));
    }
    fits = std::move(x);
    return Status::Ok();
  };
  const bool to_exact = type.IsInteger() || type.id == TypeId::kDecimal;
  if (from.id == TypeId::kTimestampTz && to_local) {
    const TimeZone* const zone = ZoneOf(*context_);
    for (const bool upper : {false, true}) {
      const int64_t local = upper ? (vm::kLastDay + 1) * vm::kMicrosPerDay - 1 : vm::kFirstDay * vm::kMicrosPerDay;
      TESSERA_ASSIGN(ExprPtr x, Copy(*e));
      TESSERA_TRY(require(upper ? Function::kLe : Function::kGe, std::move(x),
                          Value::Int(from, zone != nullptr ? zone->MomentOf(local) : local)));
    }
  } else if (from.IsFloat() && to_exact) {
    // Decimals round half away from zero, integers to even. Bounds from 2^53 on are whole, and beyond the type.
    const IntegerRange range = RangeOf(type);
    const bool decimal = type.id == TypeId::kDecimal;
    for (const bool upper : {false, true}) {
      TESSERA_ASSIGN(ExprPtr x, Copy(*e));
      x = MakeCast(std::move(x), kDouble);
      if (type.scale > 0) {
        ExprPtr scale = MakeConstant(Value::Float(kDouble, static_cast<double>(PowerOf10(type.scale))), position);
        TESSERA_ASSIGN(x, Infix("*", std::move(x), std::move(scale), position));
      }
      const double bound = upper ? static_cast<double>(range.greatest) + 0.5 : static_cast<double>(range.least) - 0.5;
      TESSERA_TRY(require(upper     ? Function::kLt
                          : decimal ? Function::kGt
                                    : Function::kGe,
                          std::move(x), Value::Float(kDouble, bound)));
    }
  } else if (from.id == TypeId::kDouble && type.id == TypeId::kReal) {
    constexpr double kRoundsToInfinity = 0x1.ffffffp127;
    TESSERA_ASSIGN(ExprPtr size, Copy(*e));
    TESSERA_ASSIGN(size, Folded(MakeFunction(Function::kAbs, kDouble, position, ExprList(std::move(size)))));
    TESSERA_ASSIGN(ExprPtr again, Copy(*size));
    ExprPtr infinity = MakeConstant(Value::Float(kDouble, std::numeric_limits<double>::infinity()), position);
    TESSERA_ASSIGN(ExprPtr infinite, Comparison(Function::kGe, std::move(again), std::move(infinity), position));
    TESSERA_TRY(require(Function::kLt, std::move(size), Value::Float(kDouble, kRoundsToInfinity)));
    TESSERA_ASSIGN(
        fits, Folded(MakeFunction(Function::kOr, kBoolean, position, ExprList(std::move(fits), std::move(infinite)))));
  } else if ((from.IsInteger() || from.id == TypeId::kDecimal) && to_exact) {
    const IntegerRange has = RangeOf(from), wants = RangeOf(type);
    const int digits = static_cast<int>(type.scale) - static_cast<int>(from.scale);
    const int128_t factor = PowerOf10(digits < 0 ? -digits : digits);
    const auto bound = [&](Function compare, int128_t wanted, int128_t most, int sign) -> Status {
      int128_t x = wanted / factor;
      if (digits < 0) {
        if (sign * wanted > sign * (most / factor)) return Status::Ok();
        x = wanted * factor + sign * (factor / 2 - 1);  // what rounds to it
      }
      if (sign * x >= sign * most) return Status::Ok();  // all values are within it
      TESSERA_ASSIGN(ExprPtr copy, Copy(*e));
      return require(compare, std::move(copy), FromInteger(from, x));
    };
    TESSERA_TRY(bound(Function::kGe, wants.least, has.least, -1));
    TESSERA_TRY(bound(Function::kLe, wants.greatest, has.greatest, 1));
  }
  ++may_skip_;
  e->position = position;
  TESSERA_ASSIGN(ExprPtr cast, Cast(std::move(e), type));
  --may_skip_;
  if (fits == nullptr) return cast;
  return Folded(MakeFunction(Function::kCase, type, position,
                             ExprList(std::move(fits), std::move(cast), MakeNull(type, position))));
}

}  // namespace tessera
