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

/// Casts of numbers and moments fail where the type does not hold them: CASE WHEN x >= least AND x <= greatest THEN CAST(x)
/// END. This is its condition.
class ExpressionBinder::CastCondition {
 public:
  CastCondition(ExpressionBinder* binder, const Expr& e, const SqlType& type, int position)
      : binder_(*binder), e_(e), type_(type), position_(position) {}

  /// nullptr: the type holds all values.
  Result<ExprPtr> Make() {
    const bool to_exact = type_.IsInteger() || type_.id == TypeId::kDecimal;
    const bool to_local = type_.id == TypeId::kDate || type_.id == TypeId::kTimestamp;
    if (e_.type.id == TypeId::kTimestampTz && to_local) {
      TESSERA_TRY(RequireLocal());
    } else if (e_.type.IsFloat() && to_exact) {
      TESSERA_TRY(RequireExact());
    } else if (e_.type.id == TypeId::kDouble && type_.id == TypeId::kReal) {
      TESSERA_TRY(RequireReal());
    } else if ((e_.type.IsInteger() || e_.type.id == TypeId::kDecimal) && to_exact) {
      TESSERA_TRY(RequireFewerDigits());
    }
    return std::move(fits_);
  }

 private:
  Status Require(Function compare, ExprPtr x, Value bound) {
    TESSERA_ASSIGN(x, binder_.Comparison(compare, std::move(x), MakeConstant(std::move(bound), position_), position_));
    if (fits_ != nullptr) {
      TESSERA_ASSIGN(x, binder_.Folded(MakeFunction(Function::kAnd, kBoolean, position_,
                                                    ExprList(std::move(fits_), std::move(x)))));
    }
    fits_ = std::move(x);
    return Status::Ok();
  }

  /// Of moments that become a local date or time.
  Status RequireLocal() {
    const TimeZone* const zone = ZoneOf(*binder_.context_);
    for (const bool upper : {false, true}) {
      const int64_t local = upper ? (vm::kLastDay + 1) * vm::kMicrosPerDay - 1 : vm::kFirstDay * vm::kMicrosPerDay;
      TESSERA_ASSIGN(ExprPtr x, binder_.Copy(e_));
      TESSERA_TRY(Require(upper ? Function::kLe : Function::kGe, std::move(x),
                          Value::Int(e_.type, zone != nullptr ? zone->MomentOf(local) : local)));
    }
    return Status::Ok();
  }

  /// Of floats that become integers or decimals.
  Status RequireExact() {
    // Decimals round half away from zero, integers to even. Bounds from 2^53 on are whole, and beyond the type.
    const IntegerRange range = RangeOf(type_);
    const bool decimal = type_.id == TypeId::kDecimal;
    for (const bool upper : {false, true}) {
      TESSERA_ASSIGN(ExprPtr x, binder_.Copy(e_));
      x = MakeCast(std::move(x), kDouble);
      if (type_.scale > 0) {
        ExprPtr scale = MakeConstant(Value::Float(kDouble, static_cast<double>(PowerOf10(type_.scale))), position_);
        TESSERA_ASSIGN(x, binder_.Infix("*", std::move(x), std::move(scale), position_));
      }
      const double bound = upper ? static_cast<double>(range.greatest) + 0.5 : static_cast<double>(range.least) - 0.5;
      TESSERA_TRY(Require(upper     ? Function::kLt
                          : decimal ? Function::kGt
                                    : Function::kGe,
                          std::move(x), Value::Float(kDouble, bound)));
    }
    return Status::Ok();
  }

  /// Of DOUBLE that becomes REAL.
  Status RequireReal() {
    constexpr double kRoundsToInfinity = 0x1.ffffffp127;
    TESSERA_ASSIGN(ExprPtr size, binder_.Copy(e_));
    TESSERA_ASSIGN(size, binder_.Folded(MakeFunction(Function::kAbs, kDouble, position_, ExprList(std::move(size)))));
    TESSERA_ASSIGN(ExprPtr again, binder_.Copy(*size));
    ExprPtr infinity = MakeConstant(Value::Float(kDouble, std::numeric_limits<double>::infinity()), position_);
    TESSERA_ASSIGN(ExprPtr infinite,
                   binder_.Comparison(Function::kGe, std::move(again), std::move(infinity), position_));
    TESSERA_TRY(Require(Function::kLt, std::move(size), Value::Float(kDouble, kRoundsToInfinity)));
    TESSERA_ASSIGN(fits_, binder_.Folded(MakeFunction(Function::kOr, kBoolean, position_,
                                                      ExprList(std::move(fits_), std::move(infinite)))));
    return Status::Ok();
  }

  /// Of integers and decimals.
  Status RequireFewerDigits() {
    const IntegerRange has = RangeOf(e_.type), wants = RangeOf(type_);
    const int digits = static_cast<int>(type_.scale) - static_cast<int>(e_.type.scale);
    const int128_t factor = PowerOf10(digits < 0 ? -digits : digits);
    const auto bound = [&](Function compare, int128_t wanted, int128_t most, int sign) -> Status {
      int128_t x = wanted / factor;
      if (digits < 0) {
        if (sign * wanted > sign * (most / factor)) return Status::Ok();
        x = wanted * factor + sign * (factor / 2 - 1);  // what rounds to it
      }
      if (sign * x >= sign * most) return Status::Ok();  // all values are within it
      TESSERA_ASSIGN(ExprPtr copy, binder_.Copy(e_));
      return Require(compare, std::move(copy), FromInteger(e_.type, x));
    };
    TESSERA_TRY(bound(Function::kGe, wants.least, has.least, -1));
    TESSERA_TRY(bound(Function::kLe, wants.greatest, has.greatest, 1));
    return Status::Ok();
  }

  ExpressionBinder& binder_;
  const Expr& e_;
  const SqlType& type_;
  const int position_;
  ExprPtr fits_;
};

Result<ExprPtr> ExpressionBinder::TryTextAs(ExprPtr e, const SqlType& type, int position) {
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
  if (from.id == TypeId::kText && (type.id == TypeId::kBytea || type.id == TypeId::kEnum))
    return TryTextAs(std::move(e), type, position);
  if (from.id == TypeId::kText && type.id != TypeId::kText)
    return Folded(MakeFunction(Function::kTryCast, type, position, ExprList(std::move(e))));

  TESSERA_ASSIGN(ExprPtr fits, CastCondition(this, *e, type, position).Make());
  ++may_skip_;
  e->position = position;
  TESSERA_ASSIGN(ExprPtr cast, Cast(std::move(e), type));
  --may_skip_;
  if (fits == nullptr) return cast;
  return Folded(MakeFunction(Function::kCase, type, position,
                             ExprList(std::move(fits), std::move(cast), MakeNull(type, position))));
}

}  // namespace tessera
