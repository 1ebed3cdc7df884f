#include "block.h"

#include <unistd.h>

#include <bit>
#include <boost/context/fiber.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_emulator {
namespace {

constexpr uint32_t kLanes = 32, kBarriers = 2;
constexpr size_t kStackBytes = 256 << 10;

enum class State : uint8_t { kReady, kPolling, kMeeting, kAtBarrier, kDone };

struct Thread {
  Index index;
  State state = State::kReady;
  uint32_t barrier = 0;
  Where where;  ///< it waits there
  boost::context::fiber fiber, scheduler;
  boost::context::stack_context stack;
};

/// Lanes meet twice before values of the first time are written over: all of them have read those by then.
struct Warp {
  uint32_t mask = 0, arrived = 0, times = 0;
  Where where;
  uint64_t values[2][kLanes];
  uint64_t any;             ///< the bits that any of those has that have arrived
  uint64_t any_of[kLanes];  ///< the same of a lane's last meeting, for that lane
};

/// Stacks are used again: blocks come by the thousand.
class Stacks {
 public:
  boost::context::stack_context allocate() {
    if (free_.empty()) return boost::context::fixedsize_stack(kStackBytes).allocate();
    const boost::context::stack_context s = free_.back();
    free_.pop_back();
    return s;
  }
  void deallocate(boost::context::stack_context& s) { free_.push_back(s); }
  ~Stacks() {
    for (boost::context::stack_context& s : free_) boost::context::fixedsize_stack(kStackBytes).deallocate(s);
  }

 private:
  std::vector<boost::context::stack_context> free_;
};
thread_local Stacks stacks;
struct SharedStacks {
  boost::context::stack_context allocate() { return stacks.allocate(); }
  void deallocate(boost::context::stack_context& s) { stacks.deallocate(s); }
};

/// Tells the address sanitizer that the stack changes.
class SwitchOfStacks {
 public:
#if defined(__SANITIZE_ADDRESS__)
  SwitchOfStacks(const void* bottom, size_t bytes) { __sanitizer_start_switch_fiber(&fake_, bottom, bytes); }
  ~SwitchOfStacks() { __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr); }

 private:
  void* fake_ = nullptr;
#else
  SwitchOfStacks(const void*, size_t) {}
#endif
};

class Block {
 public:
  Block(const std::function<void()>& kernel, uint3 block, dim3 block_dim, dim3 grid_dim)
      : kernel_(kernel), threads_(block_dim.x * block_dim.y * block_dim.z), left_(Count()) {
    warps_.resize((Count() + kLanes - 1) / kLanes);
    for (uint32_t i = 0; i < Count(); ++i) {
      threads_[i].index = {
          {i % block_dim.x, i / block_dim.x % block_dim.y, i / block_dim.x / block_dim.y}, block, block_dim, grid_dim};
    }
  }

  void Run();
  void Suspend(State state, const Where& where);
  void Sync(uint32_t barrier, uint32_t count, const Where& where);
  const uint64_t* Meet(uint32_t mask, uint64_t value, const Where& where);
  uint64_t MeetOr(uint32_t mask, uint64_t value, const Where& where);
  [[noreturn]] void Fail(const char* what, const Where& where) const;

  std::vector<Copy> copies;
  std::minstd_rand random;

 private:
  uint32_t Count() const { return static_cast<uint32_t>(threads_.size()); }
  void Resume(Thread* t);
  /// Runs the lanes of a warp until each of them waits. Returns whether one ran.
  bool RunWarp(uint32_t warp);
  void Release(uint32_t barrier);
  [[noreturn]] void FailStuck() const;

  const std::function<void()>& kernel_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  uint32_t arrived_[kBarriers] = {};
  uint32_t left_;
  Thread* running_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_bytes_ = 0;
};

thread_local Block* current = nullptr;

