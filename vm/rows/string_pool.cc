// Sharded by hash, so that threads seldom wait for each other. Entries are read without a lock, in blocks that never
// move. The text of an entry is stored last and read first, so a reader sees all of the entry or none of it.

#include "vm/rows/string_pool.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "base/thread_pool.h"

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
  /// The first of this many new identifiers.
  uint64_t Take(uint64_t identifiers) { return count.fetch_add(identifiers, std::memory_order_relaxed); }
  /// Takes the place of an identifier, which is below `count` and this caller's alone.
  void Set(uint64_t i, const char* text, uint32_t size, uint32_t hash) {
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
  }
};

struct StringPool::Shard {
  static constexpr size_t kFirstTable = 64, kFirstArena = 512;
  std::mutex mutex;
  uint64_t count = 0;
  // Of a text: 1 + its identifier, and above that the last bits of its hash; 0 if free. A power of two, at most half full.
  std::span<uint64_t> table;
  std::vector<uint64_t> grown;
  std::vector<std::unique_ptr<char[]>> arenas;
  uint64_t arena_bytes = 0;  // of all but the first
  size_t arena_left = kFirstArena;
  char* arena = first_arena;
  // Most queries have few strings: allocating both for each shard took a quarter of the time for a thousand strings.
  // Not cleared before they are used.
  uint64_t first_table[kFirstTable];
  char first_arena[kFirstArena];

  static constexpr int kIdBits = 40;
  static constexpr uint64_t kIdMask = (uint64_t{1} << kIdBits) - 1;
  static uint64_t Known(uint64_t id, uint32_t hash) { return (id + 1) | uint64_t{hash} << kIdBits; }
  static uint64_t IdOf(uint64_t known) { return (known & kIdMask) - 1; }
  static bool MayBe(uint64_t known, uint32_t hash) {
    return known != 0 && known >> kIdBits == (uint64_t{hash} << kIdBits) >> kIdBits;
  }

