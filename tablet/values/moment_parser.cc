// The parsers of dates, times, timestamps and moments. Each first reads the form that is nearly always there; only what it
// is not goes on to MomentText, which knows all forms.
#include <algorithm>
#include <chrono>
#include <string>

#include "base/lower_case.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kDay = 86400 * kSecond;
/// Beyond the last moment; std::chrono's years end at 32767.
constexpr int kGreatestYear = 20000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsLetter(char c) { return LowerCase(c) >= 'a' && LowerCase(c) <= 'z'; }

/// Takes `least` to `most` digits off the front of `text`.
bool TakeNumber(std::string_view* text, size_t least, size_t most, int* out) {
  int value = 0;
  size_t i = 0;
  while (i < text->size() && i < most && IsDigit((*text)[i])) value = value * 10 + ((*text)[i++] - '0');
  if (i < least) return false;
  text->remove_prefix(i);
  *out = value;
  return true;
}

bool TakeCharacter(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

/// False: there is no such date. The year may be any of up to five digits.
bool DaysOf(int year, int month, int day, int64_t* days) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  *days = std::chrono::sys_days(date).time_since_epoch().count();
  return true;
}

ParseError TakeDate(std::string_view* text, int64_t* days) {
  int year, month, day;
  if (!TakeNumber(text, 4, 4, &year) || !TakeCharacter(text, '-') || !TakeNumber(text, 1, 2, &month) ||
      !TakeCharacter(text, '-') || !TakeNumber(text, 1, 2, &day)) {
    return ParseError::kSyntax;
  }
  return year >= 1 && DaysOf(year, month, day, days) ? ParseError::kNone : ParseError::kRange;
}

/// .ffffff in microseconds, if there is a point; further digits round. False: a point without digits.
bool TakeFraction(std::string_view* text, int64_t* microseconds) {
  if (!TakeCharacter(text, '.')) return true;
  int64_t unit = kSecond / 10;
  size_t digits = 0;
  for (; digits < text->size() && IsDigit((*text)[digits]); ++digits) {
    const int digit = (*text)[digits] - '0';
    if (digits < 6) {
      *microseconds += digit * unit;
      unit /= 10;
    } else if (digits == 6 && digit >= 5) {
      ++*microseconds;
    }
  }
  text->remove_prefix(digits);
  return digits > 0;
}

/// HH:MM[:SS[.ffffff]] as microseconds since midnight; 23:59:59.9999999 is the next one.
ParseError ParseTimeOfDay(std::string_view text, int64_t* out) {
  int hour = 0, minute = 0, second = 0;
  int64_t microseconds = 0;
  if (!TakeNumber(&text, 1, 2, &hour) || !TakeCharacter(&text, ':') || !TakeNumber(&text, 2, 2, &minute))
    return ParseError::kSyntax;
  if (TakeCharacter(&text, ':')) {
    if (!TakeNumber(&text, 2, 2, &second) || !TakeFraction(&text, &microseconds)) return ParseError::kSyntax;
  }
  if (!text.empty()) return ParseError::kSyntax;
  if (hour > 23 || minute > 59 || second > 59) return ParseError::kRange;
  *out = ((int64_t{hour} * 60 + minute) * 60 + second) * kSecond + microseconds;
  return ParseError::kNone;
}

/// YYYY-MM-DD, then optionally a blank or T and a time of day.
ParseError ParseLocal(std::string_view text, int64_t* out) {
  int64_t days = 0, time = 0;
  const ParseError error = TakeDate(&text, &days);
  if (error != ParseError::kNone) return error;
  if (!text.empty()) {
    if (text[0] != ' ' && text[0] != 'T' && text[0] != 't') return ParseError::kSyntax;
    text.remove_prefix(1);
    const ParseError time_error = ParseTimeOfDay(text, &time);
    if (time_error != ParseError::kNone) return time_error;
  }
  *out = days * kDay + time;
  return ParseError::kNone;
}

/// Minutes that clocks of an abbreviation are ahead of UTC. False: it is none.
bool FindAbbreviation(std::string_view name, int* minutes) {
  struct Row {
    std::string_view name;
    int minutes;
  };
  static constexpr Row kRows[] = {
#define ZONE_ABBREVIATION(name, hours, minutes) {name, (hours)*60 + (minutes)},
#include "tablet/values/zone_abbreviations.def"
#undef ZONE_ABBREVIATION
  };
  const auto same = [](char a, char b) { return LowerCase(a) == LowerCase(b); };
  for (const Row& row : kRows) {
    if (!std::equal(row.name.begin(), row.name.end(), name.begin(), name.end(), same)) continue;
    *minutes = row.minutes;
    return true;
  }
  return false;
}

/// A text in any form: a date, a time of day, both; and after them AM or PM, a time zone, AD or BC.
class MomentText {
 public:
  explicit MomentText(std::string_view text) : rest_(TrimBlanks(text)) {}