void Block::Resume(Thread* t) {
  running_ = t;
  here = &t->index;
  if (!t->fiber) {
    SharedStacks shared;
    t->stack = shared.allocate();
    const boost::context::preallocated place(t->stack.sp, t->stack.size, t->stack);
    t->fiber = boost::context::fiber(std::allocator_arg, place, shared, [this, t](boost::context::fiber&& scheduler) {
#if defined(__SANITIZE_ADDRESS__)
      __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack_, &scheduler_bytes_);
#endif
      t->scheduler = std::move(scheduler);
      kernel_();
      t->state = State::kDone;
#if defined(__SANITIZE_ADDRESS__)
      __sanitizer_start_switch_fiber(nullptr, scheduler_stack_, scheduler_bytes_);
#endif
      return std::move(t->scheduler);
    });
  }
  {
    const SwitchOfStacks to(static_cast<char*>(t->stack.sp) - t->stack.size, t->stack.size);
    t->fiber = std::move(t->fiber).resume();
  }
  here = nullptr;
  running_ = nullptr;
  if (t->state != State::kDone) return;
  --left_;
  if (left_ != 0 && arrived_[0] == left_) Release(0);
}

void Block::Suspend(State state, const Where& where) {
  Thread* t = running_;
  t->state = state;
  t->where = where;
  const SwitchOfStacks to(scheduler_stack_, scheduler_bytes_);
  t->scheduler = std::move(t->scheduler).resume();
}

bool Block::RunWarp(uint32_t warp) {
  const uint32_t first = warp * kLanes, lanes = std::min(kLanes, Count() - first);
  bool ran = false;
  for (bool again = true; again;) {
    again = false;
    const uint32_t draw = static_cast<uint32_t>(random());
    const uint32_t begin = draw >> 8, step = (draw & 1) != 0 ? 1 : lanes - 1;
    for (uint32_t i = 0; i < lanes; ++i) {
      Thread& t = threads_[first + (begin + i * step) % lanes];
      if (t.state != State::kReady) continue;
      Resume(&t);
      ran = again = true;
    }
  }
  return ran;
}

void Block::Run() {
  const uint32_t warps = static_cast<uint32_t>(warps_.size());
  while (left_ != 0) {
    const uint32_t draw = static_cast<uint32_t>(random());
    const uint32_t begin = draw >> 16;
    bool ran = false, polls = false;
    for (uint32_t i = 0; i < warps; ++i) {
      // Now and then a warp stays behind.
      const bool waits = (draw >> (i % 16) & 1) != 0 && i + 1 < warps;
      const uint32_t warp = (begin + i) % warps;
      if (!waits) ran |= RunWarp(warp);
      for (uint32_t t = warp * kLanes; t < std::min((warp + 1) * kLanes, Count()); ++t) {
        polls |= threads_[t].state == State::kPolling || (waits && threads_[t].state == State::kReady);
        if (threads_[t].state == State::kPolling && !waits) threads_[t].state = State::kReady;
      }
    }
    if (left_ == 0 || ran) continue;
    if (!polls) FailStuck();
    std::this_thread::yield();  // for other blocks
  }
}

void Block::Release(uint32_t barrier) {
  arrived_[barrier] = 0;
  for (Thread& t : threads_) {
    if (t.state == State::kAtBarrier && t.barrier == barrier) t.state = State::kReady;
  }
}

void Block::Sync(uint32_t barrier, uint32_t count, const Where& where) {
  if (++arrived_[barrier] == (count == 0 ? left_ : count)) {
    Release(barrier);
    return;
  }
  running_->barrier = barrier;
  Suspend(State::kAtBarrier, where);
}

