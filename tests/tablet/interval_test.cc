// Intervals: their 128 bits, their text, their arithmetic. Values are PostgreSQL 15's.
#include "tablet/values/interval.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera {
namespace {

std::string TextOf(const Interval& v) {
  std::string out;
  AppendInterval(v, &out);
  return out;
}

Interval Of(const std::string& text) { return ParseInterval(text).value(); }

TEST(Interval, BitsAreInTheOrderOfLengths) {
  const std::vector<std::string> ascending = {
      "-100000 years", "-1 year",  "-1 month",     "-29 days",   "-1 day",     "-1 second", "0 seconds",
      "1 us",          "1 hour",   "1 day",        "1 day 1 us", "29 days",    "1 month",   "31 days",
      "360 days 1 us", "361 days", "100000 hours", "20 years",   "90000 years"};
  for (size_t i = 0; i < ascending.size(); ++i) {
    const Interval v = Of(ascending[i]);
    const int128_t packed = PackInterval(v);
    const Interval again = UnpackInterval(packed);
    EXPECT_EQ(again.months, v.months);
    EXPECT_EQ(again.days, v.days);
    EXPECT_EQ(again.micros, v.micros);
    EXPECT_TRUE(packed < kIntervalBound && packed > -kIntervalBound);
    if (i > 0) {
      EXPECT_LT(PackInterval(Of(ascending[i - 1])) >> kLengthShift, packed >> kLengthShift) << ascending[i];
    }
  }
  const auto length = [](const char* text) { return PackInterval(Of(text)) >> kLengthShift; };
  EXPECT_TRUE(length("1 month") == length("30 days"));
  EXPECT_TRUE(length("1 month") == length("720 hours"));
  EXPECT_TRUE(length("-1 month 30 days") == length("0 s"));
  EXPECT_FALSE(PackInterval(Of("1 month")) == PackInterval(Of("30 days")));
}

TEST(Interval, TheLongestOnes) {
  for (const int sign : {1, -1}) {
    const Interval v{sign * kMostMonths, sign * kMostDays, sign * kMostMicros};
    ASSERT_TRUE(HoldsInterval(v.months, v.days, v.micros));
    const Interval again = UnpackInterval(PackInterval(v));
    EXPECT_EQ(again.months, v.months);
    EXPECT_EQ(again.days, v.days);
    EXPECT_EQ(again.micros, v.micros);
    EXPECT_EQ(TextOf(Of(TextOf(v))), TextOf(v));
    Interval out;
    EXPECT_FALSE(AddIntervals(v, {sign, 0, 0}, 1, &out));
    EXPECT_FALSE(AddIntervals(v, {0, -sign, 0}, -1, &out));
    EXPECT_FALSE(AddIntervals(v, {0, 0, sign}, 1, &out));
    EXPECT_FALSE(AddIntervals(v, v, 1, &out));
    EXPECT_FALSE(MultiplyInterval(v, 1.01, false, &out));
    EXPECT_FALSE(MultiplyInterval(v, 0.9, true, &out));
  }
  // Of bits that are no interval, too, it takes some.
  for (const int128_t v : {kInt128Min, kInt128Max, int128_t{0}, int128_t{-1}}) {
    const Interval some = UnpackInterval(v);
    EXPECT_LE(some.micros, kMostMicros);
    EXPECT_GE(some.micros, -kMostMicros);
  }
}

TEST(Interval, Text) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"1.5 years", "1 year 6 mons"},
      {"1.5 months", "1 mon 15 days"},
      {"0.5 weeks", "3 days 12:00:00"},
      {"1 year -2 days 3:04", "1 year -2 days +03:04:00"},
      {"-1 month 5 days", "-1 mons +5 days"},
      {"1.05 month", "1 mon 1 day 12:00:00"},
      {"1000000 hours", "1000000:00:00"},
      {"2 days ago", "-2 days"},
      {"1 12:00", "1 day 12:00:00"},
      {"-1-2", "-1 years -2 mons"},
      {"@ 1 day", "1 day"},
      {"1mon-00:00:01.5", ""},
      {"1mon -00:00:01.5", "1 mon -00:00:01.5"},
      {"-1 year 1 mon", "-11 mons"},
      {"5", "00:00:05"},
      {"", ""},
      {"day", ""},
      {"1 blink", ""},
      {"1:60", ""},
      {"1 day ago 1 day", ""},
      {"200000 years", ""},
      {"nan days", ""},
  };
  for (const auto& [text, expected] : cases) {
    const Result<Interval> v = ParseInterval(text);
    EXPECT_EQ(v.ok() ? TextOf(*v) : "", expected) << text;
  }
  EXPECT_EQ(TextOf(ParseInterval("90", "minute").value()), "01:30:00");
}

TEST(Interval, Arithmetic) {
  const auto times = [](const char* text, double factor, bool divide) {
    Interval out;
    return MultiplyInterval(Of(text), factor, divide, &out) ? TextOf(out) : "";
  };
  EXPECT_EQ(times("1 month", 1.5, false), "1 mon 15 days");
  EXPECT_EQ(times("1 month", 7, true), "4 days 06:51:25.6896");
  EXPECT_EQ(times("-3 days 5 hours", 0.37, false), "-1 days -00:47:24");
  EXPECT_EQ(times("1 year 2 mons", 3.3, true), "4 mons 7 days 06:32:43.6128");
  const auto justified = [](auto justify, const char* text) {
    Interval out;
    return justify(Of(text), &out) ? TextOf(out) : "";
  };
  EXPECT_EQ(justified(JustifyInterval, "1 mon -1 hour"), "29 days 23:00:00");
  EXPECT_EQ(justified(JustifyInterval, "-1 mon 40 days 30 hours"), "11 days 06:00:00");
  EXPECT_EQ(justified(JustifyHours, "27 hours"), "1 day 03:00:00");
  EXPECT_EQ(justified(JustifyDays, "35 days"), "1 mon 5 days");
  constexpr int64_t kDay = 86'400'000'000;
  EXPECT_EQ(TextOf(AgeBetween(19783 * kDay, 19753 * kDay)), "1 mon 1 day") << "2024-03-01 and 2024-01-31";
  EXPECT_EQ(TextOf(Between(kDay, 2 * kDay + 1)), "-1 days -00:00:00.000001");
}

}  // namespace
}  // namespace tessera
