#include "vm/meaning/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/int128.h"
#include "tablet/values/value_parser.h"
#include "vm/meaning/meaning.h"

namespace tessera::vm {
namespace {

constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                   "July",    "August",   "September", "October", "November", "December"};
constexpr const char* kDays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr const char* kRomanMonths[] = {"I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"};

/// In letters of one case, like the word that asked for it.
std::string InCase(std::string_view s, bool upper) {
  std::string out(s);
  for (char& c : out) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

/// The word at the start of `text`: as it is here, in upper case, or in lower case.
bool StartsWithWord(std::string_view text, std::string_view word) {
  return text.starts_with(word) || text.starts_with(InCase(word, false));
}

/// "st", "nd", "rd" or "th" of a number in digits.
std::string OrdinalOf(std::string_view number, char form) {
  const char last = number.empty() ? '0' : number.back();
  const bool teen = number.size() > 1 && number[number.size() - 2] == '1';
  const char* const end = teen ? "th" : last == '1' ? "st" : last == '2' ? "nd" : last == '3' ? "rd" : "th";
  return InCase(end, form == 'T');
}

std::string RomanOf(int64_t number) {
  constexpr std::pair<int, const char*> kLetters[] = {{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"},
                                                      {90, "XC"},  {50, "L"},   {40, "XL"}, {10, "X"},   {9, "IX"},
                                                      {5, "V"},    {4, "IV"},   {1, "I"}};
  std::string out;
  for (const auto& [value, letters] : kLetters) {
    for (; number >= value; number -= value) out += letters;
  }
  return out;
}

/// A number in digits, with `behind` of them after the point.
struct Digits {
  bool negative = false;
  bool is_number = true;  // neither infinite nor NaN
  std::string before, behind;
};

/// Of v / 10^scale, rounded half away from zero.
Digits DigitsOf(int128_t v, int scale, int behind) {
  Digits d;
  d.negative = v < 0;
  // Digit by digit, because the magnitude may be that of the least number.
  std::string all;
  for (int128_t rest = v; rest != 0; rest /= 10) {
    const int digit = static_cast<int>(rest % 10);
    all.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
  }
  while (static_cast<int>(all.size()) <= scale) all.push_back('0');
  std::reverse(all.begin(), all.end());
  const size_t point = all.size() - static_cast<size_t>(std::max(scale, 0));
  all.append(static_cast<size_t>(std::max(0, -scale)), '0');
  const size_t kept = (scale < 0 ? all.size() : point) + static_cast<size_t>(behind);
  const bool up = kept < all.size() && all[kept] >= '5';
  all.resize(kept, '0');
  if (up) {
    size_t i = all.size();
    while (i > 0 && all[i - 1] == '9') all[--i] = '0';
    if (i > 0) {
      ++all[i - 1];
    } else {
      all.insert(all.begin(), '1');
    }
  }
  const size_t first = all.size() - static_cast<size_t>(behind);
  d.before = all.substr(0, first);
  d.behind = all.substr(first);
  if (all.find_first_not_of('0') == std::string::npos) d.negative = false;
  return d;
}

/// A double has 15 digits that are its own; what is after them is left out. The letters of NaN and Infinity count as digits
/// before the point.
Digits DigitsOf(double v, int behind) {
  constexpr int kOwnDigits = 15;
  Digits d;
  d.is_number = std::isfinite(v);
  if (!d.is_number) {
    d.before = std::isnan(v) ? "NaN" : "Infinity";
    d.negative = v < 0;
    return d;
  }
  const size_t whole = fmt::format("{:.0f}", std::fabs(v)).size();
  const int own = std::max(0, kOwnDigits - static_cast<int>(whole));
  const std::string text = fmt::format("{:.{}f}", std::fabs(v), std::min(behind, own));
  const size_t point = text.find('.');
  d.before = text.substr(0, point);
  if (point != std::string::npos) d.behind = text.substr(point + 1);
  d.negative = std::signbit(v) && v != 0;
  return d;
}

}  // namespace

Format::Format(std::string_view text, const SqlType& type, Language language) : type_(type) {
  if (type.id == TypeId::kTimestampTz) {
    const size_t end = text.find(kZoneEnd);
    const Result<const TimeZone*> zone = FindTimeZone(text.substr(0, end));
    if (end == std::string_view::npos || !zone.ok()) {
      error_ = "a format without a time zone";
      return;
    }
    zone_ = *zone;
    text.remove_prefix(end + 1);
  }
  if (text.size() > kMostFormatBytes) {
    error_ = fmt::format("a format has at most {} bytes", kMostFormatBytes);
  } else if (language == Language::kStrftime) {
    ReadStrftime(text);
  } else if (language == Language::kPrintf) {
    ReadPrintf(text);
  } else if (type.IsNumeric()) {
    ReadNumber(text);
  } else {
    ReadMoment(text);
  }
  for (const Piece& p : pieces_) {
    if (type.id == TypeId::kInterval && p.kind == Piece::Kind::kPart && !IsOfInterval(p.part) && error_.empty())
      error_ = "invalid format for an interval: it has no date, so no names, eras, weeks of ISO and time zones";
    if (zone_ != nullptr && !zone_->IsUtc() && p.kind == Piece::Kind::kPart && p.part == Part::kZoneName)
      error_ = "TZ in a format is not supported but in UTC; TZH, TZM and OF are";
  }
}

void Format::AddText(std::string_view text) {
  if (pieces_.empty() || pieces_.back().kind != Piece::Kind::kText) pieces_.emplace_back();
  pieces_.back().text += text;
}

void Format::AddPart(Part part, int digits, bool padded, Letters letters) {
  Piece piece;
  piece.kind = Piece::Kind::kPart;
  piece.part = part;
  piece.digits = static_cast<uint8_t>(digits);
  piece.padded = padded;
  piece.letters = letters;
  pieces_.push_back(std::move(piece));
}

// ---- Moments --------------------------------------------------------------------------------------------------------

void Format::ReadStrftime(std::string_view text) {
  struct Row {
    char letter;
    Part part;
    int digits;
  };
  constexpr Row kRows[] = {
      {'a', Part::kDayShort, 0},      {'A', Part::kDayName, 0},       {'w', Part::kSundayIs0, 0},
      {'u', Part::kIsoDay, 0},        {'d', Part::kDay, 2},           {'b', Part::kMonthShort, 0},
      {'h', Part::kMonthShort, 0},    {'B', Part::kMonthName, 0},     {'m', Part::kMonth, 2},
      {'y', Part::kYear, 2},          {'Y', Part::kYear, 4},          {'G', Part::kIsoYear, 4},
      {'H', Part::kHour24, 2},        {'I', Part::kHour12, 2},        {'p', Part::kNoon, 0},
      {'M', Part::kMinute, 2},        {'S', Part::kSecond, 2},        {'g', Part::kFraction, 3},
      {'f', Part::kFraction, 6},      {'n', Part::kNanoseconds, 9},   {'j', Part::kDayOfYear, 3},
      {'U', Part::kWeekOfSundays, 2}, {'W', Part::kWeekOfMondays, 2}, {'V', Part::kIsoWeek, 2},
  };
  constexpr std::pair<char, const char*> kLong[] = {
      {'c', "%Y-%m-%d %H:%M:%S"}, {'x', "%Y-%m-%d"}, {'X', "%H:%M:%S"}, {'D', "%m/%d/%y"},
      {'F', "%Y-%m-%d"},          {'T', "%H:%M:%S"}, {'R', "%H:%M"},    {'z', "+00"}};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      AddText(text.substr(i, 1));
      continue;
    }
    const bool bare = i + 1 < text.size() && text[i + 1] == '-';
    i += bare ? 2 : 1;
    const char letter = i < text.size() ? text[i] : '\0';
    if (letter == '%' && !bare) {
      AddText("%");
      continue;
    }
    const auto longer =
        std::find_if(std::begin(kLong), std::end(kLong), [&](const auto& r) { return r.first == letter; });
    if (longer != std::end(kLong) && !bare) {
      ReadStrftime(longer->second);
      continue;
    }
    const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.letter == letter; });
    if (letter == '\0' || row == std::end(kRows)) {
      error_ = letter == '\0' ? "a format ends with %"
                              : fmt::format("%{}{} is not known in a format", bare ? "-" : "", letter);
      return;
    }
    if (bare && (row->digits == 0 || row->digits > 3 || row->part == Part::kFraction || letter == 'V')) {
      error_ = fmt::format("%-{} is not known in a format", letter);
      return;
    }
    AddPart(row->part, bare ? 0 : row->digits, false);
    if (letter == 'y') pieces_.back().last = 2;
  }
}

