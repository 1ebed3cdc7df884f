// The second meaning of opcodes that work on numbers and dates.
#include "tests/vm/opcode_meanings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>

#include "tests/vm/opcode_values.h"

namespace tessera::test::walk {

using vm::Opcode;

namespace {

uint128_t Magnitude(int128_t v) { return v < 0 ? ~static_cast<uint128_t>(v) + 1 : static_cast<uint128_t>(v); }

/// Quotient of magnitudes with its sign; `up` says by how much the magnitude grows for a rest of `rest` of `divisor`.
template <class Up>
Fate DivideWide(int128_t a, int128_t b, int128_t* out, Up up) {
  if (b == 0) return Fate::kNull;
  const uint128_t n = Magnitude(a), d = Magnitude(b);
  uint128_t q = n / d;
  const bool negative = (a < 0) != (b < 0);
  q += up(n % d, d, negative) ? 1 : 0;
  const uint128_t limit = uint128_t{1} << 127;
  if (q > limit || (q == limit && !negative)) return Fate::kError;
  *out = negative ? static_cast<int128_t>(~q + 1) : static_cast<int128_t>(q);
  return Fate::kValue;
}

bool Truncates(uint128_t, uint128_t, bool) { return false; }

bool RoundsHalfUp(uint128_t rest, uint128_t divisor, bool) { return rest != 0 && rest >= divisor - rest; }

bool Floors(uint128_t rest, uint128_t, bool negative) { return negative && rest != 0; }

/// The day `months` later, cut to the length of its month.
Fate MonthsLater(int64_t day, int64_t months, int64_t* out) {
  using namespace std::chrono;
  if (day < kYear1 || day > kYear9999 || months < -120000 || months > 120000) return Fate::kError;
  const year_month_day from{sys_days(days(static_cast<int>(day)))};
  const year_month to = from.year() / from.month() + std::chrono::months(static_cast<int>(months));
  year_month_day r = to / from.day();
  if (!r.ok()) r = to / last;
  *out = sys_days(r).time_since_epoch().count();
  return *out < kYear1 || *out > kYear9999 ? Fate::kError : Fate::kValue;
}

double RoundHalfEven(double v) {
  if (!(std::fabs(v) < 0x1p52)) return v;
  const double below = std::floor(v), part = v - below;
  const bool up = part > 0.5 || (part == 0.5 && std::fmod(below, 2.0) != 0);
  return std::copysign(up ? below + 1 : below, v);
}

/// `field` is the number of a DatePart: year, quarter, month, day, dow, isodow, doy, week, hour, minute, second, epoch.
Fate DateField(int64_t day, int64_t micros, int field, int64_t* out) {
  using namespace std::chrono;
  if (day < kYear1 || day > kYear9999) return Fate::kUnspecified;
  const sys_days at{days(static_cast<int>(day))};
  const year_month_day d{at};
  const weekday w{at};
  switch (field) {
    case 0:
      *out = static_cast<int>(d.year());
      break;
    case 1:
      *out = (static_cast<unsigned>(d.month()) + 2) / 3;
      break;
    case 2:
      *out = static_cast<unsigned>(d.month());
      break;
    case 3:
      *out = static_cast<unsigned>(d.day());
      break;
    case 4:
      *out = w.c_encoding();
      break;
    case 5:
      *out = w.iso_encoding();
      break;
    case 6:
      *out = (at - sys_days(d.year() / January / 1)).count() + 1;
      break;
    case 7: {
      // Weeks since the Monday of the week that holds 4 January of the year of this week's Thursday.
      const sys_days thursday = at - days(static_cast<int>(w.iso_encoding()) - 4);
      const sys_days fourth = sys_days(year_month_day{thursday}.year() / January / 4);
      const sys_days monday = fourth - days(static_cast<int>(weekday{fourth}.iso_encoding()) - 1);
      *out = (at - monday).count() / 7 + 1;
      break;
    }
    case 8:
      *out = micros / 3600000000;
      break;
    case 9:
      *out = micros / 60000000 - micros / 3600000000 * 60;
      break;
    case 10:
      *out = micros / 1000000 - micros / 60000000 * 60;
      break;
    case 11:
      *out = day * 86400 + micros / 1000000;
      break;
    default:
      return Fate::kUnknownOpcode;
  }
  return Fate::kValue;
}

}  // namespace

int64_t FloorOf(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * static_cast<int128_t>(b) > a ? q - 1 : q;
}

Fate BinaryI(Opcode op, int64_t a, int64_t b, int64_t* out) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  auto checked = [&](bool overflow) { return overflow ? Fate::kError : Fate::kValue; };
  auto wrapped = [&](uint64_t v) {
    *out = static_cast<int64_t>(v);
    return Fate::kValue;
  };
  auto divided = [&](auto up) {
    int128_t q = 0;
    Fate fate = DivideWide(a, b, &q, up);
    *out = static_cast<int64_t>(q);
    return fate == Fate::kValue && q != *out ? Fate::kError : fate;
  };
  switch (op) {
    case Opcode::AddI:
      return wrapped(x + y);
    case Opcode::SubI:
      return wrapped(x - y);
    case Opcode::RSubI:
      return wrapped(y - x);
    case Opcode::MulI:
      return wrapped(x * y);
    case Opcode::AddIX:
      return checked(__builtin_add_overflow(a, b, out));
    case Opcode::SubIX:
      return checked(__builtin_sub_overflow(a, b, out));
    case Opcode::RSubIX:
      return checked(__builtin_sub_overflow(b, a, out));
    case Opcode::MulIX:
      return checked(__builtin_mul_overflow(a, b, out));
    case Opcode::DivI:
      return divided(Truncates);
    case Opcode::DivRoundI:
      return divided(RoundsHalfUp);
    case Opcode::FloorDivI:
      return divided(Floors);
    case Opcode::ModI:
      if (b == 0) return Fate::kNull;
      *out = static_cast<int64_t>(static_cast<int128_t>(a) % b);
      return Fate::kValue;
    case Opcode::GcdI: {
      const uint64_t divisor = std::gcd(a < 0 ? 0 - x : x, b < 0 ? 0 - y : y);
      return checked(__builtin_add_overflow(divisor, uint64_t{0}, out));
    }
    case Opcode::AndI:
    case Opcode::OrI:
    case Opcode::XorI:
      *out = 0;
      for (int bit = 0; bit < 64; ++bit) {
        const int ones = static_cast<int>((x >> bit & 1) + (y >> bit & 1));
        const bool set = op == Opcode::AndI ? ones == 2 : op == Opcode::OrI ? ones > 0 : ones == 1;
        if (set) *out |= static_cast<int64_t>(uint64_t{1} << bit);
      }
      return Fate::kValue;
    case Opcode::ShiftLeftI: {
      int128_t v = a;
      for (int64_t i = 0; i < b && v <= INT64_MAX && v >= INT64_MIN && v != 0; ++i) v *= 2;
      *out = static_cast<int64_t>(v);
      return checked(b < 0 || v != *out);
    }
    case Opcode::ShiftRightI:
      *out = a;
      for (int64_t i = 0; i < b && i < 64; ++i) *out = FloorOf(*out, 2);
      return checked(b < 0);
    case Opcode::AddMonthsD:
      return MonthsLater(a, b, out);
    case Opcode::AddMonthsT: {
      const int64_t day = FloorOf(a, kDayMicros);
      const Fate fate = MonthsLater(day, b, out);
      if (fate == Fate::kValue) *out = *out * kDayMicros + (a - day * kDayMicros);
      return fate;
    }
    default:
      return Fate::kUnknownOpcode;
  }
}

