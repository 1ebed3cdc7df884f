// Intervals: their text, their constants, INTERVAL '90' day.
#include <string>

#include "compiler/bind/expression_binder.h"
#include "compiler/query/fold.h"
#include "compiler/query/type_rules.h"
#include "tablet/values/interval.h"
#include "vm/meaning/meaning.h"

namespace tessera {
namespace {

const SqlType kInterval = SqlType::Of(TypeId::kInterval);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);
const SqlType kTimestamp = SqlType::Of(TypeId::kTimestamp);

bool IsUntyped(const Expr& e) { return e.type.id == TypeId::kNull; }

}  // namespace

Value IntervalOf(const Interval& v) { return Value::Wide(kInterval, PackInterval(v)); }

ExprPtr OrderedForm(ExprPtr e) {
  if (e->type.id != TypeId::kInterval) return e;
  const int position = e->position;
  const SqlType wide = SqlType::Decimal(38, 0);
  ExprPtr unit = MakeConstant(Value::Wide(wide, int128_t{1} << kLengthShift), position);
  ExprPtr length = MakeFunction(Function::kIntervalLength, wide, position, ExprList(std::move(e), std::move(unit)));
  const int at = length->position;
  Result<ExprPtr> folded = Fold(std::move(length), false);
  return folded.ok() ? std::move(folded).value() : MakeNull(wide, at);
}

Result<ExprPtr> ExpressionBinder::BindInterval(const ParseNode& type_name, ExprPtr text) {
  const int position = text->position;
  std::string_view field;
  if (const ParseNode* typmods = type_name.Get(Field::k_typmods)) {
    // The grammar gives a mask of fields, 1 << code of each (PostgreSQL's datetime.h).
    const int64_t mask =
        typmods->first()->Get(Field::k_ival) != nullptr ? IntegerOfConstant(context_->sql, *typmods->first()) : 0;
    switch (mask) {
      case 1 << 2:
        field = "year";
        break;
      case 1 << 1:
        field = "month";
        break;
      case 1 << 3:
        field = "day";
        break;
      case 1 << 10:
        field = "hour";
        break;
      case 1 << 11:
        field = "minute";
        break;
      case 1 << 12:
        field = "second";
        break;
      case 0x7FFF:
        break;  // INTERVAL(p)
      default:
        return Unsupported("INTERVAL with a range of fields is not supported", type_name.location(),
                           "Write INTERVAL '1 year 2 months'.");
    }
  }
  if (IsUntyped(*text) && text->constant.null) return Resolve(std::move(text), SqlType::Of(TypeId::kInterval));
  const bool is_text =
      IsConstant(*text) && (IsUntyped(*text) || text->type.id == TypeId::kText) && !text->constant.null;
  if (text->type.id == TypeId::kInterval) return text;
  if (is_text) {
    Result<Interval> interval = ParseInterval(text->constant.text, field);
    if (!interval.ok()) return interval.status().At(position);
    return MakeConstant(IntervalOf(*interval), position);
  }
  if (text->type.id != TypeId::kText)
    return SqlError(ErrorKind::kCannotCoerce, "cannot cast type " + text->type.ToString() + " to INTERVAL", position);
  if (!field.empty())
    return Unsupported("INTERVAL with a field of a text that is not a constant is not supported", position);
  return Folded(MakeCast(std::move(text), kInterval));
}

// ---- Arithmetic

Result<ExprPtr> ExpressionBinder::Part(Function part, const Expr& interval, int position) {
  TESSERA_ASSIGN(ExprPtr x, Copy(interval));
  return Folded(MakeFunction(part, kBigint, position, ExprList(std::move(x))));
}

Result<ExprPtr> ExpressionBinder::BindIntervalArithmetic(Function function, ExprPtr left, ExprPtr right, int position) {
  if (function == Function::kTimesInterval || function == Function::kByInterval) {
    // The number comes first.
    if (left->type.id == TypeId::kInterval) std::swap(left, right);
    TESSERA_ASSIGN(left, Folded(MakeCast(std::move(left), kDouble)));
  }
  return Folded(MakeFunction(function, kInterval, position, ExprList(std::move(left), std::move(right))));
}

