// How a thread learns that its statement was cancelled, deep inside work that has no other reason to know of statements:
// a sort, a merge, a hash table that grows.
//
// The code that runs a statement opens an InterruptScope with its cancel flag; ThreadPool opens the same scope on its
// workers. Long loops call ThrowIfInterrupted() at least every few milliseconds. What they throw ends, as
// std::bad_alloc does, in StatusOfException(): where a thread's work, a statement or a query begins.
//
// Start at: ThrowIfInterrupted. Any thread; each has its own scope.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tessera {

/// Thrown by ThrowIfInterrupted(). Not a std::exception, so that it is not caught by accident.
class Interruption {};

/// From here to its end, `flag` says whether the work of this thread shall stop; nullptr: never. The flag outlives it.
class InterruptScope {
 public:
  explicit InterruptScope(const std::atomic<bool>* flag) : before_(flag_) { flag_ = flag; }
  ~InterruptScope() { flag_ = before_; }
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// Of this thread.
  static const std::atomic<bool>* flag() { return flag_; }

 private:
  static inline constinit thread_local const std::atomic<bool>* flag_ = nullptr;
  const std::atomic<bool>* const before_;
};

inline bool Interrupted() {
  const std::atomic<bool>* const flag = InterruptScope::flag();
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}
inline void ThrowIfInterrupted() {
  if (Interrupted()) throw Interruption();
}

/// For loops over many cheap items: asks whether to stop at every 65,536th `i`.
inline void ThrowIfInterrupted(size_t i) {
  if ((i & 0xFFFF) == 0) ThrowIfInterrupted();
}

/// A comparison that asks now and then whether to stop: for the algorithms of the standard library. They may be left in
/// the middle as long as their items need no more than destruction.
template <class Less>
class InterruptibleLess {
 public:
  explicit InterruptibleLess(Less less) : less_(std::move(less)) {}
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    thread_local uint32_t calls = 0;
    if ((++calls & 0xFFFF) == 0) ThrowIfInterrupted();
    return less_(a, b);
  }

 private:
  Less less_;
};

}  // namespace tessera