Fate BinaryF(Opcode op, double a, double b, double* out) {
  switch (op) {
    case Opcode::AddF:
      *out = a + b;
      return Fate::kValue;
    case Opcode::SubF:
      *out = a - b;
      return Fate::kValue;
    case Opcode::RSubF:
      *out = b - a;
      return Fate::kValue;
    case Opcode::MulF:
      *out = a * b;
      return Fate::kValue;
    case Opcode::DivF:
      if (b == 0) return Fate::kNull;
      *out = a / b;
      return Fate::kValue;
    case Opcode::ModF:
      if (b == 0) return Fate::kNull;
      *out = static_cast<double>(
          std::fmod(static_cast<long double>(a), static_cast<long double>(b)));  // exact, as fmod is
      return Fate::kValue;
    default:
      return Fate::kUnknownOpcode;
  }
}

Fate BinaryW(Opcode op, int128_t a, int128_t b, int128_t* out) {
  auto checked = [&](bool overflow) { return overflow ? Fate::kError : Fate::kValue; };
  switch (op) {
    case Opcode::AddW:
      return checked(__builtin_add_overflow(a, b, out));
    case Opcode::SubW:
      return checked(__builtin_sub_overflow(a, b, out));
    case Opcode::RSubW:
      return checked(__builtin_sub_overflow(b, a, out));
    case Opcode::MulW:
      return checked(__builtin_mul_overflow(a, b, out));
    case Opcode::DivW:
      return DivideWide(a, b, out, Truncates);
    case Opcode::DivRoundW:
      return DivideWide(a, b, out, RoundsHalfUp);
    case Opcode::FloorDivW:
      return DivideWide(a, b, out, Floors);
    case Opcode::ModW: {
      if (b == 0) return Fate::kNull;
      const uint128_t rest = Magnitude(a) % Magnitude(b);
      *out = a < 0 ? -static_cast<int128_t>(rest) : static_cast<int128_t>(rest);
      return Fate::kValue;
    }
    default:
      return OfTwoIntervals(op, a, b, out);
  }
}

