#include "tablet/values/moment_format.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>

namespace tessera {
namespace {

constexpr size_t kLongestText = 128;

/// Reads digits of a second, as many as there are; after the sixth they do not matter.
const char* ReadFraction(const char* at, int64_t* micros) {
  const char* const begin = at;
  int64_t unit = 100'000;
  for (; *at >= '0' && *at <= '9'; ++at, unit /= 10) *micros += (*at - '0') * unit;
  return at == begin ? nullptr : at;
}

}  // namespace

ParseError ParseMomentAs(const std::string& format, std::string_view text, int64_t* micros) {
  char copy[kLongestText];  // strptime takes texts that end in NUL
  if (text.size() >= sizeof(copy) || text.find('\0') != std::string_view::npos) return ParseError::kSyntax;
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  struct tm fields {};
  fields.tm_year = 70;
  fields.tm_mday = 1;
  int64_t fraction = 0;
  const char* at = copy;
  for (size_t begin = 0; at != nullptr && begin < format.size();) {
    const size_t stop = std::min(format.find("%f", begin), format.size());
    if (stop > begin) at = strptime(at, format.substr(begin, stop - begin).c_str(), &fields);
    if (at != nullptr && stop < format.size()) at = ReadFraction(at, &fraction);
    begin = stop + 2;
  }
  if (at == nullptr || *at != 0) return ParseError::kSyntax;
  const std::chrono::year_month_day day{std::chrono::year(fields.tm_year + 1900),
                                        std::chrono::month(static_cast<unsigned>(fields.tm_mon) + 1),
                                        std::chrono::day(static_cast<unsigned>(fields.tm_mday))};
  if (!day.ok() || fields.tm_year < -1899 || fields.tm_year > 8099 || fields.tm_sec > 59) return ParseError::kRange;
  const int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
  const int64_t seconds = days * 86400 + fields.tm_hour * 3600 + fields.tm_min * 60 + fields.tm_sec;
  *micros = seconds * 1'000'000 + fraction;
  return ParseError::kNone;
}

}  // namespace tessera
