// Binding functions of numbers and moments that are made of several others: WIDTH_BUCKET, MAKE_INTERVAL, MAKE_TIME and its
// kin, DATE_BIN, DATE_TRUNC of an interval.
#include <array>
#include <string>

#include "compiler/bind/expression_binder.h"
#include "vm/meaning/meaning.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);
const SqlType kText = SqlType::Text();
const SqlType kDate = SqlType::Of(TypeId::kDate);
const SqlType kTime = SqlType::Of(TypeId::kTime);
const SqlType kTimestamp = SqlType::Of(TypeId::kTimestamp);
const SqlType kTimestampTz = SqlType::Of(TypeId::kTimestampTz);
const SqlType kInterval = SqlType::Of(TypeId::kInterval);

constexpr int64_t kHour = 3'600'000'000, kMinute = 60'000'000, kSecond = 1'000'000;

bool IsNumber(const Expr& e) { return (ClassOf(e.type) & kClassNumber) != 0; }

ExprPtr Number(int64_t v, int position) { return MakeConstant(Value::Int(kBigint, v), position); }

}  // namespace

/// Seconds, perhaps with a fraction, as microseconds: BIGINT.
Result<ExprPtr> ExpressionBinder::Micros(ExprPtr seconds, int position) {
  TESSERA_ASSIGN(ExprPtr micros, WithNumber("*", std::move(seconds), kSecond, position));
  return Folded(MakeCast(std::move(micros), kBigint));
}

/// CASE WHEN a < b AND n > 0 THEN CASE WHEN x < a THEN 0 WHEN x >= b THEN n + 1 ELSE (x - a) * n / (b - a) + 1 END and the
/// same mirrored. The quotient of exact numbers is exact: what is left over is taken away before.
Result<ExprPtr> ExpressionBinder::BindWidthBucket(std::vector<ExprPtr> args, int position) {
  const bool floats = args[0]->type.IsFloat() || args[1]->type.IsFloat() || args[2]->type.IsFloat();
  for (size_t i = 0; i < 4; ++i) {
    const SqlType type = i == 3 ? kBigint : floats ? kDouble : AsDecimal(args[i]->type);
    if (args[i]->type == type) continue;
    TESSERA_ASSIGN(args[i], Folded(MakeCast(std::move(args[i]), type)));
  }
  const Expr &x = *args[0], &a = *args[1], &b = *args[2], &n = *args[3];
  if (IsConstant(n) && !n.constant.null && n.constant.i64 <= 0)
    return SqlError(ErrorKind::kInvalidParameterValue, "count must be greater than zero", n.position,
                    "width_bucket(x, a, b, n) has n ranges.");
  const auto compare = [&](Function f, const Expr& left, const Expr& right) -> Result<ExprPtr> {
    TESSERA_ASSIGN(ExprPtr l, Copy(left));
    TESSERA_ASSIGN(ExprPtr r, Copy(right));
    return Comparison(f, std::move(l), std::move(r), position);
  };
  const auto difference = [&](const Expr& left, const Expr& right) -> Result<ExprPtr> {
    TESSERA_ASSIGN(ExprPtr l, Copy(left));
    TESSERA_ASSIGN(ExprPtr r, Copy(right));
    return Infix("-", std::move(l), std::move(r), position);
  };
  TESSERA_ASSIGN(ExprPtr empty, compare(Function::kEq, a, b));
  if (IsConstant(*empty) && !empty->constant.null && empty->constant.i64 != 0)
    return SqlError("lower bound cannot equal upper bound", position);
  const auto numbered = [&](ExprPtr e) -> Result<ExprPtr> {
    TESSERA_ASSIGN(e, WithNumber("+", std::move(e), 1, position));
    return Folded(MakeCast(std::move(e), kInteger));
  };
  std::vector<ExprPtr> ways;
  for (const bool up : {true, false}) {
    TESSERA_ASSIGN(ExprPtr ascending, compare(up ? Function::kLt : Function::kGt, a, b));
    const ExprPtr zero = Number(0, position);
    TESSERA_ASSIGN(ExprPtr some, compare(Function::kGt, n, *zero));
    TESSERA_ASSIGN(ascending, Folded(MakeFunction(Function::kAnd, kBoolean, position,
                                                  ExprList(std::move(ascending), std::move(some)))));
    TESSERA_ASSIGN(ExprPtr before, compare(up ? Function::kLt : Function::kGt, x, a));
    TESSERA_ASSIGN(ExprPtr behind, compare(up ? Function::kGe : Function::kLe, x, b));
    TESSERA_ASSIGN(ExprPtr last, Copy(n));
    TESSERA_ASSIGN(last, numbered(std::move(last)));
    TESSERA_ASSIGN(ExprPtr way, up ? difference(x, a) : difference(a, x));
    TESSERA_ASSIGN(ExprPtr width, up ? difference(b, a) : difference(a, b));
    TESSERA_ASSIGN(ExprPtr count, Copy(n));
    if (!floats) count = MakeCast(std::move(count), SqlType::Decimal(10, 0));
    TESSERA_ASSIGN(count, Folded(std::move(count)));
    TESSERA_ASSIGN(way, Infix("*", std::move(way), std::move(count), position));
    if (!floats) {
      TESSERA_ASSIGN(ExprPtr over, Copy(*way));
      TESSERA_ASSIGN(ExprPtr by, Copy(*width));
      TESSERA_ASSIGN(over, Infix("%", std::move(over), std::move(by), position));
      TESSERA_ASSIGN(way, Infix("-", std::move(way), std::move(over), position));
    }
    TESSERA_ASSIGN(ExprPtr range, Infix("/", std::move(way), std::move(width), position));
    TESSERA_ASSIGN(range, Folded(MakeFunction(floats ? Function::kFloor : Function::kRound, kDouble, position,
                                              ExprList(std::move(range)))));
    TESSERA_ASSIGN(range, Folded(MakeCast(std::move(range), kBigint)));
    TESSERA_ASSIGN(range, numbered(std::move(range)));
    std::vector<ExprPtr> branches = ExprList(std::move(before), MakeConstant(Value::Int(kInteger, 0), position),
                                             std::move(behind), std::move(last), std::move(range));
    TESSERA_ASSIGN(ExprPtr bucket, Folded(MakeFunction(Function::kCase, kInteger, position, std::move(branches))));
    ways.push_back(std::move(ascending));
    ways.push_back(std::move(bucket));
  }
  ways.push_back(MakeNull(kInteger, position));
  return Folded(MakeFunction(Function::kCase, kInteger, position, std::move(ways)));
}

