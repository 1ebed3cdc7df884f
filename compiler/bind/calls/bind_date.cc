// Binding functions of dates and timestamps that are made of others: EXTRACT of fields that the machine has no number
// for, DATE_TRUNC, DATE_DIFF, LAST_DAY.
//
// A unit of a day or more works on the date: the month begins day(x) - 1 days before x. A shorter one works on whole
// seconds since 1970: the hour begins minute(x) * 60 + second(x) of them before.
#include <array>
#include <string>

#include "base/lower_case.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/query/nearest_name.h"
#include "vm/meaning/meaning.h"

namespace tessera {
namespace {

const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kDate = SqlType::Of(TypeId::kDate);
const SqlType kTimestamp = SqlType::Of(TypeId::kTimestamp);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);
const SqlType kTimestampTz = SqlType::Of(TypeId::kTimestampTz);

struct UnitRow {
  std::string_view name;
  DateUnit unit;
};
constexpr UnitRow kUnits[] = {
    {"microsecond", DateUnit::kMicrosecond},
    {"millisecond", DateUnit::kMillisecond},
    {"second", DateUnit::kSecond},
    {"minute", DateUnit::kMinute},
    {"hour", DateUnit::kHour},
    {"day", DateUnit::kDay},
    {"week", DateUnit::kWeek},
    {"month", DateUnit::kMonth},
    {"quarter", DateUnit::kQuarter},
    {"year", DateUnit::kYear},
    {"decade", DateUnit::kDecade},
    {"century", DateUnit::kCentury},
    {"centurie", DateUnit::kCentury},
    {"millennium", DateUnit::kMillennium},
    {"millennia", DateUnit::kMillennium},
};

/// Years of a decade, century or millennium.
int64_t YearsOf(DateUnit unit) {
  return unit == DateUnit::kDecade ? 10 : unit == DateUnit::kCentury ? 100 : unit == DateUnit::kMillennium ? 1000 : 1;
}

bool IsMoment(const Expr& e) { return (ClassOf(e.type) & kClassDateTime) != 0; }

}  // namespace

Result<DateUnit> ExpressionBinder::BindUnit(const ParseNode& node, std::string_view function) {
  TESSERA_ASSIGN(const ExprPtr unit, UnitName(node));
  if (unit == nullptr) {
    return Unsupported(std::string(function) + " with a unit that is not a constant is not supported",
                       node.FirstLocation());
  }
  const std::string written = LowerCase(unit->constant.text);
  std::string name = written;
  if (name.size() > 1 && name.back() == 's') name.pop_back();  // 'months' is 'month'
  std::vector<std::string_view> names;
  for (const UnitRow& row : kUnits) {
    if (row.name == name) return row.unit;
    names.push_back(row.name);
  }
  const std::string nearest = NearestName(name, names);
  return SqlError(ErrorKind::kInvalidParameterValue, "unit \"" + written + "\" is not recognized", node.location(),
                  nearest.empty() ? "Units are year, quarter, month, week, day, hour, minute, second and others."
                                  : "Perhaps you meant \"" + nearest + "\".");
}

// ---- Small steps

Result<ExprPtr> ExpressionBinder::FieldOf(DateField field, const Expr& x, int position) {
  TESSERA_ASSIGN(ExprPtr again, Copy(x));
  ExprPtr e = MakeFunction(Function::kExtract, kBigint, position, ExprList(std::move(again)));
  e->field = field;
  return Folded(std::move(e));
}

/// x `symbol` n.
Result<ExprPtr> ExpressionBinder::WithNumber(std::string_view symbol, ExprPtr x, int64_t n, int position) {
  return Infix(symbol, std::move(x), MakeConstant(Value::Int(kBigint, n), position), position);
}

Result<ExprPtr> ExpressionBinder::AddNumber(Function function, ExprPtr moment, ExprPtr number, int position) {
  const SqlType type = moment->type;
  return Folded(MakeFunction(function, type, position, ExprList(std::move(moment), std::move(number))));
}

