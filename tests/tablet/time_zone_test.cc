// Time zones: the C library reads the same tz database, and must say the same.
#include "tablet/values/time_zone.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>

namespace tessera {
namespace {

constexpr const char* kZones[] = {"Europe/Berlin",    "America/New_York",  "Australia/Lord_Howe", "Asia/Kolkata",
                                  "America/St_Johns", "Antarctica/Troll",  "Pacific/Apia",        "Etc/GMT+5",
                                  "Africa/Monrovia",  "America/Sao_Paulo", "Asia/Gaza",           "Pacific/Chatham"};

const TimeZone& Find(const char* name) { return **FindTimeZone(name); }

std::string BytesOf(const std::string& name) {
  std::ifstream file("/usr/share/zoneinfo/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(TimeZone, OffsetsAreThoseOfTheCLibrary) {
  for (const char* name : kZones) {
    SCOPED_TRACE(name);
    const TimeZone& zone = Find(name);
    setenv("TZ", name, 1);
    tzset();
    // Some 1,000 years in steps of five days and a bit, so all hours occur; around 1970 every half hour.
    const auto check = [&](int64_t seconds) {
      const time_t t = seconds;
      tm clock = {};
      localtime_r(&t, &clock);
      ASSERT_EQ(zone.OffsetAt(seconds), clock.tm_gmtoff) << seconds;
    };
    for (int64_t s = -5'000'000'000; s < 30'000'000'000; s += 433'861) check(s);
    for (int64_t s = 1'672'527'600; s < 1'672'527'600 + 86400 * 400; s += 1800) check(s), check(s - 1);
    for (int64_t s = 4'100'000'000; s < 4'100'000'000 + 86400 * 400; s += 1800) check(s), check(s - 1);
  }
}

TEST(TimeZone, HoursThatComeTwiceAndHoursThatAreLeftOut) {
  constexpr int64_t kHour = 3'600'000'000;
  const TimeZone& zone = Find("Europe/Berlin");
  const int64_t spring = 1711846800'000'000;  // 2024-03-31 01:00 UTC: 02:00 becomes 03:00
  EXPECT_EQ(zone.LocalOf(spring - 1), spring + kHour - 1);
  EXPECT_EQ(zone.LocalOf(spring), spring + 2 * kHour);
  EXPECT_EQ(zone.MomentOf(spring + 2 * kHour), spring);
  EXPECT_EQ(zone.MomentOf(spring + kHour - 1), spring - 1);
  EXPECT_EQ(zone.MomentOf(spring + kHour + kHour / 2), spring + kHour / 2) << "02:30, which there is not";
  const int64_t autumn = 1729990800'000'000;  // 2024-10-27 01:00 UTC: 03:00 becomes 02:00
  EXPECT_EQ(zone.LocalOf(autumn - 1), autumn + 2 * kHour - 1);
  EXPECT_EQ(zone.LocalOf(autumn), autumn + kHour);
  EXPECT_EQ(zone.MomentOf(autumn + kHour), autumn) << "the second 02:00";
  EXPECT_EQ(zone.MomentOf(autumn + kHour - 1), autumn - kHour - 1);
  EXPECT_EQ(zone.MomentOf(autumn + 2 * kHour), autumn + kHour);
}

TEST(TimeZone, Names) {
  EXPECT_EQ(Find("europe/BERLIN").name(), "Europe/Berlin");
  EXPECT_EQ(&Find("europe/BERLIN"), &Find("europe/berlin"));
  EXPECT_TRUE(Find("utc").IsUtc());
  EXPECT_TRUE(Find("Etc/UTC").IsUtc());
  EXPECT_FALSE(Find("Europe/London").IsUtc());
  EXPECT_EQ(Find("utc").OffsetAt(0), 0);
  for (const char* name : {"", "Europe", "Europe/", "Berlin", "../../etc/passwd", "/etc/passwd", ".", "zone.tab",
                           "Nowhere", "Europe//Berlin", "leapseconds", "+02"}) {
    const Result<const TimeZone*> zone = FindTimeZone(name);
    ASSERT_FALSE(zone.ok()) << name;
    EXPECT_EQ(zone.status().message(), "time zone \"" + std::string(name) + "\" not recognized");
  }
}

TEST(TimeZone, DamagedFilesAreErrors) {
  const std::string bytes = BytesOf("Europe/Berlin");
  ASSERT_GT(bytes.size(), 100u);
  EXPECT_TRUE(TimeZone::Parse("whole", bytes).ok());
  // The last line is the rule; each of its characters is needed, but for the end of it.
  for (size_t size = 0; size + 4 < bytes.size(); ++size)
    (void)TimeZone::Parse("cut", std::string_view(bytes).substr(0, size));
  EXPECT_FALSE(TimeZone::Parse("cut", std::string_view(bytes).substr(0, bytes.size() / 2)).ok());
  EXPECT_FALSE(TimeZone::Parse("empty", "").ok());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const char value : {'\0', '\1', '\x7F', '\xFF'}) {
      std::string changed = bytes;
      changed[at] = value;
      const Result<TimeZone> zone = TimeZone::Parse("changed", changed);
      if (!zone.ok()) continue;
      for (int64_t s = -60'000'000'000; s < 250'000'000'000; s += 9'999'999'999) {
        EXPECT_LE(std::abs(zone->OffsetAt(s)), 4 * 86400);
        (void)zone->MomentOf(s * 1'000'000);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
