// Whose program runs on the GPU next. One at a time: sections of two programs would take each other's memory.
//
// The one that is expected to end soonest goes first, by how long programs of its kind took before, so that a short query does
// not wait for all long ones. A long one is passed over for a time in proportion to its own, and then it is first.
//
// Start at: GpuLine::Wait. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/status.h"

namespace tessera {

namespace vm {
struct Program;
}

/// Programs with the same instructions are of a kind; constants do not matter.
uint64_t KindOf(const vm::Program& program);

class GpuLine {
 public:
  struct TurnEnd {
    void operator()(GpuLine* line) const { line->End(); }
  };
  /// The GPU, while it lives. Of the thread that waited for it.
  using Turn = std::unique_ptr<GpuLine, TurnEnd>;
  /// A thread that has the GPU gets another turn at once. `kind`: as of KindOf. Errors: kCancelled, once `cancel` is set.
  Result<Turn> Wait(uint64_t kind, const std::atomic<bool>& cancel);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiter {
    std::thread::id thread;
    uint64_t kind;
    Clock::time_point latest;  ///< who has the earliest one is next
    std::condition_variable changed;
  };
  void Grant(std::thread::id thread, uint64_t kind);
  void End();
  Clock::duration ExpectedOf(uint64_t kind) const;

  std::mutex mutex_;
  std::thread::id owner_;  ///< of nothing: the GPU is free
  int turns_ = 0;          ///< that the owner has
  uint64_t kind_ = 0;      ///< of the first of them
  Clock::time_point since_;
  std::list<Waiter*> waiting_;
  std::unordered_map<uint64_t, Clock::duration> took_;  ///< the latest turn of a kind
  Clock::duration took_all_{0};
};

}  // namespace tessera
