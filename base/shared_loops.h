// Loops that idle threads help with: a thread that has to wait for what another one makes takes part in making it.
//
// Start at: SharedLoops::Run, HelpUntil. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>

#include "base/status.h"

namespace tessera {

/// Calls f(i) for each i < n, perhaps at the same time, and returns when all calls are done.
using LoopRunner = std::function<Status(size_t n, const std::function<Status(size_t)>& f)>;

class SharedLoops {
 public:
  /// A LoopRunner whose calls are shared with the threads that help. Several threads may run loops at the same time. All
  /// calls are made, whether some fail or not. Errors: that of the least i that failed; exceptions become errors.
  Status Run(size_t n, const std::function<Status(size_t)>& f);
  /// Takes part in the loops of other threads until `done` is true. The thread that makes it true calls Wake()
  /// afterwards.
  void HelpUntil(const std::function<bool()>& done);
  void Wake();

 private:
  struct Loop {
    const std::function<Status(size_t)>& f;
    const size_t n;
    size_t next = 0, running = 0;
    size_t failed = SIZE_MAX;  ///< the least i that failed
    Status error = {};
  };
  /// Makes the next call of the loop. REQUIRES: there is one; `lock` is held.
  void Call(Loop* loop, std::unique_lock<std::mutex>* lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Loop*> open_;  ///< with calls that have not begun
};

}  // namespace tessera