  const char* Keep(std::string_view s) {
    if (s.size() > arena_left) {
      const size_t size = std::max<size_t>(s.size(), 64 << 10);
      arena_bytes += size;
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
    // (The bits of the hash that the table has do for all but the largest.)
    const bool few = bigger.size() <= uint64_t{1} << (64 - kIdBits);
    for (uint64_t known : table) {
      if (known == 0) continue;
      size_t at = (few ? known >> kIdBits : entries.At(IdOf(known)).hash) & (bigger.size() - 1);
      while (bigger[at] != 0) at = (at + 1) & (bigger.size() - 1);
      bigger[at] = known;
    }
    grown = std::move(bigger);
    table = grown;
  }

  /// The identifier, or -1. REQUIRES, as of Add: the shard is locked.
  int64_t Find(std::string_view text, uint32_t hash, const Entries& entries) const {
    if (table.empty()) return -1;
    for (size_t at = hash & (table.size() - 1); table[at] != 0; at = (at + 1) & (table.size() - 1)) {
      if (!MayBe(table[at], hash)) continue;
      const Entries::Entry& e = entries.At(IdOf(table[at]));
      if (e.hash == hash && e.Text() == text) return static_cast<int64_t>(IdOf(table[at]));
    }
    return -1;
  }
  // What Find will read comes into the cache: its first place in the table, then the entry that is there, then its text.
  void PrefetchPlace(uint32_t hash) const {
    if (!table.empty()) __builtin_prefetch(&table[hash & (table.size() - 1)]);
  }
  void PrefetchEntry(uint32_t hash, const Entries& entries) const {
    if (const uint64_t known = At(hash); MayBe(known, hash)) __builtin_prefetch(&entries.At(IdOf(known)));
  }
  void PrefetchText(uint32_t hash, const Entries& entries) const {
    if (const uint64_t known = At(hash); MayBe(known, hash)) __builtin_prefetch(entries.At(IdOf(known)).Text().data());
  }
  uint64_t At(uint32_t hash) const { return table.empty() ? 0 : table[hash & (table.size() - 1)]; }
  /// Gives a new string an identifier.
  void Add(std::string_view text, uint32_t hash, uint64_t id, Entries* entries) {
    if (2 * (count + 1) > table.size()) Grow(*entries);
    entries->Set(id, Keep(text), static_cast<uint32_t>(text.size()), hash);
    size_t at = hash & (table.size() - 1);
    while (table[at] != 0) at = (at + 1) & (table.size() - 1);
    table[at] = Known(id, hash);
    ++count;
  }
};

StringPool::StringPool()
    : entries_(std::make_unique<Entries>()), shards_(std::make_unique_for_overwrite<Shard[]>(kShards)) {}
StringPool::~StringPool() = default;

namespace {

size_t ShardOf(uint64_t hash) { return hash >> 58; }  // six bits: 64 shards

}  // namespace

int64_t StringPool::Intern(std::string_view text) {
  static_assert(kShards == 64);
  const uint64_t hash = XXH3_64bits(text.data(), text.size());
  Shard& s = shards_[ShardOf(hash)];
  std::lock_guard<std::mutex> lock(s.mutex);
  const uint32_t low = static_cast<uint32_t>(hash);
  if (const int64_t known = s.Find(text, low, *entries_); known >= 0) return known;
  const uint64_t id = entries_->Take(1);
  s.Add(text, low, id, entries_.get());
  return static_cast<int64_t>(id);
}

void StringPool::Intern(std::span<const std::string_view> texts, int64_t* ids) {
  std::vector<uint64_t> hashes(texts.size());
  std::array<uint32_t, kShards + 1> first{};
  for (size_t i = 0; i < texts.size(); ++i) {
    hashes[i] = XXH3_64bits(texts[i].data(), texts[i].size());
    ++first[ShardOf(hashes[i]) + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<uint32_t> by_shard(texts.size());
  std::array<uint32_t, kShards + 1> next = first;
  for (size_t i = 0; i < texts.size(); ++i) by_shard[next[ShardOf(hashes[i])]++] = static_cast<uint32_t>(i);
  // Each caller begins with another shard.
  const size_t start = turn_.fetch_add(kShards / 4 + 1, std::memory_order_relaxed);
  for (size_t k = 0; k < kShards; ++k) {
    const size_t shard = (start + k) % kShards;
    if (first[shard] == first[shard + 1]) continue;
    Shard& s = shards_[shard];
    const std::span<const uint32_t> mine(by_shard.data() + first[shard], by_shard.data() + first[shard + 1]);
    std::lock_guard<std::mutex> lock(s.mutex);
    uint64_t unknown = 0;
    for (const uint32_t i : mine) s.PrefetchPlace(static_cast<uint32_t>(hashes[i]));
    for (const uint32_t i : mine) s.PrefetchEntry(static_cast<uint32_t>(hashes[i]), *entries_);
    for (const uint32_t i : mine) s.PrefetchText(static_cast<uint32_t>(hashes[i]), *entries_);
    for (const uint32_t i : mine) {
      ids[i] = s.Find(texts[i], static_cast<uint32_t>(hashes[i]), *entries_);
      unknown += ids[i] < 0 ? 1 : 0;
    }
    if (unknown == 0) continue;
    // All threads count identifiers: taken together. One that comes twice among these leaves the last of them unused.
    uint64_t id = entries_->Take(unknown);
    for (const uint32_t i : mine) {
      if (ids[i] >= 0) continue;
      const uint32_t hash = static_cast<uint32_t>(hashes[i]);
      ids[i] = s.Find(texts[i], hash, *entries_);
      if (ids[i] >= 0) continue;
      ids[i] = static_cast<int64_t>(id);
      s.Add(texts[i], hash, id++, entries_.get());
    }
  }
}

Status StringPool::Intern(ThreadPool* threads, std::span<const std::string_view> texts, int64_t* ids) {
  constexpr size_t kPart = 2048;
  const size_t parts = (texts.size() + kPart - 1) / kPart;
  return ForEach(parts < 2 ? nullptr : threads, parts, [&](size_t part) {
    const size_t first = part * kPart;
    Intern(texts.subspan(first, std::min(kPart, texts.size() - first)), ids + first);
    return Status::Ok();
  });
}

uint64_t StringPool::bytes() const {
  uint64_t bytes = dictionaries_.bytes() + count() * sizeof(Entries::Entry);
  for (int i = 0; i < kShards; ++i) {
    const std::lock_guard<std::mutex> lock(shards_[i].mutex);
    bytes += shards_[i].arena_bytes + shards_[i].grown.size() * sizeof(uint64_t);
  }
  return bytes;
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
