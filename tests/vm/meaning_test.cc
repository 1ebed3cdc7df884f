// The functions of vm/meaning/meaning.h that have their own arithmetic, against other ways to compute the same: the calendar
// against std::chrono for every day there is, overflow and rounding division against wider integers and brute force.
#include "vm/meaning/meaning.h"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "vm/meaning/text_functions.h"

namespace tessera::vm {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

year_month_day CalendarDay(int64_t day) { return year_month_day{sys_days(days(static_cast<int>(day)))}; }
int64_t DayNumber(int year, unsigned month, unsigned day) {
  return sys_days(std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day))
      .time_since_epoch()
      .count();
}
int64_t Part(int64_t day, DatePart part) { return PartOfDate(day, static_cast<int>(part)); }

TEST(Calendar, FirstAndLastDay) {
  EXPECT_EQ(kFirstDay, DayNumber(1, 1, 1));
  EXPECT_EQ(kLastDay, DayNumber(9999, 12, 31));
}

TEST(Calendar, EveryDayFromYear1To9999) {
  int64_t week_year_start = 0;  // the Monday of ISO week 1 of the ISO year that `day` lies in
  for (int64_t day = kFirstDay; day <= kLastDay; ++day) {
    const year_month_day want = CalendarDay(day);
    const int year = static_cast<int>(want.year());
    const unsigned month = static_cast<unsigned>(want.month()), in_month = static_cast<unsigned>(want.day());
    const Civil c = CivilOf(day);
    ASSERT_EQ(c.year, year) << day;
    ASSERT_EQ(c.month, static_cast<int>(month)) << day;
    ASSERT_EQ(c.day, static_cast<int>(in_month)) << day;
    ASSERT_EQ(DaysOf(year, static_cast<int>(month), static_cast<int>(in_month)), day);
    ASSERT_EQ(Part(day, DatePart::kYear), year);
    ASSERT_EQ(Part(day, DatePart::kMonth), month);
    ASSERT_EQ(Part(day, DatePart::kDay), in_month);
    ASSERT_EQ(Part(day, DatePart::kQuarter), (month - 1) / 3 + 1);
    ASSERT_EQ(Part(day, DatePart::kDoy), day - DayNumber(year, 1, 1) + 1);
    const std::chrono::weekday weekday{sys_days(days(static_cast<int>(day)))};
    ASSERT_EQ(Part(day, DatePart::kDow), weekday.c_encoding());
    ASSERT_EQ(Part(day, DatePart::kIsoDow), weekday.iso_encoding());
    ASSERT_EQ(Part(day, DatePart::kEpoch), day * 86400);
    // Week 1 is the week of 4 January; a new ISO year begins on its Monday.
    if (weekday.iso_encoding() == 1 || day == kFirstDay) {
      const int64_t monday = day - static_cast<int64_t>(weekday.iso_encoding()) + 1;
      const int thursday_year = static_cast<int>(CalendarDay(monday + 3).year());
      const int64_t fourth = DayNumber(thursday_year, 1, 4);
      const std::chrono::weekday of_fourth{sys_days(days(static_cast<int>(fourth)))};
      week_year_start = fourth - static_cast<int64_t>(of_fourth.iso_encoding()) + 1;
    }
    ASSERT_EQ(Part(day, DatePart::kWeek), (day - week_year_start) / 7 + 1) << day;
  }
}

TEST(Calendar, MonthLengths) {
  for (int year = 1; year <= 9999; ++year) {
    for (unsigned month = 1; month <= 12; ++month) {
      const std::chrono::year_month_day_last last{std::chrono::year(year),
                                                  std::chrono::month_day_last(std::chrono::month(month))};
      ASSERT_EQ(MonthLength(year, static_cast<int>(month)), static_cast<int>(static_cast<unsigned>(last.day())));
    }
  }
}

