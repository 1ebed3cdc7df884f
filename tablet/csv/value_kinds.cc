#include "tablet/csv/value_kinds.h"

#include <string>

#include "base/lower_case.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

constexpr ValueKinds kBoolean = 1, kBigint = 2, kLongInteger = 4, kDouble = 8, kDate = 16, kTime = 32, kTimestamp = 64,
                     kTimestampTz = 128;

constexpr int kMostDigits = 38;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Whether digits stand where the pattern has 9, and other characters as they are.
bool HasShape(std::string_view text, std::string_view shape) {
  if (text.size() < shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == '9' ? !IsDigit(text[i]) : text[i] != shape[i]) return false;
  }
  return true;
}

ValueKinds NumberKinds(std::string_view text) {
  if (text.size() > 64 || text.empty()) return 0;
  const char last = text.back(), first = text.front();
  // inf and nan are names as often.
  if (!IsDigit(last) && last != '.') return 0;
  if (!IsDigit(first) && first != '-' && first != '+' && first != '.') return 0;
  int64_t integer = 0;
  double number = 0;
  const ParseError error = ParseInteger(text, INT64_MIN, INT64_MAX, &integer);
  if (error == ParseError::kNone) return kBigint | kLongInteger | kDouble;
  ValueKinds kinds = 0;
  int128_t wide = 0;
  if (error == ParseError::kRange && ParseDecimal(text, kMostDigits, 0, &wide) == ParseError::kNone)
    kinds |= kLongInteger;
  if (ParseDouble(text, &number) == ParseError::kNone) kinds |= kDouble;
  return kinds;
}

ValueKinds MomentKinds(std::string_view text) {
  int64_t value = 0;
  if (HasShape(text, "99:99") || HasShape(text, "9:99:99")) {
    const bool zoned = text.find_first_of("+-Z") != std::string_view::npos;
    return !zoned && ParseTime(text, &value) == ParseError::kNone ? kTime : 0;
  }
  if (!HasShape(text, "9999-99-99")) return 0;
  if (text.size() == 10) return ParseDate(text, &value) == ParseError::kNone ? kDate | kTimestamp | kTimestampTz : 0;
  if ((text[10] != ' ' && text[10] != 'T') || !HasShape(text.substr(11), "99:99")) return 0;
  if (ParseMoment(text, nullptr, &value) != ParseError::kNone) return 0;
  const std::string_view behind = text.substr(16);
  const bool zoned = behind.find_first_not_of(":0123456789.") != std::string_view::npos;
  return zoned || ParseTimestamp(text, &value) != ParseError::kNone ? kTimestampTz : kTimestamp | kTimestampTz;
}

bool IsTruth(std::string_view text) {
  if (text.size() != 1 && text.size() != 4 && text.size() != 5) return false;
  const std::string lower = LowerCase(text);
  return lower == "true" || lower == "false" || lower == "t" || lower == "f";
}

}  // namespace

ValueKinds KindsOf(std::string_view text, char decimal, char thousands) {
  text = TrimBlanks(text);
  if (text.empty()) return 0;
  ValueKinds kinds = 0;
  if (decimal == '.' && thousands == 0) {
    kinds = NumberKinds(text);
  } else {
    std::string plain;
    bool other = false;
    for (const char c : text) {
      if (c == thousands && c != 0) continue;
      other = other || (c == '.' && decimal != '.');
      plain.push_back(c == decimal ? '.' : c);
    }
    if (!other) kinds = NumberKinds(plain);
  }
  if (kinds == 0 && IsDigit(text[0])) kinds = MomentKinds(text);
  if (kinds == 0 && IsTruth(text)) kinds = kBoolean;
  return kinds;
}

SqlType TypeOfKinds(ValueKinds kinds) {
  if (kinds == kAllKinds || kinds == 0) return SqlType::Text();
  if ((kinds & kBoolean) != 0) return SqlType::Of(TypeId::kBoolean);
  if ((kinds & kBigint) != 0) return SqlType::Of(TypeId::kBigint);
  if ((kinds & kLongInteger) != 0) return SqlType::Decimal(kMostDigits, 0);
  if ((kinds & kDouble) != 0) return SqlType::Of(TypeId::kDouble);
  if ((kinds & kDate) != 0) return SqlType::Of(TypeId::kDate);
  if ((kinds & kTime) != 0) return SqlType::Of(TypeId::kTime);
  if ((kinds & kTimestamp) != 0) return SqlType::Of(TypeId::kTimestamp);
  return SqlType::Of(TypeId::kTimestampTz);
}

}  // namespace tessera
