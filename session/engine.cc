#include "session/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "mpi/cluster.h"

namespace tessera {

Status Engine::OpenGpu(int local_rank, uint64_t memory_bytes) {
  const std::lock_guard lock(gpu_mutex_);
  return gpu_.Open(local_rank, memory_bytes);
}

Gpu* Engine::gpu() const {
  const std::lock_guard lock(gpu_mutex_);
  return gpu_.get();
}

bool Engine::gpu_failed() const {
  const std::lock_guard lock(gpu_mutex_);
  return gpu_.failed();
}

Result<Engine::RanksTurn> Engine::WaitForRanks(const std::atomic<bool>& cancel) {
  RanksTurn turn(ranks_turn_, std::defer_lock);
  while (!turn.try_lock_for(std::chrono::milliseconds(20))) {
    if (cancel) return Cancelled();
  }
  return turn;
}

Status Engine::OpenOnRanks(Cluster* cluster, const std::string& directory, bool temporary, bool scatter) {
  const std::lock_guard lock(on_ranks_mutex_);
  if (on_ranks_ == 0) {
    const std::lock_guard turn(ranks_turn_);
    TESSERA_TRY(cluster->OpenDatabase(directory, temporary, scatter));
  }
  ++on_ranks_;
  return Status::Ok();
}

void Engine::CloseOnRanks(Cluster* cluster) {
  const std::lock_guard lock(on_ranks_mutex_);
  if (--on_ranks_ > 0) return;
  const std::lock_guard turn(ranks_turn_);
  cluster->CloseDatabase();
}

void Engine::SetMostQueries(int most) {
  const std::lock_guard lock(turns_mutex_);
  most_queries_ = most;
  turns_changed_.notify_all();
}

Result<Engine::QueryTurn> Engine::WaitForTurn(const std::atomic<bool>& cancel) {
  std::unique_lock lock(turns_mutex_);
  if (most_queries_ == 0) return QueryTurn();
  waiting_.push_back(&cancel);  // a session waits once
  while (waiting_.front() != &cancel || queries_ >= most_queries_) {
    if (cancel) {
      std::erase(waiting_, &cancel);
      turns_changed_.notify_all();
      return Cancelled();
    }
    turns_changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  waiting_.pop_front();
  ++queries_;
  turns_changed_.notify_all();
  return QueryTurn(this);
}

void Engine::EndQuery() {
  const std::lock_guard lock(turns_mutex_);
  --queries_;
  turns_changed_.notify_all();
}

std::unique_ptr<vm::Executor> Engine::TakeExecutor(int threads) {
  {
    const std::lock_guard lock(executors_mutex_);
    const auto same =
        std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& e) { return e->threads() == threads; });
    if (same != idle_.rend()) {
      std::unique_ptr<vm::Executor> executor = std::move(*same);
      idle_.erase(std::next(same).base());
      return executor;
    }
  }
  return std::make_unique<vm::Executor>(threads);
}

void Engine::GiveBack(std::unique_ptr<vm::Executor> executor) {
  if (executor == nullptr) return;
  std::unique_ptr<vm::Executor> gone;  // ended without the lock
  const std::lock_guard lock(executors_mutex_);
  if (idle_.size() == kMostIdle) {
    gone = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
  idle_.push_back(std::move(executor));
}

}  // namespace tessera