Fate TernaryAny(Opcode op, int64_t a, int64_t b, int64_t c, int64_t* out) {
  const auto less = [](int64_t x, int64_t y) {
    const double u = AsDouble(x), v = AsDouble(y);
    return std::isnan(v) ? !std::isnan(u) : u < v;
  };
  switch (op) {
    case Opcode::ClampI:
      *out = std::min(std::max(a, b), c);
      return Fate::kValue;
    case Opcode::MakeDateI: {
      const std::chrono::year_month_day d{std::chrono::year(static_cast<int>(std::clamp<int64_t>(a, 0, 10000))),
                                          std::chrono::month(static_cast<unsigned>(std::clamp<int64_t>(b, 0, 13))),
                                          std::chrono::day(static_cast<unsigned>(std::clamp<int64_t>(c, 0, 32)))};
      if (!d.ok() || a < 1 || a > 9999) return Fate::kError;
      *out = std::chrono::sys_days(d).time_since_epoch().count();
      return Fate::kValue;
    }
    case Opcode::ClampF:
      *out = std::min(std::max(a, b, less), c, less);
      return Fate::kValue;
    default:
      return Fate::kUnknownOpcode;
  }
}

namespace {

uint64_t SplitMix(int64_t v) {
  constexpr uint128_t kWord = uint128_t{1} << 64;
  uint128_t z = (static_cast<uint64_t>(v) + uint128_t{11400714819323198485u}) % kWord;
  z = ((z ^ z / (uint128_t{1} << 30)) * 13787848793156543929u) % kWord;
  z = ((z ^ z / (uint128_t{1} << 27)) * 10723151780598845931u) % kWord;
  return static_cast<uint64_t>(z ^ z / (uint128_t{1} << 31));
}

}  // namespace