TEST(Calendar, AddMonthsCutsTheDay) {
  auto check = [](int64_t day, int64_t months) {
    const year_month_day from = CalendarDay(day);
    const int64_t index =
        int64_t{static_cast<int>(from.year())} * 12 + static_cast<unsigned>(from.month()) - 1 + months;
    Lane lane;
    const int64_t got = AddMonths(day, months, lane);
    if (index < 12 || index >= 120000) {
      ASSERT_EQ(lane.error, LaneError::kDateRange) << day << " + " << months;
      return;
    }
    const std::chrono::year year(static_cast<int>(index / 12));
    const std::chrono::month month(static_cast<unsigned>(index % 12) + 1);
    year_month_day to = year / month / from.day();
    if (!to.ok()) to = year / month / std::chrono::last;
    ASSERT_EQ(lane.error, LaneError::kNone) << day << " + " << months;
    ASSERT_EQ(got, sys_days(to).time_since_epoch().count()) << day << " + " << months;
  };
  std::mt19937_64 random(7);
  for (int64_t day = kFirstDay; day <= kLastDay; day += 3) {
    check(day, 1);
    check(day, -1);
    check(day, static_cast<int64_t>(random() % 240001) - 120000);
  }
  for (int64_t months : {-120000, -12, -1, 0, 1, 12, 119987, 119988, 120000}) {
    check(kFirstDay, months);
    check(kLastDay, months);
    check(DayNumber(2000, 2, 29), months);
    check(DayNumber(1900, 2, 28), months);
  }
  for (int64_t bad : {kFirstDay - 1, kLastDay + 1, kInt64Min, kInt64Max}) {
    Lane lane;
    AddMonths(bad, 1, lane);
    EXPECT_EQ(lane.error, LaneError::kDateRange);
  }
  for (int64_t bad : {int64_t{-120001}, int64_t{120001}, kInt64Min, kInt64Max}) {
    Lane lane;
    AddMonths(0, bad, lane);
    EXPECT_EQ(lane.error, LaneError::kDateRange);
  }
}

TEST(Calendar, PartsOfATimestamp) {
  std::mt19937_64 random(11);
  const int64_t first = kFirstDay * kMicrosPerDay, last = (kLastDay + 1) * kMicrosPerDay - 1;
  for (int i = 0; i < 200000; ++i) {
    int64_t at = first + static_cast<int64_t>(random() % static_cast<uint64_t>(last - first + 1));
    if (i < 4) at = std::vector<int64_t>{first, last, -1, 0}[static_cast<size_t>(i)];
    const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(at)};
    const auto day = std::chrono::floor<days>(time);
    const std::chrono::hh_mm_ss clock{time - day};
    Lane lane;
    auto part = [&](DatePart p) { return meaning::DatePartT::Apply(at, static_cast<int>(p), lane); };
    ASSERT_EQ(part(DatePart::kHour), clock.hours().count()) << at;
    ASSERT_EQ(part(DatePart::kMinute), clock.minutes().count()) << at;
    ASSERT_EQ(part(DatePart::kSecond), clock.seconds().count()) << at;
    ASSERT_EQ(part(DatePart::kEpoch), std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count()) << at;
    ASSERT_EQ(part(DatePart::kYear), static_cast<int>(year_month_day{day}.year())) << at;
    ASSERT_EQ(part(DatePart::kDoy), Part(day.time_since_epoch().count(), DatePart::kDoy)) << at;
  }
}

// The interpreters run a meaning on masked-off rows too, whatever bits they hold. UBSan makes this test one.
TEST(Calendar, AnyBitsAreSafe) {
  volatile int64_t sink = 0;  // the compiler does not compute unused values
  for (int64_t v : {kInt64Min, kInt64Min + 1, -kMicrosPerDay, int64_t{-1}, int64_t{0}, int64_t{1}, kInt64Max - 719468,
                    kInt64Max - 1, kInt64Max}) {
    for (int field = 0; field <= static_cast<int>(DatePart::kEpoch); ++field) {
      Lane lane;
      sink = meaning::DatePartD::Apply(v, field, lane);
      sink = meaning::DatePartT::Apply(v, field, lane);
      sink = meaning::AddMonthsD::Apply(v, 1, lane);
      sink = meaning::AddMonthsT::Apply(v, -1, lane);
      sink = meaning::AddMonthsT::Apply(0, v, lane);
    }
  }
  (void)sink;
}