Result<ExprPtr> ExpressionBinder::BindMakeInterval(const ParseNode& call) {
  const int position = call.location();
  const ParseNode* const list = call.Get(Field::k_args);
  constexpr std::string_view kNames[] = {"years", "months", "weeks", "days", "hours", "mins", "secs"};
  constexpr size_t kCount = std::size(kNames), kSecs = kCount - 1;
  std::array<ExprPtr, kCount> parts;
  size_t at = 0;
  for (const ParseNode* child = list == nullptr ? nullptr : list->first(); child != nullptr; child = child->next()) {
    size_t to = at++;
    const ParseNode* value = child;
    if (child->Is(Tag::kNamedArgExpr)) {
      const std::string_view name = child->Text(Field::k_name);
      for (to = 0; to < kCount && kNames[to] != name;) ++to;
      value = child->Get(Field::k_arg);
      if (to == kCount) {
        return SqlError("make_interval has no argument \"" + std::string(name) + "\"", child->location(),
                        "They are years, months, weeks, days, hours, mins and secs.");
      }
    }
    if (to >= kCount) return SqlError("make_interval takes at most 7 arguments", position);
    if (parts[to] != nullptr)
      return SqlError("argument \"" + std::string(kNames[to]) + "\" is given twice", child->location());
    TESSERA_ASSIGN(parts[to], Bind(*value));
    TESSERA_ASSIGN(parts[to], Resolve(std::move(parts[to]), to == kSecs ? kDouble : kInteger));
    if (to == kSecs ? !IsNumber(*parts[to]) : !parts[to]->type.IsInteger()) {
      return SqlError(
          "argument " + std::string(kNames[to]) + " of make_interval cannot be " + parts[to]->type.ToString(),
          value->FirstLocation(), to == kSecs ? "It is a number." : "It is an integer.");
    }
  }
  const auto times = [&](size_t i, int64_t n) -> Result<ExprPtr> {
    if (parts[i] == nullptr) return Number(0, position);
    if (i == kSecs) return Micros(std::move(parts[i]), position);
    TESSERA_ASSIGN(ExprPtr x, Folded(MakeCast(std::move(parts[i]), kBigint)));
    return n == 1 ? std::move(x) : WithNumber("*", std::move(x), n, position);
  };
  const auto sum = [&](size_t first, int64_t n, size_t second, int64_t m) -> Result<ExprPtr> {
    TESSERA_ASSIGN(ExprPtr x, times(first, n));
    TESSERA_ASSIGN(ExprPtr y, times(second, m));
    return Infix("+", std::move(x), std::move(y), position);
  };
  TESSERA_ASSIGN(ExprPtr months, sum(0, 12, 1, 1));
  TESSERA_ASSIGN(ExprPtr days, sum(2, 7, 3, 1));
  TESSERA_ASSIGN(ExprPtr micros, sum(4, kHour, 5, kMinute));
  TESSERA_ASSIGN(ExprPtr seconds, times(kSecs, 1));
  TESSERA_ASSIGN(micros, Infix("+", std::move(micros), std::move(seconds), position));
  return Folded(MakeFunction(Function::kMakeInterval, kInterval, position,
                             ExprList(std::move(months), std::move(days), std::move(micros))));
}