void Format::ReadText(std::string_view* text) {
  std::string_view& rest = *text;
  if (rest[0] == '"') {
    for (rest.remove_prefix(1); !rest.empty() && rest[0] != '"'; rest.remove_prefix(1)) {
      if (rest[0] == '\\' && rest.size() > 1) rest.remove_prefix(1);
      AddText(rest.substr(0, 1));
    }
    if (!rest.empty()) rest.remove_prefix(1);
    return;
  }
  if (rest[0] == '\\' && rest.size() > 1 && rest[1] == '"') rest.remove_prefix(1);
  AddText(rest.substr(0, 1));
  rest.remove_prefix(1);
}

bool Format::ReadNamedPart(bool fill, std::string_view* text) {
  struct Name {
    const char* word;
    Part part;
    Letters letters;
  };
  constexpr Name kNames[] = {
      {"MONTH", Part::kMonthName, Letters::kUpper}, {"Month", Part::kMonthName, Letters::kAsIs},
      {"month", Part::kMonthName, Letters::kLower}, {"MON", Part::kMonthShort, Letters::kUpper},
      {"Mon", Part::kMonthShort, Letters::kAsIs},   {"mon", Part::kMonthShort, Letters::kLower},
      {"DAY", Part::kDayName, Letters::kUpper},     {"Day", Part::kDayName, Letters::kAsIs},
      {"day", Part::kDayName, Letters::kLower},     {"DY", Part::kDayShort, Letters::kUpper},
      {"Dy", Part::kDayShort, Letters::kAsIs},      {"dy", Part::kDayShort, Letters::kLower},
      {"RM", Part::kRoman, Letters::kUpper},        {"rm", Part::kRoman, Letters::kLower},
      {"A.M.", Part::kNoon, Letters::kUpper},       {"P.M.", Part::kNoon, Letters::kUpper},
      {"a.m.", Part::kNoon, Letters::kLower},       {"p.m.", Part::kNoon, Letters::kLower},
      {"AM", Part::kNoon, Letters::kUpper},         {"PM", Part::kNoon, Letters::kUpper},
      {"am", Part::kNoon, Letters::kLower},         {"pm", Part::kNoon, Letters::kLower},
      {"A.D.", Part::kEra, Letters::kUpper},        {"B.C.", Part::kEra, Letters::kUpper},
      {"a.d.", Part::kEra, Letters::kLower},        {"b.c.", Part::kEra, Letters::kLower},
      {"AD", Part::kEra, Letters::kUpper},          {"BC", Part::kEra, Letters::kUpper},
      {"ad", Part::kEra, Letters::kLower},          {"bc", Part::kEra, Letters::kLower},
      {"TZ", Part::kZoneName, Letters::kUpper},     {"tz", Part::kZoneName, Letters::kLower},
  };
  const auto name = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& r) {
    const bool zone = r.part == Part::kZoneName && (StartsWithWord(*text, "TZH") || StartsWithWord(*text, "TZM"));
    return !zone && text->starts_with(r.word);
  });
  if (name == std::end(kNames)) return false;
  AddPart(name->part, 0, !fill, name->letters);
  if (std::string_view(name->word).find('.') != std::string_view::npos) pieces_.back().text = ".";
  text->remove_prefix(std::string_view(name->word).size());
  return true;
}

