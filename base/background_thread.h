// One thread beside the caller, which joins it. For many threads that do the same, see base/thread_pool.h.
//
// Start at: BackgroundThread. One thread owns it.
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "base/memory_budget.h"
#include "base/status.h"

namespace tessera {

/// The error for a thread that the system refused, out of catch (...).
Status ThreadRefused() noexcept;
/// For tests: before a thread is started, `refuse` is asked whether it shall be refused; nullptr: none is.
void SetThreadFault(bool (*refuse)());
/// Throws std::system_error if the test wants it.
void AskThreadFault();

/// Starts f(arguments...) on `thread`. Errors: kResource.
template <class F, class... Arguments>
Status StartThread(std::thread* thread, F&& f, Arguments&&... arguments) noexcept {
  try {
    AskThreadFault();
    *thread = std::thread(std::forward<F>(f), std::forward<Arguments>(arguments)...);
    return {};
  } catch (...) {
    return ThreadRefused();
  }
}

class BackgroundThread {
 public:
  BackgroundThread() = default;
  /// Waits for the end of what runs: its owner must have told it to end.
  ~BackgroundThread() { (void)Join(); }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  /// Errors: kResource, the thread could not be started. REQUIRES: it does not run.
  Status Start(std::function<Status()> f);
  bool started() const { return thread_.joinable(); }
  /// Waits for the end of f. Errors: what it returned; its exception.
  Status Join();

 private:
  std::thread thread_;
  Status status_;
};

}  // namespace tessera
