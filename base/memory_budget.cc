// This file replaces the global operator new and operator delete of every program that is linked with Tessera's library,
// tests and generators included.
//
// Blocks of 4 MiB and more come in huge pages if the system leaves that to the program (transparent_hugepage = madvise,
// the usual setting). Group tables, join indexes and rows of many megabytes are written once and then read at random
// places: 6 M groups of two keys on two threads took 1,210 ms with pages of 4 KiB (two fifths of it in page faults),
// and take 500 ms with huge pages.
//
// Smaller blocks stay with the process when they are freed. Otherwise each section would get its interpreter state of
// 200 KB from the system: a query such as SSB q2.1 would have 29 page faults instead of 5. Larger ones stay up to a part
// of the memory limit (spare_blocks.h).
//
// In the shared library of the C interface the operators are those of the library alone, and malloc stays as the program has it.

#include "base/memory_budget.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "base/control_groups.h"
#include "base/size_text.h"
#include "base/spare_blocks.h"
#include "base/temporary_memory.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TESSERA_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESSERA_SANITIZED
#endif

namespace tessera {
namespace {

std::atomic<uint64_t> limit{UINT64_MAX};
std::atomic<int64_t> used{0}, peak{0};
/// What this thread has allocated and not told yet; below 0 if it has freed more.
constinit thread_local int64_t untold = 0;
std::atomic<bool (*)()> fault{nullptr};

}  // namespace

void SetMemoryLimit(uint64_t bytes) { limit = bytes; }
uint64_t MemoryLimit() { return limit; }
uint64_t MemoryUsed() { return static_cast<uint64_t>(std::max<int64_t>(0, used + untold)); }
uint64_t MemoryPeak() { return std::max(MemoryUsed(), static_cast<uint64_t>(std::max<int64_t>(0, peak))); }
void ResetMemoryPeak() { peak = used + untold; }
void FlushMemoryCount() {
  used += untold;
  if (MemoryAccount* const account = MemoryAccountScope::current(); account != nullptr) account->Add(untold);
  untold = 0;
}
void SetAllocationFault(bool (*refuse)()) { fault = refuse; }

uint64_t UsableMemory() {
  uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  rlimit address_space{};
  if (getrlimit(RLIMIT_AS, &address_space) == 0) bytes = std::min<uint64_t>(bytes, address_space.rlim_cur);
  return std::min(bytes, LimitsOfControlGroups().memory);
}

Status MemoryLimitExceeded::status() const {
  // A size that would do for what is asked now, and is easy to type.
  const uint64_t wanted = std::max<uint64_t>(1, (std::max(2 * limit_, used_ + requested_) + (1 << 20) - 1) >> 20);
  const std::string size = std::to_string(wanted) + "MB";
  std::string hint = of_session_ ? "Raise the session's limit, as in SET session_memory = '" + size + "'"
                                 : "Raise the limit, as in SET memory_limit = '" + size + "' or --memory " + size;
  const std::string less = ", ask for fewer rows or groups, or ";
  // A small block is refused after larger ones were refused their files: what stopped those is what helps here.
  const TemporaryRefusal refusal = LastTemporaryRefusal();
  if (TemporaryLimit() == 0) {
    hint += less + "allow temporary files: SET temp_file_limit.";
  } else if (refusal == TemporaryRefusal::kLimit || TemporaryUsed() + requested_ > TemporaryLimit()) {
    hint += less + "allow more temporary files than " + SizeText(TemporaryLimit()) + ": SET temp_file_limit.";
  } else if (refusal == TemporaryRefusal::kRoom) {
    hint += less + "make room for temporary files ($TMPDIR).";
  } else {
    hint += ", or ask for fewer rows or groups.";
  }
  return {ErrorCode::kResource,
          std::string(of_session_ ? "memory limit of the session exceeded by " : "memory limit exceeded by ") +
              purpose_ + ": " + SizeText(requested_) + " more are needed, and " + SizeText(used_) + " of " +
              SizeText(limit_) + " are in use",
          std::move(hint)};
}

}  // namespace tessera

#ifdef TESSERA_SANITIZED

bool tessera::MemoryIsCounted() { return false; }

#else

bool tessera::MemoryIsCounted() { return true; }

