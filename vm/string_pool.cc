// Sharded by hash, so that threads seldom meet; entries are reached without a lock, through blocks that never move.

#include "vm/string_pool.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <vector>

namespace tessera::vm {

struct StringPool::Shard {
  struct Entry {
    const char* data;
    uint32_t size;
    uint32_t hash;
  };
  // Block b holds 64 << b entries: entry i is in the block of bit_width(i / 64).
  static constexpr int kFirstBlock = 64;
  static size_t BlockOf(uint64_t i) { return static_cast<size_t>(std::bit_width(i / kFirstBlock)); }
  static uint64_t BlockStart(size_t b) { return b == 0 ? 0 : uint64_t{kFirstBlock} << (b - 1); }
  static uint64_t BlockSize(size_t b) { return b == 0 ? kFirstBlock : uint64_t{kFirstBlock} << (b - 1); }

  std::mutex mutex;
  std::atomic<uint64_t> count{0};
  std::array<std::atomic<Entry*>, 40> blocks{};
  std::vector<std::unique_ptr<Entry[]>> owned_blocks;
  std::vector<uint64_t> table;  // entry + 1, 0 if free; a power of two, at most half full
  std::vector<std::unique_ptr<char[]>> arenas;
  size_t arena_left = 0;
  char* arena = nullptr;

  const Entry& At(uint64_t i) const {
    size_t b = BlockOf(i);
    return blocks[b].load(std::memory_order_acquire)[i - BlockStart(b)];
  }

  const char* Keep(std::string_view s) {
    if (s.size() > arena_left) {
      size_t size = std::max<size_t>(s.size(), 64 << 10);
      if (arenas.empty()) size = std::max<size_t>(s.size(), 1 << 10);  // most queries know few strings
      arenas.push_back(std::make_unique<char[]>(size));
      arena = arenas.back().get();
      arena_left = size;
    }
    char* p = arena;
    if (!s.empty()) memcpy(p, s.data(), s.size());
    arena += s.size();
    arena_left -= s.size();
    return p;
  }

  void Grow() {
    std::vector<uint64_t> bigger(std::max<size_t>(64, table.size() * 2));
    uint64_t n = count.load(std::memory_order_relaxed);
    for (uint64_t i = 0; i < n; ++i) {
      size_t at = At(i).hash & (bigger.size() - 1);
      while (bigger[at] != 0) at = (at + 1) & (bigger.size() - 1);
      bigger[at] = i + 1;
    }
    table = std::move(bigger);
  }
};

StringPool::StringPool() : shards_(std::make_unique<Shard[]>(kShards)) {}
StringPool::~StringPool() = default;

int64_t StringPool::Intern(std::string_view text) {
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  const size_t number = hash >> 58;
  static_assert(kShards == 64, "six bits choose the shard");
  Shard& s = shards_[number];
  const uint32_t low = static_cast<uint32_t>(hash);
  std::lock_guard<std::mutex> lock(s.mutex);
  uint64_t n = s.count.load(std::memory_order_relaxed);
  if (2 * (n + 1) > s.table.size()) s.Grow();
  size_t at = low & (s.table.size() - 1);
  while (s.table[at] != 0) {
    const Shard::Entry& e = s.At(s.table[at] - 1);
    if (e.hash == low && std::string_view(e.data, e.size) == text) return static_cast<int64_t>((s.table[at] - 1) << 6 | number);
    at = (at + 1) & (s.table.size() - 1);
  }
  size_t block = Shard::BlockOf(n);
  if (s.blocks[block].load(std::memory_order_relaxed) == nullptr) {
    s.owned_blocks.push_back(std::make_unique<Shard::Entry[]>(Shard::BlockSize(block)));
    s.blocks[block].store(s.owned_blocks.back().get(), std::memory_order_release);
  }
  s.blocks[block].load(std::memory_order_relaxed)[n - Shard::BlockStart(block)] = {s.Keep(text), static_cast<uint32_t>(text.size()), low};
  s.table[at] = n + 1;
  s.count.store(n + 1, std::memory_order_release);
  return static_cast<int64_t>(n << 6 | number);
}

std::string_view StringPool::Get(int64_t id) const {
  if (id < 0) return {};
  const Shard& s = shards_[static_cast<uint64_t>(id) & 63];
  uint64_t i = static_cast<uint64_t>(id) >> 6;
  if (i >= s.count.load(std::memory_order_acquire)) return {};
  const Shard::Entry& e = s.At(i);
  return {e.data, e.size};
}

}  // namespace tessera::vm
