#include "tablet/values/interval.h"

#include <charconv>
#include <chrono>
#include <cmath>

#include "base/lower_case.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

Status BadInterval(ErrorKind kind, const char* what, std::string_view text) {
  return SqlError(kind, std::string(what) + ": \"" + std::string(text.substr(0, 60)) + "\"");
}

constexpr int64_t kDay = 86'400'000'000;
constexpr int kDaysAMonth = 30;

struct Unit {
  std::string_view name;  ///< singular; a plural s is accepted
  int64_t months, days, micros;
};
constexpr Unit kUnits[] = {
    {"microsecond", 0, 0, 1},
    {"usec", 0, 0, 1},
    {"us", 0, 0, 1},
    {"millisecond", 0, 0, 1000},
    {"msec", 0, 0, 1000},
    {"ms", 0, 0, 1000},
    {"second", 0, 0, 1'000'000},
    {"sec", 0, 0, 1'000'000},
    {"s", 0, 0, 1'000'000},
    {"minute", 0, 0, 60'000'000},
    {"min", 0, 0, 60'000'000},
    {"m", 0, 0, 60'000'000},
    {"hour", 0, 0, 3'600'000'000},
    {"hr", 0, 0, 3'600'000'000},
    {"h", 0, 0, 3'600'000'000},
    {"day", 0, 1, 0},
    {"d", 0, 1, 0},
    {"week", 0, 7, 0},
    {"w", 0, 7, 0},
    {"month", 1, 0, 0},
    {"mon", 1, 0, 0},
    {"quarter", 3, 0, 0},
    {"year", 12, 0, 0},
    {"yr", 12, 0, 0},
    {"y", 12, 0, 0},
    {"decade", 120, 0, 0},
    {"century", 1200, 0, 0},
    {"centurie", 1200, 0, 0},
    {"millennium", 12000, 0, 0},
    {"millennia", 12000, 0, 0},
};

bool IsClockDigit(char c) { return (c >= '0' && c <= '9') || c == '.' || c == ':'; }

/// hh:mm[:ss[.f]] as microseconds.
bool ParseClock(std::string_view text, long double* micros) {
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
  *micros = ((static_cast<long double>(parts[0]) * 60 + parts[1]) * 60) * 1e6L + std::nearbyint(parts[2] * 1e6);
  return n > 1;
}

/// y-m
bool ParseYearMonth(std::string_view text, double* years, double* months) {
  const size_t dash = text.find('-');
  return dash != std::string_view::npos && ParseDouble(text.substr(0, dash), years) == ParseError::kNone &&
         ParseDouble(text.substr(dash + 1), months) == ParseError::kNone && *years >= 0 && *months >= 0 &&
         *months < 12 && *years == std::floor(*years) && *months == std::floor(*months);
}

/// To six digits, as PostgreSQL rounds what goes on to the next part.
double Round6(double v) { return std::rint(v * 1e6) / 1e6; }

bool Take(long double months, long double days, long double micros, Interval* out) {
  // (Comparisons with NaN are false.)
  if (!(std::fabs(months) <= kMostMonths && std::fabs(days) <= kMostDays &&
        std::fabs(micros) <= static_cast<long double>(kMostMicros)))
    return false;
  *out = {static_cast<int64_t>(months), static_cast<int64_t>(days), static_cast<int64_t>(micros)};
  return HoldsInterval(out->months, out->days, out->micros);
}

bool Checked(const Interval& v, Interval* out) {
  *out = v;
  return HoldsInterval(v.months, v.days, v.micros);
}

/// Moves whole `size`s of *part to *next; then, of different signs, one back.
void Carry(int64_t* part, int64_t size, int64_t* next) {
  *next += *part / size;
  *part %= size;
}
void SameSign(int64_t* part, int64_t size, int64_t* next) {
  if (*next > 0 && *part < 0) {
    *part += size;
    --*next;
  } else if (*next < 0 && *part > 0) {
    *part -= size;
    ++*next;
  }
}

/// A unit, or several of it. nullptr: it is none.
const Unit* FindUnit(std::string_view name) {
  const Unit* found = nullptr;
  for (const Unit& u : kUnits) {
    if (name == u.name || (name.size() == u.name.size() + 1 && name.back() == 's' && name.starts_with(u.name)))
      found = &u;
  }
  return found;
}

/// What is read of an interval.
struct Sum {
  long double months = 0, days = 0, micros = 0;

  /// Parts of a month become days, parts of a day hours.
  void Add(double v, const Unit& unit) {
    double more_days = v * static_cast<double>(unit.days);
    if (unit.months == 1) {
      months += std::trunc(v);
      more_days = (v - std::trunc(v)) * kDaysAMonth;
    } else {
      months += std::rint(v * static_cast<double>(unit.months));
    }
    days += std::trunc(more_days);
    micros += (more_days - std::trunc(more_days)) * static_cast<double>(kDay);
    micros += static_cast<long double>(v) * static_cast<long double>(unit.micros);
  }
};

}  // namespace

Interval UnpackInterval(int128_t v) {
  const auto low = static_cast<uint64_t>(Low64(v));
  Interval out;
  out.days = static_cast<int64_t>(low & ((uint64_t{1} << 26) - 1)) - (kMostDays + 1);
  out.months = static_cast<int64_t>(low >> 26 & ((uint64_t{1} << 22) - 1)) - (kMostMonths + 1);
  const int128_t micros = LengthOfPacked(v) - LengthOf(out);
  out.micros = micros > kMostMicros ? kMostMicros : micros < -kMostMicros ? -kMostMicros : static_cast<int64_t>(micros);
  return out;
}

void AppendInterval(const Interval& v, std::string* out) {
  const size_t begin = out->size();
  bool after_negative = false;
  const auto number = [&](int64_t n, int width) {
    char buffer[24];
    const auto result = std::to_chars(buffer, buffer + sizeof buffer, n);
    for (auto digits = result.ptr - buffer; digits < width; ++digits) out->push_back('0');
    out->append(buffer, result.ptr);
  };
  const auto part = [&](int64_t n, const char* unit) {
    if (n == 0) return;
    if (out->size() > begin) out->push_back(' ');
    if (after_negative && n > 0) out->push_back('+');
    number(n, 0);
    out->push_back(' ');
    out->append(unit);
    if (n != 1) out->push_back('s');
    after_negative = n < 0;
  };
  part(v.months / 12, "year");
  part(v.months % 12, "mon");
  part(v.days, "day");
  if (v.micros == 0 && out->size() > begin) return;
  if (out->size() > begin) out->push_back(' ');
  if (v.micros < 0) {
    out->push_back('-');
  } else if (after_negative) {
    out->push_back('+');
  }
  const int64_t micros = v.micros < 0 ? -v.micros : v.micros;
  number(micros / 3'600'000'000, 2);
  out->push_back(':');
  number(micros / 60'000'000 % 60, 2);
  out->push_back(':');
  number(micros / 1'000'000 % 60, 2);
  if (micros % 1'000'000 != 0) {
    out->push_back('.');
    number(micros % 1'000'000, 6);
    while (out->back() == '0') out->pop_back();
  }
}

Result<Interval> ParseInterval(std::string_view text, std::string_view unit) {
  const Status bad = BadInterval(ErrorKind::kInvalidDatetime, "invalid input syntax for type interval", text);
  const std::string_view whole = text;
  Sum sum;
  bool ago = false, any = false;
  const auto word = [&] {
    text = TrimBlanks(text);
    size_t end = 0;
    while (end < text.size() && !IsBlank(text[end])) ++end;
    const std::string_view w = text.substr(0, end);
    text.remove_prefix(end);
    return w;
  };
  std::string_view w = word();
  if (w == "@") w = word();
  while (!w.empty()) {
    // A number and its unit, with or without blanks between them: "3 months", "3months", "12:30", "-1 day".
    if (any && LowerCase(w) == "ago") {
      ago = true;
      if (!word().empty()) return bad;
      break;
    }
    const bool negative = w[0] == '-';
    if (negative || w[0] == '+') w.remove_prefix(1);
    size_t digits = 0;
    while (digits < w.size() && IsClockDigit(w[digits])) ++digits;
    const std::string_view number = w.substr(0, digits);
    std::string name = LowerCase(w.substr(digits));
    if (number.empty()) return bad;
    const int sign = negative ? -1 : 1;
    double year = 0, month = 0;
    if (name.starts_with('-') && ParseYearMonth(w, &year, &month)) {
      sum.months += sign * (year * 12 + month);
      any = true;
      w = word();
      continue;
    }
    w = word();
    if (number.find(':') != std::string_view::npos) {
      long double clock = 0;
      if (!name.empty() || !ParseClock(number, &clock)) return bad;
      sum.micros += sign * clock;
      any = true;
      continue;
    }
    double v = 0;
    if (ParseDouble(number, &v) != ParseError::kNone) return bad;
    v *= sign;
    if (name.empty() && !w.empty()) {
      const char first = LowerCase(w[0]);
      if (first >= 'a' && first <= 'z' && LowerCase(w) != "ago") {
        name = LowerCase(w);
        w = word();
      } else if (unit.empty() && w.find(':') != std::string_view::npos) {
        name = "day";  // 1 12:30
      }
    }
    if (name.empty()) name = unit.empty() ? "second" : LowerCase(unit);
    const Unit* const found = FindUnit(name);
    if (found == nullptr) return bad;
    sum.Add(v, *found);
    any = true;
  }
  if (!any) return bad;
  const int direction = ago ? -1 : 1;
  Interval out;
  if (!Take(direction * sum.months, direction * sum.days, direction * std::rint(sum.micros), &out))
    return BadInterval(ErrorKind::kDatetimeOverflow, "interval out of range", whole);
  return out;
}

bool AddIntervals(const Interval& a, const Interval& b, int sign, Interval* out) {
  return Checked({a.months + sign * b.months, a.days + sign * b.days, a.micros + sign * b.micros}, out);
}

bool MultiplyInterval(const Interval& a, double factor, bool divide, Interval* out) {
  const auto times = [&](int64_t v) {
    return divide ? static_cast<double>(v) / factor : static_cast<double>(v) * factor;
  };
  const double months = times(a.months), days = times(a.days);
  const double rest_days = Round6((months - std::trunc(months)) * kDaysAMonth);
  double rest_seconds = Round6((days - std::trunc(days) + rest_days - std::trunc(rest_days)) * 86400);
  double whole_days = std::trunc(days) + std::trunc(rest_days);
  if (std::fabs(rest_seconds) >= 86400) {
    whole_days += std::trunc(rest_seconds / 86400);
    rest_seconds = std::fmod(rest_seconds, 86400);
  }
  return Take(std::trunc(months), whole_days, std::rint(times(a.micros) + rest_seconds * 1e6), out);
}

bool BetweenIntervals(const Interval& a, const Interval& b, double fraction, Interval* out) {
  Interval difference;
  return AddIntervals(b, a, -1, &difference) && MultiplyInterval(difference, fraction, false, &difference) &&
         AddIntervals(a, difference, 1, out);
}

Interval Between(int64_t x, int64_t y) {
  const int64_t micros = x - y;
  return {0, micros / kDay, micros % kDay};
}

Interval AgeBetween(int64_t x, int64_t y) {
  using namespace std::chrono;
  struct Fields {
    int64_t year, month, day, micros;
    int length;  ///< days of the month
  };
  const auto fields = [](int64_t v) {
    const auto at = floor<std::chrono::days>(sys_time<microseconds>(microseconds(v)));
    const year_month_day date(at);
    const auto last = year_month_day_last(date.year(), month_day_last(date.month())).day();
    return Fields{int{date.year()}, unsigned{date.month()}, unsigned{date.day()},
                  (sys_time<microseconds>(microseconds(v)) - at).count(), static_cast<int>(unsigned{last})};
  };
  const bool negative = x < y;
  const Fields later = fields(negative ? y : x), earlier = fields(negative ? x : y);
  int64_t micros = later.micros - earlier.micros, days = later.day - earlier.day;
  int64_t months = (later.year - earlier.year) * 12 + later.month - earlier.month;
  if (micros < 0) {
    micros += kDay;
    --days;
  }
  while (days < 0) {
    days += earlier.length;
    --months;
  }
  const int sign = negative ? -1 : 1;
  return {sign * months, sign * days, sign * micros};
}

bool JustifyHours(const Interval& v, Interval* out) {
  Interval r = v;
  Carry(&r.micros, kDay, &r.days);
  SameSign(&r.micros, kDay, &r.days);
  return Checked(r, out);
}

bool JustifyDays(const Interval& v, Interval* out) {
  Interval r = v;
  Carry(&r.days, kDaysAMonth, &r.months);
  SameSign(&r.days, kDaysAMonth, &r.months);
  return Checked(r, out);
}

bool JustifyInterval(const Interval& v, Interval* out) {
  Interval r = v;
  Carry(&r.micros, kDay, &r.days);
  Carry(&r.days, kDaysAMonth, &r.months);
  // A month goes back also where only hours are of the other sign.
  if (r.months > 0 && (r.days < 0 || (r.days == 0 && r.micros < 0))) {
    r.days += kDaysAMonth;
    --r.months;
  } else if (r.months < 0 && (r.days > 0 || (r.days == 0 && r.micros > 0))) {
    r.days -= kDaysAMonth;
    ++r.months;
  }
  SameSign(&r.micros, kDay, &r.days);
  return Checked(r, out);
}

}  // namespace tessera
