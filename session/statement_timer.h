// SET statement_timeout: a thread that sets the cancel flag of a statement which takes too long; and for
// idle_in_transaction_session_timeout one that waits between statements. There is none before the first that has a timeout;
// then it stays, because to start and to join one takes longer than a short query.
//
// Start at: StatementTimer. Private to session/; one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/background_thread.h"
#include "base/status.h"

namespace tessera {

/// The error of a statement that statement_timeout has ended.
Status TimedOut();

class StatementTimer {
 public:
  StatementTimer() = default;
  ~StatementTimer();
  StatementTimer(const StatementTimer&) = delete;
  StatementTimer& operator=(const StatementTimer&) = delete;

  /// Calls `late` after `milliseconds`, unless Stop() is called before; 0: never. Once. Errors: kResource, no thread.
  Status Start(int64_t milliseconds, std::function<void()> late);
  /// Returns whether it has been called; then it has returned. It is not called from here on.
  bool Stop();

 private:
  using Clock = std::chrono::steady_clock;

  Status Watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> late_;                          ///< of what is timed; empty: nothing is
  Clock::time_point end_;                               ///< when its time is over
  Clock::time_point wakes_ = Clock::time_point::max();  ///< when the thread looks again
  bool fired_ = false;
  bool closing_ = false;
  BackgroundThread thread_;
};

}  // namespace tessera
