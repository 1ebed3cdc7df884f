// The layouts of join tables that gpu_layout_bench compares. A probe takes steps; Load is what a step reads, and
// Settles says whether the key's payload (0 if there is none) is known after it. Sectors counts what the step reads
// that the step before did not. Device code, for bench/gpu_layout_bench.cu alone.
//
// Start at: Direct, the simplest.
#pragma once

#include <cstdint>

#include "kernels/launch/join_record.h"

namespace tessera {
namespace {

using kernels::JoinSlot32;

constexpr int kKeyBits = 31;
constexpr uint32_t kSectorBytes = 32;

/// The finalizer of MurmurHash3, for hash functions that must be independent of each other.
__device__ __forceinline__ uint32_t Scramble(uint32_t x) {
  x = (x ^ x >> 16) * 0x85EBCA6Bu;
  x = (x ^ x >> 13) * 0xC2B2AE35u;
  return x ^ x >> 16;
}

__device__ __forceinline__ bool SlotSettles(uint2 slot, uint32_t key, uint32_t* payload) {
  *payload = slot.x == key ? slot.y : 0;
  return slot.x == key || slot.y == 0;
}

__device__ __forceinline__ unsigned long long SlotOf(uint32_t key, uint32_t payload) {
  return static_cast<unsigned long long>(payload) << 32 | key;
}

struct Direct {
  static constexpr uint32_t kTogether = 8;
  using Piece = uint32_t;
  uint32_t* values;
  __device__ Piece Load(uint32_t key, uint32_t) const { return __ldg(values + key); }
  __device__ bool Settles(uint32_t, uint32_t, Piece piece, uint32_t* payload) const {
    *payload = piece;
    return true;
  }
  __device__ uint32_t Sectors(uint32_t, uint32_t) const { return 1; }
  __device__ void Insert(uint32_t key, uint32_t payload) const { values[key] = payload; }
};

/// The slots of a linear probe, in the order in which they are tried. With partitions, the key's upper bits choose the
/// partition.
struct LinearOrder {
  uint32_t slot_bits;
  uint32_t part_bits = 0;
  bool sector_first = false;
  __device__ __forceinline__ uint32_t Home(uint32_t key) const { return JoinSlot32(key, 32 - (slot_bits - part_bits)); }
  __device__ __forceinline__ uint32_t At(uint32_t key, uint32_t step) const {
    const uint32_t mask = (1u << (slot_bits - part_bits)) - 1;
    const uint32_t home = Home(key);
    const uint32_t first = part_bits == 0 ? 0 : key >> (kKeyBits - part_bits) << (slot_bits - part_bits);
    if (sector_first) return first + (((home & ~3u) + (step & ~3u)) & mask) + ((home + step) & 3);
    return first + ((home + step) & mask);
  }
  __device__ uint32_t Sectors(uint32_t key, uint32_t step) const {
    return step == 0 || ((sector_first ? step : Home(key) + step) & 3) == 0;
  }
};

struct Linear {
  static constexpr uint32_t kTogether = 8;
  using Piece = uint2;
  unsigned long long* slots;
  LinearOrder order;
  __device__ Piece Load(uint32_t key, uint32_t step) const {
    return __ldg(reinterpret_cast<const uint2*>(slots) + order.At(key, step));
  }
  __device__ bool Settles(uint32_t key, uint32_t, Piece piece, uint32_t* payload) const {
    return SlotSettles(piece, key, payload);
  }
  __device__ uint32_t Sectors(uint32_t key, uint32_t step) const { return order.Sectors(key, step); }
  __device__ void Insert(uint32_t key, uint32_t payload) const {
    for (uint32_t step = 0; atomicCAS(slots + order.At(key, step), 0ull, SlotOf(key, payload)) != 0;) ++step;
  }
};

/// Four slots in one sector.
struct Bucket {
  uint4 low, high;
  __device__ __forceinline__ bool Find(uint32_t key, uint32_t* payload) const {
    *payload = low.x == key ? low.y : low.z == key ? low.w : high.x == key ? high.y : high.z == key ? high.w : 0;
    return *payload != 0;
  }
  /// Slots are filled from the first on.
  __device__ __forceinline__ bool IsFull() const { return high.w != 0; }
};

__device__ __forceinline__ Bucket LoadBucket(const unsigned long long* slots, uint32_t bucket) {
  const uint4* at = reinterpret_cast<const uint4*>(slots) + uint64_t{bucket} * 2;
  return {__ldg(at), __ldg(at + 1)};
}

/// Whether one of the bucket's slots was free.
__device__ __forceinline__ bool PutIntoBucket(unsigned long long* slots, uint32_t bucket, unsigned long long item) {
  for (uint32_t i = 0; i < 4; ++i) {
    unsigned long long* slot = slots + uint64_t{bucket} * 4 + i;
    if (*static_cast<volatile unsigned long long*>(slot) == 0 && atomicCAS(slot, 0ull, item) == 0) return true;
  }
  return false;
}

struct Buckets {
  static constexpr uint32_t kTogether = 4;
  using Piece = Bucket;
  unsigned long long* slots;
  uint32_t bucket_bits;
  __device__ __forceinline__ uint32_t At(uint32_t key, uint32_t step) const {
    return (JoinSlot32(key, 32 - bucket_bits) + step) & ((1u << bucket_bits) - 1);
  }
  __device__ Piece Load(uint32_t key, uint32_t step) const { return LoadBucket(slots, At(key, step)); }
  __device__ bool Settles(uint32_t key, uint32_t, const Piece& piece, uint32_t* payload) const {
    return piece.Find(key, payload) || !piece.IsFull();
  }
  __device__ uint32_t Sectors(uint32_t, uint32_t) const { return 1; }
  __device__ void Insert(uint32_t key, uint32_t payload) const {
    for (uint32_t step = 0; !PutIntoBucket(slots, At(key, step), SlotOf(key, payload));) ++step;
  }
};

/// Items for which no chain of evictions found a slot. A build with more of them starts again with other functions.
struct Stash {
  static constexpr uint32_t kItems = 64;
  uint32_t count;
  unsigned long long items[kItems];
  __device__ void Add(unsigned long long item) {
    const uint32_t at = atomicAdd(&count, 1u);
    if (at < kItems) items[at] = item;
  }
  __device__ uint32_t Find(uint32_t key) const {
    for (uint32_t i = 0; i < count; ++i) {
      if (static_cast<uint32_t>(items[i]) == key) return static_cast<uint32_t>(items[i] >> 32);
    }
    return 0;
  }
};
constexpr uint32_t kMostEvictions = 4000;

/// For both cuckoo tables: a slot that is taken is never free again, and a key goes to its second slot only if the
/// first is taken. So if the first slot is free, the key is not in the table.
struct Cuckoo {
  static constexpr uint32_t kTogether = 8;
  using Piece = uint2;
  unsigned long long* slots;
  Stash* stash;
  uint32_t slot_bits;
  uint32_t seed;
  __device__ __forceinline__ uint32_t At(uint32_t key, uint32_t function) const {
    const uint32_t half = 1u << (slot_bits - 1);
    return function * half + (Scramble(key ^ (seed + function * 0x9E3779B9u)) >> (33 - slot_bits));
  }
  __device__ Piece Load(uint32_t key, uint32_t step) const {
    return __ldg(reinterpret_cast<const uint2*>(slots) + At(key, step));
  }
  __device__ bool Settles(uint32_t key, uint32_t step, Piece piece, uint32_t* payload) const {
    if (SlotSettles(piece, key, payload)) return true;
    if (step == 0) return false;
    *payload = stash->Find(key);
    return true;
  }
  __device__ uint32_t Sectors(uint32_t, uint32_t) const { return 1; }
  __device__ void Insert(uint32_t key, uint32_t payload) const {
    unsigned long long item = SlotOf(key, payload);
    for (uint32_t i = 0, at = At(key, 0); i < kMostEvictions; ++i) {
      item = atomicExch(slots + at, item);
      if (item == 0) return;
      const uint32_t first = At(static_cast<uint32_t>(item), 0);
      at = at == first ? At(static_cast<uint32_t>(item), 1) : first;
    }
    stash->Add(item);
  }
};

struct CuckooBuckets {
  static constexpr uint32_t kTogether = 4;
  using Piece = Bucket;
  unsigned long long* slots;
  Stash* stash;
  uint32_t bucket_bits;
  uint32_t seed;
  __device__ __forceinline__ uint32_t At(uint32_t key, uint32_t function) const {
    return Scramble(key ^ (seed + function * 0x9E3779B9u)) >> (32 - bucket_bits);
  }
  __device__ Piece Load(uint32_t key, uint32_t step) const { return LoadBucket(slots, At(key, step)); }
  __device__ bool Settles(uint32_t key, uint32_t step, const Piece& piece, uint32_t* payload) const {
    if (piece.Find(key, payload) || !piece.IsFull()) return true;
    if (step == 0) return false;
    *payload = stash->Find(key);
    return true;
  }
  __device__ uint32_t Sectors(uint32_t, uint32_t) const { return 1; }
  __device__ void Insert(uint32_t key, uint32_t payload) const {
    unsigned long long item = SlotOf(key, payload);
    uint32_t at = At(key, 0);
    if (PutIntoBucket(slots, at, item)) return;
    at = At(key, 1);
    for (uint32_t i = 0; i < kMostEvictions; ++i) {
      if (PutIntoBucket(slots, at, item)) return;
      const uint32_t victim = Scramble(static_cast<uint32_t>(item) + i) & 3;
      item = atomicExch(slots + uint64_t{at} * 4 + victim, item);
      const uint32_t first = At(static_cast<uint32_t>(item), 0);
      at = at == first ? At(static_cast<uint32_t>(item), 1) : first;
    }
    stash->Add(item);
  }
};

struct ThesisCuckoo {
  static constexpr uint32_t kTogether = 8;
  static constexpr uint32_t kMostKeys = 512, kUsualKeys = 409, kTables = 3, kTableSlots = 192, kTries = 25;
  static constexpr uint32_t kSlots = kTables * kTableSlots;
  using Piece = uint2;
  unsigned long long* slots;
  uint32_t* seeds;
  uint32_t buckets;
  uint32_t seed;  ///< of the function that spreads keys over buckets
  __device__ __forceinline__ uint32_t BucketOf(uint32_t key) const { return __umulhi(Scramble(key ^ seed), buckets); }
  __device__ static __forceinline__ uint32_t At(uint32_t key, uint32_t bucket_seed, uint32_t table) {
    return table * kTableSlots + __umulhi(Scramble(key + (bucket_seed * kTables + table) * 0x9E3779B9u), kTableSlots);
  }
  __device__ Piece Load(uint32_t key, uint32_t step) const {
    const uint32_t bucket = BucketOf(key);
    return __ldg(reinterpret_cast<const uint2*>(slots) + uint64_t{bucket} * kSlots +
                 At(key, __ldg(seeds + bucket), step));
  }
  __device__ bool Settles(uint32_t key, uint32_t step, Piece piece, uint32_t* payload) const {
    return SlotSettles(piece, key, payload) || step == kTables - 1;
  }
  /// Seeds, 4 bytes a bucket, come from cache.
  __device__ uint32_t Sectors(uint32_t, uint32_t) const { return 1; }
};

}  // namespace
}  // namespace tessera