/// The microseconds of the day; numbers that are no time's give one that TIME does not hold.
Result<ExprPtr> ExpressionBinder::BindMakeTime(std::vector<ExprPtr> args, int position) {
  TESSERA_ASSIGN(args[2], Micros(std::move(args[2]), position));
  constexpr int64_t kGreatest[] = {23, 59, kMinute - 1}, kUnits[] = {kHour, kMinute, 1};
  ExprPtr wrong, sum;
  for (size_t i = 0; i < 3; ++i) {
    for (const bool below : {true, false}) {
      TESSERA_ASSIGN(ExprPtr x, Copy(*args[i]));
      TESSERA_ASSIGN(x, Comparison(below ? Function::kLt : Function::kGt, std::move(x),
                                   Number(below ? 0 : kGreatest[i], position), position));
      if (wrong != nullptr) {
        TESSERA_ASSIGN(
            x, Folded(MakeFunction(Function::kOr, kBoolean, position, ExprList(std::move(wrong), std::move(x)))));
      }
      wrong = std::move(x);
    }
    TESSERA_ASSIGN(ExprPtr part, Folded(MakeCast(std::move(args[i]), kBigint)));
    TESSERA_ASSIGN(part, WithNumber("*", std::move(part), kUnits[i], position));
    if (sum != nullptr) {
      TESSERA_ASSIGN(part, Infix("+", std::move(sum), std::move(part), position));
    }
    sum = std::move(part);
  }
  TESSERA_ASSIGN(ExprPtr micros,
                 Folded(MakeFunction(Function::kCase, kBigint, position,
                                     ExprList(std::move(wrong), Number(-1, position), std::move(sum)))));
  return Folded(MakeFunction(Function::kAdd, kTime, position, ExprList(std::move(micros), Number(0, position))));
}

