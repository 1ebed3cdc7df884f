// Intervals: their text, their constants, INTERVAL '90' day.
#include <cmath>
#include <string>

#include "compiler/expression_binder.h"
#include "compiler/statement_option.h"
#include "tablet/value_parser.h"
#include "vm/meaning.h"

namespace tessera {
namespace {

bool IsUntyped(const Expr& e) { return e.type.id == TypeId::kNull; }

}  // namespace

Span SpanOf(const Value& interval) {
  const int64_t packed = Low64(interval.wide);
  return {packed >> 32, static_cast<int32_t>(packed & 0xFFFFFFFF), interval.i64};
}

Value IntervalOf(const Span& span) {
  Value v = Value::Int(SqlType::Of(TypeId::kInterval), span.micros);
  v.wide = span.months * (int64_t{1} << 32) + static_cast<int64_t>(static_cast<uint32_t>(span.days));
  return v;
}

namespace {

struct IntervalUnit {
  std::string_view name;  ///< singular; a plural s is accepted
  int64_t months, days, micros;
};
constexpr IntervalUnit kIntervalUnits[] = {
    {"microsecond", 0, 0, 1},
    {"millisecond", 0, 0, 1000},
    {"second", 0, 0, 1'000'000},
    {"sec", 0, 0, 1'000'000},
    {"minute", 0, 0, 60'000'000},
    {"min", 0, 0, 60'000'000},
    {"hour", 0, 0, 3'600'000'000},
    {"day", 0, 1, 0},
    {"week", 0, 7, 0},
    {"month", 1, 0, 0},
    {"mon", 1, 0, 0},
    {"quarter", 3, 0, 0},
    {"year", 12, 0, 0},
    {"decade", 120, 0, 0},
    {"century", 1200, 0, 0},
};

/// hh:mm[:ss[.f]] as microseconds.
bool ParseClock(std::string_view text, double* micros) {
  double parts[3] = {0, 0, 0};
  int n = 0;
  while (n < 3) {
    const size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    double v = 0;
    if (ParseDouble(part, &v) != ParseError::kNone || v < 0 || (n > 0 && v >= 60)) return false;
    parts[n++] = v;
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
    if (n == 3) return false;
  }
  *micros = ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1e6;
  return n > 1;
}

}  // namespace

Result<Span> ParseInterval(std::string_view text, std::string_view field) {
  const Status bad = SqlError("invalid input syntax for type interval: \"" + std::string(text.substr(0, 60)) + "\"");
  double months = 0, days = 0, micros = 0;
  bool ago = false, any = false;
  size_t i = 0;
  const auto word = [&] {
    while (i < text.size() && IsBlank(text[i])) ++i;
    const size_t begin = i;
    while (i < text.size() && !IsBlank(text[i])) ++i;
    return text.substr(begin, i - begin);
  };
  std::string_view w = word();
  while (!w.empty()) {
    // A number and its unit, with or without blanks between them: "3 months", "3months", "12:30", "-1 day".
    const std::string lower = LowerCase(w);
    if (lower == "ago" && any) {
      ago = true;
      w = word();
      if (!w.empty()) return bad;
      break;
    }
    size_t digits = 0;
    if (digits < w.size() && (w[0] == '-' || w[0] == '+')) ++digits;
    while (digits < w.size() && ((w[digits] >= '0' && w[digits] <= '9') || w[digits] == '.' || w[digits] == ':'))
      ++digits;
    std::string_view number = w.substr(0, digits);
    std::string unit = LowerCase(w.substr(digits));
    const bool negative = number.starts_with('-');
    if (number.starts_with('-') || number.starts_with('+')) number.remove_prefix(1);
    if (number.empty()) return bad;
    const double sign = negative ? -1 : 1;
    w = word();
    if (number.find(':') != std::string_view::npos) {
      double clock = 0;
      if (!unit.empty() || !ParseClock(number, &clock)) return bad;
      micros += sign * clock;
      any = true;
      continue;
    }
    double v = 0;
    if (ParseDouble(number, &v) != ParseError::kNone) return bad;
    if (unit.empty() && !w.empty()) {
      const bool is_unit = (w[0] >= 'a' && w[0] <= 'z') || (w[0] >= 'A' && w[0] <= 'Z');
      if (is_unit && LowerCase(w) != "ago") {
        unit = LowerCase(w);
        w = word();
      }
    }
    if (unit.empty()) unit = field.empty() ? "second" : LowerCase(field);
    if (unit == "centuries") unit = "century";
    const IntervalUnit* found = nullptr;
    for (const IntervalUnit& u : kIntervalUnits) {
      if (unit == u.name ||
          (unit.size() == u.name.size() + 1 && unit.back() == 's' && std::string_view(unit).starts_with(u.name)))
        found = &u;
    }
    if (found == nullptr) return bad;
    months += sign * v * static_cast<double>(found->months);
    days += sign * v * static_cast<double>(found->days);
    micros += sign * v * static_cast<double>(found->micros);
    any = true;
  }
  if (!any) return bad;
  // Half a month is no definite number of days.
  if (months != std::floor(months)) return bad;
  const double whole_days = std::trunc(days);
  micros = std::nearbyint(micros + (days - whole_days) * static_cast<double>(vm::kMicrosPerDay));
  // Far beyond the years 1 to 9999, and small enough that nothing overflows.
  if (std::fabs(months) > 120000 || std::fabs(whole_days) > 4e6 || std::fabs(micros) > 4e17) {
    return SqlError("interval out of range: \"" + std::string(text.substr(0, 60)) + "\"");
  }
  const double direction = ago ? -1 : 1;
  return Span{static_cast<int64_t>(direction * months), static_cast<int64_t>(direction * whole_days),
              static_cast<int64_t>(direction * micros)};
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
  if (IsUntyped(*text) && text->constant.null) return MakeNull(SqlType::Of(TypeId::kInterval), position);
  const bool is_text =
      IsConstant(*text) && (IsUntyped(*text) || text->type.id == TypeId::kText) && !text->constant.null;
  if (text->type.id == TypeId::kInterval) return text;
  if (!is_text) return Unsupported("an INTERVAL that is not a constant is not supported", position);
  Result<Span> span = ParseInterval(text->constant.text, field);
  if (!span.ok()) return span.status().At(position);
  return MakeConstant(IntervalOf(*span), position);
}

}  // namespace tessera
