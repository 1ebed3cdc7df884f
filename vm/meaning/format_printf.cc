// A number by a conversion of PRINTF, as C has it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/int128.h"
#include "vm/meaning/format.h"

namespace tessera::vm {
namespace {

/// A longer text of one number is of no use.
constexpr int kMostWidth = 1 << 16;

std::string DigitsIn(uint128_t value, unsigned base, bool upper) {
  std::string digits;
  do {
    const auto digit = static_cast<size_t>(value % base);
    digits.push_back((upper ? "0123456789ABCDEF" : "0123456789abcdef")[digit]);
    value /= base;
  } while (value != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

/// Commas between thousands of the digits before the point.
std::string WithCommas(std::string text) {
  const size_t whole = std::min(text.find_first_not_of("0123456789"), text.size());
  for (size_t i = whole; i > 3;) text.insert(i -= 3, 1, ',');
  return text;
}

unsigned BaseOf(char conversion) {
  switch (conversion) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return 10;
  }
}

}  // namespace

void Format::ReadPrintf(std::string_view text) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    bool* const flag = c == '-'   ? &printf_.left
                       : c == '0' ? &printf_.zeros
                       : c == '+' ? &printf_.plus
                       : c == ' ' ? &printf_.blank
                       : c == '#' ? &printf_.alternative
                       : c == ',' ? &printf_.comma
                       : c == '!' ? &printf_.sign
                                  : nullptr;
    if (flag == nullptr) break;
    *flag = true;
  }
  const auto number = [&](int least) {
    int n = least;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      n = std::min(kMostWidth + 1, n * 10 + text[at] - '0');
    return n;
  };
  printf_.width = number(0);
  if (at < text.size() && text[at] == '.') {
    ++at;
    printf_.precision = number(0);
  }
  if (printf_.width > kMostWidth || printf_.precision > kMostWidth) {
    error_ = fmt::format("a width or a precision is at most {}", kMostWidth);
    return;
  }
  const std::string_view conversions = type_.IsFloat() ? "fFeEgG" : "dxXob";
  if (at + 1 != text.size() || conversions.find(text[at]) == std::string_view::npos || type_.scale != 0) {
    error_ = fmt::format("%{} is no conversion of {}", text, type_.ToString());
    return;
  }
  printf_.conversion = text[at];
}

void Format::AppendPrintf(const Value& v, std::string* out) const {
  const Printf& p = printf_;
  bool negative = false, finite = true;
  std::string digits;
  if (type_.IsFloat()) {
    negative = std::signbit(v.f64) && !std::isnan(v.f64);
    finite = std::isfinite(v.f64);
    const double size = std::fabs(v.f64);
    const int precision = p.precision < 0 ? 6 : p.precision;
    const bool alternative = p.alternative;
    switch (p.conversion) {
      case 'e':
        digits = alternative ? fmt::format("{:#.{}e}", size, precision) : fmt::format("{:.{}e}", size, precision);
        break;
      case 'E':
        digits = alternative ? fmt::format("{:#.{}E}", size, precision) : fmt::format("{:.{}E}", size, precision);
        break;
      case 'g':
        digits = alternative ? fmt::format("{:#.{}g}", size, precision) : fmt::format("{:.{}g}", size, precision);
        break;
      case 'G':
        digits = alternative ? fmt::format("{:#.{}G}", size, precision) : fmt::format("{:.{}G}", size, precision);
        break;
      default:
        digits = alternative ? fmt::format("{:#.{}f}", size, precision) : fmt::format("{:.{}f}", size, precision);
    }
  } else {
    const int128_t value = IsWide(type_) ? v.wide : int128_t{v.i64};
    negative = value < 0;
    auto bits = static_cast<uint128_t>(value);
    const unsigned base = BaseOf(p.conversion);
    if (negative && base != 10 && !p.sign) {
      // The bits of the type, as an unsigned number.
      negative = false;
      if (!IsWide(type_)) bits &= type_.id == TypeId::kBigint ? uint128_t{UINT64_MAX} : uint128_t{UINT32_MAX};
    } else if (negative) {
      bits = ~bits + 1;
    }
    digits = DigitsIn(bits, base, p.conversion == 'X');
    if (static_cast<int>(digits.size()) < p.precision)
      digits.insert(0, static_cast<size_t>(p.precision) - digits.size(), '0');
    if (p.alternative && base == 16 && bits != 0) digits.insert(0, p.conversion == 'X' ? "0X" : "0x");
    if (p.alternative && base == 8 && digits[0] != '0') digits.insert(0, "0");
  }
  if (p.comma) digits = WithCommas(std::move(digits));
  const std::string sign = negative ? "-" : p.plus ? "+" : p.blank ? " " : "";
  const size_t used = sign.size() + digits.size(), width = static_cast<size_t>(p.width);
  const size_t room = width > used ? width - used : 0;
  // (As in C, a precision of an integer says how many zeros there are.)
  const bool zeros = p.zeros && !p.left && finite && (type_.IsFloat() || p.precision < 0);
  if (!p.left && !zeros) out->append(room, ' ');
  *out += sign;
  if (zeros) out->append(room, '0');
  *out += digits;
  if (p.left) out->append(room, ' ');
}

}  // namespace tessera::vm
