// Lists by size, four for each power of two. A block that waits has its place in the list in its own first bytes.

#include "base/spare_blocks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

namespace tessera {
namespace {

struct Spare {
  Spare* next;
  size_t bytes;
};

struct List {
  std::mutex mutex;
  Spare* first = nullptr;
};

constexpr size_t kLists = 4 * 40;
constinit std::array<List, kLists> lists;
constinit std::atomic<uint64_t> kept{0};

/// The list whose blocks have at least this many bytes, and less than those of the next list.
size_t ListOf(size_t bytes) {
  const auto power = static_cast<size_t>(std::bit_width(bytes)) - 1;
  const size_t least = static_cast<size_t>(std::bit_width(kLeastSpare)) - 1;
  return std::min(4 * (power - least) + (bytes >> (power - 2) & 3), kLists - 1);
}

/// The first of a list that has enough bytes and the alignment, among the first few.
Spare* TakeFrom(List* list, size_t bytes, size_t alignment) {
  constexpr int kTried = 8;
  const std::lock_guard lock(list->mutex);
  Spare** at = &list->first;
  for (int tried = 0; *at != nullptr && tried < kTried; ++tried, at = &(*at)->next) {
    Spare* const spare = *at;
    if (spare->bytes < bytes || reinterpret_cast<uintptr_t>(spare) % alignment != 0) continue;
    *at = spare->next;
    return spare;
  }
  return nullptr;
}

}  // namespace

uint64_t SpareBytes() noexcept { return kept.load(std::memory_order_relaxed); }

bool KeepSpare(void* block, size_t bytes, uint64_t most) noexcept {
  if (bytes < kLeastSpare) return false;
  if (kept.fetch_add(bytes, std::memory_order_relaxed) + bytes > most) {
    kept.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  List& list = lists[ListOf(bytes)];
  const std::lock_guard lock(list.mutex);
  list.first = new (block) Spare{list.first, bytes};
  return true;
}

void* TakeSpare(size_t bytes, size_t alignment) noexcept {
  if (SpareBytes() < bytes || bytes < kLeastSpare) return nullptr;
  // One that was made at such a multiple has up to that much more than was asked for.
  const size_t first = ListOf(bytes), last = std::max(first, ListOf(bytes + alignment)) + 1;
  for (size_t i = first; i <= std::min(last, kLists - 1); ++i) {
    Spare* const spare = TakeFrom(&lists[i], bytes, alignment);
    if (spare == nullptr) continue;
    kept.fetch_sub(spare->bytes, std::memory_order_relaxed);
    return spare;
  }
  return nullptr;
}

void TrimSpares(uint64_t bytes) noexcept {
  for (size_t i = kLists; i-- > 0 && SpareBytes() > bytes;) {
    while (SpareBytes() > bytes) {
      Spare* const spare = TakeFrom(&lists[i], 0, 1);
      if (spare == nullptr) break;
      kept.fetch_sub(spare->bytes, std::memory_order_relaxed);
      std::free(spare);
    }
  }
}

}  // namespace tessera