bool Format::ReadNumberedPart(bool fill, std::string_view* text) {
  struct Row {
    const char* word;
    Part part;
    int digits;
    int last = 0;
  };
  // Of words that begin alike the longer comes first.
  constexpr Row kRows[] = {
      {"SSSSS", Part::kSecondOfDay, 0},
      {"SSSS", Part::kSecondOfDay, 0},
      {"SS", Part::kSecond, 2},
      {"HH24", Part::kHour24, 2},
      {"HH12", Part::kHour12, 2},
      {"HH", Part::kHour12, 2},
      {"MI", Part::kMinute, 2},
      {"MS", Part::kFraction, 3},
      {"MM", Part::kMonth, 2},
      {"US", Part::kFraction, 6},
      {"FF1", Part::kFraction, 1},
      {"FF2", Part::kFraction, 2},
      {"FF3", Part::kFraction, 3},
      {"FF4", Part::kFraction, 4},
      {"FF5", Part::kFraction, 5},
      {"FF6", Part::kFraction, 6},
      {"Y,YYY", Part::kYearWithComma, 0},
      {"YYYY", Part::kYear, 4},
      {"YYY", Part::kYear, 3, 3},
      {"YY", Part::kYear, 2, 2},
      {"Y", Part::kYear, 1, 1},
      {"IYYY", Part::kIsoYear, 4},
      {"IYY", Part::kIsoYear, 3, 3},
      {"IY", Part::kIsoYear, 2, 2},
      {"IDDD", Part::kIsoDayOfYear, 3},
      {"ID", Part::kIsoDay, 0},
      {"IW", Part::kIsoWeek, 2},
      {"I", Part::kIsoYear, 1, 1},
      {"DDD", Part::kDayOfYear, 3},
      {"DD", Part::kDay, 2},
      {"D", Part::kDayOfWeek, 0},
      {"WW", Part::kWeekOfYear, 2},
      {"W", Part::kWeekOfMonth, 0},
      {"CC", Part::kCentury, 2},
      {"TZH", Part::kZoneHours, 2},
      {"TZM", Part::kZoneMinutes, 2},
      {"OF", Part::kOffset, 2},
      {"J", Part::kJulian, 0},
      {"Q", Part::kQuarter, 0},
  };
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return StartsWithWord(*text, r.word); });
  if (row == std::end(kRows)) return false;
  const bool fraction = row->part == Part::kFraction;
  AddPart(row->part, fill && !fraction ? 0 : row->digits, false);
  pieces_.back().last = static_cast<uint8_t>(row->last);
  text->remove_prefix(std::string_view(row->word).size());
  return true;
}