Fate UnaryAny(Opcode op, const Scalar& in, Scalar* out) {
  const double f = AsDouble(in.v);
  auto gives = [&](double r) {
    out->v = AsBits(r);
    return Fate::kValue;
  };
  switch (op) {
    case Opcode::AbsI:
      out->v = in.v < 0 ? -static_cast<int64_t>(static_cast<uint64_t>(in.v) + (in.v == kLeast ? 1 : 0)) : in.v;
      return in.v == kLeast ? Fate::kError : Fate::kValue;
    case Opcode::RandomF: {
      return gives(std::ldexp(static_cast<double>(SplitMix(in.v) / 2048), -53));
    }
    case Opcode::NegF:
      out->v = in.v ^ kLeast;
      return Fate::kValue;
    case Opcode::SqrtF:
      out->v = AsBits(std::sqrt(AsDouble(in.v)));
      return Fate::kValue;
    case Opcode::AbsF:
      out->v = in.v & kGreatest;
      return Fate::kValue;
    case Opcode::RoundF:
      return gives(RoundHalfEven(f));
    case Opcode::FloorF: {
      const double t = std::trunc(f);
      return gives(f < t ? t - 1 : t);
    }
    case Opcode::CeilF: {
      const double t = std::trunc(f);
      return gives(f > t ? t + 1 : t);
    }
    case Opcode::SingleF: {
      volatile float single = static_cast<float>(f);
      if (std::isinf(single) && !std::isinf(f)) return Fate::kError;
      return gives(single);
    }
    case Opcode::CanonF:
      return gives(std::isnan(f) ? std::numeric_limits<double>::quiet_NaN() : f == 0 ? 0.0 : f);
    case Opcode::AbsW:
      if (in.w == kInt128Min) return Fate::kError;
      out->w = in.w < 0 ? -in.w : in.w;
      return Fate::kValue;
    case Opcode::IToF:
      return gives(static_cast<double>(static_cast<long double>(in.v)));
    case Opcode::FToI: {
      const long double r = RoundHalfEven(f);
      if (!(r >= static_cast<long double>(kLeast) && r <= static_cast<long double>(kGreatest))) return Fate::kError;
      out->v = static_cast<int64_t>(r);
      return Fate::kValue;
    }
    case Opcode::IToW:
      out->w = in.v;
      return Fate::kValue;
    case Opcode::WToI:
      if (in.w < kLeast || in.w > kGreatest) return Fate::kError;
      out->v = static_cast<int64_t>(in.w);
      return Fate::kValue;
    case Opcode::WToF:
      return gives(std::strtod(Show(in.w).c_str(), nullptr));  // glibc rounds to nearest even
    case Opcode::FToW: {
      const double r = std::round(f);
      if (!(std::fabs(r) < 1e38)) return Fate::kError;
      char digits[64];
      snprintf(digits, sizeof digits, "%.0f", std::fabs(r));  // exact in glibc
      uint128_t m = 0;
      for (const char* d = digits; *d != 0; ++d) m = m * 10 + static_cast<unsigned>(*d - '0');
      out->w = r < 0 ? -static_cast<int128_t>(m) : static_cast<int128_t>(m);
      return Fate::kValue;
    }
    default:
      return IntervalToAny(op, in.w, out);
  }
}

namespace {

/// The functions of MathF in the order of vm/program/math_functions.def, with the numbers between which they have a value.
struct MathName {
  double (*f)(double);
  double least, greatest;
  bool open;  ///< the least itself has none
};
constexpr double kEnd = std::numeric_limits<double>::infinity(), kLargest = std::numeric_limits<double>::max();
const MathName kFunctionsOfOne[kMathNames] = {
    {std::sqrt, 0, kEnd, false},
    {std::cbrt, -kEnd, kEnd, false},
    {std::exp, -kEnd, kEnd, false},
    {std::log, 0, kEnd, true},
    {std::log10, 0, kEnd, true},
    {std::log2, 0, kEnd, true},
    {std::sin, -kLargest, kLargest, false},
    {std::cos, -kLargest, kLargest, false},
    {std::tan, -kLargest, kLargest, false},
    {[](double x) { return 1 / std::tan(x); }, -kLargest, kLargest, false},
    {std::asin, -1, 1, false},
    {std::acos, -1, 1, false},
    {std::atan, -kEnd, kEnd, false},
    {std::sinh, -kEnd, kEnd, false},
    {std::cosh, -kEnd, kEnd, false},
    {std::tanh, -kEnd, kEnd, false},
};

}  // namespace

Fate BinaryField(Opcode op, int64_t a, int64_t b, int field, int64_t* out) {
  if (op != Opcode::MathPairF) return Fate::kUnknownOpcode;
  const double x = AsDouble(a), y = AsDouble(b);
  double r = 0;
  switch (field - kMathNames) {
    case 0:
      r = std::pow(x, y);
      if (std::isnan(r) && !std::isnan(x) && !std::isnan(y)) return Fate::kError;
      if (std::isinf(r) && std::isfinite(x) && std::isfinite(y)) return Fate::kError;
      if (x == 0 && y < 0) return Fate::kError;  // minus infinity, too
      break;
    case 1:
      r = std::atan2(x, y);
      break;
    case 2:
      if (x <= 0 || x == 1 || y <= 0) return Fate::kError;
      r = x == 2 ? std::log2(y) : x == 10 ? std::log10(y) : std::log(y) / std::log(x);
      break;
    default:
      return Fate::kUnknownOpcode;
  }
  *out = AsBits(r);
  return Fate::kValue;
}

