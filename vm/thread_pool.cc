#include "vm/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <new>

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
    // A worker that this round does not need goes on sleeping; a worker that was started for it takes part at once.
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

namespace {

/// Calls f(worker) for `workers` of the pool. std::bad_alloc is caught, because no exception may leave a thread.
Status RunWorkers(ThreadPool* pool, size_t workers, const std::function<Status(size_t)>& f) {
  std::mutex mutex;
  Status error;
  const auto work = [&](int worker) {
    Status status;
    try {
      status = f(static_cast<size_t>(worker));
    } catch (const std::bad_alloc&) {
      status = OutOfMemory();
    }
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    error = status;
  };
  if (workers == 1) {
    work(0);
  } else {
    pool->Run(static_cast<int>(workers), work);
  }
  return error;
}

}  // namespace

size_t Workers(const ThreadPool* pool) { return pool == nullptr ? 1 : static_cast<size_t>(pool->threads()); }

Status ForWorkers(ThreadPool* pool, const std::function<Status(size_t)>& f) {
  return RunWorkers(pool, Workers(pool), f);
}

Status ForEach(ThreadPool* pool, size_t n, const std::function<Status(size_t)>& f) {
  std::atomic<size_t> next{0};
  return RunWorkers(pool, std::clamp<size_t>(n, 1, Workers(pool)), [&](size_t) {
    for (size_t i; (i = next.fetch_add(1)) < n;) TESSERA_TRY(f(i));
    return Status::Ok();
  });
}

}  // namespace tessera::vm
