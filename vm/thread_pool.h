// Threads that live as long as an executor and run one function together. For vm/ and the devices that run its
// sections.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"

namespace tessera::vm {

class ThreadPool {
 public:
  /// `threads`: number of workers, including the caller of Run. Threads are started by the first Run that needs them.
  explicit ThreadPool(int threads) : threads_(threads < 1 ? 1 : threads) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls f(worker) for worker 0 .. workers - 1 at the same time, 0 on the calling thread; returns when all are done.
  /// REQUIRES: 1 <= workers <= threads(); one Run at a time.
  void Run(int workers, const std::function<void(int)>& f);
  int threads() const { return threads_; }

 private:
  void Work(int worker);

  const int threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(int)>* job_ = nullptr;
  uint64_t round_ = 0;
  int workers_ = 0, running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> started_;
};

/// The number of workers of ForWorkers: all of the pool's, or only the caller if `pool` is nullptr.
size_t Workers(const ThreadPool* pool);
/// Calls f(worker) for all workers at the same time. Errors: one that a worker returned; kResource, a worker ran out of
/// memory.
Status ForWorkers(ThreadPool* pool, const std::function<Status(size_t)>& f);
/// Calls f(i) for each i < n; a free worker takes the next i. Errors: as ForWorkers; then some i may be left out.
Status ForEach(ThreadPool* pool, size_t n, const std::function<Status(size_t)>& f);

}  // namespace tessera::vm