/// Seconds since 1970 as a timestamp.
Result<ExprPtr> ExpressionBinder::SecondsToMoment(ExprPtr seconds, int position) {
  TESSERA_ASSIGN(ExprPtr micros, WithNumber("*", std::move(seconds), 1'000'000, position));
  return AddNumber(Function::kAddMicros, MakeConstant(Value::Int(kTimestamp, 0), position), std::move(micros),
                   position);
}

/// x - y: of timestamps in microseconds, of dates in days.
Result<ExprPtr> ExpressionBinder::Difference(ExprPtr x, ExprPtr y, int position) {
  return Folded(MakeFunction(Function::kDateDiff, kBigint, position, ExprList(std::move(x), std::move(y))));
}

// ---- The beginning of a unit

Result<ExprPtr> ExpressionBinder::BeginOfDays(DateUnit unit, ExprPtr date, int position) {
  const auto less = [&](DateField field) -> Result<ExprPtr> {  // the date without the days before it
    TESSERA_ASSIGN(ExprPtr days, FieldOf(field, *date, position));
    TESSERA_ASSIGN(days, WithNumber("-", std::move(days), 1, position));
    TESSERA_ASSIGN(ExprPtr same, Copy(*date));
    return Infix("-", std::move(same), std::move(days), position);
  };
  switch (unit) {
    case DateUnit::kWeek:
      return less(DateField::kIsoDow);
    case DateUnit::kMonth:
      return less(DateField::kDay);
    case DateUnit::kYear:
      return less(DateField::kDoy);
    case DateUnit::kQuarter: {
      TESSERA_ASSIGN(ExprPtr begin, less(DateField::kDay));
      TESSERA_ASSIGN(ExprPtr months, FieldOf(DateField::kMonth, *date, position));
      TESSERA_ASSIGN(months, WithNumber("-", std::move(months), 1, position));
      TESSERA_ASSIGN(months, WithNumber("%", std::move(months), 3, position));
      TESSERA_ASSIGN(months, Less(std::move(months), -1, position));
      return AddNumber(Function::kAddMonths, std::move(begin), std::move(months), position);
    }
    case DateUnit::kDecade:
    case DateUnit::kCentury:
    case DateUnit::kMillennium: {
      // A decade begins with a year that ends with 0, a century with one that ends with 01.
      TESSERA_ASSIGN(ExprPtr begin, less(DateField::kDoy));
      TESSERA_ASSIGN(ExprPtr years, FieldOf(DateField::kYear, *date, position));
      if (unit != DateUnit::kDecade) {
        TESSERA_ASSIGN(years, WithNumber("-", std::move(years), 1, position));
      }
      TESSERA_ASSIGN(years, WithNumber("%", std::move(years), YearsOf(unit), position));
      TESSERA_ASSIGN(ExprPtr months, WithNumber("*", std::move(years), -12, position));
      return AddNumber(Function::kAddMonths, std::move(begin), std::move(months), position);
    }
    default:
      return date;
  }
}