void Format::ReadMoment(std::string_view text) {
  while (!text.empty()) {
    if (StartsWithWord(text, "FX")) {
      text.remove_prefix(2);
      continue;
    }
    std::string_view rest = text;
    bool fill = false;
    for (; StartsWithWord(rest, "FM") || StartsWithWord(rest, "TM"); rest.remove_prefix(2)) fill = true;
    if (!ReadNamedPart(fill, &rest) && !ReadNumberedPart(fill, &rest)) {
      ReadText(&text);
      continue;
    }
    if (rest.starts_with("TH") || rest.starts_with("th")) {
      pieces_.back().ordinal = rest[0];
      rest.remove_prefix(2);
    }
    text = rest;
  }
}

/// A moment's date and time of day.
struct Format::Moment {
  explicit Moment(int64_t micros)
      : days(FloorDiv(micros, kMicrosPerDay)), in_day(micros - days * kMicrosPerDay), date(CivilOf(days)) {}

  int64_t days, in_day;
  Civil date;
  int64_t day_of_year = days - DaysOf(date.year, 1, 1) + 1, weekday = FloorMod(days + 4, 7);
  int64_t iso_year = CivilOf(days - FloorMod(days + 3, 7) + 3).year;  // that of its Thursday
  int64_t hour = in_day / 3'600'000'000;
  int64_t year = date.year > 0 ? date.year : 1 - date.year;  // before it is 1 BC
};

int64_t Format::NumberOf(Part part, const Moment& m) {
  switch (part) {
    case Part::kYear:
      return m.year;
    case Part::kIsoYear:
      return m.iso_year;
    case Part::kCentury:
      return m.date.year > 0 ? (m.year + 99) / 100 : -((m.year + 99) / 100);
    case Part::kQuarter:
      return (m.date.month + 2) / 3;
    case Part::kMonth:
      return m.date.month;
    case Part::kDay:
      return m.date.day;
    case Part::kDayOfYear:
      return m.day_of_year;
    case Part::kIsoDayOfYear:
      return m.days - (DaysOf(m.iso_year, 1, 4) - FloorMod(DaysOf(m.iso_year, 1, 4) + 3, 7)) + 1;
    case Part::kDayOfWeek:
      return m.weekday + 1;
    case Part::kIsoDay:
      return m.weekday == 0 ? 7 : m.weekday;
    case Part::kSundayIs0:
      return m.weekday;
    case Part::kWeekOfMonth:
      return (m.date.day - 1) / 7 + 1;
    case Part::kWeekOfYear:
      return (m.day_of_year - 1) / 7 + 1;
    case Part::kIsoWeek:
      return IsoWeek(m.days);
    case Part::kWeekOfSundays:
      return (m.day_of_year - 1 + 7 - m.weekday) / 7;
    case Part::kWeekOfMondays:
      return (m.day_of_year - 1 + 7 - (m.weekday + 6) % 7) / 7;
    case Part::kJulian:
      return m.days + 2440588;
    case Part::kHour24:
      return m.hour;
    case Part::kHour12:
      return m.hour % 12 == 0 ? 12 : m.hour % 12;
    case Part::kMinute:
      return m.in_day / 60'000'000 % 60;
    case Part::kSecond:
      return m.in_day / 1'000'000 % 60;
    case Part::kFraction:
      return m.in_day % 1'000'000;
    case Part::kNanoseconds:
      return m.in_day % 1'000'000 * 1000;
    case Part::kSecondOfDay:
      return m.in_day / 1'000'000;
    case Part::kYearWithComma:
    case Part::kEra:
    case Part::kMonthName:
    case Part::kMonthShort:
    case Part::kRoman:
    case Part::kDayName:
    case Part::kDayShort:
    case Part::kNoon:
    case Part::kZoneName:
    case Part::kZoneHours:
    case Part::kZoneMinutes:
    case Part::kOffset:
      return 0;  // they are no numbers
  }
  return 0;
}

