// Threads that run one function together: how all parallel work of Tessera runs. No exception leaves it; every one
// becomes a Status. The threads of a pool live as long as it does.
//
// A worker works for the statement of the thread that called Run: its InterruptScope, its MemoryPurpose and MemoryAccount, and, where that has one,
// WithoutMemoryLimit.
//
// Start at: ForEach, ThreadPool. One thread at a time calls a pool. For one thread beside the caller, see
// base/background_thread.h.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"

namespace tessera {

class ThreadPool {
 public:
  /// `threads`: number of workers, including the caller of Run. Threads are started by the first Run that needs them.
  explicit ThreadPool(int threads) : threads_(threads < 1 ? 1 : threads) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls f(worker) for worker 0 .. workers - 1 at the same time, 0 on the calling thread; returns when all are done.
  /// Errors: the first one of a worker, exceptions included; kResource, a thread could not be started, and f was not
  /// called. REQUIRES: 1 <= workers <= threads(); one Run at a time.
  Status Run(int workers, const std::function<Status(int)>& f);
  int threads() const { return threads_; }

 private:
  struct Job;
  void Work(int worker);
  Status Start(size_t others);

  const int threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  Job* job_ = nullptr;
  uint64_t round_ = 0;
  int workers_ = 0, running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> started_;
};

/// The number of workers of ForWorkers: all of the pool's, or only the caller if `pool` is nullptr.
size_t Workers(const ThreadPool* pool);
/// Calls f(worker) for all workers at the same time. Errors: as ThreadPool::Run.
Status ForWorkers(ThreadPool* pool, const std::function<Status(size_t)>& f);
/// Calls f(i) for each i < n; a free worker takes the next i. Errors: as ThreadPool::Run; then some i may be left out.
Status ForEach(ThreadPool* pool, size_t n, const std::function<Status(size_t)>& f);

}  // namespace tessera
