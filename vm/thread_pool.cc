#include "vm/thread_pool.h"

namespace tessera::vm {

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& t : started_) t.join();
}

void ThreadPool::Run(int workers, const std::function<void(int)>& f) {
  if (workers > 1) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = &f;
      workers_ = workers;
      running_ = workers - 1;
      ++round_;
      while (static_cast<int>(started_.size()) < workers - 1) {
        started_.emplace_back(&ThreadPool::Work, this, static_cast<int>(started_.size()) + 1);
      }
    }
    start_.notify_all();
  }
  f(0);
  if (workers > 1) {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
    job_ = nullptr;
  }
}

void ThreadPool::Work(int worker) {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    // A worker that this round does not need sleeps on; one that was started for it takes part at once.
    start_.wait(lock, [&] { return stop_ || (round_ != seen && job_ != nullptr && worker < workers_); });
    if (stop_) return;
    seen = round_;
    const std::function<void(int)>* job = job_;
    lock.unlock();
    (*job)(worker);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace tessera::vm