TEST(FloorDivision, NegativeAndExtreme) {
  for (int64_t b : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{400}, kMicrosPerDay}) {
    for (int64_t a : {kInt64Min, kInt64Min + 1, kInt64Min + b, int64_t{-8}, int64_t{-7}, int64_t{-1}, int64_t{0},
                      int64_t{1}, int64_t{7}, kInt64Max}) {
      int128_t q = static_cast<int128_t>(a) / b;
      if (q * b > a) --q;
      EXPECT_EQ(FloorDiv(a, b), static_cast<int64_t>(q)) << a << " / " << b;
      EXPECT_EQ(FloorMod(a, b), static_cast<int64_t>(a - q * b)) << a << " mod " << b;
    }
  }
}

// ---- Overflow and division

/// Values that make arithmetic interesting: powers of two and ten, ends of the range, and their neighbours.
template <class T>
std::vector<T> Edges() {
  const int bits = sizeof(T) * 8;
  const T least = static_cast<T>(static_cast<T>(1) << (bits - 2)) * -2;
  std::vector<T> out;
  auto add = [&](T v) {
    for (int d = -2; d <= 2; ++d) {
      T r;
      if (!__builtin_add_overflow(v, static_cast<T>(d), &r)) out.push_back(r);
      if (!__builtin_sub_overflow(static_cast<T>(0), r, &r)) out.push_back(r);
    }
  };
  add(0);
  add(least);
  for (int i = 2; i < bits - 1; i += bits == 64 ? 3 : 9) add(static_cast<T>(1) << i);
  for (T p = 10; p < static_cast<T>(static_cast<T>(1) << (bits - 9)); p *= 100) add(p);
  return out;
}

template <class T>
T Random(std::mt19937_64& random) {
  uint128_t r = static_cast<uint128_t>(random()) << 64 | random();
  const int bits = sizeof(T) * 8;
  T v = static_cast<T>(r);
  return static_cast<T>(v >> (random() % static_cast<uint64_t>(bits)));
}

template <class T>
std::vector<std::pair<T, T>> Pairs() {
  std::vector<std::pair<T, T>> out;
  const std::vector<T> edges = Edges<T>();
  for (T a : edges) {
    for (T b : edges) out.emplace_back(a, b);
  }
  std::mt19937_64 random(13);
  for (int i = 0; i < 300000; ++i) out.emplace_back(Random<T>(random), Random<T>(random));
  return out;
}

std::string Show(int128_t v) {
  std::string s;
  uint128_t m = v < 0 ? uint128_t{0} - static_cast<uint128_t>(v) : static_cast<uint128_t>(v);
  do {
    s.insert(s.begin(), static_cast<char>('0' + static_cast<int>(m % 10)));
    m /= 10;
  } while (m != 0);
  return v < 0 ? "-" + s : s;
}

template <class T>
class Arithmetic : public ::testing::Test {};
using Widths = ::testing::Types<int64_t, int128_t>;
TYPED_TEST_SUITE(Arithmetic, Widths);

TYPED_TEST(Arithmetic, OverflowPredicates) {
  for (const auto& [a, b] : Pairs<TypeParam>()) {
    TypeParam r;
    bool overflows = __builtin_add_overflow(a, b, &r);
    ASSERT_EQ(WrapAdd(a, b), r);
    ASSERT_EQ(AddOverflows(a, b, WrapAdd(a, b)), overflows) << Show(a) << " + " << Show(b);
    overflows = __builtin_sub_overflow(a, b, &r);
    ASSERT_EQ(WrapSub(a, b), r);
    ASSERT_EQ(SubOverflows(a, b, WrapSub(a, b)), overflows) << Show(a) << " - " << Show(b);
    overflows = __builtin_mul_overflow(a, b, &r);
    ASSERT_EQ(WrapMul(a, b), r);
    ASSERT_EQ(MulOverflows(a, b), overflows) << Show(a) << " * " << Show(b);
  }
}