Result<ExprPtr> ExpressionBinder::BeginOf(DateUnit unit, ExprPtr x, int position) {
  if (unit == DateUnit::kMicrosecond) return x;
  if (x->type.id == TypeId::kDate) return BeginOfDays(unit, std::move(x), position);
  if (unit >= DateUnit::kDay) {
    TESSERA_ASSIGN(ExprPtr date, Folded(MakeCast(std::move(x), kDate)));
    TESSERA_ASSIGN(ExprPtr begin, BeginOfDays(unit, std::move(date), position));
    return Folded(MakeCast(std::move(begin), kTimestamp));
  }
  TESSERA_ASSIGN(ExprPtr seconds, FieldOf(DateField::kEpoch, *x, position));
  if (unit == DateUnit::kMinute || unit == DateUnit::kHour) {
    TESSERA_ASSIGN(ExprPtr second, FieldOf(DateField::kSecond, *x, position));
    TESSERA_ASSIGN(seconds, Infix("-", std::move(seconds), std::move(second), position));
  }
  if (unit == DateUnit::kHour) {
    TESSERA_ASSIGN(ExprPtr minutes, FieldOf(DateField::kMinute, *x, position));
    TESSERA_ASSIGN(minutes, WithNumber("*", std::move(minutes), 60, position));
    TESSERA_ASSIGN(seconds, Infix("-", std::move(seconds), std::move(minutes), position));
  }
  TESSERA_ASSIGN(ExprPtr begin, SecondsToMoment(std::move(seconds), position));
  if (unit != DateUnit::kMillisecond) return begin;
  TESSERA_ASSIGN(ExprPtr second, Copy(*begin));
  TESSERA_ASSIGN(ExprPtr micros, Difference(std::move(x), std::move(second), position));
  TESSERA_ASSIGN(micros, WithNumber("/", std::move(micros), 1000, position));
  TESSERA_ASSIGN(micros, WithNumber("*", std::move(micros), 1000, position));
  return AddNumber(Function::kAddMicros, std::move(begin), std::move(micros), position);
}

// ---- EXTRACT

Result<ExprPtr> ExpressionBinder::BindMadeField(std::string_view field, ExprPtr x, int position) {
  if (field == "isoyear") {
    // The year of the week's Thursday.
    if (x->type.id != TypeId::kDate) {
      TESSERA_ASSIGN(x, Folded(MakeCast(std::move(x), kDate)));
    }
    TESSERA_ASSIGN(ExprPtr begin, BeginOfDays(DateUnit::kWeek, std::move(x), position));
    TESSERA_ASSIGN(ExprPtr thursday, WithNumber("+", std::move(begin), 3, position));
    return FieldOf(DateField::kYear, *thursday, position);
  }
  if (field == "milliseconds" || field == "microseconds") {
    if (x->type.id == TypeId::kDate) {
      TESSERA_ASSIGN(ExprPtr none, FieldOf(DateField::kSecond, *x, position));
      if (field == "microseconds") return none;
      return Folded(MakeCast(std::move(none), kDouble));
    }
    TESSERA_ASSIGN(ExprPtr again, Copy(*x));
    TESSERA_ASSIGN(ExprPtr minute, BeginOf(DateUnit::kMinute, std::move(again), position));
    TESSERA_ASSIGN(ExprPtr micros, Difference(std::move(x), std::move(minute), position));
    if (field == "microseconds") return micros;
    return Infix("/", std::move(micros), MakeConstant(Value::Float(kDouble, 1000), position), position);
  }
  const DateUnit unit = field == "decade"    ? DateUnit::kDecade
                        : field == "century" ? DateUnit::kCentury
                                             : DateUnit::kMillennium;
  TESSERA_ASSIGN(ExprPtr year, FieldOf(DateField::kYear, *x, position));
  const int64_t years = YearsOf(unit);
  // Decades are counted from year 0, centuries and millennia from year 1.
  if (unit != DateUnit::kDecade) {
    TESSERA_ASSIGN(year, WithNumber("+", std::move(year), years - 1, position));
  }
  return WithNumber("/", std::move(year), years, position);
}

Result<ExprPtr> ExpressionBinder::BeginInZone(DateUnit unit, ExprPtr moment, const TimeZone& zone, int position) {
  TESSERA_ASSIGN(ExprPtr again, Copy(*moment));
  TESSERA_ASSIGN(ExprPtr local, InZone(Function::kLocalTime, kTimestamp, std::move(again), zone));
  if (unit >= DateUnit::kDay) {
    TESSERA_ASSIGN(local, BeginOf(unit, std::move(local), position));
    return InZone(Function::kMomentOfLocal, kTimestampTz, std::move(local), zone);
  }
  // Of an hour that comes twice it is the one that the moment lies in.
  TESSERA_ASSIGN(ExprPtr same, Copy(*local));
  TESSERA_ASSIGN(ExprPtr begin, BeginOf(unit, std::move(same), position));
  TESSERA_ASSIGN(ExprPtr back, Difference(std::move(begin), std::move(local), position));
  return AddNumber(Function::kAddMicros, std::move(moment), std::move(back), position);
}

