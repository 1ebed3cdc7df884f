#include "tablet/values/fixed_text.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace tessera {
namespace {

constexpr int64_t kMicrosecondsADay = int64_t{24} * 60 * 60 * 1000000;

struct DigitPairs {
  char digits[200];
  constexpr DigitPairs() : digits() {
    for (int i = 0; i < 100; ++i) {
      digits[2 * i] = static_cast<char>('0' + i / 10);
      digits[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
  }
};
constexpr DigitPairs kPairs;

/// REQUIRES: v < 100.
char* PutPair(uint64_t v, char* at) {
  memcpy(at, kPairs.digits + 2 * v, 2);
  return at + 2;
}

/// The digits of v, which end at `end`. Returns where they begin.
char* DigitsBefore(uint64_t v, char* end) {
  while (v >= 100) {
    end -= 2;
    memcpy(end, kPairs.digits + v % 100 * 2, 2);
    v /= 100;
  }
  if (v >= 10) {
    end -= 2;
    memcpy(end, kPairs.digits + v * 2, 2);
    return end;
  }
  *--end = static_cast<char>('0' + v);
  return end;
}

}  // namespace

char* PutInteger(int64_t v, char* at) { return std::to_chars(at, at + 24, v).ptr; }

char* PutDecimal(int128_t v, int scale, char* at) {
  // (Digits are copied 20 at a time, which is no call, and there is room after the last one.)
  constexpr int kAtOnce = 20;
  char digits[48 + kAtOnce] = {};
  char* const end = digits + 48;
  char* p = end;
  uint128_t magnitude = v < 0 ? ~static_cast<uint128_t>(v) + 1 : static_cast<uint128_t>(v);
  // A division of 128 bits is a call.
  for (; magnitude > UINT64_MAX; magnitude /= 10) *--p = static_cast<char>('0' + static_cast<int>(magnitude % 10));
  p = DigitsBefore(static_cast<uint64_t>(magnitude), p);
  while (end - p <= scale) *--p = '0';
  if (v < 0) *at++ = '-';
  const auto put = [&at](const char* from, int count) {
    memcpy(at, from, kAtOnce);
    if (count > kAtOnce) memcpy(at + kAtOnce, from + kAtOnce, static_cast<size_t>(count - kAtOnce));
    at += count;
  };
  put(p, static_cast<int>(end - p) - scale);
  if (scale > 0) {
    *at++ = '.';
    put(end - scale, scale);
  }
  return at;
}

char* PutDate(int64_t days, char* at) {
  // std::chrono's years end at 32767; a date out of that comes only from arithmetic and is shown as its number of days.
  constexpr int64_t kGreatestDays = int64_t{32000} * 365;
  if (days < -kGreatestDays || days > kGreatestDays) {
    at = PutInteger(days, at);
    memcpy(at, " days", 5);
    return at + 5;
  }
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(static_cast<int>(days)))};
  const int signed_year = static_cast<int>(date.year());
  auto year = static_cast<unsigned>(std::abs(signed_year));
  if (signed_year < 0) *at++ = '-';
  if (year >= 10000) {
    *at++ = static_cast<char>('0' + year / 10000);
    year %= 10000;
  }
  at = PutPair(year % 100, PutPair(year / 100, at));
  *at++ = '-';
  at = PutPair(static_cast<unsigned>(date.month()), at);
  *at++ = '-';
  return PutPair(static_cast<unsigned>(date.day()), at);
}

char* PutTime(int64_t microseconds, char* at) {
  const auto seconds = static_cast<uint64_t>(microseconds / 1000000);
  // (More than a day comes only from arithmetic.)
  at = seconds < 360000 ? PutPair(seconds / 3600, at) : PutInteger(static_cast<int64_t>(seconds / 3600), at);
  *at++ = ':';
  at = PutPair(seconds / 60 % 60, at);
  *at++ = ':';
  at = PutPair(seconds % 60, at);
  auto fraction = static_cast<uint64_t>(microseconds % 1000000);
  if (fraction == 0) return at;
  *at++ = '.';
  at = PutPair(fraction % 100, PutPair(fraction / 100 % 100, PutPair(fraction / 10000, at)));
  while (at[-1] == '0') --at;
  return at;
}

char* PutTimestamp(int64_t microseconds, char* at) {
  int64_t days = microseconds / kMicrosecondsADay;
  int64_t rest = microseconds % kMicrosecondsADay;
  if (rest < 0) {
    rest += kMicrosecondsADay;
    --days;
  }
  at = PutDate(days, at);
  *at++ = ' ';
  return PutTime(rest, at);
}

}  // namespace tessera
