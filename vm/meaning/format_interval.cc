// Intervals by a format of TO_CHAR.
#include <fmt/format.h>

#include <string>

#include "vm/meaning/format.h"

namespace tessera::vm {

bool Format::IsOfInterval(Part part) {
  switch (part) {
    case Part::kYear:
    case Part::kYearWithComma:
    case Part::kCentury:
    case Part::kQuarter:
    case Part::kMonth:
    case Part::kDay:
    case Part::kDayOfYear:
    case Part::kWeekOfMonth:
    case Part::kWeekOfYear:
    case Part::kHour24:
    case Part::kHour12:
    case Part::kNoon:
    case Part::kMinute:
    case Part::kSecond:
    case Part::kFraction:
    case Part::kSecondOfDay:
      return true;
    default:
      return false;
  }
}

/// Each part with its own sign, as in PostgreSQL; hours are not cut at a day.
void Format::AppendInterval(const Interval& v, std::string* out) const {
  const int64_t year = v.months / 12, month = v.months % 12, hour = v.micros / 3'600'000'000;
  const int64_t day_of_year = v.months * 30 + v.days;
  for (const Piece& piece : pieces_) {
    if (piece.kind == Piece::Kind::kText) {
      *out += piece.text;
      continue;
    }
    int64_t number = 0;
    switch (piece.part) {
      case Part::kYear:
        number = year;
        break;
      case Part::kYearWithComma:
        *out += fmt::format("{},{:03}", year / 1000, year % 1000);
        continue;
      case Part::kCentury:
        number = year / 100;
        break;
      case Part::kQuarter:
        if (month == 0) continue;
        number = (month - 1) / 3 + 1;
        break;
      case Part::kMonth:
        number = month;
        break;
      case Part::kDay:
        number = v.days;
        break;
      case Part::kDayOfYear:
        number = day_of_year;
        break;
      case Part::kWeekOfMonth:
        number = (v.days - 1) / 7 + 1;
        break;
      case Part::kWeekOfYear:
        number = (day_of_year - 1) / 7 + 1;
        break;
      case Part::kHour24:
        number = hour;
        break;
      case Part::kHour12:
        number = hour % 12 == 0 ? 12 : hour % 12;
        break;
      case Part::kNoon:
        AppendNoon(piece, hour % 24 >= 12, out);
        continue;
      case Part::kMinute:
        number = v.micros / 60'000'000 % 60;
        break;
      case Part::kSecond:
        number = v.micros / 1'000'000 % 60;
        break;
      case Part::kFraction:
        number = v.micros % 1'000'000;
        for (int digits = piece.digits; digits < 6; ++digits) number /= 10;
        break;
      default:
        number = v.micros / 1'000'000;
    }
    AppendDigits(piece, number, out);
  }
}

}  // namespace tessera::vm
