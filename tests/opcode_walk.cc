// Three parts: a second implementation of the machine (Reference), row sets with chosen values (Form, Column), and the
// walk over opcodes.def that makes programs, runs them on both and compares.
//
// The reference runs a section over all rows of its source at once, one instruction after another, with the plainest
// code that says what an opcode means. It calls nothing of vm/ but Info().
#include "tests/opcode_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/int128.h"
#include "tests/memory_tablet.h"
#include "vm/program.h"

namespace tessera::test {
namespace {

using vm::AccumulatorSpec;
using vm::AggregateSpec;
using vm::Info;
using vm::Instruction;
using vm::Opcode;
using vm::OpcodeInfo;
using vm::Operand;
using vm::OperandKind;
using vm::OperandSpec;
using vm::PackType;
using vm::Predicate;
using vm::Program;
using vm::Section;
using vm::Shape;
using vm::SortKey;
using vm::Tier;
using vm::UnpackType;

const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);
const SqlType kText = SqlType::Text();
const SqlType kWide = SqlType::Decimal(38, 0);

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();
constexpr int64_t kDayMicros = int64_t{86400} * 1000000;
constexpr int64_t kYear1 = -719162, kYear9999 = 2932896;  // days

// ======================================================================================================================
// Values
// ======================================================================================================================

/// Strings and their numbers within the walk.
class Texts {
 public:
  int64_t Number(std::string_view s) {
    auto found = numbers_.find(s);
    if (found != numbers_.end()) return found->second;
    strings_.emplace_back(s);
    numbers_.emplace(strings_.back(), static_cast<int64_t>(strings_.size()) - 1);
    return static_cast<int64_t>(strings_.size()) - 1;
  }
  const std::string& Get(int64_t number) const { return strings_[static_cast<size_t>(number)]; }

 private:
  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, int64_t> numbers_;
};

/// Values of one column, as the reference holds them.
struct Cells {
  SqlType type;
  std::vector<int64_t> v;     // integers, bits of doubles, numbers of strings
  std::vector<int128_t> w;    // 128 bits
  std::vector<uint8_t> null;  // one byte a row, always
  std::vector<double> slack;  // sums of doubles: how far they may be off; else empty

  Cells() = default;
  Cells(const SqlType& t, size_t rows) : type(t), null(rows, 0) {
    if (IsWide()) {
      w.resize(rows);
    } else {
      v.resize(rows);
    }
  }
  bool IsWide() const { return type.storage() == StorageClass::kWide; }
  void Push(const Cells& from, size_t row) {
    if (IsWide()) {
      w.push_back(from.w[row]);
    } else {
      v.push_back(from.v[row]);
    }
    null.push_back(from.null[row]);
    if (!from.slack.empty()) slack.push_back(from.slack[row]);
  }
};

Cells ToCells(const ColumnVector& c, Texts* texts) {
  const size_t n = RowsOf(c);
  Cells out(c.type, n);
  for (size_t i = 0; i < n; ++i) out.null[i] = c.IsNull(i) ? 1 : 0;
  switch (c.type.storage()) {
    case StorageClass::kWide:
      out.w = c.wide;
      break;
    case StorageClass::kText:
      for (size_t i = 0; i < n; ++i) out.v[i] = out.null[i] != 0 ? 0 : texts->Number(c.Text(i));
      break;
    default:
      out.v = c.fixed;
      break;
  }
  return out;
}

std::string Show(int128_t v) {
  char buffer[44];
  char* p = buffer + sizeof buffer;
  *--p = 0;
  uint128_t m = v < 0 ? uint128_t{0} - static_cast<uint128_t>(v) : static_cast<uint128_t>(v);
  do {
    *--p = static_cast<char>('0' + static_cast<int>(m % 10));
    m /= 10;
  } while (m != 0);
  if (v < 0) *--p = '-';
  return p;
}

std::string Show(const Cells& c, size_t row, const Texts& texts) {
  if (c.null[row] != 0) return "NULL";
  switch (c.type.storage()) {
    case StorageClass::kWide:
      return Show(c.w[row]);
    case StorageClass::kText:
      return "'" + texts.Get(c.v[row]) + "'";
    case StorageClass::kFloat:
      return fmt::format("{:a} ({})", std::bit_cast<double>(c.v[row]), std::bit_cast<double>(c.v[row]));
    default:
      return std::to_string(c.v[row]);
  }
}

double AsDouble(int64_t bits) { return std::bit_cast<double>(bits); }
int64_t AsBits(double v) { return std::bit_cast<int64_t>(v); }

/// Order of floats: NaN is the greatest and equals itself, zeros are equal.
int CompareFloats(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
  return a < b ? -1 : a > b ? 1 : 0;
}
int CompareBytes(std::string_view a, std::string_view b) {
  const int c = memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
  return c != 0 ? c : a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

// ======================================================================================================================
// The second meaning of each opcode
// ======================================================================================================================

enum class Fate : uint8_t { kValue, kNull, kError, kUnspecified, kUnknownOpcode };

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
      return Fate::kUnknownOpcode;
  }
}

double RoundHalfEven(double v) {
  if (!(std::fabs(v) < 0x1p52)) return v;
  const double below = std::floor(v), part = v - below;
  const bool up = part > 0.5 || (part == 0.5 && std::fmod(below, 2.0) != 0);
  return std::copysign(up ? below + 1 : below, v);
}

/// A narrow or a wide value: what opcodes with one operand take and give.
struct Scalar {
  int64_t v = 0;
  int128_t w = 0;
};

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
    case Opcode::NegF:
      out->v = in.v ^ kLeast;
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
      return Fate::kUnknownOpcode;
  }
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