namespace tessera {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// Smaller blocks would hardly fill a huge page, and take much more memory than was asked for.
constexpr std::size_t kLarge = 2 * kHugePage;

/// Blocks of this size and more lie in temporary files once little memory is left: what grows with the data is large.
constexpr std::size_t kTemporary = std::size_t{64} << 10;
constexpr std::size_t kPage = 4096;
/// Memory that is left to smaller blocks then: this part of the limit, but no more than kMostLeft.
constexpr uint64_t kLeftShare = 4, kMostLeft = uint64_t{1} << 30;

#ifndef TESSERA_SHARED_LIBRARY
/// How many unused bytes may stay at the end of the heap.
constexpr int kKept = 64 << 20;
[[maybe_unused]] const bool kept =
    mallopt(M_MMAP_THRESHOLD, static_cast<int>(kLarge)) == 1 && mallopt(M_TRIM_THRESHOLD, kKept) == 1;
#endif

/// Freed blocks of kLeastSpare and more stay with the process, up to this part of the limit; none do without a limit.
constexpr uint64_t kSpareShare = 8;

uint64_t MostSpare() {
  const uint64_t most = limit.load(std::memory_order_relaxed);
  return most == UINT64_MAX ? 0 : most / kSpareShare;
}

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes >= kLeastSpare) {
    const std::size_t needed = bytes < kLarge ? alignment : std::max(alignment, kHugePage);
    if (void* const spare = TakeSpare(bytes, needed); spare != nullptr) return spare;
    const uint64_t most = limit.load(std::memory_order_relaxed);
    TrimSpares(most - std::min(most, MemoryUsed() + bytes));
  }
  if (bytes < kLarge) {
    if (bytes == 0) bytes = 1;
    if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  alignment = std::max(alignment, kHugePage);
  if (bytes > SIZE_MAX - alignment) return nullptr;
  void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block != nullptr) (void)madvise(block, bytes, MADV_HUGEPAGE);  // only advice: small pages work, too
  return block;
}

/// Adds what this thread has not told to the total. Throws if that is over the limit, with nothing of `bytes` counted.
[[gnu::noinline]] void Tell(int64_t bytes) {
  const int64_t total = used.fetch_add(untold, std::memory_order_relaxed) + untold;
  MemoryAccount* const account = MemoryAccountScope::current();
  const int64_t of_account = account != nullptr ? account->Add(untold) : 0;
  untold = 0;
  for (int64_t before = peak.load(std::memory_order_relaxed); before < total;) {
    if (peak.compare_exchange_weak(before, total, std::memory_order_relaxed)) break;
  }
  if (bytes <= 0 || WithoutMemoryLimit::active()) return;
  const auto refuse_beyond = [bytes](int64_t sum, uint64_t most, bool of_session) {
    if (sum <= 0 || static_cast<uint64_t>(sum) <= most) return;
    untold = -bytes;
    // Blocks that threads have not told in time may be beyond the limit. What they have too much is needed, too.
    const uint64_t all = static_cast<uint64_t>(sum);
    const uint64_t before = std::min(most, all - std::min(all, static_cast<uint64_t>(bytes)));
    throw MemoryLimitExceeded(all - before, before, most, MemoryPurpose::current(), of_session);
  };
  refuse_beyond(total, limit.load(std::memory_order_relaxed), false);
  if (account != nullptr) refuse_beyond(of_account, account->limit(), true);
}

/// Counts a block before it is made, so that the limit holds for its first page.
void Count(int64_t bytes) {
  untold += bytes;
  if (untold >= kFlushBytes || untold <= -kFlushBytes) Tell(bytes);
}

/// Whether a block should lie in a temporary file.
bool IsOverflow(std::size_t bytes) {
  if (TemporaryLimit() == 0 || WithoutMemoryLimit::active()) return false;
  const auto is_full = [bytes](uint64_t most, uint64_t before) {
    if (most == UINT64_MAX) return false;
    const uint64_t in_memory = most - std::min(most / kLeftShare, kMostLeft);
    return before > in_memory || bytes > in_memory - before;
  };
  if (is_full(limit.load(std::memory_order_relaxed), MemoryUsed())) return true;
  const MemoryAccount* const account = MemoryAccountScope::current();
  return account != nullptr &&
         is_full(account->limit(), static_cast<uint64_t>(std::max<int64_t>(0, account->used() + untold)));
}

void* AllocateAndCount(std::size_t bytes, std::size_t alignment) {
  if (bool (*const refuse)() = fault.load(std::memory_order_relaxed); refuse != nullptr && refuse()) [[unlikely]] {
    throw std::bad_alloc();
  }
  if (bytes >= kTemporary && alignment <= kPage && IsOverflow(bytes)) {
    if (void* const block = MapTemporary(bytes); block != nullptr) return block;
  }
  // A large block is refused before it is made; of a small one it does not matter.
  if (bytes >= kLarge && bytes <= PTRDIFF_MAX) {
    Count(static_cast<int64_t>(bytes));
    untold -= static_cast<int64_t>(bytes);
  }
  for (;;) {
    if (void* block = Allocate(bytes, alignment); block != nullptr) {
      try {
        Count(static_cast<int64_t>(malloc_usable_size(block)));
      } catch (...) {
        std::free(block);
        throw;
      }
      return block;
    }
    if (SpareBytes() > 0) {
      TrimSpares(0);
      continue;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void FreeAndCount(void* block) noexcept {
  if (block == nullptr || UnmapTemporary(block)) return;
  const size_t bytes = malloc_usable_size(block);
  Count(-static_cast<int64_t>(bytes));
  if (!KeepSpare(block, bytes, MostSpare())) std::free(block);
}

}  // namespace
}  // namespace tessera

void* operator new(std::size_t bytes) { return tessera::AllocateAndCount(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return tessera::AllocateAndCount(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { tessera::FreeAndCount(block); }
void operator delete(void* block, std::size_t) noexcept { tessera::FreeAndCount(block); }
void operator delete(void* block, std::align_val_t) noexcept { tessera::FreeAndCount(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { tessera::FreeAndCount(block); }

#endif
