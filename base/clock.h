// Wall time on a clock that never goes backwards: points in time, and the time since one. The time of day. From any thread.
//
// Start at: MillisecondsSince.
#pragma once

#include <chrono>
#include <cstdint>

namespace tessera {

using Clock = std::chrono::steady_clock;

inline double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Microseconds from 1970-01-01 to now, in UTC: the TIMESTAMP of now().
inline int64_t MicrosecondsNow() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace tessera