Fate UnaryField(Opcode op, int64_t v, int field, int64_t* out) {
  switch (op) {
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

/// The comparison of an opcode, from the order of its operands; nullopt: not a comparison that is known here.
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

// ---- Text

/// The characters of UTF-8, one string each.
std::vector<std::string> Characters(std::string_view s) {
  std::vector<std::string> out;
  for (char c : s) {
    if (out.empty() || (static_cast<uint8_t>(c) & 0xC0) != 0x80) out.emplace_back();
    out.back() += c;
  }
  return out;
}

bool Like(const std::vector<std::string>& s, size_t i, std::string_view p) {
  if (p.empty()) return i == s.size();
  if (p[0] == '%') {
    for (size_t k = i; k <= s.size(); ++k) {
      if (Like(s, k, p.substr(1))) return true;
    }
    return false;
  }
  if (i == s.size()) return false;
  if (p[0] == '_') return Like(s, i + 1, p.substr(1));
  if (p[0] == '\\' && p.size() > 1) p.remove_prefix(1);
  const std::string first = Characters(p)[0];
  return s[i] == first && Like(s, i + 1, p.substr(first.size()));
}

Fate TextUnary(Opcode op, const std::string& s, std::string* out) {
  *out = s;
  const bool left = op == Opcode::TrimT || op == Opcode::TrimLeftT,
             right = op == Opcode::TrimT || op == Opcode::TrimRightT;
  if (op == Opcode::UpperT || op == Opcode::LowerT) {
    for (char& c : *out) {
      if (op == Opcode::UpperT && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
      if (op == Opcode::LowerT && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return Fate::kValue;
  }
  if (!left && !right) return Fate::kUnknownOpcode;
  while (left && !out->empty() && out->front() == ' ') out->erase(0, 1);
  while (right && !out->empty() && out->back() == ' ') out->pop_back();
  return Fate::kValue;
}

std::string DecimalText(int128_t v, int scale) {
  std::string digits = Show(v < 0 ? -v : v);
  while (static_cast<int>(digits.size()) <= scale) digits.insert(0, "0");
  if (scale > 0) digits.insert(digits.size() - static_cast<size_t>(scale), ".");
  return v < 0 ? "-" + digits : digits;
}

std::string DateText(int64_t day) {
  const std::chrono::year_month_day d{std::chrono::sys_days(std::chrono::days(static_cast<int>(day)))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(d.year()), static_cast<unsigned>(d.month()),
                     static_cast<unsigned>(d.day()));
}

/// Fewest digits that read back as `v`, written as PostgreSQL does.
std::string FloatText(double v, bool single) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  char buffer[64];
  for (int digits = 0; digits < 18; ++digits) {
    snprintf(buffer, sizeof buffer, "%.*e", digits, v);
    if (single ? std::strtof(buffer, nullptr) == static_cast<float>(v) : std::strtod(buffer, nullptr) == v) break;
  }
  std::string text = buffer;
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= (single ? 6 : 15)) return text;
  std::string sign = text[0] == '-' ? "-" : "", digits;
  for (size_t i = 0; i < e; ++i) {
    if (text[i] >= '0' && text[i] <= '9') digits += text[i];
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  while (static_cast<int>(digits.size()) < exponent + 1) digits += '0';
  std::string whole = digits.substr(0, static_cast<size_t>(exponent) + 1),
              part = digits.substr(static_cast<size_t>(exponent) + 1);
  return sign + whole + (part.empty() ? "" : "." + part);
}

Fate ToTextOf(const SqlType& type, const Scalar& in, std::string* out) {
  switch (type.id) {
    case TypeId::kBoolean:
      *out = in.v != 0 ? "true" : "false";
      break;
    case TypeId::kReal:
      *out = FloatText(AsDouble(in.v), true);
      break;
    case TypeId::kDouble:
      *out = FloatText(AsDouble(in.v), false);
      break;
    case TypeId::kDecimal: {
      if (type.storage() == StorageClass::kWide && in.w == kInt128Min) return Fate::kUnspecified;
      *out = DecimalText(type.storage() == StorageClass::kWide ? in.w : in.v, type.scale);
      break;
    }
    case TypeId::kDate:
      if (in.v < kYear1 || in.v > kYear9999) return Fate::kUnspecified;
      *out = DateText(in.v);
      break;
    case TypeId::kTimestamp: {
      const int64_t day = FloorOf(in.v, kDayMicros), rest = in.v - day * kDayMicros;
      if (day < kYear1 || day > kYear9999) return Fate::kUnspecified;
      *out = DateText(day) +
             fmt::format(" {:02}:{:02}:{:02}", rest / 3600000000, rest / 60000000 % 60, rest / 1000000 % 60);
      if (rest % 1000000 != 0) {
        *out += fmt::format(".{:06}", rest % 1000000);
        while (out->back() == '0') out->pop_back();
      }
      break;
    }
    default:
      *out = std::to_string(in.v);
      break;
  }
  return Fate::kValue;
}

/// Reads the forms of text that the walk writes: "-12", " 12.345 ", "1998-12-01", "1998-12-01 10:11:12.5", "true",
/// "1e5", "NaN".
Fate FromTextOf(const SqlType& type, const std::string& text, Scalar* out) {
  std::string s = text;
  while (!s.empty() && s.front() == ' ') s.erase(0, 1);
  while (!s.empty() && s.back() == ' ') s.pop_back();
  auto digits = [](const std::string& d) {
    return !d.empty() && d.find_first_not_of("0123456789") == std::string::npos;
  };
  const bool negative = !s.empty() && s[0] == '-';
  const std::string rest = !s.empty() && (s[0] == '-' || s[0] == '+') ? s.substr(1) : s;
  switch (type.id) {
    case TypeId::kBoolean:
      if (s != "true" && s != "false" && s != "1" && s != "0") return Fate::kError;
      out->v = s == "true" || s == "1" ? 1 : 0;
      return Fate::kValue;
    case TypeId::kSmallint:
    case TypeId::kInteger:
    case TypeId::kBigint: {
      if (!digits(rest) || rest.size() > 25) return Fate::kError;
      int128_t v = 0;
      for (char c : rest) v = v * 10 + (c - '0');
      v = negative ? -v : v;
      const int bits = type.id == TypeId::kSmallint ? 15 : type.id == TypeId::kInteger ? 31 : 63;
      if (v < -(static_cast<int128_t>(1) << bits) || v >= static_cast<int128_t>(1) << bits) return Fate::kError;
      out->v = static_cast<int64_t>(v);
      return Fate::kValue;
    }
    case TypeId::kDecimal: {
      const size_t e = rest.find('e'), point = rest.substr(0, e).find('.');
      std::string whole = rest.substr(0, std::min(e, point));
      std::string part =
          point == std::string::npos ? "" : rest.substr(point + 1, e == std::string::npos ? e : e - point - 1);
      // An exponent moves the point.
      for (int k = e == std::string::npos ? 0 : std::atoi(rest.c_str() + e + 1); k != 0; k += k > 0 ? -1 : 1) {
        if (k > 0) {
          whole += part.empty() ? '0' : part[0];
          part.erase(0, 1);
        } else {
          part.insert(part.begin(), whole.empty() ? '0' : whole.back());
          if (!whole.empty()) whole.pop_back();
        }
      }
      const size_t zeros = std::min(whole.find_first_not_of('0'), whole.size());
      if (!digits(whole + part) || whole.size() - zeros + type.scale > 38) return Fate::kError;
      int128_t v = 0;
      for (char c : whole + part.substr(0, type.scale)) v = v * 10 + (c - '0');
      for (size_t i = part.size(); i < type.scale; ++i) v *= 10;
      if (part.size() > type.scale && part[type.scale] >= '5') ++v;
      if (v >= PowerOf10(type.precision)) return Fate::kError;
      out->w = negative ? -v : v;
      out->v = static_cast<int64_t>(out->w);
      return Fate::kValue;
    }
    case TypeId::kReal:
    case TypeId::kDouble: {
      if (rest.empty() || ((rest[0] < '0' || rest[0] > '9') && rest[0] != '.' && rest != "Infinity" && s != "NaN"))
        return Fate::kError;
      char* end = nullptr;
      const double v = type.id == TypeId::kReal ? std::strtof(s.c_str(), &end) : std::strtod(s.c_str(), &end);
      // Out of range: too large, or not 0 but rounded to it.
      const bool vanished = v == 0 && s.substr(0, s.find('e')).find_first_of("123456789") != std::string::npos;
      if (*end != 0 || (std::isinf(v) && rest != "Infinity") || vanished) return Fate::kError;
      out->v = AsBits(v);
      return Fate::kValue;
    }
    case TypeId::kDate:
    case TypeId::kTimestamp: {
      int y = 0, m = 0, d = 0, hour = 0, minute = 0, used = 0;
      double second = 0;
      const bool date = type.id == TypeId::kDate;
      const int fields = sscanf(s.c_str(), date ? "%4d-%2d-%2d%n" : "%4d-%2d-%2d %2d:%2d:%lf%n", &y, &m, &d,
                                date ? &used : &hour, &minute, &second, &used);
      const std::chrono::year_month_day day{std::chrono::year(y), std::chrono::month(static_cast<unsigned>(m)),
                                            std::chrono::day(static_cast<unsigned>(d))};
      if (fields != (date ? 3 : 6) || used != static_cast<int>(s.size()) || y < 1 || !day.ok() || hour > 23 ||
          minute > 59 || second >= 60)
        return Fate::kError;
      out->v = std::chrono::sys_days(day).time_since_epoch().count();
      if (!date)
        out->v = out->v * kDayMicros + (hour * int64_t{3600} + minute * 60) * 1000000 + std::llround(second * 1e6);
      return Fate::kValue;
    }
    default:
      return Fate::kUnknownOpcode;
  }
}

// ======================================================================================================================
// The reference: a section at a time, an instruction at a time, a row at a time
// ======================================================================================================================

struct TestTable {
  std::string name;
  std::vector<MemoryColumn> columns;
  uint32_t tablet_rows = 1u << 20;
  size_t rows() const { return columns.empty() ? 0 : RowsOf(columns[0].values); }
};

class Reference {
 public:
  Reference(const Program& program, const std::vector<TestTable>& tables, Texts* texts)
      : p_(program), tables_(tables), texts_(texts) {}

  /// Why the reference could not run it; empty if it could.
  std::string problem;
  bool failed = false;        ///< a live row raised an error
  bool unspecified = false;   ///< a live row did what no document defines
  std::vector<uint8_t> bad;   ///< rows of the last stored table: 1 raised an error (there or in a section over its
                              ///< rows), 2 was unspecified
  std::vector<Cells> result;  ///< columns of the last section
  size_t result_rows = 0;

  void Run() {
    results_.resize(p_.sections.size());
    row_counts_.assign(p_.sections.size(), 0);
    joins_.resize(p_.joins.size());
    origins_.resize(p_.sections.size());
    for (size_t i = 0; i < p_.sections.size() && problem.empty(); ++i) {
      if (p_.sections[i].source_kind != Section::Source::kDictionary) RunSection(i);
    }
    result = results_.back();
    result_rows = row_counts_.back();
  }

 private:
  struct Join {
    std::vector<Cells> columns;
    std::unordered_map<std::string, std::vector<uint32_t>> rows;
  };
  struct Cursor {
    const std::vector<uint32_t>* rows = nullptr;
    size_t at = 0;
    bool valid() const { return rows != nullptr && at < rows->size(); }
  };
  struct State {  // of one aggregate of one group
    bool seen = false;
    int64_t count = 0, v = 0;
    int128_t w = 0;
    long double sum = 0;
    double absolute = 0;
  };
  /// What an entry of a dictionary became.
  struct Mapped {
    bool kept = false, null = true;
    int64_t v = 0;
  };
  /// An operand: values, or one for all rows.
  struct View {
    const int64_t* v = nullptr;
    const int128_t* w = nullptr;
    const uint8_t* null = nullptr;
    bool one = false;
    int64_t V(size_t i) const { return v[one ? 0 : i]; }
    int128_t W(size_t i) const { return w[one ? 0 : i]; }
    bool Null(size_t i) const { return null[one ? 0 : i] != 0; }
  };
  /// The machine while one section runs.
  struct Machine {
    size_t n = 0;
    std::vector<uint8_t> live, a_null, w_null;
    std::vector<int64_t> a;
    std::vector<int128_t> w;
    std::vector<Cells> slots, registers;
    std::vector<std::vector<uint8_t>> masks;
    std::vector<std::vector<Cursor>> cursors;
    std::vector<uint8_t> outer;  // per join table: probed by ProbeOuter
    std::vector<uint32_t> group;
    std::unordered_map<std::string, uint32_t> groups;
    std::vector<Cells> keys;
    std::vector<std::vector<State>> states;  // per aggregate
    std::vector<Cells> out;
    std::vector<uint32_t> out_from;  // row that each emitted row came from
    Cells scratch[2];
  };

  void Problem(const std::string& what) {
    if (problem.empty()) problem = what;
  }

  /// Every entry of a dictionary section's input, run once.
  Mapped MapText(int section, int64_t number) {
    auto& cache = maps_[section];
    auto found = cache.find(number);
    if (found != cache.end()) return found->second;
    const Section& s = p_.sections[static_cast<size_t>(section)];
    Machine m;
    m.slots.emplace_back(kText, 1);
    m.slots[0].v[0] = number;
    RunCode(s, &m, 1, nullptr, nullptr);
    Mapped r;
    if (!m.out_from.empty()) {
      r.kept = true;
      if (!s.columns.empty()) {
        r.null = m.out[0].null.back() != 0;
        r.v = m.out[0].v.back();
      }
    }
    return cache[number] = r;
  }

  void RunSection(size_t number) {
    const Section& s = p_.sections[number];
    Machine m;
    size_t rows = 1;
    const bool stored = s.source_kind == Section::Source::kTable;
    if (stored) {
      const TestTable& t = tables_[static_cast<size_t>(s.source)];
      rows = t.rows();
      for (const vm::Slot& slot : s.slots) {
        Cells c = ToCells(t.columns[static_cast<size_t>(slot.column)].values, texts_);
        if (slot.map >= 0) {
          c.type = slot.type;
          for (size_t i = 0; i < rows; ++i) {
            if (c.null[i] != 0) continue;
            const Mapped r = MapText(slot.map, c.v[i]);
            c.v[i] = r.v;
            c.null[i] = r.null ? 1 : 0;
          }
        }
        m.slots.push_back(std::move(c));
      }
      bad.assign(rows, 0);
    } else if (s.source_kind == Section::Source::kSection) {
      rows = row_counts_[static_cast<size_t>(s.source)];
      for (const vm::Slot& slot : s.slots)
        m.slots.push_back(results_[static_cast<size_t>(s.source)][static_cast<size_t>(slot.column)]);
    }
    RunCode(s, &m, rows, &bad,
            stored                                       ? nullptr
            : s.source_kind == Section::Source::kSection ? &origins_[static_cast<size_t>(s.source)]
                                                         : &no_origin_);
    if (s.sink == Section::Sink::kJoin) return FinishJoin(s, &m);
    if (s.sink == Section::Sink::kGroups) return FinishGroups(s, &m, number);
    row_counts_[number] = m.out_from.size();
    if (stored) origins_[number] = m.out_from;
    // The walk's readers of groups copy slot c to column c: how far sums may be off goes with them.
    for (size_t c = 0; c < m.out.size() && c < m.slots.size(); ++c) {
      for (size_t i = 0; i < m.out_from.size() && !m.slots[c].slack.empty(); ++i)
        m.out[c].slack.push_back(m.slots[c].slack[m.out_from[i]]);
    }
    OrderAndLimit(s, &m.out, &row_counts_[number]);
    results_[number] = std::move(m.out);
  }

  View Fetch(Machine* m, int32_t packed, int scratch) {
    const Operand o = Operand::Unpack(packed);
    auto view = [](const Cells& c) { return View{c.v.data(), c.w.data(), c.null.data(), false}; };
    switch (o.kind) {
      case OperandKind::kSlot:
        return view(m->slots[o.index]);
      case OperandKind::kRegister:
        return view(m->registers[o.index]);
      case OperandKind::kConstant: {
        const Value& c = p_.constants[o.index];
        Cells& cell = m->scratch[scratch];
        cell = Cells(c.type, 1);
        cell.null[0] = c.null ? 1 : 0;
        switch (c.type.storage()) {
          case StorageClass::kInt:
            cell.v[0] = c.i64;
            break;
          case StorageClass::kFloat:
            cell.v[0] = AsBits(c.f64);
            break;
          case StorageClass::kText:
            cell.v[0] = texts_->Number(c.text);
            break;
          case StorageClass::kWide:
            cell.w[0] = c.wide;
            break;
        }
        View v = view(cell);
        v.one = true;
        return v;
      }
      case OperandKind::kPayload: {
        const Join& join = joins_[o.table];
        const Section& builder = p_.sections[static_cast<size_t>(p_.joins[o.table].section)];
        const Cells& c = join.columns[static_cast<size_t>(builder.keys) + o.index];
        Cells& cell = m->scratch[scratch];
        cell = Cells(c.type, m->n);
        for (size_t i = 0; i < m->n; ++i) {
          const Cursor& cursor = m->cursors[o.table][i];
          if (m->live[i] == 0) continue;
          if (!cursor.valid() && m->outer[o.table] != 0) {
            cell.null[i] = 1;
            continue;
          }
          if (!cursor.valid()) {
            Problem("a live row reads a payload without a match");
            return view(cell);
          }
          const size_t row = (*cursor.rows)[cursor.at];
          cell.null[i] = c.null[row];
          if (c.IsWide()) {
            cell.w[i] = c.w[row];
          } else {
            cell.v[i] = c.v[row];
          }
        }
        return view(cell);
      }
    }
    return {};
  }

  bool Passes(const Predicate& f, const Cells& c, size_t i) {
    const bool null = c.null[i] != 0;
    auto constant = [&](int32_t k) -> const Value& { return p_.constants[static_cast<size_t>(k)]; };
    auto order = [&](int32_t k) {
      const Value& v = constant(k);
      switch (c.type.storage()) {
        case StorageClass::kFloat:
          return CompareFloats(AsDouble(c.v[i]), v.f64);
        case StorageClass::kText:
          return CompareBytes(texts_->Get(c.v[i]), v.text);
        case StorageClass::kWide:
          return c.w[i] < v.wide ? -1 : c.w[i] > v.wide ? 1 : 0;
        default:
          return c.v[i] < v.i64 ? -1 : c.v[i] > v.i64 ? 1 : 0;
      }
    };
    switch (f.kind) {
      case Predicate::Kind::kIsNull:
        return null;
      case Predicate::Kind::kIsNotNull:
        return !null;
      case Predicate::Kind::kRange: {
        if (null) return false;
        bool in = true;
        if (f.low >= 0) in = in && order(f.low) >= (f.low_inclusive ? 0 : 1);
        if (f.high >= 0) in = in && order(f.high) <= (f.high_inclusive ? 0 : -1);
        return in != f.negated;
      }
      case Predicate::Kind::kIn: {
        if (null) return false;
        bool in = false;
        for (int32_t k : f.list) in = in || order(k) == 0;
        return in != f.negated;
      }
      case Predicate::Kind::kMapped:
        return !null && MapText(f.map, c.v[i]).kept != f.negated;
      case Predicate::Kind::kKeyRange:
        return true;  // a hint: the walk uses it before the probe that decides
    }
    Problem("a predicate that the walk does not know");
    return false;
  }

  /// The bytes of a row's keys, and whether one of them is NULL.
  std::string KeyOf(const std::vector<View>& keys, const std::vector<bool>& wide, size_t i, bool* null) const {
    std::string out;
    *null = false;
    for (size_t k = 0; k < keys.size(); ++k) {
      const bool is_null = keys[k].Null(i);
      *null = *null || is_null;
      int128_t v = is_null ? 0 : wide[k] ? keys[k].W(i) : keys[k].V(i);
      out.push_back(is_null ? 'n' : 'v');
      out.append(reinterpret_cast<const char*>(&v), sizeof v);
    }
    return out;
  }
  std::vector<View> Keys(Machine* m, const Instruction& in, const std::vector<SqlType>& types,
                         std::vector<bool>* wide) {
    std::vector<View> out;
    for (int k = 0; k < in.p3; ++k) {
      out.push_back(k == 0 ? Fetch(m, in.p2, 0)
                           : Fetch(m, Operand::Register(Operand::Unpack(in.p2).index + k).Pack(), 0));
      wide->push_back(types[static_cast<size_t>(k)].storage() == StorageClass::kWide);
    }
    return out;
  }

  /// `origin`: rows of the stored table that the rows came from, for bad_rows; nullptr: they are those rows.
  void RunCode(const Section& s, Machine* m, size_t n, std::vector<uint8_t>* bad_rows,
               const std::vector<uint32_t>* origin) {
    m->n = n;
    m->live.assign(n, 1);
    m->a.assign(n, 0);
    m->a_null.assign(n, 0);
    m->w.assign(n, 0);
    m->w_null.assign(n, 0);
    for (const SqlType& t : s.registers) m->registers.emplace_back(t, n);
    m->masks.assign(static_cast<size_t>(s.masks), std::vector<uint8_t>(n, 0));
    m->cursors.assign(p_.joins.size(), {});
    m->outer.assign(p_.joins.size(), 0);
    m->group.assign(n, 0);
    m->states.resize(s.aggregates.size());
    if (s.sink == Section::Sink::kGroups) {
      for (int k = 0; k < s.keys; ++k) m->keys.emplace_back(s.columns[static_cast<size_t>(k)], 0);
      if (s.keys == 0) {
        m->groups[""] = 0;
        for (auto& states : m->states) states.emplace_back();
      }
    } else {
      for (const SqlType& t : s.columns) m->out.emplace_back(t, 0);
    }
    auto misfit = [&](size_t i, Fate fate) {
      (fate == Fate::kError ? failed : unspecified) = true;
      const size_t row = origin == nullptr ? i : i < origin->size() ? (*origin)[i] : SIZE_MAX;
      if (bad_rows != nullptr && row < bad_rows->size()) (*bad_rows)[row] = fate == Fate::kError ? 1 : 2;
      m->live[i] = 0;
    };
    for (size_t at = 0; problem.empty();) {
      const Instruction& in = s.code[at++];
      const OpcodeInfo& info = Info(in.op);
      auto unknown = [&] {
        Problem(std::string("opcode ") + info.name + " has no meaning in tests/opcode_walk.cc: give it one");
      };
      auto keep = [&](auto f) {
        for (size_t i = 0; i < n; ++i) {
          if (m->live[i] != 0 && !f(i)) m->live[i] = 0;
        }
      };
      auto each = [&](auto f) {
        for (size_t i = 0; i < n; ++i) {
          if (m->live[i] != 0) f(i);
        }
      };
      switch (info.shape) {
        case Shape::End:
          return;
        case Shape::SkipIfNone:
          break;  // may be ignored
        case Shape::Next: {
          m->live = m->masks[static_cast<size_t>(in.p3)];
          keep([&](size_t i) {
            Cursor& c = m->cursors[in.p1][i];
            if (c.valid()) ++c.at;
            return c.valid();
          });
          m->masks[static_cast<size_t>(in.p3)] = m->live;
          if (std::count(m->live.begin(), m->live.end(), 1) > 0) at = static_cast<size_t>(in.p2);
          break;
        }
        case Shape::NextOuter: {
          m->live = m->masks[static_cast<size_t>(in.p3)];
          keep([&](size_t i) {
            Cursor& c = m->cursors[in.p1][i];
            const bool matched = c.valid();
            if (matched) ++c.at;
            return matched;
          });
          m->masks[static_cast<size_t>(in.p3)] = m->live;
          if (std::count(m->live.begin(), m->live.end(), 1) > 0) at = static_cast<size_t>(in.p2);
          break;
        }
        case Shape::TestMatch:
          if (in.op != Opcode::FilterMatched) return unknown();
          keep([&](size_t i) { return m->cursors[in.p1][i].valid(); });
          break;
        case Shape::Refuse:
          if (in.op != Opcode::RefuseMatch) return unknown();
          each([&](size_t i) { misfit(i, Fate::kError); });
          break;
        case Shape::MaskRegister: {
          std::vector<uint8_t>& r = m->masks[in.p1];
          switch (in.op) {
            case Opcode::MaskSave:
              r = m->live;
              break;
            case Opcode::MaskLoad:
              m->live = r;
              break;
            case Opcode::MaskClear:
              r.assign(n, 0);
              break;
            case Opcode::MaskOr:
              for (size_t i = 0; i < n; ++i) r[i] = r[i] != 0 || m->live[i] != 0 ? 1 : 0;
              break;
            case Opcode::MaskAndNot:
              for (size_t i = 0; i < n; ++i) m->live[i] = m->live[i] != 0 && r[i] == 0 ? 1 : 0;
              break;
            default:
              unknown();
          }
          break;
        }
        case Shape::Filter: {
          const Predicate& f = s.predicates[in.p1];
          const Cells& c = m->slots[static_cast<size_t>(f.slot)];
          keep([&](size_t i) { return Passes(f, c, i); });
          break;
        }
        case Shape::Test:
          if (in.op == Opcode::FilterTrue) {
            keep([&](size_t i) { return m->a_null[i] == 0 && m->a[i] != 0; });
          } else if (in.op == Opcode::FilterFalse) {
            keep([&](size_t i) { return m->a_null[i] == 0 && m->a[i] == 0; });
          } else {
            unknown();
          }
          break;
        case Shape::TestNull: {
          const std::vector<uint8_t>& null = info.in == AccumulatorSpec::W ? m->w_null : m->a_null;
          if (in.op == Opcode::FilterNull || in.op == Opcode::FilterNullW) {
            keep([&](size_t i) { return null[i] != 0; });
          } else if (in.op == Opcode::FilterNotNull || in.op == Opcode::FilterNotNullW) {
            keep([&](size_t i) { return null[i] == 0; });
          } else {
            unknown();
          }
          break;
        }
        case Shape::Compare:
        case Shape::TextCompare: {
          const View b = Fetch(m, in.p2, 0);
          if (!Compares(in.op, 0)) return unknown();
          keep([&](size_t i) {
            if (b.Null(i)) return false;
            int order = 0;
            switch (info.in) {
              case AccumulatorSpec::W:
                if (m->w_null[i] != 0) return false;
                order = m->w[i] < b.W(i) ? -1 : m->w[i] > b.W(i) ? 1 : 0;
                break;
              case AccumulatorSpec::F:
                if (m->a_null[i] != 0) return false;
                order = CompareFloats(AsDouble(m->a[i]), AsDouble(b.V(i)));
                break;
              case AccumulatorSpec::T:
                if (m->a_null[i] != 0) return false;
                order = CompareBytes(texts_->Get(m->a[i]), texts_->Get(b.V(i)));
                break;
              default:
                if (m->a_null[i] != 0) return false;
                order = m->a[i] < b.V(i) ? -1 : m->a[i] > b.V(i) ? 1 : 0;
            }
            return *Compares(in.op, order);
          });
          break;
        }
        case Shape::Like: {
          if (in.op != Opcode::FilterLike && in.op != Opcode::FilterNotLike) return unknown();
          const std::string& pattern = p_.constants[static_cast<size_t>(in.p2)].text;
          keep([&](size_t i) {
            return m->a_null[i] == 0 &&
                   Like(Characters(texts_->Get(m->a[i])), 0, pattern) == (in.op == Opcode::FilterLike);
          });
          break;
        }
        case Shape::Load: {
          const View b = Fetch(m, in.p2, 0);
          each([&](size_t i) {
            m->a[i] = b.V(i);
            m->a_null[i] = b.Null(i) ? 1 : 0;
          });
          break;
        }
        case Shape::LoadWide: {
          const View b = Fetch(m, in.p2, 0);
          each([&](size_t i) {
            m->w[i] = b.W(i);
            m->w_null[i] = b.Null(i) ? 1 : 0;
          });
          break;
        }
        case Shape::Store: {
          Cells& r = m->registers[static_cast<size_t>(in.p2)];
          each([&](size_t i) {
            r.v[i] = m->a[i];
            r.null[i] = m->a_null[i];
          });
          break;
        }
        case Shape::StoreWide: {
          Cells& r = m->registers[static_cast<size_t>(in.p2)];
          each([&](size_t i) {
            r.w[i] = m->w[i];
            r.null[i] = m->w_null[i];
          });
          break;
        }
        case Shape::Binary: {
          const View b = Fetch(m, in.p2, 0);
          each([&](size_t i) {
            uint8_t& null = info.in == AccumulatorSpec::W ? m->w_null[i] : m->a_null[i];
            if (b.Null(i)) null = 1;
            if (null != 0) return;
            Fate fate;
            if (info.in == AccumulatorSpec::W) {
              fate = BinaryW(in.op, m->w[i], b.W(i), &m->w[i]);
            } else if (info.in == AccumulatorSpec::F) {
              double r = 0;
              fate = BinaryF(in.op, AsDouble(m->a[i]), AsDouble(b.V(i)), &r);
              m->a[i] = AsBits(r);
            } else {
              fate = BinaryI(in.op, m->a[i], b.V(i), &m->a[i]);
            }
            if (fate == Fate::kUnknownOpcode) return unknown();
            if (fate == Fate::kNull) null = 1;
            if (fate == Fate::kError || fate == Fate::kUnspecified) misfit(i, fate);
          });
          break;
        }
        case Shape::Unary:
          each([&](size_t i) {
            const uint8_t null = info.in == AccumulatorSpec::W ? m->w_null[i] : m->a_null[i];
            (info.out == AccumulatorSpec::W ? m->w_null[i] : m->a_null[i]) = null;
            if (null != 0) return;
            Scalar r;
            const Fate fate = UnaryAny(in.op, {m->a[i], m->w[i]}, &r);
            if (fate == Fate::kUnknownOpcode) return unknown();
            if (fate == Fate::kError) return misfit(i, fate);
            if (info.out == AccumulatorSpec::W) {
              m->w[i] = r.w;
            } else {
              m->a[i] = r.v;
            }
          });
          break;
        case Shape::UnaryField:
          each([&](size_t i) {
            if (m->a_null[i] != 0) return;
            const Fate fate = UnaryField(in.op, m->a[i], in.p3, &m->a[i]);
            if (fate == Fate::kUnknownOpcode) return unknown();
            if (fate == Fate::kUnspecified) misfit(i, fate);
          });
          break;
        case Shape::Check: {
          const Value &low = p_.constants[static_cast<size_t>(in.p2)], &high = p_.constants[static_cast<size_t>(in.p3)];
          if (in.op != Opcode::CheckI && in.op != Opcode::CheckW) return unknown();
          each([&](size_t i) {
            const bool wide = in.op == Opcode::CheckW;
            if ((wide ? m->w_null[i] : m->a_null[i]) != 0) return;
            const int128_t v = wide ? m->w[i] : m->a[i];
            if (v < (wide ? low.wide : low.i64) || v > (wide ? high.wide : high.i64)) misfit(i, Fate::kError);
          });
          break;
        }
        case Shape::TextUnary:
        case Shape::TextCut:
        case Shape::TextLength:
          each([&](size_t i) {
            if (m->a_null[i] != 0) return;
            const std::string text = texts_->Get(m->a[i]);
            std::string r;
            if (in.op == Opcode::LengthT) {
              m->a[i] = static_cast<int64_t>(Characters(text).size());
              return;
            }
            if (in.op == Opcode::CutT) {
              const std::vector<std::string> c = Characters(text);
              for (size_t k = 0; k < c.size() && k < static_cast<size_t>(in.p3); ++k) r += c[k];
            } else if (TextUnary(in.op, text, &r) != Fate::kValue) {
              return unknown();
            }
            m->a[i] = texts_->Number(r);
          });
          break;
        case Shape::TextConcat: {
          if (in.op != Opcode::ConcatT) return unknown();
          const View b = Fetch(m, in.p2, 0);
          each([&](size_t i) {
            if (b.Null(i)) m->a_null[i] = 1;
            if (m->a_null[i] == 0) m->a[i] = texts_->Number(texts_->Get(m->a[i]) + texts_->Get(b.V(i)));
          });
          break;
        }
        case Shape::TextSubstring: {
          if (in.op != Opcode::SubstringT) return unknown();
          const View from = Fetch(m, in.p2, 0);
          const View length = in.p3 == -1 ? View{} : Fetch(m, in.p3, 1);
          each([&](size_t i) {
            if (from.Null(i) || (in.p3 != -1 && length.Null(i))) m->a_null[i] = 1;
            if (m->a_null[i] != 0) return;
            if (in.p3 != -1 && length.V(i) < 0) return misfit(i, Fate::kError);
            const std::vector<std::string> c = Characters(texts_->Get(m->a[i]));
            const int128_t first = from.V(i);
            const int128_t end = in.p3 == -1 ? kInt128Max : first + length.V(i);
            std::string r;
            for (size_t k = 0; k < c.size(); ++k) {
              const int128_t position = static_cast<int128_t>(k) + 1;
              if (position >= first && position < end) r += c[k];
            }
            m->a[i] = texts_->Number(r);
          });
          break;
        }
        case Shape::ToText: {
          if (in.op != Opcode::IToT && in.op != Opcode::FToT && in.op != Opcode::WToT) return unknown();
          const SqlType type = UnpackType(in.p3);
          each([&](size_t i) {
            m->a_null[i] = in.op == Opcode::WToT ? m->w_null[i] : m->a_null[i];
            if (m->a_null[i] != 0) return;
            std::string r;
            const Fate fate = ToTextOf(type, {m->a[i], m->w[i]}, &r);
            if (fate != Fate::kValue) return misfit(i, fate);
            m->a[i] = texts_->Number(r);
          });
          break;
        }
        case Shape::FromText: {
          if (in.op != Opcode::TToI && in.op != Opcode::TToF && in.op != Opcode::TToW) return unknown();
          const SqlType type = UnpackType(in.p3);
          each([&](size_t i) {
            if (in.op == Opcode::TToW) m->w_null[i] = m->a_null[i];
            if (m->a_null[i] != 0) return;
            Scalar r;
            const Fate fate = FromTextOf(type, texts_->Get(m->a[i]), &r);
            if (fate == Fate::kUnknownOpcode) return unknown();
            if (fate != Fate::kValue) return misfit(i, fate);
            if (in.op == Opcode::TToW) {
              m->w[i] = r.w;
            } else {
              m->a[i] = r.v;
            }
          });
          break;
        }
        case Shape::Probe:
        case Shape::ProbeOuter: {
          if (in.op != Opcode::Probe && in.op != Opcode::ProbeOuter) return unknown();
          m->outer[in.p1] = in.op == Opcode::ProbeOuter ? 1 : 0;
          const Section& builder = p_.sections[static_cast<size_t>(p_.joins[in.p1].section)];
          std::vector<bool> wide;
          const std::vector<View> keys = Keys(m, in, builder.columns, &wide);
          m->cursors[in.p1].resize(n);
          keep([&](size_t i) {
            bool null;
            const std::string key = KeyOf(keys, wide, i, &null);
            auto found = joins_[in.p1].rows.find(key);
            Cursor& c = m->cursors[in.p1][i];
            c = null || found == joins_[in.p1].rows.end() ? Cursor{} : Cursor{&found->second, 0};
            return c.valid() || m->outer[in.p1] != 0;
          });
          break;
        }
        case Shape::Build:
        case Shape::Emit: {
          const size_t keys = info.shape == Shape::Build ? static_cast<size_t>(s.keys) : 0;
          each([&](size_t i) {
            for (size_t k = 0; k < keys; ++k) {
              if (m->registers[k].null[i] != 0) return;
            }
            for (size_t c = 0; c < m->out.size(); ++c) m->out[c].Push(m->registers[c], i);
            m->out_from.push_back(static_cast<uint32_t>(i));
          });
          break;
        }
        case Shape::Group: {
          if (s.keys == 0) break;
          std::vector<bool> wide;
          const std::vector<View> keys = Keys(m, in, s.columns, &wide);
          each([&](size_t i) {
            bool null;
            const auto [found, made] =
                m->groups.emplace(KeyOf(keys, wide, i, &null), static_cast<uint32_t>(m->groups.size()));
            m->group[i] = found->second;
            if (!made) return;
            for (size_t k = 0; k < keys.size(); ++k) {
              Cells& c = m->keys[k];
              c.null.push_back(keys[k].Null(i) ? 1 : 0);
              if (wide[k]) {
                c.w.push_back(keys[k].Null(i) ? 0 : keys[k].W(i));
              } else {
                c.v.push_back(keys[k].Null(i) ? 0 : keys[k].V(i));
              }
            }
            for (auto& states : m->states) states.emplace_back();
          });
          break;
        }
        case Shape::CountRows:
        case Shape::CountValues:
        case Shape::Fold:
        case Shape::FoldText:
          each([&](size_t i) {
            State& state = m->states[in.p1][m->group[i]];
            if (!Aggregate(in.op, &state, *m, i)) unknown();
          });
          break;
      }
    }
  }

  /// Adds a row to a state; false: the opcode is not known here.
  bool Aggregate(Opcode op, State* s, const Machine& m, size_t i) {
    const int64_t a = m.a[i];
    const int128_t w = m.w[i];
    const bool first = !s->seen;
    const bool null = op != Opcode::CountRows && (Info(op).in == AccumulatorSpec::W ? m.w_null[i] : m.a_null[i]) != 0;
    if (!null) {
      s->seen = true;
      ++s->count;
    }
    auto take = [&](bool better) {
      if (null || !(first || better)) return;
      s->v = a;
      s->w = w;
    };
    switch (op) {
      case Opcode::CountRows:
      case Opcode::Count:
      case Opcode::CountW:
        return true;
      case Opcode::SumI:
        if (!null) s->w += a;
        return true;
      case Opcode::SumW:
        if (!null && __builtin_add_overflow(s->w, w, &s->w)) failed = true;
        return true;
      case Opcode::SumF:
        if (!null) {
          s->sum += static_cast<long double>(AsDouble(a));
          s->absolute += std::fabs(AsDouble(a));
        }
        return true;
      case Opcode::MinI:
        take(a < s->v);
        return true;
      case Opcode::MaxI:
        take(a > s->v);
        return true;
      case Opcode::MinW:
        take(w < s->w);
        return true;
      case Opcode::MaxW:
        take(w > s->w);
        return true;
      case Opcode::MinF:
        take(CompareFloats(AsDouble(a), AsDouble(s->v)) < 0);
        return true;
      case Opcode::MaxF:
        take(CompareFloats(AsDouble(a), AsDouble(s->v)) > 0);
        return true;
      case Opcode::MinT:
        take(!null && !first && CompareBytes(texts_->Get(a), texts_->Get(s->v)) < 0);
        return true;
      case Opcode::MaxT:
        take(!null && !first && CompareBytes(texts_->Get(a), texts_->Get(s->v)) > 0);
        return true;
      default:
        return false;
    }
  }

  void FinishJoin(const Section& s, Machine* m) {
    Join& join = joins_[static_cast<size_t>(s.join)];
    join.columns = std::move(m->out);
    std::vector<View> keys;
    std::vector<bool> wide;
    for (int k = 0; k < s.keys; ++k) {
      const Cells& c = join.columns[static_cast<size_t>(k)];
      keys.push_back({c.v.data(), c.w.data(), c.null.data(), false});
      wide.push_back(c.IsWide());
    }
    for (size_t i = 0; i < m->out_from.size(); ++i) {
      bool null;
      join.rows[KeyOf(keys, wide, i, &null)].push_back(static_cast<uint32_t>(i));
    }
  }

  void FinishGroups(const Section& s, Machine* m, size_t number) {
    std::vector<Cells> out = std::move(m->keys);
    for (size_t a = 0; a < s.aggregates.size(); ++a) {
      const Opcode op = s.aggregates[a].op;
      const bool counts = op == Opcode::CountRows || op == Opcode::Count || op == Opcode::CountW;
      Cells c(s.aggregates[a].type, m->states[a].size());
      for (size_t g = 0; g < m->states[a].size(); ++g) {
        const State& state = m->states[a][g];
        c.null[g] = counts || state.seen ? 0 : 1;
        if (c.IsWide()) {
          c.w[g] = state.w;
        } else {
          c.v[g] = counts ? state.count : op == Opcode::SumF ? AsBits(static_cast<double>(state.sum)) : state.v;
        }
        if (op == Opcode::SumF) c.slack.push_back(1e-9 * state.absolute);
        if (op == Opcode::MinF || op == Opcode::MaxF) c.slack.push_back(0);  // which of the two zeros is not fixed
      }
      out.push_back(std::move(c));
    }
    row_counts_[number] = m->groups.size();
    results_[number] = std::move(out);
  }

  void OrderAndLimit(const Section& s, std::vector<Cells>* columns, size_t* rows) {
    if (s.order.empty() && s.limit < 0 && s.offset == 0) return;
    std::vector<size_t> order(*rows);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      for (const SortKey& k : s.order) {
        const Cells& c = (*columns)[static_cast<size_t>(k.column)];
        if (c.null[a] != c.null[b]) return (c.null[a] != 0) == k.nulls_first;
        if (c.null[a] != 0) continue;
        int o;
        switch (c.type.storage()) {
          case StorageClass::kFloat:
            o = CompareFloats(AsDouble(c.v[a]), AsDouble(c.v[b]));
            break;
          case StorageClass::kText:
            o = CompareBytes(texts_->Get(c.v[a]), texts_->Get(c.v[b]));
            break;
          case StorageClass::kWide:
            o = c.w[a] < c.w[b] ? -1 : c.w[a] > c.w[b] ? 1 : 0;
            break;
          default:
            o = c.v[a] < c.v[b] ? -1 : c.v[a] > c.v[b] ? 1 : 0;
        }
        if (o != 0) return (o < 0) != k.descending;
      }
      return false;
    });
    const size_t first = static_cast<size_t>(std::min<int128_t>(s.offset, static_cast<int128_t>(*rows)));
    size_t count = *rows - first;
    if (s.limit >= 0) count = static_cast<size_t>(std::min<int128_t>(s.limit, static_cast<int128_t>(count)));
    for (Cells& c : *columns) {
      Cells moved(c.type, 0);
      for (size_t i = first; i < first + count; ++i) moved.Push(c, order[i]);
      c = std::move(moved);
    }
    *rows = count;
  }

  const Program& p_;
  const std::vector<TestTable>& tables_;
  Texts* texts_;
  std::vector<std::vector<Cells>> results_;
  std::vector<size_t> row_counts_;
  std::vector<std::vector<uint32_t>> origins_;  // of the rows of sections over a stored table
  std::vector<uint32_t> no_origin_;
  std::vector<Join> joins_;
  std::map<int, std::unordered_map<int64_t, Mapped>> maps_;
};

// ======================================================================================================================
// Columns with chosen values
// ======================================================================================================================

using Random = std::mt19937_64;

size_t Below(Random& random, size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); }
template <class T>
const T& Pick(Random& random, const std::vector<T>& v) {
  return v[Below(random, v.size())];
}

/// A way to store a column, and the values that fit it (in ordered form; not for TEXT).
struct Form {
  ChunkForm chunk;
  int128_t low = 0, high = 0;
  bool nulls = false;     // some rows are NULL
  bool all_null = false;  // kConstant: every row is
  std::string ToString() const { return chunk.ToString() + (all_null ? " null" : nulls ? " nulls" : ""); }
};

/// Least and greatest value of a type, in ordered form.
std::pair<int128_t, int128_t> RangeOf(const SqlType& t) {
  switch (t.id) {
    case TypeId::kBoolean:
      return {0, 1};
    case TypeId::kSmallint:
      return {INT16_MIN, INT16_MAX};
    case TypeId::kInteger:
      return {INT32_MIN, INT32_MAX};
    case TypeId::kDate:
      return {kYear1 - 40, kYear9999 + 40};
    case TypeId::kReal:
      return {OrderedFloat32(-std::numeric_limits<float>::infinity()), kOrderedNaN32};
    case TypeId::kDouble:
      return {OrderedFloat(-std::numeric_limits<double>::infinity()), kOrderedNaN};
    case TypeId::kTimestamp:
      return {static_cast<int128_t>(kYear1 - 40) * kDayMicros, static_cast<int128_t>(kYear9999 + 40) * kDayMicros};
    case TypeId::kDecimal:
      // Accumulators hold any 128 bits, so the walk does, too.
      if (t.storage() == StorageClass::kWide) return {kInt128Min, kInt128Max};
      return {1 - PowerOf10(t.precision), PowerOf10(t.precision) - 1};
    default:
      return {kLeast, kGreatest};
  }
}

/// Values worth testing, in ordered form, of those between low and high.
std::vector<int128_t> EdgesOf(const SqlType& t, int128_t low, int128_t high) {
  std::set<int128_t> all = {low, high};
  auto add = [&](int128_t v) {
    if (v >= low && v <= high) all.insert(v);
  };
  if (high > low) {
    add(low + 1);
    add(high - 1);
  }
  if (t.IsFloat()) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0,
                     0.5,
                     1.0,
                     1.5,
                     2.5,
                     3.0,
                     0.1,
                     1e-3,
                     123456.789,
                     9007199254740991.0,
                     4503599627370495.5,
                     4503599627370497.0,
                     9223372036854774784.0,
                     9223372036854775808.0,
                     1e18,
                     1e37,
                     1.7e38,
                     3.4e38,
                     1e-40,
                     1.5e-45,
                     1e300,
                     5e-324,
                     2.2250738585072014e-308,
                     2.2250738585072009e-308,
                     1.7976931348623157e308,
                     16777217.0,
                     1.0000000596046448,
                     inf}) {
      for (double x : {v, -v}) {
        if (t.id == TypeId::kReal) {
          add(OrderedFloat32(static_cast<float>(x)));
        } else {
          add(static_cast<int128_t>(OrderedFloat(x)));
        }
      }
    }
    add(t.id == TypeId::kReal ? static_cast<int128_t>(kOrderedNaN32) : static_cast<int128_t>(kOrderedNaN));
  } else {
    for (int128_t v : {static_cast<int128_t>(0),
                       static_cast<int128_t>(1),
                       static_cast<int128_t>(2),
                       static_cast<int128_t>(3),
                       static_cast<int128_t>(7),
                       static_cast<int128_t>(10),
                       static_cast<int128_t>(100),
                       static_cast<int128_t>(127),
                       static_cast<int128_t>(128),
                       static_cast<int128_t>(255),
                       static_cast<int128_t>(32767),
                       static_cast<int128_t>(65536),
                       static_cast<int128_t>(INT32_MAX),
                       static_cast<int128_t>(INT32_MAX) + 1,
                       static_cast<int128_t>(UINT32_MAX) + 1,
                       static_cast<int128_t>(3037000500),
                       static_cast<int128_t>(kGreatest),
                       static_cast<int128_t>(kGreatest) + 1,
                       PowerOf10(18),
                       static_cast<int128_t>(1) << 64,
                       (static_cast<int128_t>(1) << 64) - 1,
                       static_cast<int128_t>(13043817825332782212u),
                       PowerOf10(19),
                       PowerOf10(37),
                       PowerOf10(38) - 1,
                       kInt128Max}) {
      add(v);
      add(-v);
      add(-v - 1);
    }
    // Halfway between two doubles, and beside it: conversions must round once.
    for (int shift : {2, 12, 40, 66}) {
      const int128_t halfway = (static_cast<int128_t>(0x20000000000001) * 2 + 1) << shift;
      for (int d = -1; d <= 1; ++d) {
        add(halfway + d);
        add(-halfway + d);
      }
    }
    // 0001-01-01, 1900-02-28, 1900-03-01, 2000-02-29, 2023-12-31, 2024-01-31, 9999-12-31
    for (int64_t day : {kYear1 - 1, kYear1, int64_t{-25509}, int64_t{-25508}, int64_t{11016}, int64_t{19722},
                        int64_t{19753}, kYear9999, kYear9999 + 1}) {
      if (t.id == TypeId::kTimestamp) {
        for (int64_t micros : {int64_t{0}, int64_t{1}, kDayMicros - 1, int64_t{45296789012}})
          add(static_cast<int128_t>(day) * kDayMicros + micros);
      } else {
        add(day);
      }
    }
  }
  return {all.begin(), all.end()};
}

