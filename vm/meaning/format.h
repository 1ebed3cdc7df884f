// Numbers, dates, times and intervals as text by a format: TO_CHAR in the language of PostgreSQL, STRFTIME in that of C, as DuckDB
// has it, and a conversion of PRINTF. What the opcodes of shape Format mean for a row. Names of months and days are English.
//
// Start at: Format. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tablet/values/interval.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/time_zone.h"
#include "tablet/values/types.h"

namespace tessera::vm {

/// A longer format is an error.
inline constexpr size_t kMostFormatBytes = 1 << 12;

/// Whether values of the type have formats.
inline bool IsFormatted(const SqlType& type) {
  return type.IsNumeric() || type.id == TypeId::kDate || type.IsTimestamp() || type.id == TypeId::kTime ||
         type.id == TypeId::kInterval;
}

/// How texts in a format are read.
struct FormatPattern {
  /// What a group of the regular expression matches.
  enum class Group : uint8_t {
    kYear,
    kShortYear,  ///< its last two digits
    kMonth,
    kMonthName,
    kDay,
    kHour,
    kHour12,
    kNoon,  ///< AM or PM
    kMinute,
    kSecond,
    kFraction,
  };
  std::string error;          ///< why no text can be read by it; "": none
  std::string regex;          ///< from the beginning of a text
  std::vector<Group> groups;  ///< of the first group, of the second ...

  /// The number of the group, from 0; -1: there is none.
  int Find(Group g) const {
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i] == g) return static_cast<int>(i);
    }
    return -1;
  }
};

class Format {
 public:
  enum class Language : uint8_t { kToChar, kStrftime, kPrintf };
  static constexpr char kZoneEnd = '\x1F';

  /// Of TIMESTAMP WITH TIME ZONE the name of a time zone and kZoneEnd stand before the format.
  /// REQUIRES: IsFormatted(type); kStrftime: it is no number and no interval; kPrintf: it is a number.
  Format(std::string_view text, const SqlType& type, Language language);

  /// Why the text is no format for such values; "" if it is one. REQUIRES for what follows: it is.
  const std::string& error() const { return error_; }
  /// Whether it shows how far the clocks are from UTC.
  bool HasZone() const;
  /// The digits before and after the point that numbers have; false if it has none, or is a form that none are read in.
  bool CountDigits(int* before, int* behind) const;
  /// Appends a value of the type that is not NULL.
  void Append(const Value& v, std::string* out) const;
  /// Of texts in the format, in the language that it was read in. REQUIRES: the type is a moment's.
  FormatPattern Pattern(Language language) const;

 private:
  /// What stands for a part of a moment, in either language.
  enum class Part : uint8_t {
    kYear,
    kYearWithComma,
    kIsoYear,
    kCentury,
    kEra,
    kQuarter,
    kMonth,
    kMonthName,
    kMonthShort,
    kRoman,
    kDay,
    kDayOfYear,
    kIsoDayOfYear,
    kDayName,
    kDayShort,
    kDayOfWeek,  // Sunday is 1
    kIsoDay,     // Monday is 1
    kSundayIs0,
    kWeekOfMonth,
    kWeekOfYear,  // the first begins with January 1
    kIsoWeek,
    kWeekOfSundays,
    kWeekOfMondays,
    kJulian,
    kHour24,
    kHour12,
    kNoon,
    kMinute,
    kSecond,
    kFraction,  // `digits` of the microseconds
    kNanoseconds,
    kSecondOfDay,
    kZoneName,     // TZ
    kZoneHours,    // TZH
    kZoneMinutes,  // TZM
    kOffset,       // OF
  };
  enum class Letters : uint8_t { kAsIs, kUpper, kLower };
  struct Piece {
    enum class Kind : uint8_t {
      kText,
      kPart,
      // Of numbers:
      kNine,
      kZero,
      kPoint,
      kComma,
      kMinus,
      kPlus,
      kSign,
      kOrdinal,
      kRomanNumber,
      kCurrency,
    };
    Kind kind = Kind::kText;
    std::string text;  // kText; else of the dotted and the undotted forms of AM and BC
    Part part = Part::kYear;
    Letters letters = Letters::kAsIs;
    uint8_t digits = 0;  // at least this many, by zeros before them; of kFraction this many
    uint8_t last = 0;    // the last digits of the number only, this many; 0: all
    bool padded = true;  // names have blanks after them
    char ordinal = 0;    // 't' or 'T': followed by th and its kin
  };

  /// One conversion: flags of "-0+ #,!", a width, a precision, and one of d x X o b f F e E g G. A comma parts thousands; with
  /// ! a negative number is shown in other bases with its sign, and not as its bits.
  void ReadPrintf(std::string_view text);
  void AppendPrintf(const Value& v, std::string* out) const;
  void ReadStrftime(std::string_view text);
  void ReadMoment(std::string_view text);
  /// One part, if the text begins with its word. `fill`: FM stands before it.
  bool ReadNamedPart(bool fill, std::string_view* text);
  bool ReadNumberedPart(bool fill, std::string_view* text);
  void ReadNumber(std::string_view text);
  /// A text in double quotes, or one character that stands for itself.
  void ReadText(std::string_view* text);
  void AddText(std::string_view text);
  void AddPart(Part part, int digits, bool padded, Letters letters = Letters::kAsIs);
  struct Moment;
  static int64_t NumberOf(Part part, const Moment& m);
  static std::string_view NameOf(const Piece& piece, const Moment& m, size_t* width);
  void AppendPart(const Piece& piece, int64_t micros, std::string* out) const;
  static bool IsOfInterval(Part part);
  static void AppendNoon(const Piece& piece, bool after, std::string* out);
  static void AppendDigits(const Piece& piece, int64_t number, std::string* out);
  void AppendZone(const Piece& piece, int64_t offset, std::string* out) const;
  void AppendInterval(const Interval& v, std::string* out) const;
  class NumberText;
  void AppendNumber(const Value& v, std::string* out) const;
  void AppendExponent(const Value& v, std::string* out) const;

  const SqlType type_;
  const TimeZone* zone_ = nullptr;
  std::string error_;
  std::vector<Piece> pieces_;
  struct Printf {
    bool left = false, zeros = false, plus = false, blank = false, alternative = false, comma = false, sign = false;
    int width = 0, precision = -1;
    char conversion = 0;  // 0: the format is none of PRINTF
  };
  Printf printf_;
  // Of numbers:
  int before_ = 0, behind_ = 0;       // digits before and after the point
  int shift_ = 0;                     // digits after V: the value is multiplied by this many tens
  int zero_from_ = -1, zero_to_ = 0;  // digits that a 0 asks for: from the first 0 to the last
  bool fill_ = false, exponent_ = false, brackets_ = false, roman_ = false, point_ = false;
  enum class SignPlace : uint8_t { kBefore, kBehind, kApart } sign_place_ = SignPlace::kBefore;
  bool always_sign_ = false;  // S: + and -
};

}  // namespace tessera::vm
