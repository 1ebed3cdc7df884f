// Sharded by hash, so that threads seldom wait for each other. Entries are read without a lock, in blocks that never
// move. The text of an entry is stored last and read first, so a reader sees all of the entry or none of it.

#include "vm/string_pool.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

namespace tessera::vm {

/// By identifier.
struct StringPool::Entries {
  struct Entry {
    std::atomic<const char*> text{nullptr};  // nullptr until the identifier is given, and for ""
    uint32_t size = 0;
    uint32_t hash = 0;
    std::string_view Text() const {
      const char* p = text.load(std::memory_order_acquire);
      return p == nullptr ? std::string_view() : std::string_view(p, size);
    }
  };
  // Entry i is in block bit_width(i / 64): the first two blocks have 64 entries each, every further one twice as many
  // as the one before.
  static constexpr int kFirstBlock = 64;
  static size_t BlockOf(uint64_t i) { return static_cast<size_t>(std::bit_width(i / kFirstBlock)); }
  static uint64_t BlockStart(size_t b) { return b == 0 ? 0 : uint64_t{kFirstBlock} << (b - 1); }
  static uint64_t BlockSize(size_t b) { return b == 0 ? kFirstBlock : uint64_t{kFirstBlock} << (b - 1); }

  std::atomic<uint64_t> count{0};
  std::array<std::atomic<Entry*>, 40> blocks{};
  std::mutex mutex;
  std::vector<std::unique_ptr<Entry[]>> owned;

  /// REQUIRES: i came from Add, and this thread learnt of it under a lock.
  const Entry& At(uint64_t i) const {
    const size_t b = BlockOf(i);
    return blocks[b].load(std::memory_order_acquire)[i - BlockStart(b)];
  }
  uint64_t Add(const char* text, uint32_t size, uint32_t hash) {
    const uint64_t i = count.fetch_add(1, std::memory_order_relaxed);
    const size_t b = BlockOf(i);
    Entry* block = blocks[b].load(std::memory_order_acquire);
    if (block == nullptr) {
      std::lock_guard<std::mutex> lock(mutex);
      block = blocks[b].load(std::memory_order_relaxed);
      if (block == nullptr) {
        owned.push_back(std::make_unique<Entry[]>(BlockSize(b)));
        block = owned.back().get();
        blocks[b].store(block, std::memory_order_release);
      }
    }
    Entry& entry = block[i - BlockStart(b)];
    entry.size = size;
    entry.hash = hash;
    entry.text.store(text, std::memory_order_release);
    return i;
  }
};

struct StringPool::Shard {
  static constexpr size_t kFirstTable = 64, kFirstArena = 512;
  std::mutex mutex;
  uint64_t count = 0;
  std::span<uint64_t> table;  // identifier + 1, 0 if free; a power of two, at most half full
  std::vector<uint64_t> grown;
  std::vector<std::unique_ptr<char[]>> arenas;
  size_t arena_left = kFirstArena;
  char* arena = first_arena;
  // Most queries have few strings: allocating both for each shard took a quarter of the time for a thousand strings.
  // Not cleared before they are used.
  uint64_t first_table[kFirstTable];
  char first_arena[kFirstArena];

  const char* Keep(std::string_view s) {
    if (s.size() > arena_left) {
      const size_t size = std::max<size_t>(s.size(), 64 << 10);
      arenas.push_back(std::make_unique_for_overwrite<char[]>(size));
      arena = arenas.back().get();
      arena_left = size;
    }
    char* p = arena;
    if (!s.empty()) memcpy(p, s.data(), s.size());
    arena += s.size();
    arena_left -= s.size();
    return p;
  }

  void Grow(const Entries& entries) {
    if (table.empty()) {
      table = first_table;
      std::fill(table.begin(), table.end(), uint64_t{0});
      return;
    }
    std::vector<uint64_t> bigger(table.size() * 2);
    for (uint64_t known : table) {
      if (known == 0) continue;
      size_t at = entries.At(known - 1).hash & (bigger.size() - 1);
      while (bigger[at] != 0) at = (at + 1) & (bigger.size() - 1);
      bigger[at] = known;
    }
    grown = std::move(bigger);
    table = grown;
  }
};

StringPool::StringPool()
    : entries_(std::make_unique<Entries>()), shards_(std::make_unique_for_overwrite<Shard[]>(kShards)) {}
StringPool::~StringPool() = default;

int64_t StringPool::Intern(std::string_view text) {
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  static_assert(kShards == 64, "six bits choose the shard");
  Shard& s = shards_[hash >> 58];
  const uint32_t low = static_cast<uint32_t>(hash);
  std::lock_guard<std::mutex> lock(s.mutex);
  if (2 * (s.count + 1) > s.table.size()) s.Grow(*entries_);
  size_t at = low & (s.table.size() - 1);
  while (s.table[at] != 0) {
    const Entries::Entry& e = entries_->At(s.table[at] - 1);
    if (e.hash == low && e.Text() == text) return static_cast<int64_t>(s.table[at] - 1);
    at = (at + 1) & (s.table.size() - 1);
  }
  const uint64_t id = entries_->Add(s.Keep(text), static_cast<uint32_t>(text.size()), low);
  s.table[at] = id + 1;
  ++s.count;
  return static_cast<int64_t>(id);
}

size_t StringPool::count() const { return entries_->count.load(std::memory_order_relaxed); }

std::string_view StringPool::Get(int64_t id) const {
  // NULLs and rows that were filtered out may ask for any number, also for that of a string that another thread is
  // adding. Then the entry may still be empty, or its block missing.
  const uint64_t i = static_cast<uint64_t>(id);
  if (i >= entries_->count.load(std::memory_order_relaxed)) return {};
  const size_t b = Entries::BlockOf(i);
  const Entries::Entry* block = entries_->blocks[b].load(std::memory_order_acquire);
  return block == nullptr ? std::string_view() : block[i - Entries::BlockStart(b)].Text();
}

}  // namespace tessera::vm