/// `width`: what blanks fill it up to. Empty: the part is none with a name.
std::string_view Format::NameOf(const Piece& piece, const Moment& m, size_t* width) {
  const std::string_view month = kMonths[m.date.month - 1], day = kDays[m.weekday];
  const bool dotted = !piece.text.empty();
  *width = piece.part == Part::kMonthName || piece.part == Part::kDayName ? 9 : piece.part == Part::kRoman ? 4 : 0;
  if (piece.part == Part::kEra) return m.date.year > 0 ? (dotted ? "A.D." : "AD") : (dotted ? "B.C." : "BC");
  if (piece.part == Part::kMonthName) return month;
  if (piece.part == Part::kMonthShort) return month.substr(0, 3);
  if (piece.part == Part::kRoman) return kRomanMonths[m.date.month - 1];
  if (piece.part == Part::kDayName) return day;
  if (piece.part == Part::kDayShort) return day.substr(0, 3);
  return {};
}

void Format::AppendPart(const Piece& piece, int64_t micros, std::string* out) const {
  const Moment m(micros);
  const bool of_zone = piece.part == Part::kZoneName || piece.part == Part::kZoneHours ||
                       piece.part == Part::kZoneMinutes || piece.part == Part::kOffset;
  if (of_zone) return;  // AppendZone
  if (piece.part == Part::kNoon) return AppendNoon(piece, m.hour >= 12, out);
  if (piece.part == Part::kYearWithComma) {
    *out += fmt::format("{},{:03}", m.year / 1000, m.year % 1000);
    return;
  }
  size_t width = 0;
  if (const std::string_view name = NameOf(piece, m, &width); !name.empty()) {
    *out += piece.letters == Letters::kAsIs ? std::string(name) : InCase(name, piece.letters == Letters::kUpper);
    if (piece.padded && name.size() < width) out->append(width - name.size(), ' ');
    return;
  }
  int64_t number = NumberOf(piece.part, m);
  for (int digits = piece.digits; piece.part == Part::kFraction && digits < 6; ++digits) number /= 10;
  AppendDigits(piece, number, out);
}

void Format::AppendNoon(const Piece& piece, bool after, std::string* out) {
  constexpr const char* kNoons[] = {"AM", "PM", "A.M.", "P.M."};
  const std::string name = kNoons[(after ? 1 : 0) + (piece.text.empty() ? 0 : 2)];
  *out += piece.letters == Letters::kAsIs ? name : InCase(name, piece.letters == Letters::kUpper);
}

void Format::AppendDigits(const Piece& piece, int64_t number, std::string* out) {
  const bool negative = number < 0;
  int64_t unit = 1;
  for (int i = 0; i < piece.last; ++i) unit *= 10;
  if (piece.last > 0) number %= unit;
  // Of an interval's negative parts; as PostgreSQL, which leaves room for the sign in these.
  const bool room = (piece.part == Part::kYear && piece.last != 1) || piece.part == Part::kCentury ||
                    piece.part == Part::kMonth || piece.part == Part::kHour24 || piece.part == Part::kHour12 ||
                    piece.part == Part::kMinute || piece.part == Part::kSecond;
  const std::string digits = fmt::format("{:0{}}", number, std::max<int>(1, piece.digits) + (negative && room ? 1 : 0));
  *out += digits;
  if (piece.ordinal != 0) *out += OrdinalOf(digits, piece.ordinal);
}

bool Format::HasZone() const {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [](const Piece& p) { return p.kind == Piece::Kind::kPart && p.part >= Part::kZoneName; });
}

