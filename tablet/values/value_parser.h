// Text to values: what ParseValue() and the CSV reader share. No locale, no exceptions, no allocation.
//
// Each parser takes the text without surrounding blanks and reports *what kind* of failure it was; ParseFailure() makes
// the message of it, so that the fast path of a load never builds a string.
//
// Start at: ParseInteger, ParseFailure. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/int128.h"
#include "base/status.h"
#include "tablet/values/time_zone.h"
#include "tablet/values/types.h"

namespace tessera {

enum class ParseError : uint8_t {
  kNone,
  kSyntax,    ///< not a literal of the type
  kRange,     ///< a literal, but the type cannot hold it
  kTooLong,   ///< more characters than VARCHAR(n) allows
  kEncoding,  ///< not UTF-8
  kNul,       ///< holds a NUL byte
};

/// The error that a user sees; `text` is quoted in it, shortened. OK for kNone.
Status ParseFailure(ParseError error, std::string_view text, const SqlType& type);

inline bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

inline std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

/// Integers of 19 digits and more, where 64 bits can overflow.
ParseError ParseLongInteger(std::string_view digits, bool negative, int64_t least, int64_t greatest, int64_t* out);

/// [+-]digits, within [least, greatest].
inline ParseError ParseInteger(std::string_view text, int64_t least, int64_t greatest, int64_t* out) {
  const char* p = text.data();
  const char* end = p + text.size();
  bool negative = false;
  if (p != end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  if (p == end) return ParseError::kSyntax;
  if (end - p > 18) {
    return ParseLongInteger({p, static_cast<size_t>(end - p)}, negative, least, greatest, out);
  }
  int64_t value = 0;
  do {
    const unsigned digit = static_cast<unsigned char>(*p) - unsigned{'0'};
    if (digit > 9) return ParseError::kSyntax;
    value = value * 10 + digit;
  } while (++p != end);
  if (negative) value = -value;
  if (value < least || value > greatest) return ParseError::kRange;
  *out = value;
  return ParseError::kNone;
}

/// [+-]digits[.digits][e[+-]digits] to the integer value * 10^scale, rounded half away from zero; `precision` digits at
/// most.
ParseError ParseDecimal(std::string_view text, int precision, int scale, int128_t* out);

/// true, yes, on, 1, false, no, off, 0 and their unique prefixes, in any case.
ParseError ParseBoolean(std::string_view text, int64_t* out);

/// Decimal or scientific notation, inf, infinity, nan in any case.
ParseError ParseDouble(std::string_view text, double* out);
/// The same rounded once to single precision.
ParseError ParseReal(std::string_view text, double* out);

// Dates and times in the forms of ISO 8601 that PostgreSQL reads: YYYY-MM-DD (months and days may have one digit) or
// YYYYMMDD, then optionally blanks or T and H:M[:S[.ffffff]], where further digits round and 24:00 is the end of the day,
// AM or PM, a time zone (Z, +hh[[:]mm[:ss]], an abbreviation of zone_abbreviations.def or a name), AD or BC.

/// Days since 1970-01-01; years 0001 to 9999. A time and a time zone after the date do not matter.
ParseError ParseDate(std::string_view text, int64_t* out);

/// Microseconds since 1970-01-01; years 0001 to 9999. A time zone does not matter.
ParseError ParseTimestamp(std::string_view text, int64_t* out);

/// Microseconds since midnight. A date before it and a time zone do not matter; 24:00 is out of range, and what would be
/// rounded to it is the last microsecond of the day.
ParseError ParseTime(std::string_view text, int64_t* out);

/// TIMESTAMP WITH TIME ZONE begins a day before TIMESTAMP and ends a day later, so that all local times of all zones are
/// moments, in microseconds since 1970-01-01 in UTC.
inline constexpr int64_t kFirstMoment = int64_t{-719163} * 86400 * 1000000;
inline constexpr int64_t kLastMoment = int64_t{2932898} * 86400 * 1000000 - 1;
inline bool IsMoment(int64_t v) { return v >= kFirstMoment && v <= kLastMoment; }

/// A moment of the time zone in the text, else of `zone`, nullptr: UTC. A year may have five digits and be one before
/// Christ: which moments there are is a matter of UTC.
ParseError ParseMoment(std::string_view text, const TimeZone* zone, int64_t* out);

/// A UUID as PostgreSQL takes it: 32 hexadecimal digits, between groups of four perhaps a hyphen, around all perhaps
/// braces.
ParseError ParseUuid(std::string_view text, int128_t* out);

/// Well-formed UTF-8 without NUL bytes, `type.length` characters at most if that is not 0.
ParseError CheckText(std::string_view text, const SqlType& type);

/// The bytes of \x and pairs of hexadecimal digits; of another text its bytes, where \\ is \ and \ooo an octal number.
ParseError ParseBytea(std::string_view text, std::string* out);
/// \x and the digits.
void AppendBytea(std::string_view bytes, std::string* out);
/// Bytes, where \\ is \ and \ooo an octal number. false: a \ is followed by something else.
bool AppendFromEscape(std::string_view text, std::string* out);
/// Pairs of hexadecimal digits, with blanks between them. false: something else.
bool AppendFromHex(std::string_view digits, std::string* out);
void AppendHex(std::string_view bytes, std::string* out);

}  // namespace tessera
