#include "session/statement_timer.h"

#include <chrono>

namespace tessera {

Status TimedOut() {
  return {ErrorCode::kCancelled, "canceling statement due to statement timeout",
          "SET statement_timeout allows it more milliseconds; 0 means no limit."};
}

Status StatementTimer::Start(int64_t milliseconds, std::atomic<bool>* cancel) {
  if (milliseconds == 0) return {};
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  return thread_.Start([this, end, cancel] {
    std::unique_lock lock(mutex_);
    if (!stopped_.wait_until(lock, end, [&] { return stop_; })) {
      fired_ = true;
      *cancel = true;
    }
    return Status::Ok();
  });
}

bool StatementTimer::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  (void)thread_.Join();
  return fired_;
}

}  // namespace tessera
