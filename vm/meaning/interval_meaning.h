// What the opcodes of intervals mean for one row. The host half of meaning.h; shapes AddInterval, Between, IntervalTimes and
// MakeWide are of this header. Any thread.
//
// Start at: tablet/values/interval.h.
#pragma once

#include <cstdint>

#include "base/int128.h"
#include "tablet/values/interval.h"
#include "tablet/values/value_parser.h"
#include "vm/meaning/meaning.h"

namespace tessera::vm::meaning {

/// A part of an interval.
template <int64_t Interval::*kPart>
struct PartOfInterval {
  using In = int128_t;
  using Out = int64_t;
  static int64_t Apply(int128_t v, Lane&) { return UnpackInterval(v).*kPart; }
};
struct IntervalMonthsW : PartOfInterval<&Interval::months> {};
struct IntervalDaysW : PartOfInterval<&Interval::days> {};
struct IntervalMicrosW : PartOfInterval<&Interval::micros> {};

/// An interval, or an error where 128 bits do not hold it.
inline int128_t HeldInterval(bool held, const Interval& v, Lane& lane) {
  if (!held) lane.error = LaneError::kIntervalRange;
  return held ? PackInterval(v) : 0;
}

template <bool (*kJustify)(const Interval&, Interval*)>
struct JustifiedInterval {
  using In = int128_t;
  using Out = int128_t;
  static int128_t Apply(int128_t v, Lane& lane) {
    Interval r;
    const bool held = kJustify(UnpackInterval(v), &r);
    return HeldInterval(held, r, lane);
  }
};
struct JustifyHoursW : JustifiedInterval<JustifyHours> {};
struct JustifyDaysW : JustifiedInterval<JustifyDays> {};
struct JustifyIntervalW : JustifiedInterval<JustifyInterval> {};

template <int kSign>
struct IntervalSum {
  using Type = int128_t;
  static int128_t Apply(int128_t a, int128_t b, Lane& lane) {
    Interval r;
    const bool held = AddIntervals(UnpackInterval(a), UnpackInterval(b), kSign, &r);
    return HeldInterval(held, r, lane);
  }
};
struct AddIntervalW : IntervalSum<1> {};
struct SubIntervalW : IntervalSum<-1> {};

/// Whether the calendar has the local time. (There are more moments, see IsMoment: at the ends of the calendar not every
/// zone has a local time for them.)
inline bool IsLocalTime(int64_t v) { return v >= kFirstDay * kMicrosPerDay && v < (kLastDay + 1) * kMicrosPerDay; }

template <int kSign>
struct MomentSum {
  static int64_t Apply(int64_t moment, int128_t interval, Lane& lane) {
    const Interval v = UnpackInterval(interval);
    if (!IsLocalTime(moment)) lane.error = LaneError::kDateRange;
    if (v.months != 0 && lane.error == LaneError::kNone) moment = AddMonthsT::Apply(moment, kSign * v.months, lane);
    if (lane.error != LaneError::kNone) return moment;
    const int128_t sum = moment + kSign * (static_cast<int128_t>(v.days) * kMicrosPerDay + v.micros);
    if (!IsLocalTime(Low64(sum)) || Low64(sum) != sum) lane.error = LaneError::kDateRange;
    return Low64(sum);
  }
};
struct AddIntervalT : MomentSum<1> {};
struct SubIntervalT : MomentSum<-1> {};

struct BetweenT {
  static int128_t Apply(int64_t x, int64_t y, Lane& lane) {
    return IsMoment(x) && IsMoment(y) ? PackInterval(Between(x, y)) : HeldInterval(false, {}, lane);
  }
};
struct AgeT {
  static int128_t Apply(int64_t x, int64_t y, Lane& lane) {
    return IsLocalTime(x) && IsLocalTime(y) ? PackInterval(AgeBetween(x, y)) : HeldInterval(false, {}, lane);
  }
};

template <bool kDivide>
struct IntervalProduct {
  static int128_t Apply(double factor, int128_t interval, Lane& lane) {
    if (kDivide && factor == 0) {
      lane.null = true;
      return 0;
    }
    Interval r;
    const bool held = MultiplyInterval(UnpackInterval(interval), factor, kDivide, &r);
    return HeldInterval(held, r, lane);
  }
};
struct TimesIntervalF : IntervalProduct<false> {};
struct ByIntervalF : IntervalProduct<true> {};

/// The interval at that fraction of the way from one to another, as PERCENTILE_CONT has it.
inline int128_t IntervalAt(int128_t low, int128_t high, double fraction, Lane& lane) {
  if (fraction == 0) return low;
  Interval r;
  const bool held = BetweenIntervals(UnpackInterval(low), UnpackInterval(high), fraction, &r);
  return HeldInterval(held, r, lane);
}

struct MakeIntervalI {
  static int128_t Apply(int64_t months, int64_t days, int64_t micros, Lane& lane) {
    return HeldInterval(HoldsInterval(months, days, micros), {months, days, micros}, lane);
  }
};

/// Not of an interval, but of the same shape.
struct RandomUuidI {
  static int128_t Apply(int64_t place, int64_t high, int64_t low, Lane&) {
    const uint64_t h = Mix(static_cast<uint64_t>(place ^ high)), l = Mix(static_cast<uint64_t>(place ^ low));
    // Version 4 and the variant of RFC 4122 at their places; the highest bit is inverted, as in every UUID.
    return static_cast<int128_t>(uint128_t{(h & ~uint64_t{0xF000}) | 0x4000} << 64 |
                                 ((l << 2 >> 2) | uint64_t{1} << 63)) ^
           static_cast<int128_t>(uint128_t{1} << 127);
  }

 private:
  /// As RandomF.
  static uint64_t Mix(uint64_t bits) {
    bits += 0x9E3779B97F4A7C15;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
    return bits ^ bits >> 31;
  }
};

}  // namespace tessera::vm::meaning