TYPED_TEST(Arithmetic, Division) {
  using T = TypeParam;
  constexpr T kLeast = LeastOf<T>::kValue;
  for (const auto& [x, y] : Pairs<T>()) {
    const T a = x, b = y;
    Lane truncating, rounding, flooring, remainder;
    const T t = DivideTruncating(a, b, truncating), r = DivideRounding(a, b, rounding),
            f = DivideFlooring(a, b, flooring), m = Remainder(a, b, remainder);
    if (b == 0) {
      ASSERT_TRUE(truncating.null && rounding.null && flooring.null && remainder.null);
      continue;
    }
    ASSERT_FALSE(truncating.null || rounding.null || flooring.null || remainder.null);
    ASSERT_EQ(remainder.error, LaneError::kNone);
    if (a == kLeast && b == -1) {
      for (const Lane& lane : {truncating, rounding, flooring}) {
        ASSERT_EQ(lane.error, sizeof(T) == 8 ? LaneError::kOverflow : LaneError::kWideOverflow);
      }
      ASSERT_EQ(m, 0);
      continue;
    }
    // Magnitudes, unsigned: quotient and rest of long division.
    const bool negative = (a < 0) != (b < 0);
    const uint128_t n = a < 0 ? uint128_t{0} - static_cast<uint128_t>(a) : static_cast<uint128_t>(a);
    const uint128_t d = b < 0 ? uint128_t{0} - static_cast<uint128_t>(b) : static_cast<uint128_t>(b);
    const uint128_t q = n / d, rest = n - q * d;
    auto sign = [&](uint128_t v, bool minus) { return static_cast<T>(minus ? uint128_t{0} - v : v); };
    ASSERT_EQ(t, sign(q, negative)) << Show(a) << " / " << Show(b);
    ASSERT_EQ(m, sign(rest, a < 0)) << Show(a) << " % " << Show(b);
    ASSERT_EQ(f, sign(q + (negative && rest != 0 ? 1 : 0), negative)) << Show(a) << " floor " << Show(b);
    ASSERT_EQ(r, sign(q + (rest >= d / 2 + d % 2 ? 1 : 0), negative)) << Show(a) << " round " << Show(b);
    for (const Lane& lane : {truncating, rounding, flooring}) ASSERT_EQ(lane.error, LaneError::kNone);
  }
}

TEST(Division, EverySmallPairByBruteForce) {
  for (int64_t a = -300; a <= 300; ++a) {
    for (int64_t b = -40; b <= 40; ++b) {
      if (b == 0) continue;
      Lane lane;
      const double exact = static_cast<double>(a) / static_cast<double>(b);  // halves and signs are exact
      ASSERT_EQ(DivideRounding(a, b, lane), static_cast<int64_t>(std::round(exact))) << a << " / " << b;
      ASSERT_EQ(DivideFlooring(a, b, lane), static_cast<int64_t>(std::floor(exact)));
      ASSERT_EQ(DivideTruncating(a, b, lane), static_cast<int64_t>(std::trunc(exact)));
      ASSERT_EQ(DivideRounding(static_cast<int128_t>(a), static_cast<int128_t>(b), lane),
                static_cast<int64_t>(std::round(exact)));
    }
  }
}

// ---- Conversions

TEST(Conversion, WideToDoubleRoundsOnce) {
  std::mt19937_64 random(17);
  std::vector<int128_t> values = Edges<int128_t>();
  for (int i = 0; i < 100000; ++i) values.push_back(Random<int128_t>(random));
  // Halfway between two doubles, and a little beside it.
  for (int shift = 1; shift < 74; ++shift) {
    for (int64_t odd : {int64_t{0x10000000000001}, int64_t{0x1FFFFFFFFFFFFF}, int64_t{0x1555555555555A}}) {
      const int128_t halfway = (static_cast<int128_t>(odd) * 2 + 1) << (shift - 1);
      for (int d = -1; d <= 1; ++d) {
        values.push_back(halfway + d);
        values.push_back(-(halfway + d));
      }
    }
  }
  for (int128_t v : values) {
    if (v == kInt128Min) continue;  // below: it has a test of its own
    Lane lane;
    const double want = std::strtod(Show(v).c_str(), nullptr);  // glibc rounds correctly
    ASSERT_EQ(meaning::WToF::Apply(v, lane), want) << Show(v);
  }
}

TEST(Conversion, LeastWideToDouble) {
  Lane lane;
  EXPECT_EQ(meaning::WToF::Apply(kInt128Min, lane), -std::ldexp(1.0, 127));
}