/// `offset`: seconds that the clocks are ahead of UTC.
void Format::AppendZone(const Piece& piece, int64_t offset, std::string* out) const {
  const int64_t minutes = (offset < 0 ? -offset : offset) / 60;
  const char sign = offset < 0 ? '-' : '+';
  switch (piece.part) {
    case Part::kZoneName:
      if (zone_ != nullptr) *out += InCase(zone_->name(), piece.letters == Letters::kUpper);
      break;
    case Part::kZoneHours:
      *out += fmt::format("{}{:02}", sign, minutes / 60);
      break;
    case Part::kZoneMinutes:
      *out += fmt::format("{:02}", minutes % 60);
      break;
    default:
      *out += fmt::format("{}{:02}", sign, minutes / 60);
      if (minutes % 60 != 0) *out += fmt::format(":{:02}", minutes % 60);
  }
}

// ---- Numbers --------------------------------------------------------------------------------------------------------

void Format::ReadNumber(std::string_view text) {
  using Kind = Piece::Kind;
  bool shifts = false, sign = false, currency = false;
  int sign_before = -1;  // digits before S
  const auto add = [&](Kind kind) {
    pieces_.emplace_back();
    pieces_.back().kind = kind;
  };
  const auto take = [&](std::string_view word) {
    if (!StartsWithWord(text, word)) return false;
    text.remove_prefix(word.size());
    return true;
  };
  while (!text.empty() && error_.empty()) {
    const char c = text[0];
    if (exponent_ && c != '"') {
      error_ = "EEEE must be the last pattern of a format";
    } else if (c == '9' || c == '0') {
      text.remove_prefix(1);
      add(c == '9' ? Kind::kNine : Kind::kZero);
      if (brackets_) error_ = "digits after PR in a format";
      if (shifts) ++shift_;
      if (c == '0' && !point_ && zero_from_ < 0) zero_from_ = before_;
      ++(point_ ? behind_ : before_);
      if (c == '0') zero_to_ = before_ + behind_;
    } else if (c == '.' || take("D")) {
      if (c == '.') text.remove_prefix(1);
      if (point_) error_ = "several decimal points in a format";
      if (shifts) error_ = "a format has V and a decimal point";
      point_ = true;
      add(Kind::kPoint);
    } else if (c == ',' || take("G")) {
      if (c == ',') text.remove_prefix(1);
      add(Kind::kComma);
    } else if (take("FM")) {
      fill_ = true;
    } else if (take("MI") || take("PL") || take("SG")) {
      const char word = c == 'M' || c == 'm' ? 'M' : c == 'P' || c == 'p' ? 'P' : 'S';
      if (always_sign_) error_ = "a format has several signs";
      add(word == 'M' ? Kind::kMinus : word == 'P' ? Kind::kPlus : Kind::kSign);
      if (word != 'P') sign_place_ = SignPlace::kApart;
      sign = true;
    } else if (take("PR")) {
      if (sign) error_ = "a format has PR and another sign";
      brackets_ = true;
    } else if (c == 'B' || c == 'b' || c == 'C' || c == 'c' || StartsWithWord(text, "SP")) {
      const std::string_view word = text.substr(0, c == 's' || c == 'S' ? 2 : 1);
      error_ = fmt::format("{} in a format of numbers is not supported; if it is text, put it in double quotes", word);
    } else if (take("S")) {
      if (sign || brackets_) error_ = "a format has several signs";
      sign = always_sign_ = true;
      sign_before = before_;
      if (point_) sign_place_ = SignPlace::kBehind;
    } else if (take("RN")) {
      add(Kind::kRomanNumber);
      pieces_.back().letters = c == 'r' ? Letters::kLower : Letters::kUpper;
      roman_ = true;
    } else if (take("TH")) {
      add(Kind::kOrdinal);
      pieces_.back().ordinal = c == 't' ? 't' : 'T';
    } else if (take("EEEE")) {
      exponent_ = true;
      if (fill_ || sign || brackets_ || roman_ || shifts || currency) error_ = "EEEE goes with digits and a point only";
    } else if (take("V")) {
      if (point_) error_ = "a format has V and a decimal point";
      shifts = true;
    } else if (take("L")) {
      currency = true;
      add(Kind::kCurrency);
    } else {
      ReadText(&text);
    }
  }
  // An S after all digits stands after the number.
  if (always_sign_ && sign_place_ == SignPlace::kBefore && sign_before == before_) sign_place_ = SignPlace::kBehind;
  constexpr int kMostDigits = 200;
  if (before_ + behind_ > kMostDigits) error_ = fmt::format("a format has at most {} digits", kMostDigits);
}