  /// kRange: the form is right, but there is no such date, time or offset.
  ParseError Read() {
    while (year_digits_ < rest_.size() && IsDigit(rest_[year_digits_])) ++year_digits_;
    if (year_digits_ > 2 && !ReadDate()) return ParseError::kSyntax;
    if (!has_date_ || BeginsTime()) {
      if (!ReadTime()) return ParseError::kSyntax;
    }
    while (!rest_.empty()) {
      if (!ReadWord()) return ParseError::kSyntax;
    }
    if (half_ != 0) {
      if (hour_ < 1 || hour_ > 12) return ParseError::kRange;
      hour_ = hour_ % 12 + (half_ == 'p' ? 12 : 0);
    }
    // 24:00 is the end of the day.
    if (minute_ > 59 || second_ > 59 || hour_ > 24 || (hour_ == 24 && minute_ + second_ + microseconds_ > 0))
      return ParseError::kRange;
    time_ = ((int64_t{hour_} * 60 + minute_) * 60 + second_) * kSecond + microseconds_;
    if (has_date_ &&
        (year_ < 1 || year_ > kGreatestYear || !DaysOf(before_christ_ ? 1 - year_ : year_, month_, day_, &days_)))
      return ParseError::kRange;
    return bad_offset_ ? ParseError::kRange : ParseError::kNone;
  }

  bool has_date() const { return has_date_; }
  bool has_time() const { return has_time_; }
  /// Whether the year has four digits and is one of our era.
  bool has_plain_year() const { return year_digits_ == 4 && !before_christ_; }
  bool has_wide_year() const { return year_digits_ > 4; }
  int64_t days() const { return days_; }
  int64_t time() const { return time_; }
  bool is_end_of_day() const { return hour_ == 24; }
  /// When the clocks of its time zone, or of `zone` if it has none, show that; nullptr: UTC.
  int64_t MomentIn(const TimeZone* zone) const {
    const int64_t local = days_ * kDay + time_;
    if (has_offset_) return local - offset_ * kSecond;
    if (zone_ != nullptr) zone = zone_;
    return zone != nullptr ? zone->MomentOf(local) : local;
  }

 private:
  /// YYYY-MM-DD or YYYYMMDD; a year of four or five digits.
  bool ReadDate() {
    has_date_ = true;
    if (year_digits_ == 8) {
      year_digits_ = 4;
      return TakeNumber(&rest_, 4, 4, &year_) && TakeNumber(&rest_, 2, 2, &month_) && TakeNumber(&rest_, 2, 2, &day_);
    }
    return TakeNumber(&rest_, 4, 5, &year_) && TakeCharacter(&rest_, '-') && TakeNumber(&rest_, 1, 2, &month_) &&
           TakeCharacter(&rest_, '-') && TakeNumber(&rest_, 1, 2, &day_) && (rest_.empty() || !IsDigit(rest_[0]));
  }

  /// Whether a time of day follows the date, and goes to it.
  bool BeginsTime() {
    std::string_view text = rest_;
    if (!text.empty() && (text[0] == 'T' || text[0] == 't')) {
      text.remove_prefix(1);
    } else {
      text = TrimBlanks(text);
      if (text.size() == rest_.size()) return false;
    }
    if (text.empty() || !IsDigit(text[0])) return false;
    rest_ = text;
    return true;
  }

  /// H:M[:S[.ffffff]]
  bool ReadTime() {
    has_time_ = true;
    if (!TakeNumber(&rest_, 1, 2, &hour_) || !TakeCharacter(&rest_, ':') || !TakeNumber(&rest_, 1, 2, &minute_))
      return false;
    if (!TakeCharacter(&rest_, ':')) return true;
    return TakeNumber(&rest_, 1, 2, &second_) && TakeFraction(&rest_, &microseconds_);
  }

  /// What may stand after date and time, in this order or another; each once.
  bool ReadWord() {
    const bool apart = IsBlank(rest_[0]);
    rest_ = TrimBlanks(rest_);
    const std::string_view word = rest_.substr(0, std::find_if(rest_.begin(), rest_.end(), IsBlank) - rest_.begin());
    rest_.remove_prefix(word.size());
    // (2024-02-03-05 is no date with a time zone.)
    if (word[0] == '+' || (word[0] == '-' && (apart || has_time_))) return ReadOffset(word);
    if (!IsLetter(word[0])) return false;
    const std::string name = LowerCase(word);
    if (name == "am" || name == "pm") {
      const bool first = half_ == 0 && has_time_;
      half_ = name[0];
      return first;
    }
    if (name == "ad" || name == "bc") {
      const bool first = !has_era_ && has_date_;
      has_era_ = true;
      before_christ_ = name == "bc";
      return first;
    }
    if (has_offset_ || zone_ != nullptr) return false;
    int minutes = 0;
    if (FindAbbreviation(name, &minutes)) {
      has_offset_ = true;
      offset_ = int64_t{minutes} * 60;
      return true;
    }
    const Result<const TimeZone*> named = FindTimeZone(word);
    if (!named.ok()) return false;
    zone_ = *named;
    return true;
  }

