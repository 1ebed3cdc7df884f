// The process's memory budget. Every operator new is counted; one that would take more than the limit throws
// MemoryLimitExceeded, a std::bad_alloc that says what was being done, what it asked for and what there is.
//
// What is counted: whatever C++ allocates, which is groups, sorts, join tables, results and loads. Not counted: mapped
// tablets, which the system can take back (but for pages that a GPU has pinned: an eighth of the limit at most), SQLite, the parser, CUDA and MPI, whose needs do not grow with the data.
// Large blocks that would bring the process near the limit lie in temporary files instead and do not count
// (temporary_memory.h). So a query that needs more memory than it has becomes slower, and ends only where the disk does.
//
// Large blocks that were freed stay with the process and do not count either (spare_blocks.h).
//
// Each thread counts for itself and adds to the total every kFlushBytes, so the total is right to that much a thread.
//
// With a sanitizer nothing is counted, because its own operator new stays: MemoryIsCounted().
//
// Start at: SetMemoryLimit, MemoryPurpose. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/status.h"

namespace tessera {

/// Bytes that a thread may have allocated or freed before it tells.
inline constexpr int64_t kFlushBytes = 256 << 10;

bool MemoryIsCounted();
/// Bytes that the process may allocate; UINT64_MAX: any.
void SetMemoryLimit(uint64_t bytes);
uint64_t MemoryLimit();
/// Bytes allocated now.
uint64_t MemoryUsed();
/// The most bytes that were allocated at a time since the last call of ResetMemoryPeak.
uint64_t MemoryPeak();
void ResetMemoryPeak();
/// Of this thread, which is about to end: what it has not told yet would be forgotten.
void FlushMemoryCount();

/// Bytes that this process may use at all: the machine's memory, or less if its control group or `ulimit -v` says so.
uint64_t UsableMemory();

class MemoryLimitExceeded : public std::bad_alloc {
 public:
  /// `of_session`: the limit is that of a MemoryAccount.
  MemoryLimitExceeded(uint64_t requested, uint64_t used, uint64_t limit, const char* purpose, bool of_session = false)
      : requested_(requested), used_(used), limit_(limit), purpose_(purpose), of_session_(of_session) {}
  const char* what() const noexcept override { return "the memory limit is exceeded"; }
  /// kResource: "memory limit exceeded by sorting: 1.5 GiB more are needed, and ...". May throw bad_alloc.
  Status status() const;

 private:
  const uint64_t requested_, used_, limit_;
  const char* const purpose_;
  const bool of_session_;
};

/// From here to its end, what this thread allocates is for `purpose`: "sorting", "grouping", after "exceeded by".
/// ThreadPool hands it on to its workers.
class MemoryPurpose {
 public:
  explicit MemoryPurpose(const char* purpose) : before_(purpose_) { purpose_ = purpose; }
  ~MemoryPurpose() { purpose_ = before_; }
  MemoryPurpose(const MemoryPurpose&) = delete;
  MemoryPurpose& operator=(const MemoryPurpose&) = delete;
  /// Of this thread; never nullptr.
  static const char* current() { return purpose_; }

 private:
  static inline constinit thread_local const char* purpose_ = "the statement";
  const char* const before_;
};

/// What a part of the process has allocated, with a limit of its own: a session's running statement. Blocks are counted where
/// they are made and where they are freed, to kFlushBytes a thread. It outlives the scopes with it.
class MemoryAccount {
 public:
  /// Counts from 0 on. `limit`: bytes; UINT64_MAX: any.
  void Begin(uint64_t limit) {
    used_ = 0;
    limit_ = limit;
  }
  int64_t Add(int64_t bytes) { return used_.fetch_add(bytes, std::memory_order_relaxed) + bytes; }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> used_{0};
  std::atomic<uint64_t> limit_{UINT64_MAX};
};

/// From here to its end, what this thread allocates is of that account; nullptr: of none. ThreadPool hands it on to its workers.
class MemoryAccountScope {
 public:
  explicit MemoryAccountScope(MemoryAccount* account) : before_(account_) { Set(account); }
  ~MemoryAccountScope() { Set(before_); }
  MemoryAccountScope(const MemoryAccountScope&) = delete;
  MemoryAccountScope& operator=(const MemoryAccountScope&) = delete;
  /// Of this thread.
  static MemoryAccount* current() { return account_; }

 private:
  /// What has not been told yet is of the account before.
  static void Set(MemoryAccount* account) {
    if (account != account_) FlushMemoryCount();
    account_ = account;
  }

  static inline constinit thread_local MemoryAccount* account_ = nullptr;
  MemoryAccount* const before_;
};

/// From here to its end the limit does not hold for this thread: for messages, and for what must not fail half way.
class WithoutMemoryLimit {
 public:
  WithoutMemoryLimit() { ++depth_; }
  ~WithoutMemoryLimit() { --depth_; }
  WithoutMemoryLimit(const WithoutMemoryLimit&) = delete;
  WithoutMemoryLimit& operator=(const WithoutMemoryLimit&) = delete;
  static bool active() { return depth_ > 0; }

 private:
  static inline constinit thread_local int depth_ = 0;
};

/// For tests: every operator new asks `refuse` first, and throws std::bad_alloc if it says so; nullptr: none does. It is
/// called on any thread and must not allocate.
void SetAllocationFault(bool (*refuse)());

}  // namespace tessera
