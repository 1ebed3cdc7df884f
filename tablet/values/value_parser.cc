// The parsers of literals and fields.
#include "tablet/values/value_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/lower_case.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// `word` is in lower case.
bool EqualsIgnoringCase(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) { return LowerCase(a) == b; });
}

bool IsPrefixIgnoringCase(std::string_view text, std::string_view word) {
  return !text.empty() && text.size() <= word.size() && EqualsIgnoringCase(text, word.substr(0, text.size()));
}

bool TakeCharacter(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

template <class Float>
ParseError ParseFloat(std::string_view text, Float* out) {
  bool negative = false;
  std::string_view magnitude = text;
  if (!magnitude.empty() && (magnitude[0] == '+' || magnitude[0] == '-')) {
    negative = magnitude[0] == '-';
    magnitude.remove_prefix(1);
  }
  if (magnitude.empty()) return ParseError::kSyntax;
  if (!IsDigit(magnitude[0]) && magnitude[0] != '.') {
    // from_chars takes these words too, but also "nan(...)".
    if (EqualsIgnoringCase(magnitude, "inf") || EqualsIgnoringCase(magnitude, "infinity")) {
      *out = negative ? -std::numeric_limits<Float>::infinity() : std::numeric_limits<Float>::infinity();
      return ParseError::kNone;
    }
    if (EqualsIgnoringCase(magnitude, "nan")) {
      *out = std::numeric_limits<Float>::quiet_NaN();
      return ParseError::kNone;
    }
    return ParseError::kSyntax;
  }
  Float value = 0;
  const char* end = magnitude.data() + magnitude.size();
  const auto result = std::from_chars(magnitude.data(), end, value);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return ParseError::kSyntax;
  if (result.ec != std::errc()) return ParseError::kRange;
  *out = negative ? -value : value;
  return ParseError::kNone;
}

std::string LowerCaseName(const SqlType& type) { return LowerCase(type.ToString()); }

}  // namespace

namespace {

bool IsMoment(const SqlType& type) {
  return type.id == TypeId::kDate || type.id == TypeId::kTime || type.id == TypeId::kTimestamp ||
         type.id == TypeId::kTimestampTz || type.id == TypeId::kInterval;
}

}  // namespace

Status ParseFailure(ParseError error, std::string_view text, const SqlType& type) {
  const std::string quoted = QuoteForMessage(text);
  switch (error) {
    case ParseError::kNone:
      break;
    case ParseError::kSyntax:
      if (type.id == TypeId::kEnum) return PlaceOfLabel(EnumOf(type), text).status();
      return SqlError(IsMoment(type) ? ErrorKind::kInvalidDatetime : ErrorKind::kInvalidText,
                      "invalid input syntax for type " + LowerCaseName(type) + ": " + quoted);
    case ParseError::kRange:
      return SqlError(IsMoment(type) ? ErrorKind::kDatetimeOverflow : ErrorKind::kOutOfRange,
                      "value " + quoted + " is out of range for type " + LowerCaseName(type));
    case ParseError::kTooLong:
      return {ErrorKind::kTextTooLong, "value too long for type " + type.ToString() + ": " + quoted};
    case ParseError::kEncoding:
      return SqlError(ErrorKind::kInvalidText, "invalid UTF-8: " + quoted);
    case ParseError::kNul:
      return SqlError(ErrorKind::kInvalidText, "text holds a NUL byte: " + quoted);
  }
  return {};
}

ParseError ParseLongInteger(std::string_view digits, bool negative, int64_t least, int64_t greatest, int64_t* out) {
  uint64_t value = 0;
  bool overflow = false;
  for (char c : digits) {
    if (!IsDigit(c)) return ParseError::kSyntax;
    overflow |= __builtin_mul_overflow(value, uint64_t{10}, &value);
    overflow |= __builtin_add_overflow(value, static_cast<uint64_t>(c - '0'), &value);
  }
  const uint64_t limit = (uint64_t{1} << 63) - (negative ? 0 : 1);
  if (overflow || value > limit) return ParseError::kRange;
  const int64_t result = static_cast<int64_t>(negative ? ~value + 1 : value);
  if (result < least || result > greatest) return ParseError::kRange;
  *out = result;
  return ParseError::kNone;
}