/// A value in ordered form is one that a column can hold: not a bit pattern between infinity and NaN.
bool IsValue(const SqlType& t, int128_t v) {
  if (t.id == TypeId::kDouble)
    return v <= static_cast<int128_t>(OrderedFloat(std::numeric_limits<double>::infinity())) ||
           v == static_cast<int128_t>(kOrderedNaN);
  if (t.id == TypeId::kReal)
    return v <= static_cast<int128_t>(OrderedFloat32(std::numeric_limits<float>::infinity())) ||
           v == static_cast<int128_t>(kOrderedNaN32);
  return true;
}

int128_t RandomBetween(Random& random, int128_t low, int128_t high) {
  const uint128_t span = static_cast<uint128_t>(high) - static_cast<uint128_t>(low);
  uint128_t r = static_cast<uint128_t>(random()) << 64 | random();
  r >>= random() % 128;  // all magnitudes
  if (span != ~uint128_t{0}) r %= span + 1;
  if ((random() & 1) != 0) r = span - r;
  return static_cast<int128_t>(static_cast<uint128_t>(low) + r);
}

/// Ordered form -> what a ColumnVector or Value holds.
int64_t FromOrdered(const SqlType& t, int128_t v) {
  if (t.id == TypeId::kDouble) return AsBits(FromOrderedFloat(static_cast<uint64_t>(v)));
  if (t.id == TypeId::kReal) return AsBits(static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(v))));
  return static_cast<int64_t>(v);
}
Value ToValue(const SqlType& t, int128_t ordered) {
  if (t.storage() == StorageClass::kWide) return Value::Wide(t, ordered);
  if (t.IsFloat()) return Value::Float(t, AsDouble(FromOrdered(t, ordered)));
  return Value::Int(t, static_cast<int64_t>(ordered));
}

std::vector<Form> NumberForms(const SqlType& t) {
  const auto [least, greatest] = RangeOf(t);
  std::vector<int128_t> bases;
  if (t.id == TypeId::kDouble) {
    for (double v : {-std::numeric_limits<double>::infinity(), -1.0, -0.0, 1.0, 1e18})
      bases.push_back(static_cast<int128_t>(OrderedFloat(v)) - (v == 0 ? 100 : 0));
    bases.push_back(static_cast<int128_t>(OrderedFloat(std::numeric_limits<double>::infinity())) - 200);
    bases.push_back(static_cast<int128_t>(kOrderedNaN));
  } else if (t.id == TypeId::kReal) {
    for (float v : {-std::numeric_limits<float>::infinity(), -1.0f, -0.0f, 1.0f, 1e18f})
      bases.push_back(static_cast<int128_t>(OrderedFloat32(v)) - (v == 0 ? 100 : 0));
    bases.push_back(static_cast<int128_t>(OrderedFloat32(std::numeric_limits<float>::infinity())) - 200);
  } else {
    bases = {least, -100, 0, PowerOf10(18) - 50, greatest - 200, -PowerOf10(18) - 1, PowerOf10(30)};
  }
  std::vector<int> widths = {1, 2, 4, 8};
  if (t.id == TypeId::kReal) widths = {1, 2, 4};
  if (t.storage() == StorageClass::kWide) widths.push_back(16);
  const ChunkForm::NullCode codes[] = {ChunkForm::NullCode::kNext, ChunkForm::NullCode::kLast,
                                       ChunkForm::NullCode::kGap};
  std::vector<Form> out;
  size_t turn = 0;
  for (int width : widths) {
    for (int128_t base : bases) {
      if (base < least || base > greatest) continue;
      for (bool nulls : {false, true}) {
        Form f;
        f.chunk.encoding = Encoding::kFrame;
        f.chunk.width = width;
        f.chunk.base = base;
        f.chunk.null_code = codes[turn++ % 3];
        f.nulls = nulls;
        f.low = base;
        f.high = std::min(greatest, FrameEnd(t, width, base, nulls));
        if (nulls && f.chunk.null_code == ChunkForm::NullCode::kGap)
          f.high = std::min(greatest, FrameEnd(t, width, base, false));
        out.push_back(f);
      }
    }
  }
  for (int128_t v : EdgesOf(t, least, greatest)) {
    if (!IsValue(t, v)) continue;
    Form f;
    f.chunk.encoding = Encoding::kConstant;
    f.low = f.high = v;
    if (++turn % 5 == 0) out.push_back(f);
  }
  Form null;
  null.chunk.encoding = Encoding::kConstant;
  null.nulls = null.all_null = true;
  out.push_back(null);
  return out;
}

std::vector<Form> TextForms() {
  std::vector<Form> out;
  for (bool nulls : {false, true}) {
    for (int width : {1, 2, 4}) {
      Form f;
      f.chunk.encoding = Encoding::kDictionary;
      f.chunk.width = width;
      f.nulls = nulls;
      out.push_back(f);
    }
    Form plain;
    plain.chunk.encoding = Encoding::kPlain;
    plain.nulls = nulls;
    out.push_back(plain);
    Form constant;
    constant.chunk.encoding = Encoding::kConstant;
    constant.nulls = constant.all_null = nulls;
    out.push_back(constant);
  }
  return out;
}

/// Forms of a type; the same list each time.
const std::vector<Form>& FormsOf(const SqlType& t) {
  static std::map<std::array<int, 3>, std::vector<Form>> lists;
  auto& list = lists[{static_cast<int>(t.id), t.precision, t.scale}];
  if (list.empty()) list = t.id == TypeId::kText ? TextForms() : NumberForms(t);
  return list;
}

const std::vector<std::string>& PlainStrings() {
  static const std::vector<std::string> strings = {
      "",
      " ",
      "a",
      "A",
      "ab",
      "abc",
      "ABC",
      "  trim  both  ",
      "left  ",
      "  right",
      "\xC3\xA9t\xC3\xA9",
      "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E",
      "\xF0\x9F\x90\x98 elephant",
      "a%b",
      "a_b",
      "a\\b",
      "%",
      "_",
      "zebra",
      "Zebra",
      "MFGR#12",
      "MFGR#1221",
      "ASIA",
      "ASIAN",
      "\x7F",
      "\xC3\x80",
      "a string of some length, longer than any small string that a library keeps in place",
      "b",
      "ba",
      "aab",
      "aaab"};
  return strings;
}
const std::vector<std::string>& NumberStrings() {
  static const std::vector<std::string> strings = {"0",
                                                   "1",
                                                   "-1",
                                                   " 42 ",
                                                   "+7",
                                                   "32767",
                                                   "32768",
                                                   "-32768",
                                                   "-32769",
                                                   "2147483647",
                                                   "2147483648",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "-9223372036854775808",
                                                   "-9223372036854775809",
                                                   "123456789012345678901234567890",
                                                   "12.5",
                                                   "-0.05",
                                                   "99.995",
                                                   "abc",
                                                   "",
                                                   "12x",
                                                   "1.2.3",
                                                   "--1",
                                                   "99999999999999999999999999999999999999",
                                                   "-99999999999999999999999999999999999999",
                                                   "199999999999999999999999999999999999999",
                                                   "0.00",
                                                   ".5",
                                                   "true",
                                                   "false",
                                                   "maybe",
                                                   "1998-12-01",
                                                   "2000-02-29",
                                                   "1900-02-29",
                                                   "0001-01-01",
                                                   "9999-12-31",
                                                   "1998-13-01",
                                                   "1998-12-01 10:11:12",
                                                   "1998-12-01 23:59:59.999999",
                                                   "2000-02-29 00:00:00.5",
                                                   "1998-12-01 25:00:00",
                                                   "NaN",
                                                   "Infinity",
                                                   "-Infinity",
                                                   "1e5",
                                                   "1.5e300",
                                                   "1e-320",
                                                   "0.1",
                                                   "3.4028235e38",
                                                   "16777217",
                                                   "-0"};
  return strings;
}