TEST(Conversion, DoubleToWideAndBack) {
  std::mt19937_64 random(19);
  for (int i = 0; i < 200000; ++i) {
    double v = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 140) - 60);
    if (i % 2 == 1) v = -v;
    Lane lane;
    const int128_t got = meaning::FToW::Apply(v, lane);
    const double rounded = std::round(v);
    if (!(std::fabs(rounded) < 1e38)) {
      ASSERT_EQ(lane.error, LaneError::kFloatToInteger) << v;
      continue;
    }
    ASSERT_EQ(lane.error, LaneError::kNone) << v;
    char text[64];
    snprintf(text, sizeof text, "%.0f", rounded);  // exact in glibc
    ASSERT_EQ(Show(got), rounded == 0 ? "0" : text) << v;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (double bad : {std::nan(""), kInfinity, -kInfinity, 1.0000000000000001e38, -1.1e38, 1e300}) {
    Lane lane;
    meaning::FToW::Apply(bad, lane);
    EXPECT_EQ(lane.error, LaneError::kFloatToInteger) << bad;
  }
}

TEST(Conversion, DoubleToInteger) {
  struct Case {
    double v;
    int64_t want;
    bool error;
  };
  const Case cases[] = {{0.5, 0, false},
                        {1.5, 2, false},
                        {2.5, 2, false},
                        {-0.5, 0, false},
                        {-1.5, -2, false},
                        {-2.5, -2, false},
                        {9223372036854774784.0, 9223372036854774784, false},
                        {-9223372036854775808.0, kInt64Min, false},
                        {9223372036854775808.0, 0, true},
                        {-9223372036854777856.0, 0, true},
                        {std::nan(""), 0, true},
                        {INFINITY, 0, true},
                        {-INFINITY, 0, true},
                        {5e-324, 0, false}};
  for (const Case& c : cases) {
    Lane lane;
    const int64_t got = meaning::FToI::Apply(c.v, lane);
    EXPECT_EQ(lane.error != LaneError::kNone, c.error) << c.v;
    if (!c.error) {
      EXPECT_EQ(got, c.want) << c.v;
    }
  }
}

TEST(Calendar, MakesEveryDateAndNoOther) {
  for (int64_t year : {-1, 0, 1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 9999, 10000}) {
    for (int64_t month = -1; month < 15; ++month) {
      for (int64_t day = -1; day < 34; ++day) {
        const year_month_day date{std::chrono::year(static_cast<int>(year)),
                                  std::chrono::month(static_cast<unsigned>(month < 0 ? 0 : month)),
                                  std::chrono::day(static_cast<unsigned>(day < 0 ? 0 : day))};
        Lane lane;
        const int64_t got = meaning::MakeDateI::Apply(year, month, day, lane);
        if (date.ok() && year >= 1 && year <= 9999) {
          ASSERT_EQ(lane.error, LaneError::kNone) << year << "-" << month << "-" << day;
          ASSERT_EQ(got, sys_days(date).time_since_epoch().count()) << year << "-" << month << "-" << day;
        } else {
          ASSERT_EQ(lane.error, LaneError::kNoDate) << year << "-" << month << "-" << day;
        }
      }
    }
  }
  for (int64_t v : {kInt64Min, kInt64Max}) {
    Lane lanes[3];
    meaning::MakeDateI::Apply(v, 1, 1, lanes[0]);
    meaning::MakeDateI::Apply(2000, v, 1, lanes[1]);
    meaning::MakeDateI::Apply(2000, 1, v, lanes[2]);
    for (const Lane& lane : lanes) EXPECT_EQ(lane.error, LaneError::kNoDate);
  }
}

TEST(Texts, CharactersHaveTheirNumbers) {
  for (int64_t code = 0; code < 0x110003; ++code) {
    std::string text;
    Lane lane;
    meaning::ChrT::Apply(code, &text, lane);
    const bool is_character = code > 0 && code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
    ASSERT_EQ(lane.error, is_character ? LaneError::kNone : LaneError::kNoCharacter) << code;
    if (!is_character) continue;
    ASSERT_EQ(meaning::AsciiT::Apply(text), code);
    ASSERT_EQ(meaning::AsciiT::Apply(text + "x"), code);
    std::string reversed;
    meaning::ReverseT::Apply(text + "ab" + text, &reversed);
    ASSERT_EQ(reversed, text + "ba" + text) << code;
  }
}