ParseError ParseDecimal(std::string_view text, int precision, int scale, int128_t* out) {
  const char* p = text.data();
  const char* end = p + text.size();
  bool negative = false;
  if (p != end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  const char* const first = p;
  while (p != end && IsDigit(*p)) ++p;
  const char* const integer_end = p;
  const char* fraction = p;
  if (p != end && *p == '.') {
    fraction = ++p;
    while (p != end && IsDigit(*p)) ++p;
  }
  const char* const fraction_end = p;
  const int64_t integer_digits = integer_end - first;
  const int64_t fraction_digits = fraction_end - fraction;
  if (integer_digits + fraction_digits == 0) return ParseError::kSyntax;
  int64_t exponent = 0;
  if (p != end && (*p == 'e' || *p == 'E')) {
    ++p;
    bool negative_exponent = false;
    if (p != end && (*p == '-' || *p == '+')) negative_exponent = *p++ == '-';
    if (p == end) return ParseError::kSyntax;
    // Beyond a million the exponent decides alone: the value is 0 or out of range for any text of sane length.
    for (; p != end && IsDigit(*p); ++p) exponent = std::min<int64_t>(exponent * 10 + (*p - '0'), int64_t{1} << 40);
    if (negative_exponent) exponent = -exponent;
  }
  if (p != end) return ParseError::kSyntax;

  // Nearly every literal: no exponent, nothing to round, and 64 bits are enough.
  if (exponent == 0 && fraction_digits <= scale && integer_digits + scale <= 18) {
    static constexpr auto kPowers = [] {
      std::array<int64_t, 19> powers{1};
      for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
      return powers;
    }();
    int64_t small = 0;
    for (const char* q = first; q != integer_end; ++q) small = small * 10 + (*q - '0');
    for (const char* q = fraction; q != fraction_end; ++q) small = small * 10 + (*q - '0');
    small *= kPowers[static_cast<size_t>(scale - fraction_digits)];
    if (precision <= 18 && small >= kPowers[static_cast<size_t>(precision)]) return ParseError::kRange;
    *out = negative ? -small : small;
    return ParseError::kNone;
  }

  // The result's digits are the first `wanted` of the literal's digits (zeros follow them), the next one rounds.
  const int64_t all = integer_digits + fraction_digits;
  const int64_t wanted = integer_digits + exponent + scale;
  auto digit = [&](int64_t i) { return (i < integer_digits ? first[i] : fraction[i - integer_digits]) - '0'; };
  uint128_t value = 0;
  constexpr uint128_t kTooLarge = static_cast<uint128_t>(PowerOf10(38));
  for (int64_t i = 0; i < std::min(all, wanted); ++i) {
    if (value >= kTooLarge / 10) return ParseError::kRange;
    value = value * 10 + static_cast<unsigned>(digit(i));
  }
  if (value != 0) {
    for (int64_t i = all; i < wanted; ++i) {
      if (value >= kTooLarge / 10) return ParseError::kRange;
      value *= 10;
    }
  }
  if (wanted >= 0 && wanted < all && digit(wanted) >= 5) ++value;
  if (value >= static_cast<uint128_t>(PowerOf10(precision))) return ParseError::kRange;
  *out = negative ? -static_cast<int128_t>(value) : static_cast<int128_t>(value);
  return ParseError::kNone;
}

ParseError ParseBoolean(std::string_view text, int64_t* out) {
  if (text == "1" || IsPrefixIgnoringCase(text, "true") || IsPrefixIgnoringCase(text, "yes") ||
      EqualsIgnoringCase(text, "on")) {
    *out = 1;
    return ParseError::kNone;
  }
  if (text == "0" || IsPrefixIgnoringCase(text, "false") || IsPrefixIgnoringCase(text, "no") ||
      (text.size() > 1 && IsPrefixIgnoringCase(text, "off"))) {
    *out = 0;
    return ParseError::kNone;
  }
  return ParseError::kSyntax;
}

ParseError ParseDouble(std::string_view text, double* out) { return ParseFloat(text, out); }

ParseError ParseReal(std::string_view text, double* out) {
  float single;
  const ParseError error = ParseFloat(text, &single);
  if (error == ParseError::kNone) *out = single;
  return error;
}

ParseError ParseUuid(std::string_view text, int128_t* out) {
  if (text.size() >= 2 && text.front() == '{' && text.back() == '}') text = text.substr(1, text.size() - 2);
  uint128_t value = 0;
  for (int digits = 0; digits < 32; ++digits) {
    if (digits > 0 && digits % 4 == 0) TakeCharacter(&text, '-');
    if (text.empty()) return ParseError::kSyntax;
    const char c = LowerCase(text.front());
    if (!IsDigit(c) && (c < 'a' || c > 'f')) return ParseError::kSyntax;
    value = value << 4 | static_cast<unsigned>(IsDigit(c) ? c - '0' : c - 'a' + 10);
    text.remove_prefix(1);
  }
  if (!text.empty()) return ParseError::kSyntax;
  *out = static_cast<int128_t>(value ^ uint128_t{1} << 127);
  return ParseError::kNone;
}

ParseError CheckText(std::string_view text, const SqlType& type) {
  if (type.id == TypeId::kBytea) return ParseError::kNone;
  size_t characters = text.size();
  if (!IsAscii(text)) {
    if (FindInvalidUtf8(text) != std::string_view::npos) return ParseError::kEncoding;
    characters = CountCharacters(text);
  }
  if (memchr(text.data(), 0, text.size()) != nullptr) return ParseError::kNul;
  if (type.length > 0 && characters > static_cast<size_t>(type.length)) return ParseError::kTooLong;
  return ParseError::kNone;
}

bool AppendFromHex(std::string_view digits, std::string* out) {
  int high = -1;
  for (char c : digits) {
    c = LowerCase(c);
    const bool is_digit = IsDigit(c);
    if (!is_digit && (c < 'a' || c > 'f')) {
      if (high >= 0 || !IsBlank(c)) return false;
      continue;
    }
    const int value = is_digit ? c - '0' : c - 'a' + 10;
    if (high >= 0) out->push_back(static_cast<char>(high << 4 | value));
    high = high >= 0 ? -1 : value;
  }
  return high < 0;
}

void AppendHex(std::string_view bytes, std::string* out) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (char c : bytes) {
    out->push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    out->push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
}

bool AppendFromEscape(std::string_view text, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out->push_back(text[i]);
      continue;
    }
    const std::string_view rest = text.substr(i + 1);
    const auto octal = [&](size_t k, char most) { return k < rest.size() && rest[k] >= '0' && rest[k] <= most; };
    if (octal(0, '3') && octal(1, '7') && octal(2, '7')) {
      out->push_back(static_cast<char>((rest[0] - '0') << 6 | (rest[1] - '0') << 3 | (rest[2] - '0')));
      i += 3;
    } else if (rest.starts_with('\\')) {
      out->push_back('\\');
      i += 1;
    } else {
      return false;
    }
  }
  return true;
}

ParseError ParseBytea(std::string_view text, std::string* out) {
  const bool good = text.starts_with("\\x") ? AppendFromHex(text.substr(2), out) : AppendFromEscape(text, out);
  return good ? ParseError::kNone : ParseError::kSyntax;
}

void AppendBytea(std::string_view bytes, std::string* out) {
  out->append("\\x");
  AppendHex(bytes, out);
}

}  // namespace tessera
