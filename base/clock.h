// Wall time on a clock that never goes backwards: points in time, and the time since one. From any thread.
//
// Start at: MillisecondsSince.
#pragma once

#include <chrono>

namespace tessera {

using Clock = std::chrono::steady_clock;

inline double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace tessera
