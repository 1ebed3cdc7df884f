#include "session/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

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

Result<Engine::GpuTurn> Engine::WaitForGpu(const std::atomic<bool>& cancel) {
  GpuTurn turn(gpu_turn_, std::defer_lock);
  while (!turn.try_lock_for(std::chrono::milliseconds(20))) {
    if (cancel) return Cancelled();
  }
  return turn;
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