Fate UnaryField(Opcode op, int64_t v, int field, int64_t* out) {
  switch (op) {
    case Opcode::MathF: {
      if (field < 0 || field >= kMathNames) return Fate::kUnknownOpcode;
      const MathName& of = kFunctionsOfOne[field];
      const double x = AsDouble(v);
      if (x < of.least || x > of.greatest || (of.open && x == of.least)) return Fate::kError;
      const double r = of.f(x);
      if (std::isinf(r) && std::isfinite(x) && field != 9) return Fate::kError;
      *out = AsBits(r);
      return Fate::kValue;
    }
    case Opcode::DatePartD:
      return DateField(v, 0, field, out);
    case Opcode::DatePartT: {
      const int64_t day = FloorOf(v, kDayMicros);
      return day < kYear1 || day > kYear9999 ? Fate::kUnspecified : DateField(day, v - day * kDayMicros, field, out);
    }
    case Opcode::RoundDigitsF: {
      // The walk uses powers of ten that doubles hold exactly.
      const double scale = std::strtod(fmt::format("1e{}", std::abs(field)).c_str(), nullptr), f = AsDouble(v);
      const double scaled = field < 0 ? f / scale : f * scale;
      double r = f;
      if (std::fabs(scaled) < 0x1p52) {
        r = std::trunc(scaled);
        if (std::fabs(scaled - r) >= 0.5) r += scaled < 0 ? -1 : 1;
        r = std::copysign(r, scaled);
        r = field < 0 ? r * scale : r / scale;
      } else if (field < 0 && !std::isnan(scaled)) {
        r = scaled * scale;
      }
      *out = AsBits(r);
      return Fate::kValue;
    }
    default:
      return Fate::kUnknownOpcode;
  }
}

std::optional<bool> Compares(Opcode op, int order) {
  switch (op) {
    case Opcode::FilterEqI:
    case Opcode::FilterEqF:
    case Opcode::FilterEqW:
    case Opcode::FilterEqT:
      return order == 0;
    case Opcode::FilterNeI:
    case Opcode::FilterNeF:
    case Opcode::FilterNeW:
    case Opcode::FilterNeT:
      return order != 0;
    case Opcode::FilterLtI:
    case Opcode::FilterLtF:
    case Opcode::FilterLtW:
    case Opcode::FilterLtT:
      return order < 0;
    case Opcode::FilterLeI:
    case Opcode::FilterLeF:
    case Opcode::FilterLeW:
    case Opcode::FilterLeT:
      return order <= 0;
    case Opcode::FilterGtI:
    case Opcode::FilterGtF:
    case Opcode::FilterGtW:
    case Opcode::FilterGtT:
      return order > 0;
    case Opcode::FilterGeI:
    case Opcode::FilterGeF:
    case Opcode::FilterGeW:
    case Opcode::FilterGeT:
      return order >= 0;
    default:
      return std::nullopt;
  }
}

// ---- Intervals ------------------------------------------------------------------------------------------------------