// ---- DATE_TRUNC, DATE_DIFF, LAST_DAY

Result<ExprPtr> ExpressionBinder::BindDateTrunc(const ParseNode& call) {
  const int position = call.location();
  const ParseNode& arguments = *call.Get(Field::k_args);
  TESSERA_ASSIGN(const DateUnit unit, BindUnit(*arguments.first(), "DATE_TRUNC"));
  TESSERA_ASSIGN(ExprPtr x, Bind(*arguments.first()->next()));
  const ParseNode* const name = arguments.first()->next()->next();
  TESSERA_ASSIGN(x, Resolve(std::move(x), name != nullptr ? kTimestampTz : kTimestamp));
  if (x->type.id == TypeId::kTimestampTz) {
    const TimeZone* in = zone();
    if (name != nullptr) {
      TESSERA_ASSIGN(in, BindZone(*name));
    }
    if (in != nullptr && !in->IsUtc()) return BeginInZone(unit, std::move(x), *in, position);
    const SqlType type = x->type;
    TESSERA_ASSIGN(x, BeginOf(unit, MakeCast(std::move(x), kTimestamp), position));
    return Folded(MakeCast(std::move(x), type));
  }
  if (x->type.id == TypeId::kInterval && name == nullptr) return BeginOfInterval(unit, *x, position);
  if (name != nullptr) {
    return Unsupported("DATE_TRUNC in a time zone takes a TIMESTAMP WITH TIME ZONE only", position,
                       "Cast it, or leave the time zone out.");
  }
  if (!IsMoment(*x)) {
    return SqlError(ErrorKind::kUndefinedFunction,
                    "function date_trunc(unknown, " + x->type.ToString() + ") does not exist", position,
                    "DATE_TRUNC takes a DATE, a TIMESTAMP or an INTERVAL.");
  }
  return BeginOf(unit, std::move(x), position);
}

// ---- AT TIME ZONE

Result<const TimeZone*> ExpressionBinder::BindZone(const ParseNode& node) {
  TESSERA_ASSIGN(ExprPtr name, Bind(node));
  const int position = name->position;
  if (name->type.id == TypeId::kInterval)
    return Unsupported("a time zone that is an INTERVAL is not supported", position, "Write its name.");
  if (!IsConstant(*name) || name->constant.null || (name->type.id != TypeId::kText && name->type.id != TypeId::kNull))
    return Unsupported("a time zone that is not a constant text is not supported", position);
  Result<const TimeZone*> zone = FindTimeZone(name->constant.text);
  if (!zone.ok()) return zone.status().At(position);
  return zone;
}

Result<ExprPtr> ExpressionBinder::BindAtTimeZone(const ParseNode& call) {
  const int position = call.location();
  const ParseNode& arguments = *call.Get(Field::k_args);
  TESSERA_ASSIGN(const TimeZone* const zone, BindZone(*arguments.first()));
  TESSERA_ASSIGN(ExprPtr x, Bind(*arguments.first()->next()));
  TESSERA_ASSIGN(x, Resolve(std::move(x), kTimestampTz));
  if (x->type.id == TypeId::kDate) {
    TESSERA_ASSIGN(x, Cast(std::move(x), kTimestampTz));
  }
  if (!x->type.IsTimestamp()) {
    return SqlError(ErrorKind::kUndefinedFunction, "function timezone(text, " + x->type.ToString() + ") does not exist",
                    position, "AT TIME ZONE takes a DATE or a TIMESTAMP with or without time zone.");
  }
  const bool local = x->type.id == TypeId::kTimestampTz;
  const SqlType type = local ? kTimestamp : kTimestampTz;
  if (zone->IsUtc()) return Folded(MakeCast(std::move(x), type));
  return InZone(local ? Function::kLocalTime : Function::kMomentOfLocal, type, std::move(x), *zone);
}

