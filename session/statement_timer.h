// SET statement_timeout: a thread that sets the cancel flag of a statement which takes too long. Without a timeout there
// is no thread.
//
// Start at: StatementTimer. Private to session/; one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/background_thread.h"
#include "base/status.h"

namespace tessera {

/// The error of a statement that statement_timeout has ended.
Status TimedOut();

class StatementTimer {
 public:
  ~StatementTimer() { (void)Stop(); }

  /// Sets `*cancel` after so many milliseconds, unless Stop() is called before; 0: never. Errors: kResource, no thread.
  Status Start(int64_t milliseconds, std::atomic<bool>* cancel);
  /// Returns whether it has set the flag.
  bool Stop();

 private:
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  bool fired_ = false;
  BackgroundThread thread_;
};

}  // namespace tessera