TEST(Texts, WhatIsNotUtf8StaysWithin) {
  const std::string texts[] = {
      "\x80", "\xC3", "\xF0\x9F", "a\x80\x80\x80\x80\x80\x80", "\xFF\xFE", std::string(1, '\0')};
  for (const std::string& s : texts) {
    for (const std::string& t : texts) {
      std::string out;
      Lane lane;
      meaning::ReverseT::Apply(s, &out);
      EXPECT_EQ(out.size(), s.size());
      EXPECT_GE(meaning::AsciiT::Apply(s), 0);
      for (int64_t n : {kInt64Min, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{5}, kInt64Max}) {
        meaning::LeftT::Apply(s, n, &out, lane);
        meaning::RightT::Apply(s, n, &out, lane);
        if (n < kInt64Max) meaning::LpadT::Apply(s, n, t, &out, lane);
        if (n != 0) meaning::SplitPartT::Apply(s, t, n, &out, lane);
        EXPECT_EQ(lane.error, LaneError::kNone);
      }
      meaning::TranslateT::Apply(s, t, s, &out, lane);
      meaning::ReplaceT::Apply(s, t, "x", &out, lane);
      EXPECT_GE(meaning::PositionT::Apply(s, t), 0);
    }
  }
}

TEST(Texts, LengthsHaveALimit) {
  std::string out;
  for (int64_t n : {kMostTextBytes, kMostTextBytes + 1, kInt64Max}) {
    Lane repeated, padded;
    meaning::RepeatT::Apply("ab", n, &out, repeated);
    EXPECT_EQ(repeated.error, LaneError::kTextTooLong);
    meaning::RpadT::Apply("", n, "\xC3\xA9", &out, padded);
    EXPECT_EQ(padded.error, LaneError::kTextTooLong);
  }
  Lane lane;
  meaning::RepeatT::Apply("", kInt64Max, &out, lane);
  EXPECT_EQ(lane.error, LaneError::kNone);
  EXPECT_EQ(out, "");
}

TEST(Floats, OrderedFormIsMonotonous) {
  const double inf = std::numeric_limits<double>::infinity(), denormal = 5e-324;
  const std::vector<double> ascending = {-inf,     -1e308, -1.0, -1e-300, -denormal, -0.0,        0.0,
                                         denormal, 1e-300, 1.0,  1e308,   inf,       std::nan("")};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t k = 0; k < ascending.size(); ++k) {
      EXPECT_EQ(OrderedFloat(ascending[i]) < OrderedFloat(ascending[k]), i < k);
      const bool both_zero = ascending[i] == 0 && ascending[k] == 0;
      EXPECT_EQ(FloatLess(ascending[i], ascending[k]), i < k && !both_zero);
      EXPECT_EQ(FloatEqual(ascending[i], ascending[k]), i == k || both_zero);
    }
    EXPECT_EQ(std::bit_cast<uint64_t>(FromOrderedFloat(OrderedFloat(ascending[i]))),
              std::bit_cast<uint64_t>(ascending[i]));
  }
  Lane lane;
  EXPECT_EQ(std::bit_cast<uint64_t>(meaning::CanonF::Apply(-0.0, lane)), 0u);
  EXPECT_EQ(std::bit_cast<uint64_t>(meaning::CanonF::Apply(-std::nan("1"), lane)),
            std::bit_cast<uint64_t>(meaning::CanonF::Apply(std::nan("7"), lane)));
}

TEST(Floats, RoundDigits) {
  struct Case {
    double v;
    int digits;
    double want;
  };
  const Case cases[] = {{2.5, 0, 3},
                        {-2.5, 0, -3},
                        {1.25, 1, 1.3},
                        {-1.25, 1, -1.3},
                        {1234.5678, 2, 1234.57},
                        {1250, -2, 1300},
                        {-1250, -2, -1300},
                        {0.4, 0, 0},
                        {1e300, 2, 1e300},
                        {1e300, -2, 1e300},
                        {49, -2, 0},
                        {50, -2, 100},
                        {INFINITY, 3, INFINITY},
                        {-INFINITY, -3, -INFINITY}};
  for (const Case& c : cases) {
    Lane lane;
    EXPECT_DOUBLE_EQ(meaning::RoundDigitsF::Apply(c.v, c.digits, lane), c.want) << c.v << " to " << c.digits;
  }
  Lane lane;
  EXPECT_TRUE(std::isnan(meaning::RoundDigitsF::Apply(std::nan(""), 2, lane)));
  EXPECT_TRUE(std::isnan(meaning::RoundDigitsF::Apply(std::nan(""), -2, lane)));
}

}  // namespace
}  // namespace tessera::vm