struct ColumnSpec {
  SqlType type;
  Form form;
  const std::vector<std::string>* strings = nullptr;  // TEXT: from these; nullptr: PlainStrings
  size_t distinct = 0;                                // TEXT: of so many strings; 0: any
  size_t stride = 1;  // rows for which an edge value stays: 1 beside another of n edges, n
};

ColumnVector MakeValues(const ColumnSpec& spec, size_t rows, Random& random) {
  ColumnVector out;
  out.type = spec.type;
  const Form& f = spec.form;
  if (f.nulls && rows > 0) {
    out.null.assign(rows, f.all_null ? 1 : 0);
    const size_t one_in = std::vector<size_t>{2, 7, 50}[Below(random, 3)];
    for (size_t i = 0; i < rows && !f.all_null; ++i) out.null[i] = random() % one_in == 0 ? 1 : 0;
  }
  if (spec.type.id == TypeId::kText) {
    const std::vector<std::string>& strings = spec.strings != nullptr ? *spec.strings : PlainStrings();
    const size_t entries = f.chunk.encoding == Encoding::kConstant                           ? 1
                           : f.chunk.encoding == Encoding::kDictionary && f.chunk.width == 1 ? 200
                                                                                             : 3000;
    const size_t some = std::min(
        spec.distinct == 0 ? std::min<size_t>(entries, strings.size() + Below(random, entries)) : spec.distinct,
        entries);
    const size_t first = Below(random, strings.size());
    if (rows > 0) out.offsets.push_back(0);
    for (size_t i = 0; i < rows; ++i) {
      if (!out.IsNull(i)) {
        const size_t k = f.chunk.encoding == Encoding::kConstant ? 0
                         : i < strings.size()                    ? i % some
                                                                 : Below(random, some);
        if (k < strings.size()) {
          out.bytes += strings[(first + k) % strings.size()];
        } else if (spec.strings == nullptr) {
          out.bytes += fmt::format("{}{}", k % 3 == 0 ? "Key " : "k", k * 7919);
        } else {
          out.bytes += std::to_string(k * 7919);
        }
      }
      out.offsets.push_back(out.bytes.size());
    }
    return out;
  }
  std::vector<int128_t> edges;
  for (int128_t v : EdgesOf(spec.type, f.low, f.high)) {
    if (IsValue(spec.type, v)) edges.push_back(v);
  }
  const size_t start = Below(random, edges.size() * spec.stride + 1);
  const bool wide = spec.type.storage() == StorageClass::kWide;
  for (size_t i = 0; i < rows; ++i) {
    int128_t v = edges.empty() ? f.low : edges[(start + i) / spec.stride % edges.size()];
    if (edges.empty() || (i % 5 == 4 && f.low != f.high)) {
      const int128_t r = RandomBetween(random, f.low, f.high);
      if (IsValue(spec.type, r)) v = r;
    }
    // Of a narrow frame's codes one must be left for NULL.
    if (f.nulls && f.chunk.null_code == ChunkForm::NullCode::kGap && f.chunk.width <= 2 && v == f.low + 37) v = f.low;
    if (out.IsNull(i)) v = 0;
    if (wide) {
      out.wide.push_back(v);
    } else {
      out.fixed.push_back(out.IsNull(i) ? 0 : FromOrdered(spec.type, v));
    }
  }
  return out;
}

ColumnVector Integers(const SqlType& type, std::vector<int64_t> values) {
  ColumnVector c;
  c.type = type;
  c.fixed = std::move(values);
  return c;
}
Form FrameForm(int width, bool nulls = false) {
  Form f;
  f.chunk.width = width;
  f.nulls = nulls;
  return f;
}

// ======================================================================================================================
// Making programs
// ======================================================================================================================

/// A section under construction.
struct Maker {
  Section s;
  Maker(Section::Source kind, int source, Section::Sink sink, std::string label) {
    s.source_kind = kind;
    s.source = source;
    s.sink = sink;
    s.label = std::move(label);
  }
  int Slot(int column, const SqlType& type, int map = -1) {
    s.slots.push_back({column, type, map});
    return static_cast<int>(s.slots.size()) - 1;
  }
  int Register(const SqlType& type) {
    s.registers.push_back(type);
    return static_cast<int>(s.registers.size()) - 1;
  }
  int Mask() { return s.masks++; }
  int Filter(Predicate f) {
    s.predicates.push_back(std::move(f));
    Op(Opcode::Filter, static_cast<int>(s.predicates.size()) - 1);
    return static_cast<int>(s.predicates.size()) - 1;
  }
  int Op(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0, int32_t p4 = 0) {
    s.code.push_back({op, static_cast<uint16_t>(p1), p2, p3, p4});
    return static_cast<int>(s.code.size()) - 1;
  }
  void Load(const SqlType& type, Operand from) {
    Op(type.storage() == StorageClass::kWide ? Opcode::LoadW : Opcode::Load, 0, from.Pack());
  }
  void Store(int reg) {
    Op(s.registers[static_cast<size_t>(reg)].storage() == StorageClass::kWide ? Opcode::StoreW : Opcode::Store, 0, reg);
  }
  /// Loads an operand into a new register.
  int Keep(const SqlType& type, Operand from) {
    const int r = Register(type);
    Load(type, from);
    Store(r);
    return r;
  }
  int Here() const { return static_cast<int>(s.code.size()); }
  /// Emit or Build the first `columns` registers, then End.
  Section Finish(Opcode sink, int columns) {
    s.columns.assign(s.registers.begin(), s.registers.begin() + columns);
    Op(sink);
    return End();
  }
  Section End() {
    Op(Opcode::End);
    for (Instruction& in : s.code) {
      if (in.op == Opcode::SkipIfNone && in.p2 == 0) in.p2 = static_cast<int32_t>(s.code.size()) - 1;
    }
    return s;
  }
};

int AddConstant(Program* p, Value v) {
  p->constants.push_back(std::move(v));
  return static_cast<int>(p->constants.size()) - 1;
}
int AddSection(Program* p, Section s) {
  p->sections.push_back(std::move(s));
  return static_cast<int>(p->sections.size()) - 1;
}
void AddTables(Program* p, const std::vector<TestTable>& tables) {
  for (size_t i = 0; i < tables.size(); ++i) p->tables.push_back({static_cast<int64_t>(i) + 1, tables[i].name});
}
/// The result is the columns of the last section.
void NameColumns(Program* p) {
  p->columns.clear();
  for (const SqlType& t : p->sections.back().columns) p->columns.push_back({fmt::format("c{}", p->columns.size()), t});
}

/// What a masked table starts with: row number, mask.
constexpr int kRowColumn = 0, kMaskColumn = 1;

/// How a check differs from the plain one.
struct CheckOptions {
  bool masked =
      false;  ///< column kMaskColumn of the last section's table switches rows off: those that raise errors get 0
  bool ordered = false;  ///< the order of rows counts
  bool subset = false;   ///< LIMIT without ORDER BY: any of `all` rows
  bool must_fail = false;
};

class Walk {
 public:
  Walk(const WalkOptions& options, vm::SectionBackend* gpu)
      : options_(options), gpu_(gpu), random_(options.seed), executor_(options.threads) {}

  WalkReport Run();

 private:
  bool Full() const { return report_.failures.size() >= options_.max_failures; }
  bool Wanted(const std::string& name) const {
    return !Full() && (options_.only.empty() || name.find(options_.only) != std::string::npos);
  }
  size_t Turn(size_t n) { return turn_++ % n; }

  // ---- Running and comparing
  void Fail(const std::string& name, const Program& p, const std::string& what);
  /// Runs `program` over `tables` on the executor and on the reference, and compares.
  void Check(const std::string& name, Program program, std::vector<TestTable> tables, CheckOptions check = {});
  Result<std::vector<Cells>> Execute(const Program& program, const Snapshot& snapshot, size_t* rows);
  std::shared_ptr<const Snapshot> Store(const std::string& name, const Program& program,
                                        const std::vector<TestTable>& tables);
  std::string Compare(const Program& program, const Reference& want, std::vector<Cells> got, size_t got_rows,
                      const CheckOptions& check);
  void Cover(const Program& program, const std::vector<TestTable>& tables);
  void CheckCoverage();

  // ---- Making cases
  size_t NextSize();
  uint32_t TabletRows(size_t rows);
  std::vector<int64_t> MaskValues(size_t rows);
  TestTable MaskedTable(size_t rows);
  /// Appends a column; with several tablets, every other one is stored plainly.
  int AddColumn(TestTable* table, const ColumnSpec& spec, size_t rows);
  void Head(Maker* m, Program* p);
  Value RandomConstant(const SqlType& type, const std::vector<std::string>* strings);
  SqlType TypeFor(AccumulatorSpec c, Opcode op);
  enum class Kind { kSlot, kRegister, kConstant, kPayload, kResult };
  void OperandCase(Opcode op, AccumulatorSpec c, Kind kind, const SqlType& type, const Form& form, int32_t variant);
  void WalkOperands(Opcode op, AccumulatorSpec c);
  void WalkOpcode(Opcode op);

  void Masks();
  void Predicates();
  void TextMaps();
  void Joins();
  void JoinCase(const std::string& name, const std::vector<SqlType>& keys, int key_style, size_t build_rows,
                bool unique, int style, int outer = 0);
  void Groups();
  void GroupCase(const std::string& name, const std::vector<SqlType>& keys, size_t rows, size_t distinct,
                 bool small_aggregates);
  void Rows();
  void RandomPrograms();
  void Large();

  WalkOptions options_;
  vm::SectionBackend* gpu_;
  Random random_;
  vm::Executor executor_;
  WalkReport report_;
  Texts texts_;
  size_t turn_ = 0, size_turn_ = 0;
  std::set<Opcode> declined_;      // that the backend would not run in some section
  int key_width_ = 0;              // of the key columns of joins and groups; 0: any that holds them
  std::set<std::string> covered_;  // "AddI slot 4"
};

// ======================================================================================================================
// Running and comparing
// ======================================================================================================================

void Walk::Fail(const std::string& name, const Program& p, const std::string& what) {
  if (Full()) return;
  std::string listing = vm::Listing(p);
  if (listing.size() > 6000) listing = listing.substr(0, 6000) + "...\n";
  report_.failures.push_back("[" + name + "] " + what + "\n" + listing);
}

std::shared_ptr<const Snapshot> Walk::Store(const std::string& name, const Program& program,
                                            const std::vector<TestTable>& tables) {
  std::vector<std::shared_ptr<const TableInfo>> infos;
  for (size_t i = 0; i < tables.size(); ++i) {
    auto info = MakeMemoryTable(static_cast<int64_t>(i) + 1, tables[i].name, tables[i].columns, tables[i].tablet_rows);
    if (!info.ok()) {
      Fail(name, program, "the walk made a table that cannot be stored: " + info.status().message());
      return nullptr;
    }
    infos.push_back(*info);
    report_.rows += tables[i].rows();
  }
  return MakeSnapshot(std::move(infos));
}

Result<std::vector<Cells>> Walk::Execute(const Program& program, const Snapshot& snapshot, size_t* rows) {
  std::vector<Cells> got;
  for (const vm::ResultColumn& c : program.columns) got.emplace_back(c.type, 0);
  *rows = 0;
  vm::RunOptions run;
  run.gpu = gpu_;
  bool all = gpu_ != nullptr;
  for (size_t i = 0; i < program.sections.size() && gpu_ != nullptr; ++i) {
    const Section& s = program.sections[i];
    if (s.source_kind != Section::Source::kTable) continue;
    if (s.sink != Section::Sink::kRows && s.sink != Section::Sink::kGroups) {
      all = false;  // the host builds join tables
      continue;
    }
    const Status can = gpu_->CanRun(program, static_cast<int>(i));
    if (can.ok()) continue;
    ++report_.declined[can.message()];
    for (const Instruction& in : s.code) declined_.insert(in.op);
    all = false;
  }
  run.gpu_required = all;
  vm::RunStatistics statistics;
  std::string misfit;
  auto consume = [&](RowBatch&& batch) -> Status {
    *rows += batch.rows;
    if (batch.columns.size() != got.size()) return {ErrorCode::kInternal, "a batch has another number of columns"};
    for (size_t c = 0; c < got.size(); ++c) {
      if (RowsOf(batch.columns[c]) != batch.rows ||
          (!batch.columns[c].null.empty() && batch.columns[c].null.size() != batch.rows)) {
        return {ErrorCode::kInternal, "a column of a batch has another number of rows"};
      }
      const Cells piece = ToCells(batch.columns[c], &texts_);
      got[c].v.insert(got[c].v.end(), piece.v.begin(), piece.v.end());
      got[c].w.insert(got[c].w.end(), piece.w.begin(), piece.w.end());
      got[c].null.insert(got[c].null.end(), piece.null.begin(), piece.null.end());
    }
    return Status::Ok();
  };
  ++report_.programs;
  const Status status = executor_.Run(program, snapshot, run, consume, &statistics);
  if (!status.ok()) return status;
  for (const vm::SectionStatistics& s : statistics.sections) report_.gpu_sections += s.on_gpu ? 1 : 0;
  for (const Section& s : program.sections) {
    if (s.source_kind != Section::Source::kDictionary || gpu_ != nullptr) continue;
    for (const Instruction& in : s.code) ++report_.ran[Info(in.op).name];
  }
  for (const vm::SectionStatistics& stats : statistics.sections) {
    const Section& s = program.sections[static_cast<size_t>(stats.section)];
    if (s.source_kind == Section::Source::kTable && !stats.on_gpu) ++report_.host_sections;
    if (gpu_ != nullptr && !stats.on_gpu) continue;
    std::set<Opcode> ops;
    for (const Instruction& in : s.code) ops.insert(in.op);
    for (Opcode op : ops) ++report_.ran[Info(op).name];
  }
  return got;
}

/// Empty if the rows agree, else the first that does not.
std::string Walk::Compare(const Program& program, const Reference& want, std::vector<Cells> got, size_t got_rows,
                          const CheckOptions& check) {
  const size_t columns = program.columns.size();
  size_t expected = want.result_rows;
  if (check.subset) {
    const Section& last = program.sections.back();
    expected -= std::min(expected, static_cast<size_t>(last.offset));
    if (last.limit >= 0) expected = std::min(expected, static_cast<size_t>(last.limit));
  }
  if (got_rows != expected) return fmt::format("{} rows instead of {}", got_rows, expected);
  auto canonical = [&](const Cells& c, size_t row) -> int128_t {
    if (c.null[row] != 0) return 0;
    if (c.IsWide()) return c.w[row];
    if (c.type.IsFloat()) {
      const double v = AsDouble(c.v[row]);
      if (std::isnan(v)) return static_cast<int128_t>(kOrderedNaN);
      return static_cast<uint64_t>(c.v[row]);
    }
    return c.v[row];
  };
  // < 0, 0, > 0; columns with slack do not order rows, they only have to agree.
  auto order = [&](const std::vector<Cells>& x, size_t i, const std::vector<Cells>& y, size_t k, bool slack) {
    for (size_t c = 0; c < columns; ++c) {
      if (x[c].null[i] != y[c].null[k]) return x[c].null[i] < y[c].null[k] ? -1 : 1;
      if (!want.result[c].slack.empty()) {
        if (!slack || x[c].null[i] != 0) continue;
        const double a = AsDouble(x[c].v[i]), b = AsDouble(y[c].v[k]);
        if (CompareFloats(a, b) == 0 || std::fabs(a - b) <= want.result[c].slack[k]) continue;
        return CompareFloats(a, b);
      }
      const int128_t a = canonical(x[c], i), b = canonical(y[c], k);
      if (a != b) return a < b ? -1 : 1;
    }
    return 0;
  };
  std::vector<size_t> mine(want.result_rows), theirs(got_rows);
  std::iota(mine.begin(), mine.end(), size_t{0});
  std::iota(theirs.begin(), theirs.end(), size_t{0});
  auto same = [&](size_t i) { return order(got, theirs[i], want.result, mine[i], true) == 0; };
  auto agree = [&] {
    for (size_t i = 0; i < got_rows; ++i) {
      if (!same(i)) return false;
    }
    return true;
  };
  if (!check.subset && agree()) return "";
  if (!check.ordered) {
    std::sort(mine.begin(), mine.end(),
              [&](size_t a, size_t b) { return order(want.result, a, want.result, b, false) < 0; });
    std::sort(theirs.begin(), theirs.end(), [&](size_t a, size_t b) { return order(got, a, got, b, false) < 0; });
  }
  if (check.subset) {
    size_t m = 0;
    for (size_t i = 0; i < got_rows; ++i) {
      while (m < mine.size() && order(got, theirs[i], want.result, mine[m], true) != 0) ++m;
      if (m++ == mine.size()) return "a row that the section did not emit";
    }
    return "";
  }
  for (size_t i = 0; i < got_rows; ++i) {
    if (same(i)) continue;
    std::string text = fmt::format("row {} of {} differs (in the order of the columns' values):", i, got_rows);
    for (size_t c = 0; c < columns; ++c) {
      text += fmt::format(" c{}: {} instead of {};", c, Show(got[c], theirs[i], texts_),
                          Show(want.result[c], mine[i], texts_));
    }
    return text;
  }
  return "";
}

void Walk::Check(const std::string& name, Program program, std::vector<TestTable> tables, CheckOptions check) {
  if (Full()) return;
  for (const TestTable& t : tables) {
    if (t.rows() > options_.greatest_rows) return;
  }
  if (options_.collect) {
    if (auto snapshot = Store(name, program, tables)) options_.collect(program, snapshot);
    return;
  }
  const Status verified = vm::Verify(program);
  if (!verified.ok()) return Fail(name, program, "refused: " + verified.message());
  const std::string bytes = program.Serialize();
  Result<Program> parsed = Program::Parse(bytes);
  if (!parsed.ok()) return Fail(name, program, "its bytes were refused: " + parsed.status().message());
  if (parsed->Serialize() != bytes || parsed->sections != program.sections ||
      vm::Listing(*parsed) != vm::Listing(program)) {
    return Fail(name, program, "it is not the same after Serialize and Parse");
  }

  // With LIMIT but no ORDER BY the rows are some of all.
  Program whole = program;
  if (check.subset) {
    whole.sections.back().limit = -1;
    whole.sections.back().offset = 0;
  }
  auto want = std::make_unique<Reference>(whole, tables, &texts_);
  want->Run();
  if (!want->problem.empty()) return Fail(name, program, want->problem);
  std::vector<uint8_t> bad;
  TestTable* masked = nullptr;
  if (check.masked) {
    for (const Section& s : program.sections) {
      if (s.source_kind == Section::Source::kTable) masked = &tables[static_cast<size_t>(s.source)];
    }
    bad = want->bad;
    if (want->failed || want->unspecified) {
      std::vector<int64_t>& mask = masked->columns[kMaskColumn].values.fixed;
      for (size_t i = 0; i < bad.size(); ++i) mask[i] = bad[i] != 0 ? 0 : mask[i];
      want = std::make_unique<Reference>(whole, tables, &texts_);
      want->Run();
    }
  }
  if (want->unspecified || (want->failed && !check.must_fail))
    return Fail(name, program, "the walk made a case without an answer");
  std::shared_ptr<const Snapshot> snapshot = Store(name, program, tables);
  if (snapshot == nullptr) return;
  size_t rows = 0;
  Result<std::vector<Cells>> got = Execute(program, *snapshot, &rows);
  if (check.must_fail) {
    if (!want->failed) return Fail(name, program, "the walk made a case without an error");
    if (got.ok()) return Fail(name, program, "no error");
    if (got.status().code() != ErrorCode::kSql)
      return Fail(name, program, "not an SQL error: " + got.status().message());
    ++report_.errors;
    return;
  }
  if (!got.ok()) return Fail(name, program, "it failed: " + got.status().message());
  const std::string difference = Compare(program, *want, std::move(*got), rows, check);
  if (!difference.empty()) return Fail(name, program, difference);
  Cover(program, tables);

  // The same with one row switched on that must end the run.
  std::vector<size_t> erring;
  for (size_t i = 0; i < bad.size(); ++i) {
    if (bad[i] == 1) erring.push_back(i);
  }
  if (erring.empty()) return;
  const size_t row = Pick(random_, erring);
  std::vector<int64_t>& mask = masked->columns[kMaskColumn].values.fixed;
  const bool alone = Turn(2) == 0;
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i == row ? 1 : alone ? 0 : mask[i];
  snapshot = Store(name, program, tables);
  if (snapshot == nullptr) return;
  got = Execute(program, *snapshot, &rows);
  if (got.ok()) return Fail(name, program, fmt::format("no error although row {} is live", row));
  if (got.status().code() != ErrorCode::kSql) return Fail(name, program, "not an SQL error: " + got.status().message());
  ++report_.errors;
}

