// Threads for work that waits: as many as there is such work at a time, so that no connection waits for another's statement
// and none that is idle has a thread.
//
// Start at: Workers::Run. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "base/status.h"

namespace tessera::server {

class Workers {
 public:
  Workers() = default;
  /// Waits for all that was begun.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// f() at once, on a thread that is idle or on a new one; it must not throw. Errors: kResource, there is no thread for it.
  Status Run(std::function<void()> f);

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::deque<std::function<void()>> waiting_;
  size_t threads_ = 0, idle_ = 0;
  std::chrono::steady_clock::time_point trimmed_;  ///< when freed memory was given back
  bool stopping_ = false;
};

}  // namespace tessera::server
