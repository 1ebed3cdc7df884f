// Time zones: rules that tell, for each moment, how far the clocks of a place are ahead of UTC. They are read from the
// system's tz database (/usr/share/zoneinfo, files as in RFC 8536); UTC needs none.
//
// Start at: FindTimeZone. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tessera {

class TimeZone {
 public:
  /// Always UTC.
  explicit TimeZone(std::string name) : name_(std::move(name)) {}
  /// Parses the bytes of a file. Errors: kSql, they are not the rules of a zone.
  static Result<TimeZone> Parse(std::string name, std::string_view bytes);

  const std::string& name() const { return name_; }
  bool IsUtc() const { return transitions_.empty() && first_offset_ == 0 && !has_daylight_ && standard_ == 0; }

  /// Seconds that local time is ahead of UTC, `seconds` after 1970 in UTC.
  int64_t OffsetAt(int64_t seconds) const;

  /// What the clocks show at a moment; both in microseconds since 1970.
  int64_t LocalOf(int64_t moment) const;
  /// When the clocks show that. As in PostgreSQL: of a time that comes twice the second moment; a time that is left out is
  /// counted with the offset before it.
  int64_t MomentOf(int64_t local) const;

 private:
  /// A day of a year on which the clocks are changed, and when.
  struct Change {
    enum class Kind : uint8_t { kWeekday, kJulian, kDay } kind = Kind::kWeekday;
    int month = 0, week = 0, day = 0;
    int64_t time = 2 * 3600;         ///< seconds after midnight, by the clock before the change
    int64_t In(int64_t year) const;  ///< seconds since 1970, as that clock counts them
  };
  struct Transition {
    int64_t at;      ///< seconds since 1970 in UTC
    int64_t offset;  ///< from then on
  };

  bool ParseRule(std::string_view text);

  std::string name_;
  int64_t first_offset_ = 0;  ///< before the first transition
  std::vector<Transition> transitions_;
  // After the last transition: standard time, and daylight time between two changes of each year.
  bool has_rule_ = false, has_daylight_ = false;
  int64_t standard_ = 0, daylight_ = 0;
  Change begin_, end_;
};

/// The zone of that name, in any case, as it stands in the tz database: "Europe/Berlin", "UTC". It lives as long as the
/// process. Errors: kSql, there is none, or no tz database.
Result<const TimeZone*> FindTimeZone(std::string_view name);

}  // namespace tessera
