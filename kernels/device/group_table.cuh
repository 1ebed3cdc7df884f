// Groups in device memory: an open-addressing table from key words to ordinals, without locks (kernels/README.md,
// Sinks).
//
// A thread that finds a free hash slot claims it with compare-and-swap, writes the record and the initial state, and
// publishes the ordinal. A thread that meets a claimed slot with its own tag looks again; a slot with another tag it
// passes. No thread waits inside a claim, so lanes of one warp cannot block each other.
//
// Start at: FindOrMakeGroup.
#pragma once

#include "kernels/device/ptx.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

inline constexpr uint32_t kTableFull = 0xFFFFFFFFu;

struct KeyHash {
  uint64_t value = 0x9AE16A3B2F90404Fu;
  /// A multiplication and a shift per word spread the low bits upward and back.
  __device__ __forceinline__ void Add(uint64_t word) {
    value = (value ^ word) * 0xD6E8FEB86659FD93u;
    value ^= value >> 32;
  }
  __device__ __forceinline__ uint64_t Finish() const {
    uint64_t h = value * 0xD6E8FEB86659FD93u;
    return h ^ (h >> 29);
  }
};

__device__ __forceinline__ unsigned long long* AtomicWord(uint64_t* p) {
  return reinterpret_cast<unsigned long long*>(p);
}

/// One addition for all lanes that are here together, because a single counter takes about one addition per clock.
__device__ __forceinline__ uint32_t NextOrdinal(Control* control) {
  const uint32_t lanes = __activemask();
  const uint32_t lane = threadIdx.x & 31;
  const int leader = __ffs(static_cast<int>(lanes)) - 1;
  uint32_t first = 0;
  if (static_cast<int>(lane) == leader) first = atomicAdd(&control->groups, static_cast<uint32_t>(__popc(lanes)));
  return __shfl_sync(lanes, first, leader) + static_cast<uint32_t>(__popc(lanes & ((1u << lane) - 1)));
}

/// The ordinal of a key. A new key gets a group; kTableFull if there is no room for it. `key` has bool Equals(const
/// uint64_t* record) and void Write(uint64_t* record).
template <class Key>
__device__ __forceinline__ uint32_t FindOrMakeGroup(const DeviceGroups& table, Control* control, const Key& key,
                                                    uint64_t hash) {
  const uint64_t tag = hash & 0xFFFFFFFF00000000u;
  for (uint64_t at = hash & table.slot_mask;;) {
    uint64_t slot = LoadRelaxed(table.slots + at);
    if (slot == 0) {
      // This is read before anything is added: once the table is full, every row with a new key comes here.
      if (LoadRelaxed(&control->groups) >= table.max_groups) return kTableFull;
      slot = atomicCAS(AtomicWord(table.slots + at), 0ull, static_cast<unsigned long long>(tag | 1));
      if (slot == 0) {
        const uint32_t ordinal = NextOrdinal(control);
        if (ordinal >= table.max_groups) {
          atomicExch(AtomicWord(table.slots + at), 0ull);
          return kTableFull;
        }
        uint64_t* state = table.states + static_cast<uint64_t>(ordinal) * table.state_words;
        for (uint32_t w = 0; w < table.state_words; ++w) state[w] = table.initial_state[w];
        key.Write(table.records + static_cast<uint64_t>(ordinal) * table.record_words);
        __threadfence();
        atomicExch(AtomicWord(table.slots + at), static_cast<unsigned long long>(tag | (ordinal + 2)));
        return ordinal;
      }
    }
    if ((slot & 0xFFFFFFFF00000000u) == tag) {
      const uint32_t low = static_cast<uint32_t>(slot);
      if (low == 1) continue;  // perhaps this very key is being written
      // The record is read past L1: another group's record on the same line may have been read before this one was
      // written.
      if (key.Equals(table.records + static_cast<uint64_t>(low - 2) * table.record_words)) return low - 2;
    }
    at = (at + 1) & table.slot_mask;
  }
}

}  // namespace tessera::kernels