namespace {

constexpr int128_t kTwo21 = 1 << 21, kTwo25 = 1 << 25, kTwo26 = 1 << 26, kTwo48 = int128_t{1} << 48,
                   kMostTime = (int128_t{1} << 62) - 1, kDayLength = int128_t{24} * 3600 * 1000000;

struct Parts {
  int128_t months = 0, days = 0, micros = 0;
};

int128_t FloorWide(int128_t a, int128_t b) { return a / b - (a % b < 0 ? 1 : 0); }

Parts PartsOf(int128_t v) {
  const int128_t length = FloorWide(v, kTwo48), rest = v - length * kTwo48;
  Parts p{rest / kTwo26 - kTwo21, rest % kTwo26 - kTwo25, 0};
  p.micros = std::clamp(length - (p.months * 30 + p.days) * kDayLength, -kMostTime, kMostTime);
  return p;
}

Fate Packed(const Parts& p, int128_t* out) {
  const auto within = [](int128_t v, int128_t most) { return v <= most && v >= -most; };
  if (!within(p.months, kTwo21 - 1) || !within(p.days, kTwo25 - 1) || !within(p.micros, kMostTime)) return Fate::kError;
  *out = ((p.months * 30 + p.days) * kDayLength + p.micros) * kTwo48 + (p.months + kTwo21) * kTwo26 + p.days + kTwo25;
  return Fate::kValue;
}

struct Calendar {
  int64_t year = 0, month = 0, day = 0, micros = 0, length = 0;  ///< length: days of the month
};
Calendar CalendarOf(int64_t moment) {
  using namespace std::chrono;
  const int64_t days = FloorOf(moment, static_cast<int64_t>(kDayLength));
  const year_month_day date{sys_days(std::chrono::days(days))};
  const year_month_day_last last{date.year(), month_day_last(date.month())};
  return {int{date.year()}, unsigned{date.month()}, unsigned{date.day()},
          moment - days * static_cast<int64_t>(kDayLength), unsigned{last.day()}};
}

/// What is left of v / unit, towards 0.
int128_t Carried(int128_t* v, int128_t unit) {
  const int128_t whole = *v / unit;
  *v -= whole * unit;
  return whole;
}

/// Gives the part the sign of the next one.
void Align(int128_t* part, int128_t unit, int128_t* next) {
  const int sign = *next > 0 && *part < 0 ? 1 : *next < 0 && *part > 0 ? -1 : 0;
  *part += sign * unit;
  *next -= sign;
}

}  // namespace

Fate IntervalToAny(Opcode op, int128_t v, Scalar* out) {
  Parts p = PartsOf(v);
  switch (op) {
    case Opcode::IntervalMonthsW:
      out->v = static_cast<int64_t>(p.months);
      return Fate::kValue;
    case Opcode::IntervalDaysW:
      out->v = static_cast<int64_t>(p.days);
      return Fate::kValue;
    case Opcode::IntervalMicrosW:
      out->v = static_cast<int64_t>(p.micros);
      return Fate::kValue;
    case Opcode::JustifyHoursW:
      p.days += Carried(&p.micros, kDayLength);
      Align(&p.micros, kDayLength, &p.days);
      return Packed(p, &out->w);
    case Opcode::JustifyDaysW:
      p.months += Carried(&p.days, 30);
      Align(&p.days, 30, &p.months);
      return Packed(p, &out->w);
    case Opcode::JustifyIntervalW: {
      p.days += Carried(&p.micros, kDayLength);
      p.months += Carried(&p.days, 30);
      const int128_t below = p.days * kDayLength + p.micros;
      if (p.months > 0 && below < 0 && (p.days < 0 || p.days == 0)) {
        p.days += 30;
        p.months -= 1;
      } else if (p.months < 0 && below > 0 && (p.days > 0 || p.days == 0)) {
        p.days -= 30;
        p.months += 1;
      }
      Align(&p.micros, kDayLength, &p.days);
      return Packed(p, &out->w);
    }
    default:
      return Fate::kUnknownOpcode;
  }
}

Fate OfTwoIntervals(Opcode op, int128_t a, int128_t b, int128_t* out) {
  if (op != Opcode::AddIntervalW && op != Opcode::SubIntervalW) return Fate::kUnknownOpcode;
  const int sign = op == Opcode::SubIntervalW ? -1 : 1;
  const Parts x = PartsOf(a), y = PartsOf(b);
  return Packed({x.months + sign * y.months, x.days + sign * y.days, x.micros + sign * y.micros}, out);
}

