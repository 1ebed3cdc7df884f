// Wall time: points on a clock that never goes backwards, and what has passed since one. From any thread.
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