/// Notes which opcodes ran with which kinds of operands and widths of codes.
void Walk::Cover(const Program& program, const std::vector<TestTable>& tables) {
  for (const Section& s : program.sections) {
    for (const Instruction& in : s.code) {
      const OpcodeInfo& info = Info(in.op);
      const int32_t p[4] = {in.p1, in.p2, in.p3, in.p4};
      for (int k = 0; k < 4; ++k) {
        if (info.p[k] != OperandSpec::Src && info.p[k] != OperandSpec::SrcW && info.p[k] != OperandSpec::SrcInt)
          continue;
        if (p[k] == -1 ||
            ((info.shape == Shape::Probe || info.shape == Shape::ProbeOuter || info.shape == Shape::Group) &&
             in.p3 == 0))
          continue;
        const Operand o = Operand::Unpack(p[k]);
        switch (o.kind) {
          case OperandKind::kRegister:
            covered_.insert(std::string(info.name) + " register");
            break;
          case OperandKind::kConstant:
            covered_.insert(std::string(info.name) + " constant");
            break;
          case OperandKind::kPayload:
            covered_.insert(std::string(info.name) + " payload");
            break;
          case OperandKind::kSlot: {
            if (s.source_kind != Section::Source::kTable) {
              covered_.insert(std::string(info.name) + " result");
              break;
            }
            const MemoryColumn& c =
                tables[static_cast<size_t>(s.source)].columns[static_cast<size_t>(s.slots[o.index].column)];
            for (const ChunkForm& f : c.forms) {
              const bool coded = f.encoding == Encoding::kFrame || f.encoding == Encoding::kDictionary;
              covered_.insert(fmt::format("{} slot {}", info.name, coded ? f.width : 0));
            }
          }
        }
      }
    }
  }
}

void Walk::CheckCoverage() {
  std::string missing;
  for (int i = 0; i < static_cast<int>(Opcode::kCount); ++i) {
    const Opcode op = static_cast<Opcode>(i);
    const OpcodeInfo& info = Info(op);
    if (gpu_ != nullptr && (info.tier == Tier::Host || op == Opcode::Build)) continue;
    if (report_.ran[info.name] == 0) {
      if (declined_.count(op) == 0) {
        missing += fmt::format(" {} never ran;", info.name);
      } else {
        report_.only_on_host.push_back(info.name);
      }
    }
    for (int k = 0; k < 4; ++k) {
      const bool wide = info.p[k] == OperandSpec::SrcW;
      if (info.p[k] != OperandSpec::Src && info.p[k] != OperandSpec::SrcInt && !wide) continue;
      const bool text = info.in == AccumulatorSpec::T && info.p[k] == OperandSpec::Src;
      std::vector<std::string> needed = {"register", "constant", "payload", "slot 0", "slot 1", "slot 2", "slot 4"};
      if (!text) needed.push_back("slot 8");
      if (wide) needed.push_back("slot 16");
      for (const std::string& n : needed) {
        if (covered_.count(std::string(info.name) + " " + n) == 0) missing += fmt::format(" {} {};", info.name, n);
      }
    }
  }
  if (!missing.empty()) report_.failures.push_back("[coverage] the walk did not run:" + missing);
}

// ======================================================================================================================
// Making cases
// ======================================================================================================================

size_t Walk::NextSize() {
  // Around the edges of warps, tiles and units of work; the large ones less often.
  static const size_t sizes[] = {33, 2048, 1, 4097, 31, 2049, 32, 4095, 2047, 4096};
  const size_t turn = size_turn_++;
  if (options_.greatest_rows < 70000) {
    const size_t size = turn % 41 == 33 ? 0 : sizes[turn % 10];
    return size <= options_.greatest_rows ? size : 33;
  }
  if (turn % 41 == 17) return turn % 82 == 17 ? 65537 : 65535;
  if (turn % 41 == 33) return 0;
  return sizes[turn % 10];
}

/// Mostly one tablet; sometimes several, with an odd number of rows so that they end within a tile.
uint32_t Walk::TabletRows(size_t rows) {
  if (rows < 64 || Turn(4) != 0) return 1u << 20;
  return rows > 10000 ? 32768 + 33 : std::array<uint32_t, 4>{31, 1000, 2048, 2049}[Turn(4)];
}

std::vector<int64_t> Walk::MaskValues(size_t rows) {
  std::vector<int64_t> mask(rows, 0);
  switch (Turn(8)) {
    case 0:
    case 1:
    case 2:
      std::fill(mask.begin(), mask.end(), 1);
      break;
    case 3:
      break;  // none
    case 4:
      for (size_t i = 0; i < rows; ++i) mask[i] = static_cast<int64_t>(i % 2);
      break;
    case 5:
      for (size_t i = 0; i < rows; ++i) mask[i] = i % 61 == 7 ? 1 : 0;
      break;
    case 6:
      if (rows > 0) mask[Turn(2) == 0 ? rows - 1 : Below(random_, rows)] = 1;
      break;
    default:
      for (size_t i = 0; i < rows; ++i) mask[i] = random_() % 8 < 3 ? 1 : 0;
  }
  return mask;
}

TestTable Walk::MaskedTable(size_t rows) {
  TestTable t;
  t.name = "t";
  t.tablet_rows = TabletRows(rows);
  std::vector<int64_t> numbers(rows);
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  t.columns.push_back({"row", Integers(kBigint, std::move(numbers)), {FrameForm(4).chunk}});
  t.columns.push_back({"mask", Integers(SqlType::Of(TypeId::kBoolean), MaskValues(rows)), {FrameForm(1).chunk}});
  t.columns[kMaskColumn].forms[0].base = 0;
  return t;
}

int Walk::AddColumn(TestTable* table, const ColumnSpec& spec, size_t rows) {
  MemoryColumn c;
  c.name = fmt::format("c{}", table->columns.size());
  c.values = MakeValues(spec, rows, random_);
  c.forms = {spec.form.chunk};
  if (rows > table->tablet_rows) {
    // A form that holds any values.
    ChunkForm other;
    other.encoding = spec.type.id == TypeId::kText ? Encoding::kPlain : Encoding::kFrame;
    other.width = spec.type.storage() == StorageClass::kWide          ? 16
                  : spec.type.id == TypeId::kReal && !spec.form.nulls ? 4
                                                                      : 8;
    other.null_code = ChunkForm::NullCode::kGap;
    c.forms.push_back(other);
  }
  table->columns.push_back(std::move(c));
  return static_cast<int>(table->columns.size()) - 1;
}

/// Slots row and mask, rows where mask is 1 stay, r0 = row. In one of several ways.
void Walk::Head(Maker* m, Program* p) {
  m->Slot(kRowColumn, kBigint);
  const int mask = m->Slot(kMaskColumn, SqlType::Of(TypeId::kBoolean));
  const int row = m->Register(kBigint);
  const size_t way = Turn(6);
  const Operand slot = Operand::Slot(mask);
  switch (way) {
    case 0:
    case 1: {
      Predicate f;
      f.slot = mask;
      f.low = f.high = AddConstant(p, Value::Int(SqlType::Of(TypeId::kBoolean), 1));
      if (way == 1) f.negated = true, p->constants.back().i64 = 0;
      m->Filter(f);
      break;
    }
    case 2:
      m->Load(kBigint, slot);
      m->Op(Opcode::FilterTrue);
      break;
    case 3: {
      // Those that an earlier arm has not taken.
      const int all = m->Mask(), taken = m->Mask();
      m->Op(Opcode::MaskSave, all);
      m->Op(Opcode::MaskClear, taken);
      m->Load(kBigint, slot);
      m->Op(Opcode::FilterFalse);
      m->Op(Opcode::MaskOr, taken);
      m->Op(Opcode::MaskLoad, all);
      m->Op(Opcode::MaskAndNot, taken);
      break;
    }
    case 4:
      m->Load(kBigint, slot);
      m->Op(Opcode::FilterEqI, 0, Operand::Constant(AddConstant(p, Value::Int(kBigint, 1))).Pack());
      m->Op(Opcode::SkipIfNone);  // Maker::End makes it jump there
      break;
    default: {
      Predicate f;
      f.kind = Predicate::Kind::kIn;
      f.slot = mask;
      for (int64_t v : {1, 5, -3}) f.list.push_back(AddConstant(p, Value::Int(SqlType::Of(TypeId::kBoolean), v)));
      m->Filter(f);
    }
  }
  m->Load(kBigint, Operand::Slot(0));
  m->Store(row);
}

Value Walk::RandomConstant(const SqlType& type, const std::vector<std::string>* strings) {
  if (type.id == TypeId::kText) {
    Value v = Value::Text(Pick(random_, strings != nullptr ? *strings : PlainStrings()));
    v.type = type;
    return v;
  }
  const auto [low, high] = RangeOf(type);
  std::vector<int128_t> edges;
  for (int128_t v : EdgesOf(type, low, high)) {
    if (IsValue(type, v)) edges.push_back(v);
  }
  return ToValue(type, Pick(random_, edges));
}

/// A SQL type of a class, in turn; of the kind that the opcode works on.
SqlType Walk::TypeFor(AccumulatorSpec c, Opcode op) {
  switch (c) {
    case AccumulatorSpec::F:
      return Turn(3) == 0 ? SqlType::Of(TypeId::kReal) : kDouble;
    case AccumulatorSpec::T:
      return kText;
    case AccumulatorSpec::W:
      return Turn(2) == 0 ? kWide : SqlType::Decimal(38, 10);
    default:
      break;
  }
  if (op == Opcode::DatePartD || op == Opcode::AddMonthsD) return SqlType::Of(TypeId::kDate);
  if (op == Opcode::DatePartT || op == Opcode::AddMonthsT) return SqlType::Of(TypeId::kTimestamp);
  static const std::vector<SqlType> types = {kBigint,
                                             kBigint,
                                             SqlType::Of(TypeId::kInteger),
                                             SqlType::Decimal(18, 4),
                                             SqlType::Of(TypeId::kSmallint),
                                             SqlType::Of(TypeId::kBoolean),
                                             SqlType::Of(TypeId::kTimestamp),
                                             SqlType::Of(TypeId::kDate)};
  return types[Turn(types.size())];
}

AccumulatorSpec ClassOf(const SqlType& t) {
  switch (t.storage()) {
    case StorageClass::kFloat:
      return AccumulatorSpec::F;
    case StorageClass::kText:
      return AccumulatorSpec::T;
    case StorageClass::kWide:
      return AccumulatorSpec::W;
    default:
      return AccumulatorSpec::I;
  }
}
const char* ClassName(AccumulatorSpec c) {
  switch (c) {
    case AccumulatorSpec::F:
      return "F";
    case AccumulatorSpec::T:
      return "T";
    case AccumulatorSpec::W:
      return "W";
    default:
      return "I";
  }
}
SqlType AnyType(AccumulatorSpec c) {
  switch (c) {
    case AccumulatorSpec::F:
      return kDouble;
    case AccumulatorSpec::T:
      return kText;
    case AccumulatorSpec::W:
      return kWide;
    default:
      return kBigint;
  }
}

/// One program: A or W is loaded from a column, the opcode is applied with an operand of `kind`, the result is emitted
/// beside the row's number. The operand is stored under `form`; for opcodes without one, the accumulator is.
void Walk::OperandCase(Opcode op, AccumulatorSpec c, Kind kind, const SqlType& type, const Form& form,
                       int32_t variant) {
  const OpcodeInfo& info = Info(op);
  static const char* const kinds[] = {"slot", "register", "constant", "payload", "result"};
  const std::string name = fmt::format("{} {} {} {} {} #{}", info.name, ClassName(c), kinds[static_cast<int>(kind)],
                                       type.ToString(), form.ToString(), variant);
  if (!Wanted(name)) return;
  Program p;
  std::vector<TestTable> tables;
  const size_t rows = NextSize();
  tables.push_back(MaskedTable(rows));

  const bool has_operand =
      info.p[1] == OperandSpec::Src || info.p[1] == OperandSpec::SrcW || info.p[1] == OperandSpec::SrcInt;
  const bool loads = info.in == AccumulatorSpec::None;  // Load, LoadW
  const bool substring = info.shape == Shape::TextSubstring;
  const std::vector<std::string>* const strings = info.shape == Shape::FromText ? &NumberStrings() : nullptr;

  // `type` and `form` are the operand's, or the accumulator's if there is no operand. Months, places and lengths are
  // small most of the time.
  const bool months = op == Opcode::AddMonthsD || op == Opcode::AddMonthsT;
  const SqlType b_type = type;
  const SqlType a_type = info.shape == Shape::ToText ? UnpackType(variant) : has_operand ? TypeFor(c, op) : type;
  const Form a_form = has_operand || a_type != type ? Pick(random_, FormsOf(a_type)) : form;
  Form b_form = form;
  if ((substring || months) && Turn(3) != 0) {
    b_form = FrameForm(form.chunk.width == 0 || form.chunk.width == 16 ? 4 : form.chunk.width, form.nulls);
    b_form.low = substring ? -3 : -60;
    b_form.high = substring ? 12 : 60;
    b_form.chunk.base = b_form.low;
  }
  const size_t edges_of_a =
      c == AccumulatorSpec::T ? PlainStrings().size() : EdgesOf(a_type, a_form.low, a_form.high).size();
  const int a_column = loads ? -1 : AddColumn(&tables[0], {a_type, a_form, strings}, rows);

  // Where the operand is.
  const bool by_column = has_operand && kind != Kind::kConstant;
  const bool payload = kind == Kind::kPayload;
  const size_t build_rows = payload ? std::array<size_t, 4>{1, 40, 700, 5}[Turn(4)] : 0;
  int b_column = -1, length_column = -1;
  const ColumnSpec b_spec{b_type, b_form, nullptr, 0, payload ? 1 : std::max<size_t>(1, edges_of_a)};
  int key_column = -1;
  if (payload) {
    std::vector<int64_t> keys(rows);
    for (int64_t& k : keys) k = static_cast<int64_t>(Below(random_, build_rows + 2)) - 1;
    key_column = static_cast<int>(tables[0].columns.size());
    tables[0].columns.push_back({"key", Integers(kBigint, std::move(keys)), {FrameForm(2).chunk}});
    TestTable build;
    build.name = "u";
    build.tablet_rows = 1u << 20;
    std::vector<int64_t> build_keys(build_rows);
    std::iota(build_keys.begin(), build_keys.end(), int64_t{0});
    build.columns.push_back({"key", Integers(kBigint, std::move(build_keys)), {FrameForm(4).chunk}});
    tables.push_back(std::move(build));
    b_column = AddColumn(&tables[1], b_spec, build_rows);
    if (substring) length_column = AddColumn(&tables[1], {kBigint, b_form, nullptr, 0, 3}, build_rows);
  } else if (by_column) {
    b_column = AddColumn(&tables[0], b_spec, rows);
    if (substring) length_column = AddColumn(&tables[0], {kBigint, b_form, nullptr, 0, 3}, rows);
  }
  AddTables(&p, tables);
  if (payload) {
    // The host may build from what a GPU emits, or from the table.
    const bool from_rows = Turn(2) == 0;
    const std::vector<SqlType> types =
        substring ? std::vector<SqlType>{kBigint, b_type, kBigint} : std::vector<SqlType>{kBigint, b_type};
    const std::vector<int> columns = {0, b_column, length_column};
    if (from_rows) {
      Maker r(Section::Source::kTable, 1, Section::Sink::kRows, "scan u");
      for (size_t i = 0; i < types.size(); ++i) r.Keep(types[i], Operand::Slot(r.Slot(columns[i], types[i])));
      AddSection(&p, r.Finish(Opcode::Emit, static_cast<int>(types.size())));
    }
    Maker b(from_rows ? Section::Source::kSection : Section::Source::kTable, from_rows ? 0 : 1, Section::Sink::kJoin,
            "build u");
    for (size_t i = 0; i < types.size(); ++i) {
      b.Keep(types[i], Operand::Slot(b.Slot(from_rows ? static_cast<int>(i) : columns[i], types[i])));
    }
    b.s.join = 0;
    b.s.keys = 1;
    p.joins.push_back({true, AddSection(&p, b.Finish(Opcode::Build, static_cast<int>(types.size())))});
  }

  Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
  Head(&m, &p);
  if (kind == Kind::kResult) {
    // The opcode works on rows that an earlier section emitted: here it only copies them.
    std::vector<SqlType> types;
    std::vector<int> columns;
    for (int column : {a_column, b_column, length_column}) {
      if (column < 0) continue;
      columns.push_back(column);
      types.push_back(tables[0].columns[static_cast<size_t>(column)].values.type);
      m.Keep(types.back(), Operand::Slot(m.Slot(column, types.back())));
    }
    const int from = AddSection(&p, m.Finish(Opcode::Emit, static_cast<int>(types.size()) + 1));
    m = Maker(Section::Source::kSection, from, Section::Sink::kRows, "scan rows");
    m.Keep(kBigint, Operand::Slot(m.Slot(0, kBigint)));
    int next = 1;
    for (size_t i = 0; i < types.size(); ++i) m.Slot(next++, types[i]);
    // Slots 1.. are the columns in the order above.
  }
  auto slot_of = [&](int column, const SqlType& slot_type) {
    if (kind != Kind::kResult) return m.Slot(column, slot_type);
    int at = 1;
    for (int other : {a_column, b_column, length_column}) {
      if (other == column) break;
      if (other >= 0) ++at;
    }
    return at;
  };
  if (payload) m.Op(Opcode::Probe, 0, Operand::Slot(m.Slot(key_column, kBigint)).Pack(), 1);

  auto operand = [&](int column, const SqlType& operand_type, int payload_index) {
    switch (kind) {
      case Kind::kSlot:
      case Kind::kResult:
        return Operand::Slot(slot_of(column, operand_type));
      case Kind::kRegister:
        return Operand::Register(m.Keep(operand_type, Operand::Slot(slot_of(column, operand_type))));
      case Kind::kPayload:
        return Operand::Payload(0, payload_index);
      case Kind::kConstant:
        break;
    }
    Value v = RandomConstant(operand_type, strings);
    if (substring) v = Value::Int(kBigint, static_cast<int64_t>(Below(random_, 12)) - 2);
    if (months && Turn(3) != 0) v = Value::Int(kBigint, static_cast<int64_t>(Below(random_, 100)) - 50);
    if (Turn(11) == 3) v = Value::Null(operand_type);
    return Operand::Constant(AddConstant(&p, v));
  };
  int32_t p2 = 0, p3 = 0, p4 = 0;
  if (has_operand) {
    p2 = operand(b_column, b_type, 0).Pack();
    if (substring) p3 = variant == 1 && kind != Kind::kPayload ? -1 : operand(length_column, kBigint, 1).Pack();
  }
  if (!loads) m.Load(a_type, Operand::Slot(slot_of(a_column, a_type)));
  switch (info.shape) {
    case Shape::UnaryField:
    case Shape::TextCut:
    case Shape::ToText:
    case Shape::FromText:
      p3 = variant;
      break;
    case Shape::Check: {
      Value low = RandomConstant(AnyType(c), nullptr), high = RandomConstant(AnyType(c), nullptr);
      if (c == AccumulatorSpec::W ? low.wide > high.wide : low.i64 > high.i64) std::swap(low, high);
      p2 = AddConstant(&p, low);
      p3 = AddConstant(&p, high);
      p4 = PackType(c == AccumulatorSpec::W ? SqlType::Decimal(20, 2) : SqlType::Of(TypeId::kInteger));
      break;
    }
    case Shape::Like: {
      static const std::vector<std::string> patterns = {"",      "%",     "_",      "a%",        "%a",
                                                        "%a%",   "__",    "_%_",    "MFGR#12%",  "%12__",
                                                        "a\\%b", "a\\_b", "a\\\\b", "%\xC3\xA9", "\xC3\xA9_\xC3\xA9",
                                                        "%a%b%", "%%",    "_b",     "A%A",       "abc",
                                                        "%aab",  "___ %", "key%9"};
      p2 = AddConstant(&p, Value::Text(patterns[static_cast<size_t>(variant) % patterns.size()]));
      break;
    }
    default:
      break;
  }
  m.Op(op, 0, p2, p3, p4);
  if (info.out != AccumulatorSpec::None) {
    const SqlType out = info.out == AccumulatorSpec::X            ? (loads ? b_type : a_type)
                        : info.out == AccumulatorSpec::W && loads ? b_type
                                                                  : AnyType(info.out);
    m.Store(m.Register(out));
    if (ClassOf(out) != c && ClassOf(out) == AccumulatorSpec::I && Turn(3) == 0) {
      // The accumulator is still what the opcode made of it.
      m.Op(Opcode::FilterGeI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 0))).Pack());
    }
    AddSection(&p, m.Finish(Opcode::Emit, static_cast<int>(m.s.registers.size())));
  } else {
    AddSection(&p, m.Finish(Opcode::Emit, 1));
  }
  NameColumns(&p);
  CheckOptions check;
  check.masked = true;
  Check(name, std::move(p), std::move(tables), check);
}

