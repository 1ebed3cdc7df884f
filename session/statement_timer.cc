#include "session/statement_timer.h"

#include <utility>

namespace tessera {

Status TimedOut() {
  return {ErrorCode::kCancelled, "canceling statement due to statement timeout",
          "SET statement_timeout allows it more milliseconds; 0 means no limit."};
}

StatementTimer::~StatementTimer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

Status StatementTimer::Start(int64_t milliseconds, std::function<void()> late) {
  if (milliseconds == 0) return {};
  if (!thread_.started()) TESSERA_TRY(thread_.Start([this] { return Watch(); }));
  bool is_late;
  {
    const std::lock_guard lock(mutex_);
    fired_ = false;
    late_ = std::move(late);
    end_ = Clock::now() + std::chrono::milliseconds(milliseconds);
    is_late = end_ < wakes_;
  }
  if (is_late) changed_.notify_all();
  return {};
}

bool StatementTimer::Stop() {
  const std::lock_guard lock(mutex_);
  late_ = nullptr;
  return std::exchange(fired_, false);
}

/// Most statements end long before their time, so the thread sleeps on: it wakes at the end of one that is over, and
/// sleeps until the end of the one that runs then.
Status StatementTimer::Watch() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (late_ == nullptr) {
      wakes_ = Clock::time_point::max();
      changed_.wait(lock);
    } else if (Clock::now() < end_) {
      wakes_ = end_;
      changed_.wait_until(lock, end_);
    } else {
      // (The mutex is held: Stop() waits for its end.)
      std::exchange(late_, nullptr)();
      fired_ = true;
    }
  }
  return {};
}

}  // namespace tessera