Result<ExprPtr> ExpressionBinder::AddInterval(ExprPtr moment, ExprPtr interval, bool negative, int position) {
  if (moment->type.id == TypeId::kTime) {
    const SqlType time = moment->type;
    TESSERA_ASSIGN(ExprPtr micros, Part(Function::kIntervalMicros, *interval, position));
    // Around the clock: the remainder, made positive.
    TESSERA_ASSIGN(micros, WithNumber("%", std::move(micros), vm::kMicrosPerDay, position));
    TESSERA_ASSIGN(micros, Less(std::move(micros), negative ? -1 : 1, position));
    TESSERA_ASSIGN(micros, WithNumber("+", std::move(micros), vm::kMicrosPerDay, position));
    TESSERA_ASSIGN(ExprPtr sum, Folded(MakeFunction(Function::kAdd, kBigint, position,
                                                    ExprList(std::move(moment), std::move(micros)))));
    ExprPtr day = MakeConstant(Value::Int(kBigint, vm::kMicrosPerDay), position);
    return Folded(MakeFunction(Function::kMod, time, position, ExprList(std::move(sum), std::move(day))));
  }
  const Function function = negative ? Function::kMomentDifference : Function::kMomentSum;
  if (moment->type.id == TypeId::kDate) {
    TESSERA_ASSIGN(moment, Folded(MakeCast(std::move(moment), kTimestamp)));
  }
  const SqlType type = moment->type;
  if (type.id != TypeId::kTimestampTz)
    return Folded(MakeFunction(function, type, position, ExprList(std::move(moment), std::move(interval))));
  // Months and days by the calendar of the time zone, then the microseconds.
  TESSERA_ASSIGN(ExprPtr months, Part(Function::kIntervalMonths, *interval, position));
  TESSERA_ASSIGN(ExprPtr days, Part(Function::kIntervalDays, *interval, position));
  TESSERA_ASSIGN(ExprPtr micros, Part(Function::kIntervalMicros, *interval, position));
  ExprPtr none = MakeConstant(Value::Int(kBigint, 0), position);
  TESSERA_ASSIGN(ExprPtr calendar, Folded(MakeFunction(Function::kMakeInterval, kInterval, position,
                                                       ExprList(std::move(months), std::move(days), std::move(none)))));
  TESSERA_ASSIGN(moment, Cast(std::move(moment), kTimestamp));
  TESSERA_ASSIGN(
      moment, Folded(MakeFunction(function, kTimestamp, position, ExprList(std::move(moment), std::move(calendar)))));
  TESSERA_ASSIGN(moment, Cast(std::move(moment), type));
  TESSERA_ASSIGN(micros, Less(std::move(micros), negative ? -1 : 1, position));
  return AddNumber(Function::kAddMicros, std::move(moment), std::move(micros), position);
}

Result<ExprPtr> ExpressionBinder::BindAge(std::vector<ExprPtr> args, int position) {
  if (args.size() == 1) {
    TESSERA_ASSIGN(ExprPtr today, Moment(TypeId::kDate, position));
    args.insert(args.begin(), std::move(today));
  }
  for (ExprPtr& a : args) {
    TESSERA_ASSIGN(a, Cast(std::move(a), kTimestamp));
  }
  return Folded(MakeFunction(Function::kAge, kInterval, position, std::move(args)));
}