/// x less what is left over of its distance from the origin.
Result<ExprPtr> ExpressionBinder::BindDateBin(std::string_view name, std::vector<ExprPtr>* arguments, int position) {
  std::vector<ExprPtr>& args = *arguments;
  const std::string called(name);
  TESSERA_ASSIGN(args[0], Resolve(std::move(args[0]), kInterval));
  const bool zoned =
      args[1]->type.id == TypeId::kTimestampTz || (args.size() > 2 && args[2]->type.id == TypeId::kTimestampTz);
  bool fits = args[0]->type.id == TypeId::kInterval;
  for (size_t i = 1; i < args.size(); ++i) {
    TESSERA_ASSIGN(args[i], Resolve(std::move(args[i]), zoned ? kTimestampTz : kTimestamp));
    fits = fits && (ClassOf(args[i]->type) & kClassMoment) != 0;
  }
  if (!fits) return ExprPtr();
  if (!IsConstant(*args[0])) {
    return Unsupported(called + " with a step that is not a constant is not supported", args[0]->position,
                       "Write an INTERVAL literal.");
  }
  const SqlType type = name == "time_bucket" ? args[1]->type : zoned ? kTimestampTz : kTimestamp;
  if (args[0]->constant.null) return MakeNull(type, position);
  const Interval step = UnpackInterval(args[0]->constant.wide);
  if (name == "time_bucket" && step.months != 0) {
    if (args.size() > 2 || step.days != 0 || step.micros != 0 || step.months < 0) {
      return Unsupported("this step of months in time_bucket is not supported", args[0]->position,
                         "Months stand alone, and without an origin.");
    }
    // Months from 2000-01 on, and what is left over of them.
    TESSERA_ASSIGN(ExprPtr date, Cast(std::move(args[1]), kDate));
    TESSERA_ASSIGN(date, BeginOf(DateUnit::kMonth, std::move(date), position));
    TESSERA_ASSIGN(ExprPtr months, FieldOf(DateField::kYear, *date, position));
    TESSERA_ASSIGN(months, WithNumber("-", std::move(months), 2000, position));
    TESSERA_ASSIGN(months, WithNumber("*", std::move(months), 12, position));
    TESSERA_ASSIGN(ExprPtr month, FieldOf(DateField::kMonth, *date, position));
    TESSERA_ASSIGN(months, Infix("+", std::move(months), std::move(month), position));
    TESSERA_ASSIGN(months, WithNumber("-", std::move(months), 1, position));
    TESSERA_ASSIGN(months, WithNumber("%", std::move(months), step.months, position));
    TESSERA_ASSIGN(months, WithNumber("+", std::move(months), step.months, position));
    TESSERA_ASSIGN(months, WithNumber("%", std::move(months), step.months, position));
    TESSERA_ASSIGN(months, Less(std::move(months), -1, position));
    TESSERA_ASSIGN(date, AddNumber(Function::kAddMonths, std::move(date), std::move(months), position));
    return Cast(std::move(date), type);
  }
  if (step.months != 0) {
    return SqlError("timestamps cannot be binned into intervals containing months or years", args[0]->position,
                    "date_trunc and time_bucket take months.");
  }
  int64_t micros = 0;
  const bool over = __builtin_mul_overflow(step.days, vm::kMicrosPerDay, &micros) ||
                    __builtin_add_overflow(micros, step.micros, &micros);
  if (over || micros <= 0)
    return SqlError(ErrorKind::kInvalidParameterValue, "stride must be greater than zero", args[0]->position);
  if (args.size() < 3) {
    constexpr int64_t kMonday = 10959;  // 2000-01-03
    args.push_back(MakeConstant(Value::Int(kTimestamp, kMonday * vm::kMicrosPerDay), position));
  }
  for (size_t i = 1; i < 3; ++i) {
    TESSERA_ASSIGN(args[i], Cast(std::move(args[i]), zoned ? kTimestampTz : kTimestamp));
  }
  TESSERA_ASSIGN(ExprPtr x, Copy(*args[1]));
  TESSERA_ASSIGN(ExprPtr rest, Difference(std::move(args[1]), std::move(args[2]), position));
  TESSERA_ASSIGN(rest, WithNumber("%", std::move(rest), micros, position));
  TESSERA_ASSIGN(rest, WithNumber("+", std::move(rest), micros, position));
  TESSERA_ASSIGN(rest, WithNumber("%", std::move(rest), micros, position));
  TESSERA_ASSIGN(rest, Less(std::move(rest), -1, position));
  TESSERA_ASSIGN(x, AddNumber(Function::kAddMicros, std::move(x), std::move(rest), position));
  return x->type == type ? std::move(x) : Cast(std::move(x), type);
}

Result<ExprPtr> ExpressionBinder::BeginOfInterval(DateUnit unit, const Expr& interval, int position) {
  const auto part = [&](Function f, int64_t multiple, bool kept) -> Result<ExprPtr> {
    if (!kept) return Number(0, position);
    TESSERA_ASSIGN(ExprPtr x, Part(f, interval, position));
    if (multiple == 1) return x;
    TESSERA_ASSIGN(x, WithNumber("/", std::move(x), multiple, position));
    return WithNumber("*", std::move(x), multiple, position);
  };
  const int64_t months = unit == DateUnit::kMillennium ? 12000
                         : unit == DateUnit::kCentury  ? 1200
                         : unit == DateUnit::kDecade   ? 120
                         : unit == DateUnit::kYear     ? 12
                         : unit == DateUnit::kQuarter  ? 3
                                                       : 1;
  const int64_t micros = unit == DateUnit::kHour          ? kHour
                         : unit == DateUnit::kMinute      ? kMinute
                         : unit == DateUnit::kSecond      ? kSecond
                         : unit == DateUnit::kMillisecond ? 1000
                                                          : 1;
  if (unit == DateUnit::kWeek) {
    return SqlError("unit \"week\" not supported for type INTERVAL", position, "Months usually have fractional weeks.");
  }
  TESSERA_ASSIGN(ExprPtr m, part(Function::kIntervalMonths, months, true));
  TESSERA_ASSIGN(ExprPtr d, part(Function::kIntervalDays, 1, unit <= DateUnit::kDay));
  TESSERA_ASSIGN(ExprPtr u, part(Function::kIntervalMicros, micros, unit < DateUnit::kDay));
  return Folded(
      MakeFunction(Function::kMakeInterval, kInterval, position, ExprList(std::move(m), std::move(d), std::move(u))));
}

}  // namespace tessera