/// Values of the field in P3 that an opcode is walked with.
std::vector<int32_t> VariantsOf(Opcode op) {
  const OpcodeInfo& info = Info(op);
  std::vector<int32_t> out = {0};
  switch (info.shape) {
    case Shape::UnaryField:
      out.clear();
      if (op == Opcode::RoundDigitsF) {
        out = {0, 1, 2, 3, 6, 15, 22, -1, -2, -6, -15, -22};
      } else {
        for (int32_t field = 0; field < 12; ++field) out.push_back(field);
      }
      break;
    case Shape::TextCut:
      out = {0, 1, 2, 5, 100, INT32_MAX};
      break;
    case Shape::TextSubstring:
      out = {0, 1};
      break;
    case Shape::Like:
      out.clear();
      for (int32_t i = 0; i < 23; ++i) out.push_back(i);
      break;
    case Shape::ToText:
    case Shape::FromText: {
      out.clear();
      const AccumulatorSpec c = info.shape == Shape::ToText ? info.in : info.out;
      std::vector<SqlType> types;
      if (c == AccumulatorSpec::W) {
        types = {SqlType::Decimal(38, 0), SqlType::Decimal(38, 10), SqlType::Decimal(19, 2)};
      } else if (c == AccumulatorSpec::F) {
        types = {SqlType::Of(TypeId::kReal), kDouble};
      } else {
        for (TypeId id : {TypeId::kBoolean, TypeId::kSmallint, TypeId::kInteger, TypeId::kBigint, TypeId::kDate,
                          TypeId::kTimestamp})
          types.push_back(SqlType::Of(id));
        types.push_back(SqlType::Decimal(18, 4));
        types.push_back(SqlType::Decimal(9, 2));
        types.push_back(SqlType::Decimal(5, 0));
      }
      for (const SqlType& t : types) out.push_back(PackType(t));
      break;
    }
    default:
      break;
  }
  return out;
}

/// An opcode with an accumulator of class `c` (or, for loads, an operand of it): every form of its operand, every kind
/// of operand.
void Walk::WalkOperands(Opcode op, AccumulatorSpec c) {
  const OpcodeInfo& info = Info(op);
  const bool has_operand =
      info.p[1] == OperandSpec::Src || info.p[1] == OperandSpec::SrcW || info.p[1] == OperandSpec::SrcInt;
  const std::vector<int32_t> variants = VariantsOf(op);
  std::vector<SqlType> types;
  if (info.p[1] == OperandSpec::SrcInt || op == Opcode::AddMonthsD || op == Opcode::AddMonthsT) {
    types = {kBigint};
  } else if (!has_operand && (op == Opcode::DatePartD || op == Opcode::DatePartT)) {
    types = {TypeFor(c, op)};
  } else if (c == AccumulatorSpec::F) {
    types = {kDouble, SqlType::Of(TypeId::kReal)};
  } else {
    types = {AnyType(c)};
    if (!has_operand && c == AccumulatorSpec::I) types.push_back(TypeFor(c, op));
  }
  const Kind first = Kind::kSlot;
  for (const SqlType& type : types) {
    const std::vector<Form>& forms = FormsOf(type);
    for (size_t i = 0; i < std::max(forms.size(), variants.size()); ++i)
      OperandCase(op, c, first, type, forms[i % forms.size()], variants[i % variants.size()]);
    // The host interprets sections over the results of others.
    for (int i = 0; i < 3 && gpu_ == nullptr; ++i)
      OperandCase(op, c, Kind::kResult, type, Pick(random_, forms), Pick(random_, variants));
    if (!has_operand) continue;
    for (int i = 0; i < 6; ++i)
      OperandCase(op, c, Kind::kRegister, type, Pick(random_, forms), Pick(random_, variants));
    for (int i = 0; i < 16; ++i)
      OperandCase(op, c, Kind::kConstant, type, Pick(random_, forms), Pick(random_, variants));
    for (int i = 0; i < 6; ++i) OperandCase(op, c, Kind::kPayload, type, Pick(random_, forms), Pick(random_, variants));
  }
}

/// Every opcode has its case here: by its shape, or in a part of its own that Run() calls. There is no default: a new
/// shape does not compile, and a new opcode of a known shape is walked and fails until Reference knows its meaning.
void Walk::WalkOpcode(Opcode op) {
  const OpcodeInfo& info = Info(op);
  if (gpu_ != nullptr && info.tier == Tier::Host) return;  // in TextMaps
  switch (info.shape) {
    case Shape::End:
    case Shape::SkipIfNone:
    case Shape::MaskRegister:
    case Shape::Store:
    case Shape::StoreWide:
    case Shape::Emit:    // everywhere; Masks
    case Shape::Filter:  // Predicates
    case Shape::Next:
    case Shape::NextOuter:
    case Shape::Probe:
    case Shape::ProbeOuter:
    case Shape::TestMatch:
    case Shape::Refuse:
    case Shape::Build:  // Joins
    case Shape::Group:
    case Shape::CountRows:
    case Shape::CountValues:
    case Shape::Fold:
    case Shape::FoldText:  // Groups
      return;
    case Shape::Test:
    case Shape::TestNull:
    case Shape::Compare:
    case Shape::TextCompare:
    case Shape::Like:
    case Shape::Load:
    case Shape::LoadWide:
    case Shape::Binary:
    case Shape::Unary:
    case Shape::UnaryField:
    case Shape::Check:
    case Shape::TextUnary:
    case Shape::TextCut:
    case Shape::TextLength:
    case Shape::TextConcat:
    case Shape::TextSubstring:
    case Shape::ToText:
    case Shape::FromText:
      break;
  }
  // X stands for the three narrow classes, before (tests) or after (loads).
  const AccumulatorSpec c = info.in == AccumulatorSpec::None ? info.out : info.in;
  if (c != AccumulatorSpec::X) return WalkOperands(op, c);
  for (AccumulatorSpec one : {AccumulatorSpec::I, AccumulatorSpec::F, AccumulatorSpec::T}) WalkOperands(op, one);
}

// ---- Masks ----------------------------------------------------------------------------------------------------------

/// OR and CASE as the compiler makes them: arms collected in mask registers, results in one register.
void Walk::Masks() {
  for (int i = 0; i < 60; ++i) {
    const std::string name = fmt::format("masks {}", i);
    if (!Wanted(name)) continue;
    Program p;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    const int a = AddColumn(&tables[0], {kBigint, Pick(random_, FormsOf(kBigint))}, rows);
    const int b = AddColumn(&tables[0], {kDouble, Pick(random_, FormsOf(kDouble))}, rows);
    const int d = AddColumn(&tables[0], {kWide, Pick(random_, FormsOf(kWide))}, rows);
    AddTables(&p, tables);
    Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
    Head(&m, &p);
    const Operand sa = Operand::Slot(m.Slot(a, kBigint)), sb = Operand::Slot(m.Slot(b, kDouble)),
                  sd = Operand::Slot(m.Slot(d, kWide));
    const int all = m.Mask(), taken = m.Mask(), third = m.Mask();
    const int out = m.Register(kBigint), wide = m.Register(kWide);
    m.Op(Opcode::MaskSave, all);
    m.Op(Opcode::MaskClear, taken);
    // An arm: where A > constant, out = A; with or without a jump over an empty one.
    m.Load(kBigint, sa);
    m.Op(Opcode::FilterGtI, 0, Operand::Constant(AddConstant(&p, RandomConstant(kBigint, nullptr))).Pack());
    m.Op(Opcode::MaskOr, taken);
    const int skip = i % 2 == 0 ? m.Op(Opcode::SkipIfNone, 0, 1) : -1;
    m.Load(kBigint, sa);
    m.Store(out);
    m.Load(kWide, sd);
    m.Store(wide);
    if (skip >= 0) m.s.code[static_cast<size_t>(skip)].p2 = m.Here();
    // The next: where B is not NULL and B <= constant, and not taken before.
    m.Op(Opcode::MaskLoad, all);
    m.Op(Opcode::MaskAndNot, taken);
    m.Op(Opcode::MaskSave, third);
    m.Load(kDouble, sb);
    m.Op(Opcode::FilterNotNull);
    m.Op(Opcode::FilterLeF, 0, Operand::Constant(AddConstant(&p, RandomConstant(kDouble, nullptr))).Pack());
    m.Op(Opcode::MaskOr, taken);
    m.Load(kBigint, Operand::Constant(AddConstant(&p, i % 3 == 0 ? Value::Null(kBigint) : Value::Int(kBigint, 17))));
    m.Store(out);
    m.Load(kWide,
           Operand::Constant(AddConstant(&p, i % 3 == 1 ? Value::Null(kWide) : Value::Wide(kWide, PowerOf10(30)))));
    m.Store(wide);
    // ELSE, or nothing: then only the rows taken are emitted.
    m.Op(Opcode::MaskLoad, third);
    m.Op(Opcode::MaskAndNot, taken);
    m.Load(kBigint, Operand::Constant(AddConstant(&p, Value::Int(kBigint, -1))));
    m.Store(out);
    m.Load(kWide, Operand::Constant(AddConstant(&p, Value::Wide(kWide, -1))));
    m.Store(wide);
    m.Op(Opcode::MaskLoad, i % 4 == 3 ? taken : all);
    AddSection(&p, m.Finish(Opcode::Emit, 3));
    NameColumns(&p);
    CheckOptions check;
    check.masked = true;
    Check(name, std::move(p), std::move(tables), check);
  }
}

// ---- Predicates -----------------------------------------------------------------------------------------------------

void Walk::Predicates() {
  std::vector<SqlType> types = {kBigint,
                                SqlType::Of(TypeId::kBoolean),
                                SqlType::Of(TypeId::kSmallint),
                                SqlType::Of(TypeId::kInteger),
                                SqlType::Of(TypeId::kReal),
                                kDouble,
                                SqlType::Decimal(9, 2),
                                SqlType::Decimal(18, 4),
                                SqlType::Decimal(38, 10),
                                SqlType::Of(TypeId::kDate),
                                SqlType::Of(TypeId::kTimestamp),
                                kText};
  for (const SqlType& type : types) {
    const bool text = type.id == TypeId::kText;
    size_t number = 0;
    for (const Form& form : FormsOf(type)) {
      for (int i = 0; i < (text ? 40 : 9); ++i) {
        const std::string name = fmt::format("predicate {} {} #{}", type.ToString(), form.ToString(), number++);
        if (!Wanted(name)) continue;
        Program p;
        const size_t rows = NextSize();
        std::vector<TestTable> tables = {MaskedTable(rows)};
        const int column = AddColumn(&tables[0], {type, form}, rows);
        AddTables(&p, tables);
        const ColumnVector& values = tables[0].columns[static_cast<size_t>(column)].values;
        // Bounds: the column's own values and their neighbours, the ends of the type and what lies beyond the column's.
        auto bound = [&]() -> int32_t {
          Value v = RandomConstant(type, nullptr);
          const size_t kind = Below(random_, 6);
          if (kind < 3 && rows > 0) {
            const size_t row = Below(random_, rows);
            if (!values.IsNull(row)) {
              if (text) {
                v.text = std::string(values.Text(row)) + (kind == 2 ? "\x01" : "");
              } else {
                const int128_t at = OrderedValue(values, row);
                const auto [least, greatest] = RangeOf(type);
                const int128_t near = kind == 0   ? at
                                      : kind == 1 ? at - (at > least ? 1 : 0)
                                                  : at + (at < greatest ? 1 : 0);
                v = ToValue(type, IsValue(type, near) ? near : at);
              }
            }
          } else if (kind == 3 && !text) {
            const int128_t end = Turn(2) == 0 ? form.low : form.high;
            if (IsValue(type, end)) v = ToValue(type, end);
          } else if (kind == 4 && type.id == TypeId::kReal) {
            v.f64 = std::vector<double>{
                0.1, -0.1, 1e300, -1e300, 1e-300, -1e-300, 16777217.0, 3.4028236e38}[Below(random_, 8)];  // no singles
          }
          return AddConstant(&p, v);
        };
        Predicate f;
        f.negated = Turn(3) == 0;
        std::optional<Section> map;
        const size_t kind = text ? Turn(5) : Turn(4) == 3 ? 3 : i % 9 < 6 ? 0 : i % 9 < 8 ? 1 : 2;
        switch (kind) {
          case 0:
          case 4:
            f.kind = Predicate::Kind::kRange;
            f.low = Turn(5) == 0 ? -1 : bound();
            f.high = Turn(5) == 1 ? -1 : Turn(6) == 0 ? f.low : bound();
            f.low_inclusive = Turn(3) != 0;
            f.high_inclusive = Turn(3) != 1;
            break;
          case 1:
          case 3: {
            if (kind == 3 && text) {
              f.kind = Predicate::Kind::kMapped;
              Maker d(Section::Source::kDictionary, 0, Section::Sink::kMap, "dictionary");
              d.Slot(0, kText);
              d.Load(kText, Operand::Slot(0));
              if (Turn(2) == 0) {
                d.Op(Turn(2) == 0 ? Opcode::FilterLike : Opcode::FilterNotLike, 0,
                     AddConstant(&p, Value::Text(Turn(2) == 0 ? "%a%" : "k%9")));
              } else {
                d.Op(Opcode::LengthT);
                d.Op(Opcode::FilterLtI, 0,
                     Operand::Constant(AddConstant(&p, Value::Int(kBigint, static_cast<int64_t>(Below(random_, 8)))))
                         .Pack());
              }
              map = d.Finish(Opcode::Emit, 0);
              break;
            }
            f.kind = Predicate::Kind::kIn;
            const size_t n = std::vector<size_t>{1, 2, 0, 5, 40}[Turn(5)];
            for (size_t k = 0; k < n; ++k) f.list.push_back(bound());
            break;
          }
          default:
            f.kind = Turn(2) == 0 ? Predicate::Kind::kIsNull : Predicate::Kind::kIsNotNull;
            f.negated = false;
        }
        if (map) f.map = AddSection(&p, *map);
        Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
        const bool first = Turn(3) != 0;  // at the head it can skip tablets
        const int slot_first = first ? m.Slot(column, type) : -1;
        if (first) {
          f.slot = slot_first;
          m.Filter(f);
          const int row = m.Slot(kRowColumn, kBigint);
          m.Keep(kBigint, Operand::Slot(row));
        } else {
          Head(&m, &p);
          f.slot = m.Slot(column, type);
          m.Filter(f);
        }
        AddSection(&p, m.Finish(Opcode::Emit, 1));
        NameColumns(&p);
        Check(name, std::move(p), std::move(tables));
      }
    }
  }
}

// ---- Dictionary sections --------------------------------------------------------------------------------------------

/// Functions of TEXT, evaluated once per entry, as the value of a slot.
void Walk::TextMaps() {
  struct Function {
    const char* name;
    SqlType type;
    std::vector<Instruction> code;
  };
  auto op = [](Opcode o, int32_t p2 = 0, int32_t p3 = 0) { return Instruction{o, 0, p2, p3, 0}; };
  for (int i = 0; i < 400; ++i) {
    Program p;
    const int32_t one = Operand::Constant(AddConstant(&p, Value::Int(kBigint, 1 + i % 3))).Pack();
    const int32_t three = Operand::Constant(AddConstant(&p, Value::Int(kBigint, 3))).Pack();
    const int32_t suffix = Operand::Constant(AddConstant(&p, Value::Text("#\xC3\xA9"))).Pack();
    const int32_t middle = Operand::Constant(AddConstant(&p, Value::Text("b"))).Pack();
    const int32_t null = Operand::Constant(AddConstant(&p, Value::Null(kText))).Pack();
    const int32_t pattern = AddConstant(&p, Value::Text(i % 2 == 0 ? "%a%" : "_%"));
    const std::vector<Function> functions = {
        {"upper", kText, {op(Opcode::UpperT)}},
        {"lower", kText, {op(Opcode::LowerT)}},
        {"trim", kText, {op(Opcode::TrimT)}},
        {"ltrim", kText, {op(Opcode::TrimLeftT)}},
        {"rtrim", kText, {op(Opcode::TrimRightT)}},
        {"cut", kText, {op(Opcode::CutT, 0, 2)}},
        {"length", kBigint, {op(Opcode::LengthT)}},
        {"concat", kText, {op(Opcode::ConcatT, suffix)}},
        {"concat null", kText, {op(Opcode::ConcatT, null)}},
        {"substring", kText, {op(Opcode::SubstringT, one, three)}},
        {"rest", kText, {op(Opcode::SubstringT, three, -1)}},
        {"length to double",
         kDouble,
         {op(Opcode::LengthT), op(Opcode::IToF),
          op(Opcode::MulF, Operand::Constant(AddConstant(&p, Value::Float(kDouble, 0.1))).Pack())}},
        {"length to text", kText, {op(Opcode::LengthT), op(Opcode::IToT, 0, PackType(kBigint))}},
        {"and back",
         kBigint,
         {op(Opcode::LengthT), op(Opcode::IToT, 0, PackType(kBigint)), op(Opcode::TToI, 0, PackType(kBigint))}},
        {"and double",
         kDouble,
         {op(Opcode::LengthT), op(Opcode::IToF), op(Opcode::FToT, 0, PackType(kDouble)),
          op(Opcode::TToF, 0, PackType(kDouble))}},
        {"and wide",
         kText,
         {op(Opcode::LengthT), op(Opcode::IToT, 0, PackType(kBigint)),
          op(Opcode::TToW, 0, PackType(SqlType::Decimal(30, 2))),
          op(Opcode::WToT, 0, PackType(SqlType::Decimal(30, 2)))}},
        {"if like", kText, {op(Opcode::FilterLike, pattern)}},
        {"if not like", kText, {op(Opcode::FilterNotLike, pattern), op(Opcode::UpperT)}},
        {"if less", kText, {op(Opcode::FilterLtT, middle)}},
        {"if at most", kText, {op(Opcode::FilterLeT, middle)}},
        {"if greater", kText, {op(Opcode::FilterGtT, middle)}},
        {"if at least", kText, {op(Opcode::FilterGeT, middle)}},
        {"if equal", kText, {op(Opcode::FilterEqT, middle)}},
        {"if not", kText, {op(Opcode::FilterNeT, middle)}},
    };
    const Function& f = functions[static_cast<size_t>(i) % functions.size()];
    const Form& form = FormsOf(kText)[Turn(FormsOf(kText).size())];
    const std::string name = fmt::format("map {} {} #{}", f.name, form.ToString(), i);
    if (!Wanted(name)) continue;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    const int column = AddColumn(&tables[0], {kText, form}, rows);
    AddTables(&p, tables);
    Maker d(Section::Source::kDictionary, 0, Section::Sink::kMap, "dictionary");
    d.Slot(0, kText);
    d.Load(kText, Operand::Slot(0));
    for (const Instruction& in : f.code) d.s.code.push_back(in);
    d.Store(d.Register(f.type));
    const int map = AddSection(&p, d.Finish(Opcode::Emit, 1));
    Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
    Head(&m, &p);
    const Operand slot = Operand::Slot(m.Slot(column, f.type, map));
    m.Keep(f.type, slot);
    m.Keep(kText, Operand::Slot(m.Slot(column, kText)));
    if (Turn(2) == 0) {
      Predicate kept;  // an entry that the section drops is NULL in the slot, and fails the predicate
      kept.kind = Predicate::Kind::kMapped;
      kept.map = map;
      kept.slot = m.Slot(column, kText);
      kept.negated = Turn(2) == 0;
      m.Filter(kept);
    }
    AddSection(&p, m.Finish(Opcode::Emit, 3));
    NameColumns(&p);
    Check(name, std::move(p), std::move(tables));
  }
}

