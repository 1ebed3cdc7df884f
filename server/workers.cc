#include "server/workers.h"

#include <malloc.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/background_thread.h"
#include "base/memory_budget.h"

namespace tessera::server {
namespace {

/// A thread that was idle for so long ends.
constexpr std::chrono::seconds kPatience{5};
/// So often freed memory goes back to the system, which takes some milliseconds.
constexpr std::chrono::seconds kBetweenTrims{10};

}  // namespace

Workers::~Workers() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  ended_.wait(lock, [this] { return threads_ == 0; });
}

Status Workers::Run(std::function<void()> f) {
  std::unique_lock lock(mutex_);
  waiting_.push_back(std::move(f));
  if (idle_ >= waiting_.size()) {
    lock.unlock();  // which the thread wants at once
    changed_.notify_one();
    return {};
  }
  std::thread thread;
  if (Status status = StartThread(&thread, [this] { Work(); }); !status.ok()) {
    waiting_.pop_back();
    return status;
  }
  ++threads_;
  thread.detach();  // the destructor waits for threads_
  return {};
}

void Workers::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    (void)changed_.wait_for(lock, kPatience, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) break;  // it stops, or was idle for long
    const std::function<void()> f = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    f();
    lock.lock();
  }
  FlushMemoryCount();
  // What clients that were many have had stays with the allocator, in an arena for each few threads.
  if (const auto now = std::chrono::steady_clock::now(); !stopping_ && now - trimmed_ > kBetweenTrims) {
    trimmed_ = now;
    lock.unlock();
    malloc_trim(0);
    lock.lock();
  }
  --threads_;
  ended_.notify_all();
}

}  // namespace tessera::server
