// A format of moments as the regular expression of the texts that have it.
#include <fmt/format.h>

#include <string>

#include "vm/meaning/format.h"

namespace tessera::vm {
namespace {

constexpr const char* kMonthNames =
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?";
constexpr const char* kDayNames =
    "sun(?:day)?|mon(?:day)?|tue(?:sday)?|wed(?:nesday)?|thu(?:rsday)?|fri(?:day)?|sat(?:urday)?";

bool IsLetterOrDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
}

/// The regular expression of a text between the parts of a format. `exact`: separators stand for themselves.
void AppendTextPattern(std::string_view text, bool exact, std::string* regex) {
  for (const char c : text) {
    if (c == ' ') {
      *regex += "\\s*";
    } else if (!exact && !IsLetterOrDigit(c)) {
      *regex += "[^\\pL\\pN]*";  // any separator stands for any other
    } else if (IsLetterOrDigit(c)) {
      regex->push_back(c);
    } else {
      regex->push_back('\\');
      regex->push_back(c);
    }
  }
}

}  // namespace

FormatPattern Format::Pattern(Language language) const {
  FormatPattern out;
  const bool exact = language == Language::kStrftime;
  out.regex = exact ? "\\A\\s*" : "\\A\\s*(?i:";
  const auto fail = [&](const char* why) {
    if (out.error.empty()) out.error = why;
  };
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& p = pieces_[i];
    if (p.kind == Piece::Kind::kText) {
      AppendTextPattern(p.text, exact, &out.regex);
      continue;
    }
    // Digits that no text parts from the next ones are as many as the format has.
    const bool apart = i + 1 == pieces_.size() || pieces_[i + 1].kind == Piece::Kind::kText;
    const auto digits = [&](int most) {
      return apart ? fmt::format("(\\d{{1,{}}})", most) : fmt::format("(\\d{{{}}})", most);
    };
    using Group = FormatPattern::Group;
    const auto group = [&](Group g, const std::string& regex) {
      out.regex += regex;
      if (out.Find(g) >= 0) return fail("a format to read texts by names a part twice");
      out.groups.push_back(g);
    };
    switch (p.part) {
      case Part::kYear:
        if (p.last == 2) {
          group(Group::kShortYear, "(\\d{2})");
        } else if (p.last == 0) {
          group(Group::kYear, "(\\d{4})");
        } else {
          fail("a year of so many digits is not supported in a format to read texts by");
        }
        break;
      case Part::kMonth:
        group(Group::kMonth, digits(2));
        break;
      case Part::kMonthName:
      case Part::kMonthShort:
        group(Group::kMonthName, fmt::format("((?i:{}))", kMonthNames));
        break;
      case Part::kDay:
        group(Group::kDay, digits(2));
        break;
      case Part::kHour24:
        group(Group::kHour, digits(2));
        break;
      case Part::kHour12:
        group(Group::kHour12, digits(2));
        break;
      case Part::kNoon:
        group(Group::kNoon, "((?i:[ap]\\.?m\\.?))");
        break;
      case Part::kMinute:
        group(Group::kMinute, digits(2));
        break;
      case Part::kSecond:
        group(Group::kSecond, digits(2));
        break;
      case Part::kFraction:
        group(Group::kFraction, fmt::format("(\\d{{1,{}}})", p.digits));
        break;
      case Part::kDayName:
      case Part::kDayShort:
        out.regex += fmt::format("(?i:{})", kDayNames);
        break;
      default:
        fail(
            "a part of the format is not supported where texts are read: only years, months, days, hours, minutes, "
            "seconds, their fractions, AM and PM");
        break;
    }
  }
  out.regex += exact ? "\\s*\\z" : ")";
  if (out.Find(FormatPattern::Group::kYear) < 0 && out.Find(FormatPattern::Group::kShortYear) < 0)
    fail("a format to read texts by needs a year");
  return out;
}

}  // namespace tessera::vm
