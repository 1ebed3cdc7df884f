// What the sessions of one process share: the GPU with its cache of columns, the threads of queries, and the files of
// tables that are open, with what was unpacked of them.
//
// A program that uses the GPU takes its turn from its first section to its last row (WaitForGpu): sections of two programs
// would take each other's memory. So a client that takes its rows slowly keeps the others from the GPU, not from the host.
//
// The memory limit and that of temporary files are the process's: the session that sets one sets it for all.
//
// Start at: Engine, SessionOptions::engine. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "mpi/rank_gpu.h"
#include "tablet/files/shared_files.h"
#include "vm/vm.h"

namespace tessera {

class Engine {
 public:
  /// As RankGpu::Open.
  Status OpenGpu(int local_rank, uint64_t memory_bytes);
  /// nullptr if it is not open.
  Gpu* gpu() const;
  bool gpu_failed() const;

  /// A thread may hold several turns at once.
  using GpuTurn = std::unique_lock<std::recursive_timed_mutex>;
  /// Errors: kCancelled, once `cancel` is set.
  Result<GpuTurn> WaitForGpu(const std::atomic<bool>& cancel);

  /// An executor with that number of threads, for one statement: one that is idle, or a new one. So there are as many as statements
  /// that run, however many sessions there are.
  std::unique_ptr<vm::Executor> TakeExecutor(int threads);
  /// nullptr is none.
  void GiveBack(std::unique_ptr<vm::Executor> executor);

  const std::shared_ptr<SharedFiles>& files() const { return files_; }
  /// True for the first caller: it says what holds for the process.
  bool IsFirst() { return !has_session_.exchange(true); }

 private:
  /// Beyond that, idle executors are not worth their memory.
  static constexpr size_t kMostIdle = 16;

  mutable std::mutex gpu_mutex_;
  RankGpu gpu_;
  std::recursive_timed_mutex gpu_turn_;
  std::mutex executors_mutex_;
  std::vector<std::unique_ptr<vm::Executor>> idle_;  ///< the latest one last
  const std::shared_ptr<SharedFiles> files_ = std::make_shared<SharedFiles>();
  std::atomic<bool> has_session_{false};
};

}  // namespace tessera