/// A field of an interval. Years, months and what is made of them come from its months, hours and less from its
/// microseconds, each with its sign.
Result<ExprPtr> ExpressionBinder::BindIntervalField(std::string_view field, const Expr& interval, int position) {
  const auto of = [&](Function part, int64_t divisor, int64_t modulus) -> Result<ExprPtr> {
    TESSERA_ASSIGN(ExprPtr x, Part(part, interval, position));
    if (divisor != 1) {
      TESSERA_ASSIGN(x, WithNumber("/", std::move(x), divisor, position));
    }
    if (modulus == 0) return x;
    return WithNumber("%", std::move(x), modulus, position);
  };
  const auto seconds = [&](ExprPtr micros, double unit) {
    return Infix("/", std::move(micros), MakeConstant(Value::Float(kDouble, unit), position), position);
  };
  struct Row {
    std::string_view name;
    Function part;
    int64_t divisor, modulus;
  };
  constexpr Row kRows[] = {
      {"millennium", Function::kIntervalMonths, 12000, 0},
      {"century", Function::kIntervalMonths, 1200, 0},
      {"decade", Function::kIntervalMonths, 120, 0},
      {"year", Function::kIntervalMonths, 12, 0},
      {"month", Function::kIntervalMonths, 1, 12},
      {"day", Function::kIntervalDays, 1, 0},
      {"hour", Function::kIntervalMicros, 3'600'000'000, 0},
      {"minute", Function::kIntervalMicros, 60'000'000, 60},
      {"microseconds", Function::kIntervalMicros, 1, 60'000'000},
  };
  for (const Row& row : kRows) {
    if (row.name == field) return of(row.part, row.divisor, row.modulus);
  }
  if (field == "quarter") {
    TESSERA_ASSIGN(ExprPtr month, of(Function::kIntervalMonths, 1, 12));
    TESSERA_ASSIGN(month, WithNumber("/", std::move(month), 3, position));
    return WithNumber("+", std::move(month), 1, position);
  }
  if (field == "second" || field == "milliseconds") {
    TESSERA_ASSIGN(ExprPtr micros, of(Function::kIntervalMicros, 1, 60'000'000));
    return seconds(std::move(micros), field == "second" ? 1e6 : 1e3);
  }
  if (field == "epoch") {
    // As PostgreSQL: years of 365.25 days, months of 30.
    TESSERA_ASSIGN(ExprPtr sum, of(Function::kIntervalMonths, 12, 0));
    TESSERA_ASSIGN(sum, WithNumber("*", std::move(sum), 31'557'600, position));
    TESSERA_ASSIGN(ExprPtr months, of(Function::kIntervalMonths, 1, 12));
    TESSERA_ASSIGN(months, WithNumber("*", std::move(months), 2'592'000, position));
    TESSERA_ASSIGN(ExprPtr days, of(Function::kIntervalDays, 1, 0));
    TESSERA_ASSIGN(days, WithNumber("*", std::move(days), 86'400, position));
    TESSERA_ASSIGN(sum, Infix("+", std::move(sum), std::move(months), position));
    TESSERA_ASSIGN(sum, Infix("+", std::move(sum), std::move(days), position));
    TESSERA_ASSIGN(ExprPtr micros, of(Function::kIntervalMicros, 1, 0));
    TESSERA_ASSIGN(micros, seconds(std::move(micros), 1e6));
    return Infix("+", std::move(sum), std::move(micros), position);
  }
  return SqlError("unit \"" + std::string(field) + "\" not supported for type INTERVAL", position,
                  "An INTERVAL has years, months, days, hours, minutes and seconds.");
}

/// Sum and mean of intervals: part by part.
Result<ExprPtr> ExpressionBinder::BindIntervalSum(bool mean, ExprPtr interval, const AggregateLeaf& leaf,
                                                  int position) {
  std::vector<ExprPtr> parts;
  for (const Function part : {Function::kIntervalMonths, Function::kIntervalDays, Function::kIntervalMicros}) {
    TESSERA_ASSIGN(ExprPtr x, Part(part, *interval, position));
    TESSERA_ASSIGN(x, leaf(AggregateFunction::kSum, std::move(x), kBigint));
    parts.push_back(std::move(x));
  }
  ExprPtr sum = MakeFunction(Function::kMakeInterval, kInterval, position, std::move(parts));
  if (!mean) return sum;
  TESSERA_ASSIGN(ExprPtr count, leaf(AggregateFunction::kCount, std::move(interval), kBigint));
  return BindIntervalArithmetic(Function::kByInterval, std::move(sum), std::move(count), position);
}

/// The same with DISTINCT: of lengths, because intervals of one length are one value, shown as justify_interval shows it.
Result<ExprPtr> ExpressionBinder::BindDifferentIntervalsSum(bool mean, ExprPtr interval, const AggregateLeaf& leaf,
                                                            int position) {
  ExprPtr length = OrderedForm(std::move(interval));
  TESSERA_ASSIGN(ExprPtr again, Copy(*length));
  TESSERA_ASSIGN(ExprPtr micros, leaf(AggregateFunction::kSum, std::move(length), SqlType::Decimal(38, 0)));
  TESSERA_ASSIGN(micros, Folded(MakeCast(std::move(micros), kBigint)));
  ExprPtr months = MakeConstant(Value::Int(kBigint, 0), position), days = months->Clone();
  ExprPtr sum = MakeFunction(Function::kMakeInterval, kInterval, position,
                             ExprList(std::move(months), std::move(days), std::move(micros)));
  if (mean) {
    TESSERA_ASSIGN(ExprPtr count, leaf(AggregateFunction::kCount, std::move(again), kBigint));
    TESSERA_ASSIGN(sum, BindIntervalArithmetic(Function::kByInterval, std::move(sum), std::move(count), position));
  }
  return Folded(MakeFunction(Function::kJustifyInterval, kInterval, position, ExprList(std::move(sum))));
}

}  // namespace tessera