// ---- Joins ----------------------------------------------------------------------------------------------------------

/// Keys of a join side: `style` says how numbers lie. Values repeat `repeat` times on average.
ColumnVector KeyValues(const SqlType& type, int style, size_t rows, size_t distinct, bool each_once, bool nulls,
                       Random& random) {
  ColumnVector c;
  c.type = type;
  if (nulls) {
    c.null.resize(rows);
    for (uint8_t& n : c.null) n = random() % 9 == 0 ? 1 : 0;
  }
  if (type.id == TypeId::kText && rows > 0) c.offsets.push_back(0);
  for (size_t i = 0; i < rows; ++i) {
    const int64_t k = static_cast<int64_t>(each_once ? i : Below(random, distinct + 2));
    int64_t v = k;                                                                             // dense
    if (style == 1) v = -k - 5;                                                                // dense, negative
    if (style == 2) v = (k - 3) * 1000003;                                                     // sparse, around 0
    if (style == 3) v = static_cast<int64_t>(static_cast<uint64_t>(k) * 0x9E3779B97F4A7C15u);  // anywhere in 64 bits
    if (style == 4) v = k % 2 == 0 ? kLeast + k : kGreatest - k;                               // at both ends
    switch (type.storage()) {
      case StorageClass::kText:
        if (!c.IsNull(i)) c.bytes += k == 0 ? "" : fmt::format("key{}", v);
        c.offsets.push_back(c.bytes.size());
        break;
      case StorageClass::kWide:
        c.wide.push_back(style == 2 ? v * PowerOf10(20) : v);
        break;
      case StorageClass::kFloat: {
        double f = static_cast<double>(v) / 4;
        if (k == 0) f = 0.125;  // zero is k = 2, with either sign: one key
        if (k == 1) f = std::numeric_limits<double>::quiet_NaN();
        if (k == 2) f = random() % 2 == 0 ? -0.0 : 0.0;
        if (k == 3) f = -std::numeric_limits<double>::infinity();
        c.fixed.push_back(AsBits(type.id == TypeId::kReal ? static_cast<double>(static_cast<float>(f)) : f));
        break;
      }
      case StorageClass::kInt:
        c.fixed.push_back(type.id == TypeId::kBigint ? v : k);
        break;
    }
  }
  return c;
}

/// A form that holds these values: numbers in one of the widths that do, or in `width` if that is not 0 and they fit
/// it.
ChunkForm AnyForm(const ColumnVector& values, Random& random, int width = 0) {
  const size_t rows = RowsOf(values);
  ChunkForm f;
  f.null_code = ChunkForm::NullCode::kGap;
  if (values.type.id == TypeId::kText) {
    f.encoding = rows > 0 && random() % 2 == 0 ? Encoding::kPlain : Encoding::kDictionary;
    f.width = 4;
    return f;
  }
  int128_t low = 0, high = 0;
  bool any = false;
  for (size_t i = 0; i < rows; ++i) {
    if (values.IsNull(i)) continue;
    const int128_t v = OrderedValue(values, i);
    low = any ? std::min(low, v) : v;
    high = any ? std::max(high, v) : v;
    any = true;
  }
  const int widest = values.type.storage() == StorageClass::kWide ? 16 : values.type.id == TypeId::kReal ? 4 : 8;
  std::vector<int> widths = {widest};
  for (int w = 1; w < widest; w *= 2) {
    if ((static_cast<uint128_t>(high) - static_cast<uint128_t>(low)) >> (8 * w - 1) == 0) widths.push_back(w);
  }
  f.width = std::count(widths.begin(), widths.end(), width) > 0 ? width : Pick(random, widths);
  return f;
}

/// `style`: 0 slot keys, 1 register keys, 2 constant key, 3 the payload of an earlier join is the key, 4 left outer
/// (unique) by masks. `outer`: 0 Probe; 1 ProbeOuter; 2 ProbeOuter and NextOuter, with a condition on the matches; 3
/// the same, where a match that meets it is an error.
void Walk::JoinCase(const std::string& name, const std::vector<SqlType>& keys, int key_style, size_t build_rows,
                    bool unique, int style, int outer) {
  if (!Wanted(name)) return;
  Program p;
  const size_t rows = std::min<size_t>(NextSize(), build_rows > 0 && keys.empty() ? 300 : SIZE_MAX);
  std::vector<TestTable> tables = {MaskedTable(rows)};
  TestTable u;
  u.name = "u";
  u.tablet_rows = TabletRows(build_rows);
  const bool nulls = Turn(2) == 0;
  std::vector<int> probe_columns;
  auto add = [&](TestTable* table, ColumnVector values) {
    const ChunkForm form = AnyForm(values, random_, key_width_);
    table->columns.push_back({fmt::format("c{}", table->columns.size()), std::move(values), {form}});
  };
  for (size_t k = 0; k < keys.size(); ++k) {
    // The first key is distinct if the join is unique; several keys have few values each, so that they meet.
    const size_t distinct = k == 0 ? std::max<size_t>(1, unique ? build_rows : build_rows / 3) : 3;
    probe_columns.push_back(static_cast<int>(tables[0].columns.size()));
    add(&tables[0], KeyValues(keys[k], key_style, rows, distinct, false, nulls, random_));
    add(&u, KeyValues(keys[k], key_style, build_rows, distinct, unique && k == 0, nulls && !unique, random_));
  }
  // Payload of every class, with NULLs.
  const std::vector<SqlType> payload = {kBigint, kDouble, kText, kWide};
  std::vector<int> payload_columns;
  for (const SqlType& t : payload) payload_columns.push_back(AddColumn(&u, {t, Pick(random_, FormsOf(t))}, build_rows));
  if (keys.size() == 1 && keys[0].id == TypeId::kBigint && style == 3) {
    // The first payload leads to the keys of a second table.
    MemoryColumn& leads = u.columns[static_cast<size_t>(payload_columns[0])];
    leads.values = KeyValues(kBigint, 0, build_rows, 50, false, true, random_);
    leads.forms = {AnyForm(leads.values, random_)};
  }
  tables.push_back(std::move(u));
  if (style == 3) {
    TestTable v;
    v.name = "v";
    add(&v, KeyValues(kBigint, 0, 50, 50, true, false, random_));
    add(&v, KeyValues(kBigint, 3, 50, 50, true, true, random_));
    tables.push_back(std::move(v));
  }
  AddTables(&p, tables);

  auto canonical = [&](Maker* m, const SqlType& type, Operand from) {
    m->Load(type, from);
    if (type.IsFloat()) m->Op(Opcode::CanonF);
    const int r = m->Register(type);
    m->Store(r);
    return r;
  };
  Maker b(Section::Source::kTable, 1, Section::Sink::kJoin, "build u");
  for (size_t k = 0; k < keys.size(); ++k) canonical(&b, keys[k], Operand::Slot(b.Slot(static_cast<int>(k), keys[k])));
  for (size_t k = 0; k < payload.size(); ++k) b.Keep(payload[k], Operand::Slot(b.Slot(payload_columns[k], payload[k])));
  b.s.join = 0;
  b.s.keys = static_cast<int32_t>(keys.size());
  p.joins.push_back({unique, AddSection(&p, b.Finish(Opcode::Build, static_cast<int>(keys.size() + payload.size())))});
  if (style == 3) {
    Maker second(Section::Source::kTable, 2, Section::Sink::kJoin, "build v");
    for (int c = 0; c < 2; ++c) second.Keep(kBigint, Operand::Slot(second.Slot(c, kBigint)));
    second.s.join = 1;
    second.s.keys = 1;
    p.joins.push_back({true, AddSection(&p, second.Finish(Opcode::Build, 2))});
  }

  Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "probe u");
  Head(&m, &p);
  bool floats = false;
  for (const SqlType& t : keys) floats = floats || t.IsFloat();
  Operand key = Operand::Register(0);
  std::vector<int> slots;
  for (size_t k = 0; k < keys.size(); ++k) slots.push_back(m.Slot(probe_columns[k], keys[k]));
  if (keys.size() == 1 && keys[0].storage() == StorageClass::kInt && style != 2 && style != 4 && outer == 0 &&
      Turn(2) == 0) {
    Predicate range;
    range.kind = Predicate::Kind::kKeyRange;
    range.slot = slots[0];
    range.join = 0;
    m.Filter(range);
  }
  if (style == 2 && keys.size() == 1 && !floats) {
    Value v = RandomConstant(keys[0], nullptr);
    const ColumnVector& from = tables[1].columns[0].values;
    if (RowsOf(from) > 0 && Turn(4) != 0) {
      const size_t row = Below(random_, RowsOf(from));
      if (from.IsNull(row)) {
        v = Value::Null(keys[0]);
      } else if (keys[0].id == TypeId::kText) {
        v = Value::Text(std::string(from.Text(row)));
      } else {
        v = ToValue(keys[0], OrderedValue(from, row));
      }
    }
    key = Operand::Constant(AddConstant(&p, v));
  } else if (keys.size() == 1 && style != 1 && !floats) {
    key = Operand::Slot(slots[0]);
  } else if (!keys.empty()) {
    key = Operand::Register(static_cast<int>(m.s.registers.size()));
    for (size_t k = 0; k < keys.size(); ++k) canonical(&m, keys[k], Operand::Slot(slots[k]));
  }
  const int all = style == 4 ? m.Mask() : -1, matched = style == 4 ? m.Mask() : -1;
  if (style == 4) {
    m.Op(Opcode::MaskSave, all);
    m.Op(Opcode::MaskClear, matched);
  }
  const Opcode probe = outer == 0 ? Opcode::Probe : Opcode::ProbeOuter;
  const int found = outer >= 2 ? m.Mask() : -1;
  if (outer >= 2) m.Op(Opcode::MaskClear, found);
  m.Op(probe, 0, keys.empty() ? 0 : key.Pack(), static_cast<int32_t>(keys.size()));
  const bool loops = !unique || outer >= 2;
  const int loop = loops ? m.Mask() : -1;
  if (loops) m.Op(Opcode::MaskSave, loop);
  const int body = m.Here();
  if (outer >= 2) {
    // Matches whose first payload is positive count; a row without one goes on in its last turn.
    const int turn = m.Mask(), candidates = m.Mask(), passed = m.Mask();
    m.Op(Opcode::MaskSave, turn);
    m.Op(Opcode::FilterMatched, 0);
    m.Op(Opcode::MaskSave, candidates);
    m.Load(kBigint, Operand::Payload(0, 0));
    m.Op(Opcode::FilterGtI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 0))).Pack());
    if (outer == 3) m.Op(Opcode::RefuseMatch);
    m.Op(Opcode::MaskSave, passed);
    m.Op(Opcode::MaskOr, found);
    m.Op(Opcode::MaskLoad, turn);
    m.Op(Opcode::MaskAndNot, candidates);
    m.Op(Opcode::MaskAndNot, found);
    m.Op(Opcode::MaskOr, passed);
    m.Op(Opcode::MaskLoad, passed);
  }
  std::vector<int> outs;
  for (size_t k = 0; k < payload.size(); ++k)
    outs.push_back(m.Keep(payload[k], Operand::Payload(0, static_cast<int>(k))));
  if (style == 3) {
    m.Op(probe, 1, Operand::Payload(0, 0).Pack(), 1);
    m.Keep(kBigint, Operand::Payload(1, 0));
  }
  if (style == 4) {
    m.Op(Opcode::MaskOr, matched);
    m.Op(Opcode::MaskLoad, all);
    m.Op(Opcode::MaskAndNot, matched);
    for (size_t k = 0; k < payload.size(); ++k) {
      m.Load(payload[k], Operand::Constant(AddConstant(&p, Value::Null(payload[k]))));
      m.Store(outs[k]);
    }
    m.Op(Opcode::MaskLoad, all);
  }
  m.s.columns = m.s.registers;
  m.Op(Opcode::Emit);
  if (loops) m.Op(outer >= 2 ? Opcode::NextOuter : Opcode::Next, 0, body, loop);
  AddSection(&p, m.End());
  NameColumns(&p);
  CheckOptions check;
  check.masked = outer == 3;
  Check(name, std::move(p), std::move(tables), check);
}

void Walk::Joins() {
  const SqlType kInteger = SqlType::Of(TypeId::kInteger), kDate = SqlType::Of(TypeId::kDate);
  const size_t sizes[] = {0, 1, 7, 300, 5000};
  int number = 0;
  auto run = [&](const char* what, const std::vector<SqlType>& keys, int key_style, size_t build, bool unique,
                 int style) {
    JoinCase(fmt::format("join {} keys, style {}, {} {}, {} rows #{}", what, key_style, unique ? "unique" : "N:M",
                         std::array<const char*, 5>{"slots", "registers", "constant", "chained",
                                                    "outer"}[static_cast<size_t>(style)],
                         build, number++),
             keys, key_style, build, unique, style);
    if (style == 4) return;
    for (int outer = 1; outer <= 3; ++outer) {
      JoinCase(fmt::format("outer join {} keys, style {}, form {}, {} {}, {} rows #{}", what, key_style, outer,
                           unique ? "unique" : "N:M", style, build, number++),
               keys, key_style, build, unique, style, outer);
    }
  };
  for (size_t build : sizes) {
    for (bool unique : {true, false}) {
      for (int key_style = 0; key_style < 5; ++key_style) {
        for (int style = 0; style < (unique ? 5 : 4); ++style)
          run("bigint", {kBigint}, key_style, build, unique, style);
      }
      for (int style = 0; style < 3; ++style) {
        run("date", {kDate}, 0, build, unique, style);
        run("text", {kText}, style, build, unique, style);
        run("wide", {kWide}, style, build, unique, style);
        run("float", {kDouble}, style % 3, build, unique, 1);
      }
      for (int key_style = 0; key_style < 4; ++key_style) {
        run("bigint integer", {kBigint, kInteger}, key_style, build, unique, 1);
        run("text bigint", {kText, kBigint}, key_style, build, unique, 1);
        run("wide text double", {kWide, kText, kDouble}, key_style, build, unique, 1);
        run("bigint wide date", {kBigint, kWide, kDate}, key_style, build, unique, unique ? 4 : 1);
      }
    }
    // Every width of a key in a slot.
    for (int width : {1, 2, 4, 8}) {
      key_width_ = width;
      for (bool unique : {true, false}) run("narrow bigint", {kBigint}, 0, std::min<size_t>(build, 40), unique, 0);
    }
    key_width_ = 0;
    if (build <= 300) run("no", {}, 0, std::min<size_t>(build, 40), false, 1);
    if (build <= 1) run("no", {}, 0, build, true, 4);
  }
}

// ---- Groups ---------------------------------------------------------------------------------------------------------

/// A table is grouped by `keys` and every aggregate there is computed; a second section reads the groups.
void Walk::GroupCase(const std::string& name, const std::vector<SqlType>& keys, size_t rows, size_t distinct,
                     bool small_aggregates) {
  if (!Wanted(name)) return;
  Program p;
  std::vector<TestTable> tables = {MaskedTable(rows)};
  if (Turn(3) == 0 && rows > 0)
    std::fill(tables[0].columns[kMaskColumn].values.fixed.begin(), tables[0].columns[kMaskColumn].values.fixed.end(),
              Turn(2) == 0 ? 1 : 0);
  std::vector<int> key_columns;
  for (size_t k = 0; k < keys.size(); ++k) {
    key_columns.push_back(static_cast<int>(tables[0].columns.size()));
    const size_t some = k == 0 ? distinct : std::min<size_t>(distinct, 4);
    ColumnVector values =
        KeyValues(keys[k], key_width_ != 0 ? 0 : static_cast<int>(Turn(4)), rows, some, false, Turn(2) == 0, random_);
    const ChunkForm form = AnyForm(values, random_, key_width_);
    tables[0].columns.push_back({fmt::format("k{}", k), std::move(values), {form}});
  }
  // Sums must not overflow in any order of the rows, extremes may be anything.
  auto add = [&](const SqlType& type, int128_t low, int128_t high, int width) {
    Form f = FrameForm(width, Turn(2) == 0);
    f.low = low;
    f.high = high;
    if (type.id != TypeId::kText) f.chunk.base = low;
    if (type.id == TypeId::kText) f = Pick(random_, FormsOf(kText));
    return AddColumn(&tables[0], {type, f}, rows);
  };
  const int any_integer = AddColumn(&tables[0], {kBigint, Pick(random_, FormsOf(kBigint))}, rows);
  const int any_double = AddColumn(&tables[0], {kDouble, Pick(random_, FormsOf(kDouble))}, rows);
  const int any_wide = AddColumn(&tables[0], {kWide, Pick(random_, FormsOf(kWide))}, rows);
  const int text = add(kText, 0, 0, 4);
  const int small_wide = add(kWide, -PowerOf10(25), PowerOf10(25), 16);
  const int finite = add(SqlType::Of(TypeId::kReal), OrderedFloat32(-1000.0f), OrderedFloat32(1000.0f), 4);
  AddTables(&p, tables);

  Maker m(Section::Source::kTable, 0, Section::Sink::kGroups, "group t");
  Head(&m, &p);
  m.s.keys = static_cast<int32_t>(keys.size());
  m.s.columns = keys;
  const bool direct = keys.size() == 1 && !keys[0].IsFloat() && (key_width_ != 0 || Turn(3) != 0);
  if (keys.empty()) {
    m.Op(Opcode::Group);
  } else if (direct) {
    m.Op(Opcode::Group, 0, Operand::Slot(m.Slot(key_columns[0], keys[0])).Pack(), 1);
  } else {
    const int first = static_cast<int>(m.s.registers.size());
    for (size_t k = 0; k < keys.size(); ++k) {
      m.Load(keys[k], Operand::Slot(m.Slot(key_columns[k], keys[k])));
      if (keys[k].IsFloat()) m.Op(Opcode::CanonF);
      m.Store(m.Register(keys[k]));
    }
    m.Op(Opcode::Group, 0, Operand::Register(first).Pack(), static_cast<int32_t>(keys.size()));
  }
  auto aggregate = [&](Opcode op, const SqlType& type) {
    m.s.aggregates.push_back({op, type});
    m.s.columns.push_back(type);
    m.Op(op, static_cast<int>(m.s.aggregates.size()) - 1);
  };
  const bool host = gpu_ == nullptr;
  aggregate(Opcode::CountRows, kBigint);
  m.Load(kBigint, Operand::Slot(m.Slot(any_integer, kBigint)));
  aggregate(Opcode::SumI, kWide);
  aggregate(Opcode::Count, kBigint);
  aggregate(Opcode::MinI, kBigint);
  aggregate(Opcode::MaxI, kBigint);
  if (!small_aggregates) {
    m.Load(kDouble, Operand::Slot(m.Slot(any_double, kDouble)));
    aggregate(Opcode::MinF, kDouble);
    aggregate(Opcode::MaxF, kDouble);
    aggregate(Opcode::Count, kBigint);
    m.Load(kDouble, Operand::Slot(m.Slot(finite, SqlType::Of(TypeId::kReal))));
    aggregate(Opcode::SumF, kDouble);
    m.Load(kWide, Operand::Slot(m.Slot(any_wide, kWide)));
    aggregate(Opcode::MinW, kWide);
    aggregate(Opcode::MaxW, kWide);
    aggregate(Opcode::CountW, kBigint);
    m.Load(kWide, Operand::Slot(m.Slot(small_wide, kWide)));
    aggregate(Opcode::SumW, kWide);
    m.Load(kText, Operand::Slot(m.Slot(text, kText)));
    aggregate(Opcode::Count, kBigint);
    if (host) {
      aggregate(Opcode::MinT, kText);
      aggregate(Opcode::MaxT, kText);
    }
    if (Turn(2) == 0) {
      // A conditional aggregate: rows masked off for it only.
      const int all = m.Mask();
      m.Op(Opcode::MaskSave, all);
      m.Load(kBigint, Operand::Slot(m.Slot(any_integer, kBigint)));
      m.Op(Opcode::FilterGtI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 0))).Pack());
      aggregate(Opcode::SumI, kWide);
      m.Op(Opcode::MaskLoad, all);
      aggregate(Opcode::CountRows, kBigint);
    }
  }
  const std::vector<SqlType> columns = m.s.columns;
  const int groups = AddSection(&p, m.End());
  Maker out(Section::Source::kSection, groups, Section::Sink::kRows, "groups");
  for (size_t c = 0; c < columns.size(); ++c)
    out.Keep(columns[c], Operand::Slot(out.Slot(static_cast<int>(c), columns[c])));
  AddSection(&p, out.Finish(Opcode::Emit, static_cast<int>(columns.size())));
  NameColumns(&p);
  Check(name, std::move(p), std::move(tables));
}