bool Format::CountDigits(int* before, int* behind) const {
  *before = before_;
  *behind = behind_;
  return before_ + behind_ > 0 && !exponent_ && !roman_ && shift_ == 0;
}

void Format::AppendExponent(const Value& v, std::string* out) const {
  std::string text;
  if (type_.IsFloat()) {
    text = std::isfinite(v.f64) ? fmt::format("{:.{}e}", v.f64, behind_) : std::string();
  } else {
    // Exactly: the digits of the number, rounded to those that are asked for.
    const int128_t value = IsWide(type_) ? v.wide : v.i64;
    int length = 0;
    for (int128_t rest = value; rest != 0; rest /= 10) ++length;
    const int scale = type_.scale;
    int exponent = length == 0 ? 0 : length - 1 - scale;
    Digits d = DigitsOf(value, scale + exponent, behind_);
    if (d.before.size() > 1) {  // 9.99 became 10.0
      ++exponent;
      d = DigitsOf(value, scale + exponent, behind_);
    }
    text = (d.negative ? "-" : "") + d.before + (behind_ > 0 ? "." + d.behind : "") +
           fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (text.empty()) {
    text =
        " " + std::string(static_cast<size_t>(before_), '#') + "." + std::string(static_cast<size_t>(behind_) + 4, '#');
  } else if (text[0] != '-') {
    text.insert(text.begin(), ' ');
  }
  *out += text;
}

/// The text of one number, made piece by piece.
class Format::NumberText {
 public:
  NumberText(const Format& format, Digits digits, std::string* out) : f_(format), d_(std::move(digits)), out_(*out) {
    roman_ = d_.is_number && d_.before.size() < 5 ? std::atoll(d_.before.c_str()) : 0;
    fits_ = static_cast<int>(d_.before.size()) <= f_.before_;
    if (!fits_) {
      d_.before.assign(static_cast<size_t>(f_.before_), '#');
      d_.behind.assign(static_cast<size_t>(f_.behind_), '#');
    }
    blank_ = f_.before_ - static_cast<int>(d_.before.size());
    brackets_ = f_.brackets_ && !(f_.fill_ && !d_.negative);
    blank_zero_ = f_.zero_from_ < 0 && d_.before.starts_with('0') && f_.behind_ > 0;
    shown_ = f_.behind_;
    if (f_.fill_ && f_.point_) {
      shown_ = static_cast<int>(d_.behind.find_last_not_of('0') + 1);
      shown_ = std::max(shown_, std::min(f_.zero_to_ - f_.before_, static_cast<int>(d_.behind.size())));
    }
    written_ = f_.sign_place_ == SignPlace::kApart || f_.sign_place_ == SignPlace::kBehind ||
               (f_.fill_ && !d_.negative && !f_.always_sign_);
  }

  /// False: the text ends here.
  bool Append(const Piece& piece) {
    using Kind = Piece::Kind;
    switch (piece.kind) {
      case Kind::kText:
        out_ += piece.text;
        break;
      case Kind::kPart:
        break;
      case Kind::kNine:
      case Kind::kZero:
        if (!f_.roman_) AppendDigit(piece);
        break;
      case Kind::kPoint:
        AppendSign();
        if (fits_ && !d_.is_number) return false;  // as in PostgreSQL: what has no fraction ends here
        if (f_.behind_ > 0 || !fits_) out_ += '.';
        break;
      case Kind::kComma:
        if (begun_) {
          out_ += ',';
        } else {
          AppendBlank();
        }
        break;
      case Kind::kMinus:
      case Kind::kPlus:
        if (d_.negative == (piece.kind == Kind::kMinus)) {
          out_ += piece.kind == Kind::kMinus ? '-' : '+';
        } else {
          AppendBlank();
        }
        break;
      case Kind::kSign:
        out_ += d_.negative ? '-' : '+';
        break;
      case Kind::kOrdinal:
        if (!f_.roman_ && fits_ && d_.is_number && !d_.negative && !f_.point_)
          out_ += OrdinalOf(d_.before, piece.ordinal);
        break;
      case Kind::kRomanNumber: {
        const std::string number = roman_ < 1 || roman_ > 3999 || d_.negative ? std::string(15, '#') : RomanOf(roman_);
        if (!f_.fill_ && number.size() < 15) out_.append(15 - number.size(), ' ');
        out_ += InCase(number, piece.letters == Letters::kUpper);
        break;
      }
      case Kind::kCurrency:
        out_ += ' ';
        break;
    }
    return true;
  }

 private:
  void AppendBlank() {
    if (!f_.fill_) out_ += ' ';
  }

  /// Before the first digit, if it has its place there.
  void AppendSign() {
    if (std::exchange(written_, true)) return;
    if (brackets_) {
      out_ += d_.negative ? '<' : ' ';
    } else if (d_.negative) {
      out_ += '-';
    } else if (f_.always_sign_) {
      out_ += '+';
    } else {
      out_ += ' ';
    }
  }

  /// The digit at the next place, or what stands there instead.
  void AppendDigit(const Piece& piece) {
    if (at_ < blank_) {
      const bool zero = f_.zero_from_ >= 0 && f_.zero_from_ <= at_;
      if (zero && f_.zero_from_ == at_) AppendSign();
      if (zero) {
        out_ += '0';
        begun_ = true;
      } else {
        AppendBlank();
      }
    } else if (at_ < f_.before_) {
      const bool hidden = at_ == blank_ && blank_zero_;
      const bool alone = hidden && f_.fill_ && shown_ == 0;  // "0."
      if (!hidden || alone) {
        AppendSign();
        out_ += d_.before[static_cast<size_t>(at_ - blank_)];
        begun_ = begun_ || !hidden;
      } else {
        AppendBlank();
      }
    } else {
      const int place = at_ - f_.before_;
      AppendSign();
      if (place < static_cast<int>(d_.behind.size()) && (place < shown_ || piece.kind == Piece::Kind::kZero)) {
        out_ += d_.behind[static_cast<size_t>(place)];
        begun_ = true;
      }
    }
    if (++at_ < f_.before_ + f_.behind_) return;
    if (brackets_) out_ += d_.negative ? '>' : ' ';
    if (f_.sign_place_ == SignPlace::kBehind) out_ += d_.negative ? '-' : '+';
  }

  const Format& f_;
  Digits d_;
  std::string& out_;
  int64_t roman_ = 0;
  bool fits_ = true;         // else # stands for each digit
  int blank_ = 0;            // places before the first digit
  bool brackets_ = false;    // stand for the sign
  bool blank_zero_ = false;  // without FM a 0 before the point is a blank; after it zeros stay
  int shown_ = 0;            // digits after the point
  bool written_ = false;     // the sign is there, or has another place
  bool begun_ = false;       // a digit is there
  int at_ = 0;               // the place of the next digit
};

void Format::AppendNumber(const Value& v, std::string* out) const {
  if (exponent_) return AppendExponent(v, out);
  double times = 1;
  for (int i = 0; i < shift_; ++i) times *= 10;
  NumberText text(*this,
                  type_.IsFloat() ? DigitsOf(v.f64 * times, roman_ ? 0 : behind_)
                                  : DigitsOf(IsWide(type_) ? v.wide : int128_t{v.i64}, type_.scale - shift_, behind_),
                  out);
  for (const Piece& piece : pieces_) {
    if (!text.Append(piece)) return;
  }
}

void Format::Append(const Value& v, std::string* out) const {
  if (printf_.conversion != 0) return AppendPrintf(v, out);
  if (type_.IsNumeric()) return AppendNumber(v, out);
  if (type_.id == TypeId::kInterval) return AppendInterval(UnpackInterval(v.wide), out);
  // (No moment lies beyond, but any program may say that a number is one.)
  const int64_t unit = type_.id == TypeId::kDate ? kMicrosPerDay : 1;
  const int64_t value = std::clamp(v.i64, kFirstMoment / unit, kLastMoment / unit);
  int64_t micros = type_.id == TypeId::kDate ? value * kMicrosPerDay : value, offset = 0;
  if (zone_ != nullptr) {
    offset = zone_->OffsetAt(FloorDiv(micros, 1'000'000));
    micros += offset * 1'000'000;
  }
  for (const Piece& piece : pieces_) {
    if (piece.kind == Piece::Kind::kText) {
      *out += piece.text;
    } else if (piece.part >= Part::kZoneName) {
      AppendZone(piece, offset, out);
    } else {
      AppendPart(piece, micros, out);
    }
  }
}

}  // namespace tessera::vm