  /// +h[[:]mm[:ss]], as far as a time zone may be from UTC.
  bool ReadOffset(std::string_view word) {
    if (has_offset_ || zone_ != nullptr) return false;
    has_offset_ = true;
    const bool west = word[0] == '-';
    word.remove_prefix(1);
    int hours = 0, minutes = 0, seconds = 0;
    if (!TakeNumber(&word, 1, 2, &hours)) return false;
    if (!word.empty()) {
      TakeCharacter(&word, ':');
      if (!TakeNumber(&word, 2, 2, &minutes)) return false;
      if (TakeCharacter(&word, ':') && !TakeNumber(&word, 2, 2, &seconds)) return false;
      if (!word.empty()) return false;
    }
    bad_offset_ = hours > 15 || minutes > 59 || seconds > 59;
    offset_ = (int64_t{hours} * 60 + minutes) * 60 + seconds;
    if (west) offset_ = -offset_;
    return true;
  }

  std::string_view rest_;
  bool has_date_ = false, has_time_ = false, has_era_ = false, before_christ_ = false;
  bool has_offset_ = false, bad_offset_ = false;
  char half_ = 0;  ///< 'a' or 'p': of the day
  size_t year_digits_ = 0;
  int year_ = 0, month_ = 0, day_ = 0, hour_ = 0, minute_ = 0, second_ = 0;
  int64_t microseconds_ = 0;
  int64_t offset_ = 0;  ///< in seconds
  const TimeZone* zone_ = nullptr;
  int64_t days_ = 0, time_ = 0;
};

/// The date of a text in any form, for types without a time zone.
ParseError ReadLocalText(const MomentText& moment, ParseError error) {
  if (error == ParseError::kSyntax || !moment.has_date() || moment.has_wide_year()) return ParseError::kSyntax;
  return moment.has_plain_year() ? error : ParseError::kRange;
}

}  // namespace

ParseError ParseDate(std::string_view text, int64_t* out) {
  std::string_view rest = text;
  if (TakeDate(&rest, out) == ParseError::kNone && rest.empty()) return ParseError::kNone;
  MomentText moment(text);
  const ParseError error = ReadLocalText(moment, moment.Read());
  if (error == ParseError::kNone) *out = moment.days();
  return error;
}

ParseError ParseTimestamp(std::string_view text, int64_t* out) {
  int64_t local = 0;
  if (ParseLocal(text, &local) != ParseError::kNone) {
    MomentText moment(text);
    const ParseError error = ReadLocalText(moment, moment.Read());
    if (error != ParseError::kNone) return error;
    local = moment.days() * kDay + moment.time();
  }
  // The end of the last day is beyond, whether it is rounded to or written as 24:00.
  if (local > kLastMoment - kDay) return ParseError::kRange;
  *out = local;
  return ParseError::kNone;
}

ParseError ParseTime(std::string_view text, int64_t* out) {
  if (ParseTimeOfDay(text, out) != ParseError::kNone) {
    MomentText moment(text);
    const ParseError error = moment.Read();
    if (error == ParseError::kSyntax || !moment.has_time()) return ParseError::kSyntax;
    if (error != ParseError::kNone || moment.is_end_of_day()) return ParseError::kRange;
    *out = moment.time();
  }
  // There is no time after the last microsecond of the day that it could be rounded to.
  *out = std::min(*out, kDay - 1);
  return ParseError::kNone;
}

ParseError ParseMoment(std::string_view text, const TimeZone* zone, int64_t* out) {
  // Nearly always without a time zone, in UTC, or whole hours from it.
  std::string_view local_text = text;
  int64_t ahead = 0;
  bool has_zone = true;
  const size_t size = text.size();
  if (size > 16 && (text.back() == 'Z' || text.back() == 'z')) {
    local_text = text.substr(0, size - 1);
  } else if (size > 16 && (text[size - 3] == '+' || text[size - 3] == '-') && IsDigit(text[size - 2]) &&
             IsDigit(text[size - 1])) {
    local_text = text.substr(0, size - 3);
    ahead = ((text[size - 2] - '0') * 10 + (text[size - 1] - '0')) * 3600 * kSecond;
    if (text[size - 3] == '-') ahead = -ahead;
  } else {
    has_zone = false;
  }
  int64_t moment = 0;
  if (ahead >= -15 * 3600 * kSecond && ahead <= 15 * 3600 * kSecond &&
      ParseLocal(local_text, &moment) == ParseError::kNone) {
    moment = has_zone || zone == nullptr ? moment - ahead : zone->MomentOf(moment);
  } else {
    MomentText any(text);
    const ParseError error = any.Read();
    if (error == ParseError::kSyntax || !any.has_date()) return ParseError::kSyntax;
    if (error != ParseError::kNone) return error;
    moment = any.MomentIn(zone);
  }
  if (!IsMoment(moment)) return ParseError::kRange;
  *out = moment;
  return ParseError::kNone;
}

}  // namespace tessera
