// What each opcode means for one row, written once and compiled by g++ and nvcc: the two interpreters are loops around
// these functions. One struct per opcode, named after it, with a static Apply; its shape (opcodes.def) fixes the
// signature:
//
//   MaskRegister  void Apply(M& mask, M& saved)               M: any unsigned integer type, one bit or byte a row
//   Test          bool Apply(int64_t a, bool null)
//   TestNull      bool Apply(bool null)
//   Compare       bool Apply(T a, T b)                        T = Type: int64_t, double or int128_t; neither is NULL
//   Binary        T Apply(T a, T b, Lane&)
//   Ternary       T Apply(T a, T b, T c, Lane&)               T = Type: int64_t or double
//   Unary         Out Apply(In a, Lane&)
//   UnaryField    T Apply(T a, int field, Lane&)
//   BinaryField   T Apply(T a, T b, int field, Lane&)         of math_meaning.h
//   Check         T Apply(T a, T low, T high, Lane&)
//   Fold          State Identity(); void Apply(State&, T, Lane&); void Merge(State&, State, Lane&); kGroupState
//
// The State of a Fold is int64_t, double, int128_t, or a struct of up to kMostStateWords words of 64 bits, each with a
// column (kColumns), the third and what follows 0 at first. Interpreters, group tables, spilled groups and ranks get at it through WithFold.
//
// Apply also runs on rows that are masked off or NULL, with any bits in them: it must not trap or be undefined. It
// reports through Lane, which the loop looks at for live rows that are not NULL only. No fast-math, no fused
// multiply-add: host and GPU agree bit for bit.
//
// Structs without a meaning of their own (control, loads, joins, rows) are the last group: their work is their shape.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "base/int128.h"
#include "tablet/values/ordered_float.h"
#include "vm/meaning/float_moments.h"
#include "vm/meaning/float_sum.h"
#include "vm/meaning/group_state.h"
#include "vm/program/opcode.h"