void Walk::Groups() {
  const SqlType kInteger = SqlType::Of(TypeId::kInteger), kBoolean = SqlType::Of(TypeId::kBoolean),
                kReal = SqlType::Of(TypeId::kReal);
  const std::vector<std::pair<const char*, std::vector<SqlType>>> kinds = {
      {"no keys", {}},
      {"bigint", {kBigint}},
      {"text", {kText}},
      {"double", {kDouble}},
      {"real", {kReal}},
      {"wide", {kWide}},
      {"integer text", {kInteger, kText}},
      {"double bigint", {kDouble, kBigint}},
      {"wide double text", {kWide, kDouble, kText}},
      {"boolean wide bigint text", {kBoolean, kWide, kBigint, kText}},
      {"four integers", {kInteger, kBigint, kInteger, kInteger}},
  };
  int number = 0;
  for (const auto& [what, keys] : kinds) {
    for (int i = 0; i < (keys.empty() ? 40 : 24); ++i) {
      const size_t distinct = std::vector<size_t>{1, 3, 35, 1000}[static_cast<size_t>(i) % 4];
      GroupCase(fmt::format("group by {} #{}", what, number++), keys, NextSize(), distinct, false);
    }
  }
  for (int width : {1, 2, 4, 8}) {
    key_width_ = width;
    for (int i = 0; i < 6; ++i)
      GroupCase(fmt::format("group by integer of width {} #{}", width, number++), {kInteger}, NextSize(), 20, false);
  }
  key_width_ = 0;
  if (options_.greatest_rows >= 150000) {
    GroupCase("group 100000 bigint", {kBigint}, 150000, 100000, true);
    GroupCase("group 100000 text", {kText}, 120000, 100000, true);
    GroupCase("group 100000 wide double", {kWide, kDouble}, 150000, 100000, false);
  }

  // Keys that are constants, payloads, results; the overflow of an exact sum.
  for (int i = 0; i < 12; ++i) {
    const std::string name = fmt::format("group by a constant or a payload #{}", i);
    if (!Wanted(name)) continue;
    Program p;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    TestTable u;
    u.name = "u";
    u.columns.push_back({"k", KeyValues(kBigint, 0, 20, 20, true, false, random_), {FrameForm(1).chunk}});
    const SqlType type = std::vector<SqlType>{kBigint, kText, kWide}[static_cast<size_t>(i) % 3];
    ColumnVector grouped = KeyValues(type, 2, 20, 4, false, true, random_);
    const ChunkForm grouped_form = AnyForm(grouped, random_);
    u.columns.push_back({"g", std::move(grouped), {grouped_form}});
    tables.push_back(u);
    const int key = static_cast<int>(tables[0].columns.size());
    ColumnVector leads = KeyValues(kBigint, 0, rows, 20, false, true, random_);
    const ChunkForm leads_form = AnyForm(leads, random_);
    tables[0].columns.push_back({"k", std::move(leads), {leads_form}});
    AddTables(&p, tables);
    Maker b(Section::Source::kTable, 1, Section::Sink::kJoin, "build u");
    b.Keep(kBigint, Operand::Slot(b.Slot(0, kBigint)));
    b.Keep(type, Operand::Slot(b.Slot(1, type)));
    b.s.join = 0;
    b.s.keys = 1;
    p.joins.push_back({true, AddSection(&p, b.Finish(Opcode::Build, 2))});
    Maker m(Section::Source::kTable, 0, Section::Sink::kGroups, "group t");
    Head(&m, &p);
    m.Op(Opcode::Probe, 0, Operand::Slot(m.Slot(key, kBigint)).Pack(), 1);
    Operand g = Operand::Payload(0, 0);
    if (i % 2 == 1)
      g = Operand::Constant(AddConstant(&p, i % 4 == 1 ? RandomConstant(type, nullptr) : Value::Null(type)));
    m.s.keys = 1;
    m.Op(Opcode::Group, 0, g.Pack(), 1);
    m.Op(Opcode::CountRows, 0);
    m.Load(kBigint, Operand::Register(0));
    m.Op(Opcode::SumI, 1);
    m.s.aggregates = {{Opcode::CountRows, kBigint}, {Opcode::SumI, kWide}};
    m.s.columns = {type, kBigint, kWide};
    const int groups = AddSection(&p, m.End());
    Maker out(Section::Source::kSection, groups, Section::Sink::kRows, "groups");
    for (int c = 0; c < 3; ++c)
      out.Keep(m.s.columns[static_cast<size_t>(c)], Operand::Slot(out.Slot(c, m.s.columns[static_cast<size_t>(c)])));
    AddSection(&p, out.Finish(Opcode::Emit, 3));
    NameColumns(&p);
    Check(name, std::move(p), std::move(tables));
  }
  for (size_t rows : {size_t{2}, size_t{2049}, size_t{70000}}) {
    const std::string name = fmt::format("sum of {} that overflows", rows);
    if (!Wanted(name)) continue;
    for (int keys = 0; keys < 2; ++keys) {
      Program p;
      std::vector<TestTable> tables = {MaskedTable(rows)};
      std::fill(tables[0].columns[kMaskColumn].values.fixed.begin(), tables[0].columns[kMaskColumn].values.fixed.end(),
                1);
      MemoryColumn big;
      big.name = "w";
      big.values.type = kWide;
      big.values.wide.assign(rows, kInt128Max / static_cast<int128_t>(rows) + 1);
      big.forms = {FrameForm(16).chunk};
      tables[0].columns.push_back(std::move(big));
      AddTables(&p, tables);
      Maker m(Section::Source::kTable, 0, Section::Sink::kGroups, "group t");
      Head(&m, &p);
      m.s.keys = keys;
      m.s.columns.assign(static_cast<size_t>(keys), SqlType::Of(TypeId::kBoolean));
      m.Op(Opcode::Group, 0, keys == 0 ? 0 : Operand::Slot(1).Pack(), keys);
      m.Load(kWide, Operand::Slot(m.Slot(2, kWide)));
      m.Op(Opcode::SumW, 0);
      m.s.aggregates = {{Opcode::SumW, kWide}};
      m.s.columns.push_back(kWide);
      const int groups = AddSection(&p, m.End());
      Maker out(Section::Source::kSection, groups, Section::Sink::kRows, "groups");
      out.Keep(kWide, Operand::Slot(out.Slot(keys, kWide)));
      AddSection(&p, out.Finish(Opcode::Emit, 1));
      NameColumns(&p);
      CheckOptions check;
      check.must_fail = true;
      Check(name, std::move(p), std::move(tables), check);
    }
  }
}

// ---- Rows: order, limit, offset -------------------------------------------------------------------------------------

void Walk::Rows() {
  for (int i = 0; i < 160; ++i) {
    const std::string name = fmt::format("rows #{}", i);
    if (!Wanted(name)) continue;
    Program p;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    const std::vector<SqlType> types = {kBigint, kDouble, kText, kWide, SqlType::Of(TypeId::kReal)};
    std::vector<int> columns;
    for (const SqlType& t : types)
      columns.push_back(AddColumn(&tables[0], {t, Pick(random_, FormsOf(t)), nullptr, 5}, rows));
    AddTables(&p, tables);
    Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
    Head(&m, &p);
    for (size_t c = 0; c < types.size(); ++c) m.Keep(types[c], Operand::Slot(m.Slot(columns[c], types[c])));
    Section s = m.Finish(Opcode::Emit, static_cast<int>(types.size()) + 1);
    CheckOptions check;
    const bool ordered = i % 4 != 3;
    if (ordered) {
      std::vector<int> by = {1, 2, 3, 4, 5};
      std::shuffle(by.begin(), by.end(), random_);
      by.resize(Below(random_, 4));
      for (int c : by) s.order.push_back({c, Turn(2) == 0, Turn(3) == 0});
      s.order.push_back({0, Turn(2) == 0, false});  // the row's number makes the order total
    }
    const std::vector<int64_t> limits = {-1, 0, 1, 10, 2048, 100000, kGreatest};
    const std::vector<int64_t> offsets = {0, 0, 1, 2047, 5000, kGreatest};
    s.limit = Pick(random_, limits);
    s.offset = Pick(random_, offsets);
    check.ordered = ordered;
    check.subset = !ordered;
    // The bounds may apply in the middle of a program, too.
    if (i % 5 == 4 && ordered) {
      const int from = AddSection(&p, std::move(s));
      Maker out(Section::Source::kSection, from, Section::Sink::kRows, "rows");
      for (int c = 0; c <= static_cast<int>(types.size()); ++c) {
        const SqlType& t = p.sections.back().columns[static_cast<size_t>(c)];
        out.Keep(t, Operand::Slot(out.Slot(c, t)));
      }
      AddSection(&p, out.Finish(Opcode::Emit, static_cast<int>(types.size()) + 1));
      check.ordered = false;
    } else {
      AddSection(&p, std::move(s));
    }
    NameColumns(&p);
    Check(name, std::move(p), std::move(tables), check);
  }
  // One row without a table: SELECT 1, 'a', NULL; and no row, and twice the row.
  for (int i = 0; i < 3; ++i) {
    const std::string name = fmt::format("rows of no table #{}", i);
    if (!Wanted(name)) continue;
    Program p;
    Maker m(Section::Source::kOneRow, 0, Section::Sink::kRows, "one row");
    m.Keep(kBigint, Operand::Constant(AddConstant(&p, Value::Int(kBigint, kLeast))));
    m.Keep(kText, Operand::Constant(AddConstant(&p, Value::Text("a"))));
    m.Keep(kWide, Operand::Constant(AddConstant(&p, Value::Wide(kWide, kInt128Min))));
    m.Keep(kDouble, Operand::Constant(AddConstant(&p, Value::Null(kDouble))));
    m.Load(kBigint, Operand::Register(0));
    if (i == 1) m.Op(Opcode::FilterEqI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 0))).Pack());
    if (i == 2) m.Op(Opcode::Emit);
    AddSection(&p, m.Finish(Opcode::Emit, 4));
    NameColumns(&p);
    Check(name, std::move(p), {});
  }
}

// ---- Random programs ------------------------------------------------------------------------------------------------

/// Blocks of a few instructions that narrow, save and widen the mask and change registers under it. Each begins with a
/// load, so that no accumulator is read that a masked-off row left unspecified.
void Walk::RandomPrograms() {
  std::vector<Opcode> by_class[4][2];  // class -> binary, unary; class -> comparisons in filters[]
  std::vector<Opcode> filters[4];
  auto index = [](AccumulatorSpec c) {
    return c == AccumulatorSpec::F ? 1 : c == AccumulatorSpec::W ? 2 : c == AccumulatorSpec::T ? 3 : 0;
  };
  for (int i = 0; i < static_cast<int>(Opcode::kCount); ++i) {
    const OpcodeInfo& info = Info(static_cast<Opcode>(i));
    if (info.tier == Tier::Host && gpu_ != nullptr) continue;
    if (info.in == AccumulatorSpec::X || info.in == AccumulatorSpec::None) continue;
    if (info.shape == Shape::Binary || info.shape == Shape::TextConcat)
      by_class[index(info.in)][0].push_back(static_cast<Opcode>(i));
    if (info.shape == Shape::TextUnary || (info.shape == Shape::Unary && info.in == info.out))
      by_class[index(info.in)][1].push_back(static_cast<Opcode>(i));
    if (info.shape == Shape::Compare || info.shape == Shape::TextCompare)
      filters[index(info.in)].push_back(static_cast<Opcode>(i));
  }
  const SqlType types[4] = {kBigint, kDouble, kWide, kText};
  for (int i = 0; i < 250; ++i) {
    const std::string name = fmt::format("random #{}", i);
    if (!Wanted(name)) continue;
    Program p;
    const size_t rows = NextSize();
    std::vector<TestTable> tables = {MaskedTable(rows)};
    std::vector<int> columns;
    for (int c = 0; c < 8; ++c)
      columns.push_back(AddColumn(&tables[0], {types[c / 2], Pick(random_, FormsOf(types[c / 2])), nullptr, 40}, rows));
    AddTables(&p, tables);
    Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
    Head(&m, &p);
    std::vector<Operand> operands[4];
    std::vector<int> registers[4];
    for (int c = 0; c < 8; ++c) {
      const Operand slot = Operand::Slot(m.Slot(columns[static_cast<size_t>(c)], types[c / 2]));
      operands[c / 2].push_back(slot);
      const int r = m.Keep(types[c / 2], slot);
      registers[c / 2].push_back(r);
      operands[c / 2].push_back(Operand::Register(r));
    }
    for (int c = 0; c < 4; ++c) {
      for (int k = 0; k < 3; ++k)
        operands[c].push_back(
            Operand::Constant(AddConstant(&p, k == 2 ? Value::Null(types[c]) : RandomConstant(types[c], nullptr))));
    }
    std::vector<int> masks;
    const int everything = m.Mask();
    m.Op(Opcode::MaskSave, everything);
    masks.push_back(everything);
    const size_t blocks = 3 + Below(random_, 14);
    int concats = 0;
    for (size_t b = 0; b < blocks; ++b) {
      const size_t c = Below(random_, 4);
      switch (Below(random_, 10)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4: {
          const int skip = Below(random_, 4) == 0 ? m.Op(Opcode::SkipIfNone, 0, 1) : -1;
          m.Load(types[c], Pick(random_, operands[c]));
          for (size_t k = Below(random_, 4); k-- > 0;) {
            const bool binary = Below(random_, 3) != 0 || by_class[c][1].empty();
            if (by_class[c][binary ? 0 : 1].empty()) continue;
            const Opcode op = Pick(random_, by_class[c][binary ? 0 : 1]);
            if (op == Opcode::ConcatT && ++concats > 3) continue;  // lengths double
            m.Op(op, 0, binary ? Pick(random_, operands[c]).Pack() : 0);
          }
          m.Store(Pick(random_, registers[c]));
          if (skip >= 0) m.s.code[static_cast<size_t>(skip)].p2 = m.Here();
          break;
        }
        case 5:
        case 6: {
          m.Load(types[c], Pick(random_, operands[c]));
          if (filters[c].empty() || Below(random_, 4) == 0) {
            m.Op(c == 2 ? Opcode::FilterNotNullW : Opcode::FilterNotNull);
          } else {
            m.Op(Pick(random_, filters[c]), 0, Pick(random_, operands[c]).Pack());
          }
          break;
        }
        case 7:
          if (masks.size() < 8) masks.push_back(m.Mask());
          m.Op(Opcode::MaskSave, masks.back());
          break;
        case 8:
          m.Op(Below(random_, 2) == 0 ? Opcode::MaskOr : Opcode::MaskAndNot, Pick(random_, masks));
          break;
        default:
          m.Op(Opcode::MaskLoad, Pick(random_, masks));
          break;
      }
    }
    m.Op(Opcode::MaskLoad, Below(random_, 3) == 0 ? masks.back() : everything);
    AddSection(&p, m.Finish(Opcode::Emit, static_cast<int>(m.s.registers.size())));
    NameColumns(&p);
    CheckOptions check;
    check.masked = true;
    Check(name, std::move(p), std::move(tables), check);
  }
}

// ---- Large tables ---------------------------------------------------------------------------------------------------

/// Around the greatest tablet: the last row of one, the first of the next.
void Walk::Large() {
  if (options_.greatest_rows <= size_t{1} << 20) return;
  for (size_t rows : {(size_t{1} << 20) - 1, size_t{1} << 20, (size_t{1} << 20) + 1}) {
    for (int i = 0; i < 4; ++i) {
      const std::string name = fmt::format("large {} #{}", rows, i);
      if (!Wanted(name)) continue;
      Program p;
      std::vector<TestTable> tables = {MaskedTable(rows)};
      tables[0].tablet_rows = 1u << 20;
      Form f = FrameForm(i % 2 == 0 ? 4 : 2, i >= 2);
      f.chunk.base = f.low = -1000;
      f.high = 60000;
      const int a = AddColumn(&tables[0], {kBigint, f}, rows);
      AddTables(&p, tables);
      const int32_t constant = Operand::Constant(AddConstant(&p, Value::Int(kBigint, 59000))).Pack();
      if (i < 2) {
        Maker m(Section::Source::kTable, 0, Section::Sink::kRows, "scan t");
        Head(&m, &p);
        m.Load(kBigint, Operand::Slot(m.Slot(a, kBigint)));
        m.Op(i == 0 ? Opcode::FilterGeI : Opcode::FilterLtI, 0, constant);
        m.Op(Opcode::MulIX, 0, constant);
        m.Store(m.Register(kBigint));
        AddSection(&p, m.Finish(Opcode::Emit, 2));
      } else {
        Maker m(Section::Source::kTable, 0, Section::Sink::kGroups, "group t");
        Head(&m, &p);
        m.Load(kBigint, Operand::Slot(m.Slot(a, kBigint)));
        m.Op(Opcode::ModI, 0, Operand::Constant(AddConstant(&p, Value::Int(kBigint, 7))).Pack());
        m.Store(m.Register(kBigint));
        m.s.keys = i == 2 ? 0 : 1;
        m.Op(Opcode::Group, 0, i == 2 ? 0 : Operand::Register(1).Pack(), m.s.keys);
        m.Op(Opcode::CountRows, 0);
        m.Load(kBigint, Operand::Slot(2));
        m.Op(Opcode::SumI, 1);
        m.Op(Opcode::MaxI, 2);
        m.s.aggregates = {{Opcode::CountRows, kBigint}, {Opcode::SumI, kWide}, {Opcode::MaxI, kBigint}};
        m.s.columns = {kBigint, kWide, kBigint};
        if (i == 3) m.s.columns.insert(m.s.columns.begin(), kBigint);
        const std::vector<SqlType> columns = m.s.columns;
        const int groups = AddSection(&p, m.End());
        Maker out(Section::Source::kSection, groups, Section::Sink::kRows, "groups");
        for (size_t c = 0; c < columns.size(); ++c)
          out.Keep(columns[c], Operand::Slot(out.Slot(static_cast<int>(c), columns[c])));
        AddSection(&p, out.Finish(Opcode::Emit, static_cast<int>(columns.size())));
      }
      NameColumns(&p);
      CheckOptions check;
      check.masked = i < 2;
      Check(name, std::move(p), std::move(tables), check);
    }
  }
}

WalkReport Walk::Run() {
  auto part = [&](const char* name, auto f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    report_.seconds[name] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int i = 0; i < options_.repeats && !Full(); ++i) {
    part("opcodes", [&] {
      for (int op = 0; op < static_cast<int>(Opcode::kCount); ++op) WalkOpcode(static_cast<Opcode>(op));
    });
    part("masks", [&] { Masks(); });
    part("predicates", [&] { Predicates(); });
    part("text maps", [&] { TextMaps(); });
    part("joins", [&] { Joins(); });
    part("groups", [&] { Groups(); });
    part("rows", [&] { Rows(); });
    part("random programs", [&] { RandomPrograms(); });
    if (options_.large) part("large tables", [&] { Large(); });
  }
  if (options_.only.empty() && !options_.collect && !Full()) CheckCoverage();
  return std::move(report_);
}

}  // namespace

std::string WalkReport::Summary() const {
  std::string out = fmt::format(
      "{} programs over {} rows, {} of them had to fail; {} sections on the GPU, {} over stored tables on the host\n",
      programs, rows, errors, gpu_sections, host_sections);
  for (const auto& [part, s] : seconds) out += fmt::format("  {:<16} {:6.2f} s\n", part, s);
  for (const auto& [reason, n] : declined) out += fmt::format("  declined {} times: {}\n", n, reason);
  for (const std::string& op : only_on_host) out += fmt::format("  only on the host: {}\n", op);
  for (const std::string& f : failures) out += "FAILED " + f + "\n";
  return out;
}

WalkReport RunOpcodeWalk(const WalkOptions& options, vm::SectionBackend* gpu) { return Walk(options, gpu).Run(); }

}  // namespace tessera::test
