// Work of the host that the statement's threads share and that can fail. Private to kernels/.
#pragma once

#include <functional>
#include <mutex>
#include <new>

#include "base/status.h"
#include "vm/thread_pool.h"

namespace tessera::kernels {

/// How many workers ForWorkers has.
inline size_t Workers(const vm::ThreadPool* pool) { return pool == nullptr ? 1 : static_cast<size_t>(pool->threads()); }

/// f(worker) for each of them at the same time; an error that one returns. `pool` may be nullptr: one worker.
inline Status ForWorkers(vm::ThreadPool* pool, const std::function<Status(size_t)>& f) {
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
  if (Workers(pool) == 1) {
    work(0);
  } else {
    pool->Run(pool->threads(), work);
  }
  return error;
}

}  // namespace tessera::kernels
