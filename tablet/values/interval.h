// INTERVAL: months, days and microseconds, and the 128 bits that hold them.
//
// A month counts as 30 days and a day as 24 hours where intervals are compared, as in PostgreSQL. In the 128 bits that
// length in microseconds comes first, so that numbers are in the order of intervals; months and days follow, so that
// '1 month' and '30 days' are two numbers of one length:
//
//   length * 2^48 + (months + 2^21) * 2^26 + (days + 2^25)
//
// Start at: Interval, PackInterval. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/int128.h"
#include "base/status.h"

namespace tessera {

struct Interval {
  int64_t months = 0, days = 0, micros = 0;
};

inline constexpr int64_t kMostMonths = (int64_t{1} << 21) - 1;
inline constexpr int64_t kMostDays = (int64_t{1} << 25) - 1;
inline constexpr int64_t kMostMicros = (int64_t{1} << 62) - 1;  // (two of them do not overflow)
inline constexpr int kLengthShift = 48;  ///< the length is the number divided by 2 to this, toward minus infinity
/// Beyond any interval.
inline constexpr int128_t kIntervalBound = int128_t{1} << 114;

/// Whether 128 bits hold it: months of some 174,000 years, days of 91,000, microseconds of 146,000. (Days and
/// microseconds together fit 64 bits.)
inline bool HoldsInterval(int128_t months, int128_t days, int128_t micros) {
  return months >= -kMostMonths && months <= kMostMonths && days >= -kMostDays && days <= kMostDays &&
         micros >= -kMostMicros && micros <= kMostMicros;
}

/// Microseconds, with 30 days a month.
inline int128_t LengthOf(const Interval& v) {
  constexpr int64_t kDay = 86'400'000'000;
  return static_cast<int128_t>(v.months) * 30 * kDay + static_cast<int128_t>(v.days) * kDay + v.micros;
}

/// REQUIRES: HoldsInterval.
inline int128_t PackInterval(const Interval& v) {
  return LengthOf(v) * (int128_t{1} << kLengthShift) + ((v.months + kMostMonths + 1) << 26) + (v.days + kMostDays + 1);
}

/// The length of what PackInterval gave: the same of intervals that are equal.
inline int128_t LengthOfPacked(int128_t v) { return v >> kLengthShift; }

/// The other way round. Of a number that is no interval, some interval.
Interval UnpackInterval(int128_t v);

/// As PostgreSQL writes it: "1 year 2 mons 3 days 04:05:06.5".
void AppendInterval(const Interval& v, std::string* out);

/// Reads numbers with units and clock times: "1 year 2 mons -3 days 04:05:06.5", "90 minutes ago". `unit`: of a number
/// without one; "": second. Errors: kSql.
Result<Interval> ParseInterval(std::string_view text, std::string_view unit = {});

// ---- Arithmetic, as PostgreSQL's. false: 128 bits do not hold the result

bool AddIntervals(const Interval& a, const Interval& b, int sign, Interval* out);
/// Parts that are not whole go on to the next: half a month is 15 days, half a day 12 hours. `divide`: by the factor.
bool MultiplyInterval(const Interval& a, double factor, bool divide, Interval* out);
/// a + fraction * (b - a).
bool BetweenIntervals(const Interval& a, const Interval& b, double fraction, Interval* out);
/// x - y in days and microseconds. Both are timestamps.
Interval Between(int64_t x, int64_t y);
/// x - y in years, months, days and microseconds, as one would count them by the calendar.
Interval AgeBetween(int64_t x, int64_t y);
/// 24 hours become a day; 30 days a month; both, with one sign for all.
bool JustifyHours(const Interval& v, Interval* out);
bool JustifyDays(const Interval& v, Interval* out);
bool JustifyInterval(const Interval& v, Interval* out);

}  // namespace tessera
