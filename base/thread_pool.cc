#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/background_thread.h"
#include "base/exception_status.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"

namespace tessera {

/// What one Run does, on its stack.
struct ThreadPool::Job {
  explicit Job(const std::function<Status(int)>& function) : f(function) {}

  void Work(int worker) {
    const InterruptScope interrupt(flag);
    const MemoryPurpose for_purpose(purpose);
    const MemoryAccountScope of_account(account);
    std::optional<WithoutMemoryLimit> without_limit;
    if (has_no_limit) without_limit.emplace();
    Status status;
    try {
      status = f(worker);
    } catch (...) {
      status = StatusOfException();
    }
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    if (error.ok()) error = std::move(status);
  }

  const std::function<Status(int)>& f;
  const std::atomic<bool>* const flag = InterruptScope::flag();
  const char* const purpose = MemoryPurpose::current();
  MemoryAccount* const account = MemoryAccountScope::current();
  const bool has_no_limit = WithoutMemoryLimit::active();
  std::mutex mutex;
  Status error;
};

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& t : started_) t.join();
}

Status ThreadPool::Start(size_t others) {
  try {
    started_.reserve(others);
  } catch (...) {
    return StatusOfException();
  }
  while (started_.size() < others) {
    std::thread thread;
    TESSERA_TRY(StartThread(&thread, &ThreadPool::Work, this, static_cast<int>(started_.size()) + 1));
    started_.push_back(std::move(thread));
  }
  return {};
}

Status ThreadPool::Run(int workers, const std::function<Status(int)>& f) {
  Job job(f);
  if (workers > 1) {
    TESSERA_TRY(Start(static_cast<size_t>(workers) - 1));
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      workers_ = workers;
      running_ = workers - 1;
      ++round_;
    }
    start_.notify_all();
  }
  job.Work(0);
  if (workers > 1) {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return running_ == 0; });
    job_ = nullptr;
  }
  return job.error;
}

void ThreadPool::Work(int worker) {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    // A worker that this round does not need goes on sleeping; a worker that was started for it takes part at once.
    start_.wait(lock, [&] { return stop_ || (round_ != seen && job_ != nullptr && worker < workers_); });
    if (stop_) break;
    seen = round_;
    Job* const job = job_;
    lock.unlock();
    job->Work(worker);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
  FlushMemoryCount();
}

size_t Workers(const ThreadPool* pool) { return pool == nullptr ? 1 : static_cast<size_t>(pool->threads()); }

namespace {

Status RunWorkers(ThreadPool* pool, size_t workers, const std::function<Status(size_t)>& f) {
  const auto work = [&](int worker) { return f(static_cast<size_t>(worker)); };
  if (pool != nullptr) return pool->Run(static_cast<int>(workers), work);
  return ThreadPool(1).Run(1, work);
}

}  // namespace

Status ForWorkers(ThreadPool* pool, const std::function<Status(size_t)>& f) {
  return RunWorkers(pool, Workers(pool), f);
}

Status ForEach(ThreadPool* pool, size_t n, const std::function<Status(size_t)>& f) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  return RunWorkers(pool, std::clamp<size_t>(n, 1, Workers(pool)), [&](size_t) {
    for (size_t i; !failed.load(std::memory_order_relaxed) && (i = next.fetch_add(1)) < n;) {
      ThrowIfInterrupted();
      if (Status status = f(i); !status.ok()) {
        failed = true;
        return status;
      }
    }
    return Status::Ok();
  });
}

}  // namespace tessera