Result<ExprPtr> ExpressionBinder::BindDateDiff(const ParseNode& call) {
  const int position = call.location();
  const ParseNode& arguments = *call.Get(Field::k_args);
  TESSERA_ASSIGN(const DateUnit unit, BindUnit(*arguments.first(), "DATE_DIFF"));
  const ParseNode& first = *arguments.first()->next();
  std::array<ExprPtr, 2> of;
  TESSERA_ASSIGN(of[0], Bind(first));
  TESSERA_ASSIGN(of[1], Bind(*first.next()));
  for (ExprPtr& x : of) {
    TESSERA_ASSIGN(x, Resolve(std::move(x), kTimestamp));
    if ((ClassOf(x->type) & kClassMoment) == 0) {
      return SqlError(
          ErrorKind::kUndefinedFunction,
          "function date_diff(unknown, " + of[0]->type.ToString() + ", " + of[1]->type.ToString() + ") does not exist",
          position, "DATE_DIFF takes dates or timestamps.");
    }
    const SqlType type = unit >= DateUnit::kDay ? kDate : kTimestamp;
    TESSERA_ASSIGN(x, Cast(std::move(x), type));
  }
  // Each as a number of units; the difference counts the boundaries between them.
  int64_t per_unit = 1;
  for (ExprPtr& x : of) {
    switch (unit) {
      case DateUnit::kDay:
        break;
      case DateUnit::kWeek:  // whole weeks from the first day on, as in DuckDB
        per_unit = 7;
        break;
      case DateUnit::kMonth:
      case DateUnit::kQuarter: {
        const bool month = unit == DateUnit::kMonth;
        TESSERA_ASSIGN(ExprPtr in_year, FieldOf(month ? DateField::kMonth : DateField::kQuarter, *x, position));
        TESSERA_ASSIGN(ExprPtr year, FieldOf(DateField::kYear, *x, position));
        TESSERA_ASSIGN(year, WithNumber("*", std::move(year), month ? 12 : 4, position));
        TESSERA_ASSIGN(x, Infix("+", std::move(year), std::move(in_year), position));
        break;
      }
      case DateUnit::kYear:
      case DateUnit::kDecade:
      case DateUnit::kCentury:
      case DateUnit::kMillennium: {
        // As in DuckDB, a century begins here with the year 2000.
        TESSERA_ASSIGN(x, FieldOf(DateField::kYear, *x, position));
        if (YearsOf(unit) > 1) {
          TESSERA_ASSIGN(x, WithNumber("/", std::move(x), YearsOf(unit), position));
        }
        break;
      }
      default: {
        TESSERA_ASSIGN(x, BeginOf(unit, std::move(x), position));
        per_unit = unit == DateUnit::kHour          ? 3'600'000'000
                   : unit == DateUnit::kMinute      ? 60'000'000
                   : unit == DateUnit::kSecond      ? 1'000'000
                   : unit == DateUnit::kMillisecond ? 1'000
                                                    : 1;
        break;
      }
    }
  }
  const bool of_moments = IsMoment(*of[0]);
  ExprPtr difference;
  if (of_moments) {
    TESSERA_ASSIGN(difference, Difference(std::move(of[1]), std::move(of[0]), position));
  } else {
    TESSERA_ASSIGN(difference, Infix("-", std::move(of[1]), std::move(of[0]), position));
  }
  return per_unit == 1 ? std::move(difference) : WithNumber("/", std::move(difference), per_unit, position);
}

Result<ExprPtr> ExpressionBinder::BindLastDay(ExprPtr x, int position) {
  TESSERA_ASSIGN(x, Cast(std::move(x), kDate));
  TESSERA_ASSIGN(ExprPtr begin, BeginOfDays(DateUnit::kMonth, std::move(x), position));
  TESSERA_ASSIGN(ExprPtr next, AddNumber(Function::kAddMonths, std::move(begin),
                                         MakeConstant(Value::Int(kBigint, 1), position), position));
  return WithNumber("-", std::move(next), 1, position);
}

}  // namespace tessera