Fate OfInterval(Opcode op, int64_t a, const Scalar& b, int64_t c, Scalar* out) {
  if (op == Opcode::RandomUuidI) {
    // In hexadecimal digits from the left: digit 12 is 4, digit 16 is 8 to b.
    std::string digits = fmt::format("{:016x}{:016x}", SplitMix(a ^ b.v), SplitMix(a ^ c));
    digits[12] = '4';
    digits[16] = "89ab"[std::stoi(digits.substr(16, 1), nullptr, 16) % 4];
    digits[0] = fmt::format("{:x}", (std::stoi(digits.substr(0, 1), nullptr, 16) + 8) % 16)[0];
    uint128_t bits = 0;
    for (const char digit : digits) bits = bits * 16 + std::stoul(std::string(1, digit), nullptr, 16);
    out->w = static_cast<int128_t>(bits);
    return Fate::kValue;
  }
  // A difference is of moments, which may lie a day beyond the calendar.
  const int64_t beyond = op == Opcode::BetweenT ? 86400000000 : 0;
  const auto exists = [&](int128_t v) { return v >= -62135596800000000 - beyond && v < 253402300800000000 + beyond; };
  if ((op == Opcode::BetweenT || op == Opcode::AgeT) && !exists(b.v)) return Fate::kError;
  const bool of_moment =
      op == Opcode::BetweenT || op == Opcode::AgeT || op == Opcode::AddIntervalT || op == Opcode::SubIntervalT;
  if (of_moment && !exists(a)) return Fate::kError;
  switch (op) {
    case Opcode::AddIntervalT:
    case Opcode::SubIntervalT: {
      const int sign = op == Opcode::SubIntervalT ? -1 : 1;
      const Parts p = PartsOf(b.w);
      Calendar at = CalendarOf(a);
      const int128_t months = at.year * 12 + at.month - 1 + sign * p.months;
      const int128_t year = FloorWide(months, 12);
      if (year < 1 || year > 9999) return Fate::kError;
      using namespace std::chrono;
      const std::chrono::year y(static_cast<int>(year));
      const std::chrono::month m(static_cast<unsigned>(months - year * 12 + 1));
      const year_month_day_last last{y, month_day_last(m)};
      const auto day = std::min<int64_t>(at.day, unsigned{last.day()});
      const sys_days date{y / m / static_cast<int>(day)};
      const int128_t sum = (date.time_since_epoch().count() + sign * p.days) * kDayLength + at.micros + sign * p.micros;
      if (!exists(sum)) return Fate::kError;
      out->v = static_cast<int64_t>(sum);
      return Fate::kValue;
    }
    case Opcode::BetweenT: {
      Parts p{0, 0, static_cast<int128_t>(a) - b.v};
      p.days = Carried(&p.micros, kDayLength);
      return Packed(p, &out->w);
    }
    case Opcode::AgeT: {
      const int sign = a < b.v ? -1 : 1;
      const Calendar x = CalendarOf(std::max(a, b.v)), y = CalendarOf(std::min(a, b.v));
      int128_t months = (x.year * 12 + x.month) - (y.year * 12 + y.month);
      int128_t micros = x.micros - y.micros, days = x.day - y.day;
      if (micros < 0) micros += kDayLength, days -= 1;
      for (; days < 0; days += y.length) months -= 1;
      return Packed({sign * months, sign * days, sign * micros}, &out->w);
    }
    case Opcode::TimesIntervalF:
    case Opcode::ByIntervalF: {
      const double factor = AsDouble(a);
      const bool divides = op == Opcode::ByIntervalF;
      if (divides && factor == 0) return Fate::kNull;
      const Parts p = PartsOf(b.w);
      const auto scaled = [&](int128_t v) {
        const auto x = static_cast<double>(static_cast<int64_t>(v));
        return divides ? x / factor : x * factor;
      };
      const auto six = [](double v) { return std::nearbyint(v * 1e6) / 1e6; };
      const double months = scaled(p.months), days = scaled(p.days), micros = scaled(p.micros);
      double month_part, day_part, carry_part;
      const double month_rest = std::modf(months, &month_part), day_rest = std::modf(days, &day_part);
      const double carried = six(month_rest * 30);
      std::modf(carried, &carry_part);
      double seconds = six((day_rest + carried - carry_part) * 86400);
      double all_days = day_part + carry_part;
      if (std::abs(seconds) >= 86400) {
        all_days += std::trunc(seconds / 86400);
        seconds -= std::trunc(seconds / 86400) * 86400;
      }
      const double all_micros = std::nearbyint(micros + seconds * 1e6);
      for (const double v : {month_part, all_days, all_micros}) {
        if (!(std::abs(v) < 1e30)) return Fate::kError;
      }
      return Packed(
          {static_cast<int128_t>(month_part), static_cast<int128_t>(all_days), static_cast<int128_t>(all_micros)},
          &out->w);
    }
    case Opcode::MakeIntervalI:
      return Packed({a, b.v, c}, &out->w);
    default:
      return Fate::kUnknownOpcode;
  }
}

}  // namespace tessera::test::walk
