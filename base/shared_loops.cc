#include "base/shared_loops.h"

#include <utility>

#include "base/exception_status.h"

namespace tessera {

void SharedLoops::Call(Loop* loop, std::unique_lock<std::mutex>* lock) {
  const size_t i = loop->next++;
  if (loop->next == loop->n) open_.remove(loop);
  ++loop->running;
  lock->unlock();
  Status status = Caught([&] { return loop->f(i); });
  lock->lock();
  if (!status.ok() && i < loop->failed) {
    loop->failed = i;
    loop->error = std::move(status);
  }
  if (--loop->running == 0 && loop->next == loop->n) changed_.notify_all();
}

Status SharedLoops::Run(size_t n, const std::function<Status(size_t)>& f) {
  if (n == 0) return Status::Ok();
  Loop loop{f, n};
  std::unique_lock<std::mutex> lock(mutex_);
  open_.push_back(&loop);
  if (n > 1) changed_.notify_all();
  while (loop.next < n) Call(&loop, &lock);
  changed_.wait(lock, [&] { return loop.running == 0; });
  return std::move(loop.error);
}

void SharedLoops::HelpUntil(const std::function<bool()>& done) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return done() || !open_.empty(); });
    if (done()) return;
    Call(open_.front(), &lock);
  }
}

void SharedLoops::Wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  changed_.notify_all();
}

}  // namespace tessera
