// What the sessions of one process share: the GPU with its cache of columns, the threads of queries, and the files of
// tables that are open, with what was unpacked of them; commits of INSERTs (insert_queue.h); and each other's sight (activity.h).
//
// A program that uses the GPU takes its turn from its first section to its last row (WaitForGpu): sections of two programs
// would take each other's memory. So a client that takes its rows slowly keeps the others from the GPU, not from the host.
//
// The memory limit and that of temporary files are the process's: the session that sets one sets it for all.
//
// Start at: Engine, SessionOptions::engine. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "mpi/rank_gpu.h"
#include "session/activity.h"
#include "session/gpu_line.h"
#include "session/insert_queue.h"
#include "tablet/files/shared_files.h"
#include "tablet/kept_files.h"
#include "vm/vm.h"

namespace tessera {

class Cluster;

class Engine {
 public:
  /// As RankGpu::Open.
  Status OpenGpu(int local_rank, uint64_t memory_bytes);
  /// nullptr if it is not open.
  Gpu* gpu() const;
  bool gpu_failed() const;

  using GpuTurn = GpuLine::Turn;
  /// As GpuLine::Wait.
  Result<GpuTurn> WaitForGpu(uint64_t kind, const std::atomic<bool>& cancel) { return gpu_line_.Wait(kind, cancel); }

  /// The other ranks run one program at a time, for whichever session: while the turn lives, they run those of this thread. Taken
  /// before the GPU's turn, never after it. Errors: kCancelled, once `cancel` is set.
  using RanksTurn = std::unique_lock<std::recursive_timed_mutex>;
  Result<RanksTurn> WaitForRanks(const std::atomic<bool>& cancel);
  /// As Cluster::OpenDatabase, for each session that lets ranks run its programs: the first one tells them the database.
  /// REQUIRES: all sessions of the engine have the same one.
  Status OpenOnRanks(Cluster* cluster, const std::string& directory, bool temporary, bool scatter);
  /// Of a session for which OpenOnRanks was OK. The last one's closes the database.
  void CloseOnRanks(Cluster* cluster);

  struct QueryTurnEnd {
    void operator()(Engine* engine) const { engine->EndQuery(); }
  };
  /// A place among the large queries that run at once, while it lives.
  using QueryTurn = std::unique_ptr<Engine, QueryTurnEnd>;
  /// Queries that read tables of as many rows wait for each other; the others run at once.
  static constexpr uint64_t kLargeQuery = 1 << 20;
  /// As many of these run at a time; 0: any number.
  void SetMostQueries(int most);
  /// In the order of the calls, so that no session is passed over. Errors: kCancelled, once `cancel` is set.
  Result<QueryTurn> WaitForTurn(const std::atomic<bool>& cancel);

  /// An executor with that number of threads, for one statement: one that is idle, or a new one. So there are as many as statements
  /// that run, however many sessions there are.
  std::unique_ptr<vm::Executor> TakeExecutor(int threads);
  /// nullptr is none.
  void GiveBack(std::unique_ptr<vm::Executor> executor);

  const std::shared_ptr<SharedFiles>& files() const { return files_; }
  /// Parquet files that sessions read.
  const std::shared_ptr<KeptFiles>& kept_files() const { return kept_files_; }
  const std::shared_ptr<Activity>& activity() const { return activity_; }
  InsertQueue* inserts() { return &inserts_; }
  /// True for the first caller: it says what holds for the process.
  bool IsFirst() { return !has_session_.exchange(true); }

 private:
  void EndQuery();

  /// Beyond that, idle executors are not worth their memory.
  static constexpr size_t kMostIdle = 16;

  mutable std::mutex gpu_mutex_;
  RankGpu gpu_;
  GpuLine gpu_line_;
  std::recursive_timed_mutex ranks_turn_;
  std::mutex on_ranks_mutex_;
  int on_ranks_ = 0;  ///< sessions whose programs ranks run
  std::mutex turns_mutex_;
  std::condition_variable turns_changed_;
  std::deque<const void*> waiting_;  ///< the first one is the next
  int most_queries_ = 0, queries_ = 0;
  std::mutex executors_mutex_;
  std::vector<std::unique_ptr<vm::Executor>> idle_;  ///< the latest one last
  const std::shared_ptr<SharedFiles> files_ = std::make_shared<SharedFiles>();
  const std::shared_ptr<KeptFiles> kept_files_ = std::make_shared<KeptFiles>();
  const std::shared_ptr<Activity> activity_ = std::make_shared<Activity>();
  InsertQueue inserts_;
  std::atomic<bool> has_session_{false};
};

}  // namespace tessera