const uint64_t* Block::Meet(uint32_t mask, uint64_t value, const Where& where) {
  const uint32_t thread = static_cast<uint32_t>(running_ - threads_.data()), lane = thread % kLanes;
  if ((mask >> lane & 1) == 0) Fail("a lane is not in the mask that it names", where);
  Warp& w = warps_[thread / kLanes];
  if (w.arrived == 0) {
    w.mask = mask;
    w.where = where;
    w.any = 0;
  } else if (w.mask != mask || w.where.line() != where.line() || w.where.column() != where.column()) {
    Fail("lanes of a warp meet at different places, or with different masks", where);
  }
  uint64_t* values = w.values[w.times % 2];
  values[lane] = value;
  w.any |= value;
  w.arrived |= 1u << lane;
  if (w.arrived != w.mask) {
    Suspend(State::kMeeting, where);
    return values;
  }
  w.arrived = 0;
  ++w.times;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const uint32_t i = static_cast<uint32_t>(std::countr_zero(rest));
    w.any_of[i] = w.any;
    if (i != lane) threads_[thread - lane + i].state = State::kReady;
  }
  return values;
}

uint64_t Block::MeetOr(uint32_t mask, uint64_t value, const Where& where) {
  const size_t thread = static_cast<size_t>(running_ - threads_.data());
  Meet(mask, value, where);
  return warps_[thread / kLanes].any_of[thread % kLanes];
}

void Block::Fail(const char* what, const Where& where) const {
  std::fprintf(stderr, "%s:%u: %s (in %s", where.file_name(), static_cast<unsigned>(where.line()), what,
               where.function_name());
  if (running_ != nullptr) {
    const Index& at = running_->index;
    std::fprintf(stderr, ", block %u, thread %u", at.block.x, at.thread.x);
  }
  std::fprintf(stderr, ")\n");
  std::abort();
}

void Block::FailStuck() const {
  std::fprintf(stderr, "The threads of a block wait for each other:\n");
  for (const Thread& t : threads_) {
    if (t.state == State::kDone) continue;
    std::fprintf(stderr, "  block %u, thread %u: %s:%u, %s\n", t.index.block.x, t.index.thread.x, t.where.file_name(),
                 static_cast<unsigned>(t.where.line()),
                 t.state == State::kMeeting ? "for lanes of its warp" : "at a barrier");
  }
  std::abort();
}

}  // namespace

thread_local const Index* here = nullptr;

void RunBlock(const std::function<void()>& kernel, uint3 block, dim3 block_dim, dim3 grid_dim) {
  static thread_local std::minstd_rand seeds([] {
    const char* seed = std::getenv("CUDA_EMULATOR_SEED");
    return seed != nullptr ? static_cast<uint32_t>(std::strtoul(seed, nullptr, 10)) : 1;
  }());
  Block b(kernel, block, block_dim, grid_dim);
  b.random.seed(static_cast<uint32_t>(seeds()));
  current = &b;
  b.Run();
  current = nullptr;
  if (!b.copies.empty()) b.Fail("copies into shared memory are under way when the block ends", Where::current());
}

void Fail(const char* what, const Where& where) {
  if (current != nullptr) current->Fail(what, where);
  std::fprintf(stderr, "%s:%u: %s\n", where.file_name(), static_cast<unsigned>(where.line()), what);
  std::abort();
}

void Poll() { current->Suspend(State::kPolling, Where::current()); }

void Sync(uint32_t barrier, uint32_t count, const Where& where) { current->Sync(barrier, count, where); }

const uint64_t* Meet(uint32_t mask, uint64_t value, const Where& where) { return current->Meet(mask, value, where); }

uint64_t MeetOr(uint32_t mask, uint64_t value, const Where& where) { return current->MeetOr(mask, value, where); }

void StartCopy(const Copy& copy) {
  std::memset(copy.to, 0xCD, copy.bytes);  // it is not read before it is there, or after this
  current->copies.push_back(copy);
}

void LandCopies(void (*land)(const Copy&)) {
  std::vector<Copy>& copies = current->copies;
  for (size_t n = copies.empty() ? 0 : 1 + current->random() % copies.size(); n > 0; --n) {
    const size_t which = current->random() % copies.size();
    const Copy copy = copies[which];
    copies[which] = copies.back();
    copies.pop_back();
    std::memcpy(copy.to, copy.from, copy.bytes);
    land(copy);
  }
}

}  // namespace cuda_emulator