namespace tessera::vm {

/// Why a row failed. The order is the order of severity: nothing; the rest is an SQL error.
enum class LaneError : uint8_t {
  kNone,
  kOverflow,        ///< the result does not fit 64 bits
  kWideOverflow,    ///< the result does not fit 38 digits
  kRange,           ///< CheckI, CheckW: out of the range of the type in P4
  kDateRange,       ///< a date or timestamp outside years 1 to 9999
  kFloatToInteger,  ///< not a number, or too large
  kBadText,         ///< text that does not read as the type
  kNegativeLength,  ///< SUBSTRING with a negative length
  kSeveralRows,     ///< RefuseMatch: a second row of a scalar subquery
  kRootOfNegative,  ///< MathF from here on, and MathPairF
  kLogarithmOfZero,
  kLogarithmOfNegative,
  kLogarithmToBaseOne,
  kOutOfDomain,     ///< asin(2), sin(infinity)
  kZeroToNegative,  ///< power(0, -1)
  kComplexPower,    ///< power(-8, 0.5)
  kFloatOverflow,   ///< an infinite result of finite operands
  kTextTooLong,     ///< a text of 2^30 bytes or more
  kFieldZero,       ///< SPLIT_PART for field 0
  kNoCharacter,     ///< CHR of a number that is no character's
  kNoDate,          ///< MAKE_DATE of numbers that are no date's
  kNegativeShift,   ///< << or >> by a negative number of bits
  kIntervalRange,   ///< an interval that 128 bits do not hold
  kRealOverflow,    ///< a REAL that is infinite, made of what is not
  kNoBytes,         ///< a text that is not one of bytes
};

/// What Apply may say besides its result.
struct Lane {
  bool null = false;  ///< the result is NULL
  LaneError error = LaneError::kNone;
};

/// Which part of a date or timestamp EXTRACT gives. The order is that of DateField in compiler/query/functions.def.
enum class DatePart : uint8_t {
  kYear,
  kQuarter,
  kMonth,
  kDay,
  kDow,
  kIsoDow,
  kDoy,
  kWeek,
  kHour,
  kMinute,
  kSecond,
  kEpoch
};

inline constexpr int64_t kMicrosPerDay = 86'400'000'000;
inline constexpr int64_t kInt64Max = 0x7FFFFFFFFFFFFFFF;
inline constexpr int64_t kInt64Min = -kInt64Max - 1;

// ---- Arithmetic without undefined behaviour -------------------------------------------------------------------------

TESSERA_HD int64_t WrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
TESSERA_HD int64_t WrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
TESSERA_HD int64_t WrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
TESSERA_HD int128_t WrapAdd(int128_t a, int128_t b) {
  return static_cast<int128_t>(static_cast<uint128_t>(a) + static_cast<uint128_t>(b));
}
TESSERA_HD int128_t WrapSub(int128_t a, int128_t b) {
  return static_cast<int128_t>(static_cast<uint128_t>(a) - static_cast<uint128_t>(b));
}
TESSERA_HD int128_t WrapMul(int128_t a, int128_t b) {
  return static_cast<int128_t>(static_cast<uint128_t>(a) * static_cast<uint128_t>(b));
}

/// Signed overflow of r = a + b, a - b: the operands' signs against the result's.
template <class T>
TESSERA_HD bool AddOverflows(T a, T b, T r) {
  return ((a ^ r) & (b ^ r)) < 0;
}
template <class T>
TESSERA_HD bool SubOverflows(T a, T b, T r) {
  return ((a ^ b) & (a ^ r)) < 0;
}
TESSERA_HD bool MulOverflows(int64_t a, int64_t b) {
  int128_t wide = static_cast<int128_t>(a) * b;
  return wide != static_cast<int64_t>(wide);
}
TESSERA_HD bool MulOverflows(int128_t a, int128_t b) {
  uint128_t x = a < 0 ? uint128_t{0} - static_cast<uint128_t>(a) : static_cast<uint128_t>(a);
  uint128_t y = b < 0 ? uint128_t{0} - static_cast<uint128_t>(b) : static_cast<uint128_t>(b);
  if (x == 0 || y == 0) return false;
  // Products of magnitudes below 2^64 fit 128 unsigned bits; otherwise divide.
  constexpr uint128_t kHalf = uint128_t{1} << 127;
  if (((x | y) >> 64) == 0) {
    uint128_t p = x * y;
    return p > ((a < 0) != (b < 0) ? kHalf : kHalf - 1);
  }
  return x > ((a < 0) != (b < 0) ? kHalf : kHalf - 1) / y;
}

template <class T>
struct LeastOf;
template <>
struct LeastOf<int64_t> {
  static constexpr int64_t kValue = kInt64Min;
};
template <>
struct LeastOf<int128_t> {
  static constexpr int128_t kValue = kInt128Min;
};

/// Division and remainder that truncate: false if b is 0 or the quotient overflows.
template <class T>
TESSERA_HD bool Divisible(T a, T b, Lane& lane) {
  if (b == 0) {
    lane.null = true;
    return false;
  }
  if (b == -1 && a == LeastOf<T>::kValue) {
    lane.error = sizeof(T) == 8 ? LaneError::kOverflow : LaneError::kWideOverflow;
    return false;
  }
  return true;
}
template <class T>
TESSERA_HD T DivideTruncating(T a, T b, Lane& lane) {
  return Divisible(a, b, lane) ? a / b : T{0};
}
template <class T>
TESSERA_HD T Remainder(T a, T b, Lane& lane) {
  if (b == 0) {
    lane.null = true;
    return 0;
  }
  return b == -1 ? T{0} : a % b;
}
template <class T>
TESSERA_HD T DivideRounding(T a, T b, Lane& lane) {
  if (!Divisible(a, b, lane)) return 0;
  T q = a / b, r = a % b;
  if (r == 0) return q;
  // 2 |r| >= |b| without overflow: |r| >= |b| - |r|.
  T r_abs = r < 0 ? -r : r;
  T rest = b < 0 ? -(b + r_abs) : b - r_abs;
  if (r_abs >= rest) q += (a < 0) == (b < 0) ? 1 : -1;
  return q;
}
template <class T>
TESSERA_HD T DivideFlooring(T a, T b, Lane& lane) {
  if (!Divisible(a, b, lane)) return 0;
  T q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// ---- Dates ----------------------------------------------------------------------------------------------------------

inline constexpr int64_t kFirstDay = -719162;  ///< 0001-01-01
inline constexpr int64_t kLastDay = 2932896;   ///< 9999-12-31

/// Floor division by a positive constant.
TESSERA_HD int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
TESSERA_HD int64_t FloorMod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r < 0 ? r + b : r;
}

struct Civil {
  int64_t year;
  int32_t month, day;
};

/// Days since 1970-01-01 of a Gregorian date. The year is counted from March, so that the leap day is its last.
TESSERA_HD int64_t DaysOf(int64_t year, int32_t month, int32_t day) {
  int64_t y = month <= 2 ? year - 1 : year;
  int64_t m = month <= 2 ? month + 9 : month - 3;  // months since March
  int64_t before_month = (153 * m + 2) / 5;        // days of the months before: 31 30 31 30 31 31 30 ...
  return 365 * y + FloorDiv(y, 4) - FloorDiv(y, 100) + FloorDiv(y, 400) + before_month + day - 1 - 719468;
}
TESSERA_HD Civil CivilOf(int64_t days) {
  int64_t z = days + 719468;            // days since 0000-03-01
  int64_t cycle = FloorDiv(z, 146097);  // of 400 years
  int64_t d = z - cycle * 146097;
  int64_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;  // leap days taken out
  int64_t in_year = d - (365 * y + y / 4 - y / 100);
  int64_t m = (5 * in_year + 2) / 153;
  int32_t day = static_cast<int32_t>(in_year - (153 * m + 2) / 5 + 1);
  int32_t month = static_cast<int32_t>(m < 10 ? m + 3 : m - 9);
  return {cycle * 400 + y + (month <= 2 ? 1 : 0), month, day};
}
TESSERA_HD int32_t MonthLength(int64_t year, int32_t month) {
  if (month == 2) return (FloorMod(year, 4) == 0 && FloorMod(year, 100) != 0) || FloorMod(year, 400) == 0 ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}
TESSERA_HD int64_t IsoWeek(int64_t days) {
  int64_t thursday = days - FloorMod(days + 3, 7) + 3;  // of the same ISO week; day 0 was a Thursday
  Civil c = CivilOf(thursday);
  return (thursday - DaysOf(c.year, 1, 1)) / 7 + 1;
}
TESSERA_HD int64_t PartOfDate(int64_t days, int field) {
  // No date lies there, but a masked-off row may hold any bits.
  if ((days < -1'000'000'000 || days > 1'000'000'000) && static_cast<DatePart>(field) != DatePart::kEpoch) return 0;
  switch (static_cast<DatePart>(field)) {
    case DatePart::kYear:
      return CivilOf(days).year;
    case DatePart::kQuarter:
      return (CivilOf(days).month + 2) / 3;
    case DatePart::kMonth:
      return CivilOf(days).month;
    case DatePart::kDay:
      return CivilOf(days).day;
    case DatePart::kDow:
      return FloorMod(days + 4, 7);  // Sunday is 0
    case DatePart::kIsoDow:
      return FloorMod(days + 3, 7) + 1;  // Monday is 1
    case DatePart::kDoy:
      return days - DaysOf(CivilOf(days).year, 1, 1) + 1;
    case DatePart::kWeek:
      return IsoWeek(days);
    case DatePart::kEpoch:
      return WrapMul(days, 86400);
    default:
      return 0;  // hour, minute, second of midnight
  }
}
TESSERA_HD int64_t AddMonths(int64_t days, int64_t months, Lane& lane) {
  if (days < kFirstDay || days > kLastDay || months < -120000 || months > 120000) {
    lane.error = LaneError::kDateRange;
    return 0;
  }
  Civil c = CivilOf(days);
  int64_t month = c.year * 12 + (c.month - 1) + months;
  int64_t year = FloorDiv(month, 12);
  int32_t m = static_cast<int32_t>(FloorMod(month, 12)) + 1;
  int32_t length = MonthLength(year, m);
  int64_t r = DaysOf(year, m, c.day < length ? c.day : length);
  if (r < kFirstDay || r > kLastDay) lane.error = LaneError::kDateRange;
  return r;
}

// ---- States of aggregates -------------------------------------------------------------------------------------------

/// The words of 64 bits of a State, the lowest first: how it lies in memory, in rows of groups and between ranks.
template <class State>
inline constexpr int kStateWords = static_cast<int>(sizeof(State) / 8);
inline constexpr int kMostStateWords = 16;
template <class State>
TESSERA_HD void ToWords(const State& state, uint64_t* words) {
  static_assert(sizeof(State) % 8 == 0 && kStateWords<State> <= kMostStateWords);
  memcpy(words, &state, sizeof state);
}
template <class State>
TESSERA_HD State FromWords(const uint64_t* words) {
  State state;
  memcpy(&state, words, sizeof state);
  return state;
}

/// The classes of the columns that a State is in rows of groups.
template <class State>
struct StateColumns {
  static constexpr auto& kClasses = State::kColumns;
};
template <>
struct StateColumns<int64_t> {
  static constexpr AccumulatorSpec kClasses[] = {AccumulatorSpec::I};
};
template <>
struct StateColumns<double> {
  static constexpr AccumulatorSpec kClasses[] = {AccumulatorSpec::F};
};
template <>
struct StateColumns<int128_t> {
  static constexpr AccumulatorSpec kClasses[] = {AccumulatorSpec::W};
};

// ---- Order of floats ------------------------------------------------------------------------------------------------

TESSERA_HD bool FloatEqual(double a, double b) { return a == b || (a != a && b != b); }
TESSERA_HD bool FloatLess(double a, double b) { return a < b || (b != b && a == a); }

namespace meaning {

#define OPCODE(Name, ...) struct Name;
#include "vm/program/opcodes.def"
#undef OPCODE

// ---- Masks
struct MaskSave {
  template <class M>
  static TESSERA_HD void Apply(M& mask, M& saved) {
    saved = mask;
  }
};
struct MaskLoad {
  template <class M>
  static TESSERA_HD void Apply(M& mask, M& saved) {
    mask = saved;
  }
};
struct MaskClear {
  template <class M>
  static TESSERA_HD void Apply(M&, M& saved) {
    saved = 0;
  }
};
struct MaskOr {
  template <class M>
  static TESSERA_HD void Apply(M& mask, M& saved) {
    saved = static_cast<M>(saved | mask);
  }
};
struct MaskAndNot {
  template <class M>
  static TESSERA_HD void Apply(M& mask, M& saved) {
    mask = static_cast<M>(mask & ~saved);
  }
};

// ---- Tests of the accumulator
struct FilterTrue {
  static TESSERA_HD bool Apply(int64_t a, bool null) { return a != 0 && !null; }
};
struct FilterFalse {
  static TESSERA_HD bool Apply(int64_t a, bool null) { return a == 0 && !null; }
};
struct FilterNull {
  static constexpr bool kWide = false;
  static TESSERA_HD bool Apply(bool null) { return null; }
};
struct FilterNotNull {
  static constexpr bool kWide = false;
  static TESSERA_HD bool Apply(bool null) { return !null; }
};
struct FilterNullW {
  static constexpr bool kWide = true;
  static TESSERA_HD bool Apply(bool null) { return null; }
};
struct FilterNotNullW {
  static constexpr bool kWide = true;
  static TESSERA_HD bool Apply(bool null) { return !null; }
};

// ---- Comparisons
#define TESSERA_COMPARE(Name, T, Expression)                      \
  struct Name {                                                   \
    using Type = T;                                               \
    static TESSERA_HD bool Apply(T a, T b) { return Expression; } \
  };
TESSERA_COMPARE(FilterEqI, int64_t, a == b)
TESSERA_COMPARE(FilterNeI, int64_t, a != b)
TESSERA_COMPARE(FilterLtI, int64_t, a < b)
TESSERA_COMPARE(FilterLeI, int64_t, a <= b)
TESSERA_COMPARE(FilterGtI, int64_t, a > b)
TESSERA_COMPARE(FilterGeI, int64_t, a >= b)
TESSERA_COMPARE(FilterEqF, double, FloatEqual(a, b))
TESSERA_COMPARE(FilterNeF, double, !FloatEqual(a, b))
TESSERA_COMPARE(FilterLtF, double, FloatLess(a, b))
TESSERA_COMPARE(FilterLeF, double, !FloatLess(b, a))
TESSERA_COMPARE(FilterGtF, double, FloatLess(b, a))
TESSERA_COMPARE(FilterGeF, double, !FloatLess(a, b))
TESSERA_COMPARE(FilterEqW, int128_t, a == b)
TESSERA_COMPARE(FilterNeW, int128_t, a != b)
TESSERA_COMPARE(FilterLtW, int128_t, a < b)
TESSERA_COMPARE(FilterLeW, int128_t, a <= b)
TESSERA_COMPARE(FilterGtW, int128_t, a > b)
TESSERA_COMPARE(FilterGeW, int128_t, a >= b)
TESSERA_COMPARE(FilterEqT, int64_t, a == b)
TESSERA_COMPARE(FilterNeT, int64_t, a != b)
#undef TESSERA_COMPARE

// ---- Two operands
#define TESSERA_BINARY(Name, T, ...)                                             \
  struct Name {                                                                  \
    using Type = T;                                                              \
    static TESSERA_HD T Apply(T a, T b, [[maybe_unused]] Lane& lane) __VA_ARGS__ \
  };
TESSERA_BINARY(AddI, int64_t, { return WrapAdd(a, b); })
TESSERA_BINARY(SubI, int64_t, { return WrapSub(a, b); })
TESSERA_BINARY(RSubI, int64_t, { return WrapSub(b, a); })
TESSERA_BINARY(MulI, int64_t, { return WrapMul(a, b); })
TESSERA_BINARY(AddIX, int64_t, {
  int64_t r = WrapAdd(a, b);
  if (AddOverflows(a, b, r)) lane.error = LaneError::kOverflow;
  return r;
})
TESSERA_BINARY(SubIX, int64_t, {
  int64_t r = WrapSub(a, b);
  if (SubOverflows(a, b, r)) lane.error = LaneError::kOverflow;
  return r;
})
TESSERA_BINARY(RSubIX, int64_t, { return SubIX::Apply(b, a, lane); })
TESSERA_BINARY(MulIX, int64_t, {
  if (MulOverflows(a, b)) lane.error = LaneError::kOverflow;
  return WrapMul(a, b);
})
TESSERA_BINARY(DivI, int64_t, { return DivideTruncating(a, b, lane); })
TESSERA_BINARY(ModI, int64_t, { return Remainder(a, b, lane); })
TESSERA_BINARY(DivRoundI, int64_t, { return DivideRounding(a, b, lane); })
TESSERA_BINARY(FloorDivI, int64_t, { return DivideFlooring(a, b, lane); })
TESSERA_BINARY(GcdI, int64_t, {
  // Euclid's algorithm on magnitudes: at most 91 steps, because the numbers shrink no slower than Fibonacci's.
  uint64_t x = a < 0 ? uint64_t{0} - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  uint64_t y = b < 0 ? uint64_t{0} - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  if (x > static_cast<uint64_t>(kInt64Max)) lane.error = LaneError::kOverflow;
  return static_cast<int64_t>(x);
})
TESSERA_BINARY(AndI, int64_t, { return a & b; })
TESSERA_BINARY(OrI, int64_t, { return a | b; })
TESSERA_BINARY(XorI, int64_t, { return a ^ b; })
TESSERA_BINARY(ShiftLeftI, int64_t, {
  if (b < 0) lane.error = LaneError::kNegativeShift;
  if (b < 0 || a == 0) return 0;
  const int64_t shifted = b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  if (b > 63 || shifted >> b != a) lane.error = LaneError::kOverflow;
  return shifted;
})
TESSERA_BINARY(ShiftRightI, int64_t, {
  if (b < 0) lane.error = LaneError::kNegativeShift;
  return b < 0 ? 0 : a >> (b > 63 ? 63 : b);
})
TESSERA_BINARY(AddMonthsD, int64_t, { return AddMonths(a, b, lane); })
TESSERA_BINARY(AddMonthsT, int64_t, {
  int64_t day = FloorDiv(a, kMicrosPerDay);
  return WrapAdd(WrapMul(AddMonths(day, b, lane), kMicrosPerDay), FloorMod(a, kMicrosPerDay));
})
TESSERA_BINARY(AddF, double, { return a + b; })
TESSERA_BINARY(SubF, double, { return a - b; })
TESSERA_BINARY(RSubF, double, { return b - a; })
TESSERA_BINARY(MulF, double, { return a * b; })
TESSERA_BINARY(DivF, double, {
  lane.null = b == 0;
  return a / (b == 0 ? 1.0 : b);
})
TESSERA_BINARY(ModF, double, {
  lane.null = b == 0;
  return b == 0 ? 0.0 : fmod(a, b);
})
TESSERA_BINARY(AddW, int128_t, {
  int128_t r = WrapAdd(a, b);
  if (AddOverflows(a, b, r)) lane.error = LaneError::kWideOverflow;
  return r;
})
TESSERA_BINARY(SubW, int128_t, {
  int128_t r = WrapSub(a, b);
  if (SubOverflows(a, b, r)) lane.error = LaneError::kWideOverflow;
  return r;
})
TESSERA_BINARY(RSubW, int128_t, { return SubW::Apply(b, a, lane); })
TESSERA_BINARY(MulW, int128_t, {
  if (MulOverflows(a, b)) lane.error = LaneError::kWideOverflow;
  return WrapMul(a, b);
})
TESSERA_BINARY(DivW, int128_t, { return DivideTruncating(a, b, lane); })
TESSERA_BINARY(ModW, int128_t, { return Remainder(a, b, lane); })
TESSERA_BINARY(DivRoundW, int128_t, { return DivideRounding(a, b, lane); })
TESSERA_BINARY(FloorDivW, int128_t, { return DivideFlooring(a, b, lane); })
#undef TESSERA_BINARY

// ---- Three operands
#define TESSERA_TERNARY(Name, T, ...)                                                 \
  struct Name {                                                                       \
    using Type = T;                                                                   \
    static TESSERA_HD T Apply(T a, T b, T c, [[maybe_unused]] Lane& lane) __VA_ARGS__ \
  };
TESSERA_TERNARY(ClampI, int64_t, {
  const int64_t least = a < b ? b : a;
  return c < least ? c : least;
})
TESSERA_TERNARY(ClampF, double, {
  const double least = FloatLess(a, b) ? b : a;
  return FloatLess(c, least) ? c : least;
})
TESSERA_TERNARY(MakeDateI, int64_t, {
  const bool fits = a >= 1 && a <= 9999 && b >= 1 && b <= 12 && c >= 1 && c <= MonthLength(a, static_cast<int32_t>(b));
  if (!fits) lane.error = LaneError::kNoDate;
  return fits ? DaysOf(a, static_cast<int32_t>(b), static_cast<int32_t>(c)) : 0;
})
#undef TESSERA_TERNARY

// ---- One operand
#define TESSERA_UNARY(Name, I, O, ...)                                      \
  struct Name {                                                             \
    using In = I;                                                           \
    using Out = O;                                                          \
    static TESSERA_HD O Apply(I a, [[maybe_unused]] Lane& lane) __VA_ARGS__ \
  };
TESSERA_UNARY(AbsI, int64_t, int64_t, {
  if (a == kInt64Min) lane.error = LaneError::kOverflow;
  return a < 0 ? WrapSub(int64_t{0}, a) : a;
})
TESSERA_UNARY(NegF, double, double, { return -a; })
TESSERA_UNARY(AbsF, double, double, { return fabs(a); })
TESSERA_UNARY(RoundF, double, double, { return rint(a); })
TESSERA_UNARY(FloorF, double, double, { return floor(a); })
TESSERA_UNARY(CeilF, double, double, { return ceil(a); })
TESSERA_UNARY(SqrtF, double, double, { return sqrt(a); })
TESSERA_UNARY(SingleF, double, double, {
  const auto single = static_cast<double>(static_cast<float>(a));
  if (single - single != 0 && a - a == 0) lane.error = LaneError::kRealOverflow;
  return single;
})
TESSERA_UNARY(CanonF, double, double, { return a != a ? FromOrderedFloat(kOrderedNaN) : a + 0.0; })
TESSERA_UNARY(AbsW, int128_t, int128_t, {
  if (a == kInt128Min) lane.error = LaneError::kWideOverflow;
  return a < 0 ? WrapSub(int128_t{0}, a) : a;
})
TESSERA_UNARY(IToF, int64_t, double, { return static_cast<double>(a); })
TESSERA_UNARY(RandomF, int64_t, double, {
  // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014), the mixing function of SplitMix64.
  uint64_t bits = static_cast<uint64_t>(a) + 0x9E3779B97F4A7C15;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
  return static_cast<double>((bits ^ bits >> 31) >> 11) * 0x1p-53;
})
TESSERA_UNARY(FToI, double, int64_t, {
  double r = rint(a);
  bool fits = r >= -9223372036854775808.0 && r < 9223372036854775808.0;
  if (!fits) lane.error = LaneError::kFloatToInteger;
  return fits ? static_cast<int64_t>(r) : 0;
})
TESSERA_UNARY(IToW, int64_t, int128_t, { return a; })
TESSERA_UNARY(WToI, int128_t, int64_t, {
  int64_t r = Low64(a);
  if (r != a) lane.error = LaneError::kOverflow;
  return r;
})
TESSERA_UNARY(WToF, int128_t, double, {
  // Two exact halves and one rounding in the last addition, if the magnitude's high half stays below 2^53.
  bool negative = a < 0;
  uint128_t m = negative ? uint128_t{0} - static_cast<uint128_t>(a) : static_cast<uint128_t>(a);
  uint64_t high = static_cast<uint64_t>(m >> 64), low = static_cast<uint64_t>(m);
  double r;
  if (high == 0) {
    r = static_cast<double>(low);
  } else {
    // Keep 64 significant bits, the lowest of them sticky, so that one conversion rounds correctly.
    int shift = 0;
    while (shift < 64 && (high >> shift) != 0) ++shift;
    uint64_t top = static_cast<uint64_t>(m >> shift);
    if ((m & ((uint128_t{1} << shift) - 1)) != 0) top |= 1;
    r = ldexp(static_cast<double>(top), shift);
  }
  return negative ? -r : r;
})
TESSERA_UNARY(FToW, double, int128_t, {
  double r = round(a);
  bool fits = r > -1e38 && r < 1e38;
  if (!fits) lane.error = LaneError::kFloatToInteger;
  double m = fits ? fabs(r) : 0.0;
  // Split so that no conversion from double to 128 bits is needed: 2^64 divides the high part exactly.
  double high = floor(m / 18446744073709551616.0);
  double low = m - high * 18446744073709551616.0;
  int128_t w =
      static_cast<int128_t>((static_cast<uint128_t>(static_cast<uint64_t>(high)) << 64) | static_cast<uint64_t>(low));
  return r < 0 ? -w : w;
})
#undef TESSERA_UNARY

struct DatePartD {
  using Type = int64_t;
  static TESSERA_HD int64_t Apply(int64_t a, int field, Lane&) { return PartOfDate(a, field); }
};
struct DatePartT {
  using Type = int64_t;
  static TESSERA_HD int64_t Apply(int64_t a, int field, Lane&) {
    int64_t in_day = FloorMod(a, kMicrosPerDay);
    switch (static_cast<DatePart>(field)) {
      case DatePart::kHour:
        return in_day / 3'600'000'000;
      case DatePart::kMinute:
        return in_day / 60'000'000 % 60;
      case DatePart::kSecond:
        return in_day / 1'000'000 % 60;
      case DatePart::kEpoch:
        return FloorDiv(a, 1'000'000);
      default:
        return PartOfDate(FloorDiv(a, kMicrosPerDay), field);
    }
  }
};
struct RoundDigitsF {
  using Type = double;
  static TESSERA_HD double Apply(double a, int digits, Lane&) {
    double scale = 1;
    for (int i = 0; i < (digits < 0 ? -digits : digits) && i < 308; ++i) scale *= 10;
    double scaled = digits < 0 ? a / scale : a * scale;
    // Beyond 2^52 a double is an integer already; an infinite product means the same.
    if (!(fabs(scaled) < 4503599627370496.0)) return digits < 0 && scaled == scaled ? scaled * scale : a;
    double r = round(scaled);
    return digits < 0 ? r * scale : r / scale;
  }
};
struct CheckI {
  using Type = int64_t;
  static TESSERA_HD int64_t Apply(int64_t a, int64_t low, int64_t high, Lane& lane) {
    if (a < low || a > high) lane.error = LaneError::kRange;
    return a;
  }
};
struct CheckW {
  using Type = int128_t;
  static TESSERA_HD int128_t Apply(int128_t a, int128_t low, int128_t high, Lane& lane) {
    if (a < low || a > high) lane.error = LaneError::kRange;
    return a;
  }
};

// ---- Aggregates: a State per group, and whether any value came in is counted beside it. Merge joins partial states.
struct SumI {
  using Type = int64_t;
  using State = int128_t;  // 2^63 rows of 2^63 fit
  static constexpr GroupState kGroupState = GroupState::kHalves;
  static TESSERA_HD State Identity() { return 0; }
  static TESSERA_HD void Apply(State& s, int64_t v, Lane&) { s = WrapAdd(s, static_cast<int128_t>(v)); }
  static TESSERA_HD void Merge(State& s, State o, Lane&) { s = WrapAdd(s, o); }
};
struct SumF {
  using Type = double;
  using State = FloatSum;
  static constexpr GroupState kGroupState = GroupState::kFloatWindow;
  /// How many FloatSums a State has, and what a value adds to the k-th.
  static constexpr uint32_t kSums = 1;
  static TESSERA_HD double Part(double v, uint32_t) { return v; }
  static TESSERA_HD State Identity() { return FloatSum::Zero(); }
  static TESSERA_HD void Apply(State& s, double v, Lane&) { s.Add(v); }
  static TESSERA_HD void Merge(State& s, const State& o, Lane&) { s.Merge(o); }
};
struct TotalF {
  using State = FloatSum;
  static TESSERA_HD double Apply(const State& s) { return s.Value(); }
};
struct ProductF {
  using Type = double;
  using State = double;
  static constexpr GroupState kGroupState = GroupState::kLocked;
  static TESSERA_HD State Identity() { return 1; }
  static TESSERA_HD void Apply(State& s, double v, Lane&) { s *= v; }
  static TESSERA_HD void Merge(State& s, State o, Lane&) { s *= o; }
};
#define TESSERA_BITS(Name, First, Of)                                        \
  struct Name {                                                              \
    using Type = int64_t;                                                    \
    using State = int64_t;                                                   \
    static constexpr GroupState kGroupState = GroupState::kLocked;           \
    static TESSERA_HD State Identity() { return First; }                     \
    static TESSERA_HD void Apply(State& s, int64_t v, Lane&) { s = s Of v; } \
    static TESSERA_HD void Merge(State& s, State o, Lane&) { s = s Of o; }   \
  };
TESSERA_BITS(BitAndI, -1, &)
TESSERA_BITS(BitOrI, 0, |)
TESSERA_BITS(BitXorI, 0, ^)
#undef TESSERA_BITS
struct SumW {
  using Type = int128_t;
  using State = int128_t;
  static constexpr GroupState kGroupState = GroupState::kParts;
  static TESSERA_HD State Identity() { return 0; }
  static TESSERA_HD void Apply(State& s, int128_t v, Lane& lane) { s = AddW::Apply(s, v, lane); }
  static TESSERA_HD void Merge(State& s, State o, Lane& lane) { s = AddW::Apply(s, o, lane); }
};
#define TESSERA_EXTREME(Name, T, Kept, First, Better)                                \
  struct Name {                                                                      \
    using Type = T;                                                                  \
    using State = T;                                                                 \
    static constexpr GroupState kGroupState = GroupState::Kept;                      \
    static TESSERA_HD State Identity() { return First; }                             \
    static TESSERA_HD void Apply(State& s, T v, Lane&) { s = (Better) ? v : s; }     \
    static TESSERA_HD void Merge(State& s, State v, Lane&) { s = (Better) ? v : s; } \
  };
TESSERA_EXTREME(MinI, int64_t, kLeast, kInt64Max, v < s)
TESSERA_EXTREME(MaxI, int64_t, kGreatest, kInt64Min, v > s)
TESSERA_EXTREME(MinF, double, kLeastFloat, FromOrderedFloat(kOrderedNaN), FloatLess(v, s))
TESSERA_EXTREME(MaxF, double, kGreatestFloat, FromOrderedFloat(0x000FFFFFFFFFFFFFu) /* -infinity */, FloatLess(s, v))
TESSERA_EXTREME(MinW, int128_t, kLocked, kInt128Max, v < s)
TESSERA_EXTREME(MaxW, int128_t, kLocked, kInt128Min, v > s)
#undef TESSERA_EXTREME

struct MomentsF {
  using Type = double;
  using State = FloatMoments;
  static constexpr GroupState kGroupState = GroupState::kMomentWindows;
  static constexpr uint32_t kSums = FloatMoments::kSums;
  static TESSERA_HD double Part(double v, uint32_t k) { return FloatMoments::Part(v, k); }
  static TESSERA_HD State Identity() { return FloatMoments::Zero(); }
  static TESSERA_HD void Apply(State& s, double v, Lane&) { s.Add(v); }
  static TESSERA_HD void Merge(State& s, const State& o, Lane&) { s.Merge(o); }
};
struct DeviationsF {
  using State = FloatMoments;
  static double Apply(const State& s) { return s.Deviations(); }
};

// ---- The shape is the meaning
struct End {};
struct SkipIfNone {};
struct Next {};
struct Filter {};
struct Load {};
struct LoadW {};
struct Store {};
struct StoreW {};
struct Probe {};
struct ProbeOuter {};
struct NextOuter {};
struct FilterMatched {};
struct RefuseMatch {};
struct PlaceI {};
struct Build {};
struct Group {};
struct CountRows {
  static constexpr GroupState kGroupState = GroupState::kCount;
};
struct Count {
  static constexpr bool kWide = false;
  static constexpr GroupState kGroupState = GroupState::kCount;
};
struct CountW {
  static constexpr bool kWide = true;
  static constexpr GroupState kGroupState = GroupState::kCount;
};
struct Emit {};

}  // namespace meaning

// ---- From an aggregate's opcode to its meaning ----------------------------------------------------------------------

// Expanded from the rows of opcodes.def; as numbers, because a switch over the enum would have to list all opcodes.
#define TESSERA_NO_CASE(Name)
#define TESSERA_AGGREGATE_CASE(Name)        \
  case static_cast<uint16_t>(Opcode::Name): \
    return f.template operator()<meaning::Name>();

/// Calls f.template operator()<meaning::Op>() for an aggregate of shape Fold; for others nothing.
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <class F>
TESSERA_HD void WithFold(Opcode op, F f) {
  switch (static_cast<uint16_t>(op)) {
#define TESSERA_CountRows_CASE TESSERA_NO_CASE
#define TESSERA_CountValues_CASE TESSERA_NO_CASE
#define TESSERA_Fold_CASE TESSERA_AGGREGATE_CASE
#define TESSERA_FoldText_CASE TESSERA_NO_CASE
#define OPCODE(...)
#define AGGREGATE(Name, ShapeName, ...) TESSERA_##ShapeName##_CASE(Name)
#include "vm/program/opcodes.def"
#undef OPCODE
#undef TESSERA_CountRows_CASE
#undef TESSERA_CountValues_CASE
  }
}

/// The same for counts, too: all aggregates that kernels have.
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <class F>
TESSERA_HD void WithAggregate(Opcode op, F f) {
  switch (static_cast<uint16_t>(op)) {
#define TESSERA_CountRows_CASE TESSERA_AGGREGATE_CASE
#define TESSERA_CountValues_CASE TESSERA_AGGREGATE_CASE
#define OPCODE(...)
#define AGGREGATE(Name, ShapeName, ...) TESSERA_##ShapeName##_CASE(Name)
#include "vm/program/opcodes.def"
#undef OPCODE
#undef TESSERA_CountRows_CASE
#undef TESSERA_CountValues_CASE
#undef TESSERA_Fold_CASE
#undef TESSERA_FoldText_CASE
#undef TESSERA_AGGREGATE_CASE
#undef TESSERA_NO_CASE
  }
}

/// Whether an aggregate's groups are kept in one of these ways.
template <GroupState... kKept>
TESSERA_HD bool IsKept(Opcode op) {
  return false
#define TESSERA_KEPT(Name) || (((meaning::Name::kGroupState == kKept) || ...) && op == Opcode::Name)
#define TESSERA_KEPT_CountRows TESSERA_KEPT
#define TESSERA_KEPT_CountValues TESSERA_KEPT
#define TESSERA_KEPT_Fold TESSERA_KEPT
#define TESSERA_KEPT_FoldText(Name)
#define OPCODE(...)
#define AGGREGATE(Name, ShapeName, ...) TESSERA_KEPT_##ShapeName(Name)
#include "vm/program/opcodes.def"
#undef OPCODE
#undef TESSERA_KEPT
#undef TESSERA_KEPT_CountRows
#undef TESSERA_KEPT_CountValues
#undef TESSERA_KEPT_Fold
#undef TESSERA_KEPT_FoldText
      ;
}
}  // namespace tessera::vm
