#include "session/gpu_line.h"

#include <algorithm>

#include "vm/program/program.h"

namespace tessera {
namespace {

/// A program may be passed over for this many times as long as it takes.
constexpr int kPatience = 16;
constexpr size_t kMostKinds = 4096;
constexpr std::chrono::milliseconds kLookAround{20};  ///< for a request to cancel

}  // namespace

uint64_t KindOf(const vm::Program& program) {
  uint64_t kind = 0;
  const auto add = [&](uint64_t word) { kind = (kind ^ word) * 0x9E3779B97F4A7C15u ^ kind >> 32; };
  for (const vm::Section& s : program.sections) {
    add(s.code.size());
    for (const vm::Instruction& in : s.code) add(static_cast<uint64_t>(in.op) << 32 | static_cast<uint32_t>(in.p1));
  }
  for (const auto& table : program.tables) add(static_cast<uint64_t>(table.id));
  return kind;
}

void GpuLine::Grant(std::thread::id thread, uint64_t kind) {
  owner_ = thread;
  turns_ = 1;
  kind_ = kind;
  since_ = Clock::now();
}

/// What is not known takes as long as all have on average.
GpuLine::Clock::duration GpuLine::ExpectedOf(uint64_t kind) const {
  const auto known = took_.find(kind);
  if (known != took_.end()) return known->second;
  return took_.empty() ? Clock::duration{0} : took_all_ / static_cast<int>(took_.size());
}

Result<GpuLine::Turn> GpuLine::Wait(uint64_t kind, const std::atomic<bool>& cancel) {
  const std::thread::id self = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  if (owner_ == self) {
    ++turns_;
    return Turn(this);
  }
  if (owner_ == std::thread::id()) {
    Grant(self, kind);
    return Turn(this);
  }
  Waiter waiter{self, kind, Clock::now() + kPatience * ExpectedOf(kind), {}};
  const auto place = waiting_.insert(waiting_.end(), &waiter);
  while (owner_ != self) {
    waiter.changed.wait_for(lock, kLookAround);
    if (owner_ == self || !cancel) continue;
    waiting_.erase(place);
    return Cancelled();
  }
  return Turn(this);
}

void GpuLine::End() {
  const std::lock_guard lock(mutex_);
  if (--turns_ > 0) return;
  const Clock::duration took = Clock::now() - since_;
  if (took_.size() >= kMostKinds && !took_.contains(kind_)) {
    took_.clear();
    took_all_ = {};
  }
  Clock::duration& known = took_[kind_];
  took_all_ += took - known;
  known = took;
  owner_ = {};
  const auto next = std::ranges::min_element(waiting_, {}, [](const Waiter* w) { return w->latest; });
  if (next == waiting_.end()) return;
  Waiter* const waiter = *next;
  waiting_.erase(next);
  Grant(waiter->thread, waiter->kind);
  waiter->changed.notify_one();  // (under the lock: it is gone once it sees its turn)
}

}  // namespace tessera
