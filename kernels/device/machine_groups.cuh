// Group: which group each row belongs to. Its ordinal is found by the keys themselves where their domain is small,
// otherwise by hashing, first in the block's own table, then in the one of all blocks. Members of Machine
// (machine.cuh).
//
// Apart because the aggregates after it (machine_folds.cuh) need the ordinals only, however they were found.
//
// Start at: DoGroup.
#pragma once

#include "kernels/device/group_table.cuh"
#include "kernels/device/machine.cuh"
#include "kernels/device/ptx.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

/// Slots of the block's own table that a search looks at.
inline constexpr uint32_t kPrivateProbes = 8;
/// Bits of such a slot that hold the ordinal; the others are of the hash.
inline constexpr uint32_t kPrivateOrdinal = 0xFFF;

/// Up to this many live rows of a warp's slice or batch, of R rows a thread, are dealt to the lanes anew before their
/// groups are looked up.
template <uint32_t R>
inline constexpr uint32_t kFewGroupedRows = 24 * R;

/// The key of row i of a thread of the warp; its parts are in registers of the program. Its hash, NULL bits and first
/// word are kept, so that one key of 64 bits, the usual case, is compared without reading it again.
template <Variant kVariant, uint32_t R>
struct Machine<kVariant, R>::RowKey {
  const Machine& machine;
  uint32_t thread, i;
  uint64_t nulls = 0, first = 0, hash;

  __device__ __forceinline__ RowKey(const Machine& m, uint32_t of_thread, uint32_t row)
      : machine(m), thread(of_thread), i(row) {
    KeyHash h;
    uint32_t count = 0;
    Words(
        [&](uint64_t w) {
          h.Add(w);
          if (count++ == 0) first = w;
        },
        &nulls);
    h.Add(nulls);
    hash = h.Finish();
  }
  /// f(word) for each word after the NULL bits; a NULL key gives zeros.
  template <class F>
  __device__ __forceinline__ void Words(F f, uint64_t* null_bits) const {
    uint64_t bits = 0;
    const uint32_t keys = machine.launch.keys.of_groups;
#pragma unroll 1
    for (uint32_t k = 0; k < keys; ++k) {
      const uint32_t register_at = machine.launch.keys.registers[k];
      uint8_t* r = machine.Register(register_at);
      const bool is_null = (*RegisterNulls(r, thread) >> i & 1) != 0;
      bits |= static_cast<uint64_t>(is_null) << k;
      if ((register_at & kWideRegister) != 0) {
        const longlong2 v = RegisterValues<longlong2>(r, thread)[i * kThreads];
        f(is_null ? 0 : static_cast<uint64_t>(v.x));
        f(is_null ? 0 : static_cast<uint64_t>(v.y));
      } else {
        f(is_null ? 0 : static_cast<uint64_t>(RegisterValues<int64_t>(r, thread)[i * kThreads]));
      }
    }
    *null_bits = bits;
  }
  /// `load` reads a word of a record.
  template <class Word, class Load>
  __device__ __forceinline__ bool EqualsLoaded(Word* record, Load load) const {
    if (load(record) != nulls || load(record + 1) != first) return false;
    if (machine.launch.groups.record_words == 2) return true;
    bool equal = true;
    Word* at = record + 1;
    uint64_t ignored;
    Words([&](uint64_t w) { equal &= load(at++) == w; }, &ignored);
    return equal;
  }
  __device__ __forceinline__ bool Equals(const uint64_t* record) const {
    return EqualsLoaded(record,
                        [](const uint64_t* p) { return __ldcg(reinterpret_cast<const unsigned long long*>(p)); });
  }
  __device__ __forceinline__ bool EqualsPrivate(const volatile uint64_t* record) const {
    return EqualsLoaded(record, [](const volatile uint64_t* p) { return *p; });
  }
  template <class Word>
  __device__ __forceinline__ void Write(Word* record) const {
    Word* at = record + 1;
    uint64_t ignored;
    Words([&](uint64_t w) { *at++ = w; }, &ignored);
    *record = nulls;
  }
};

/// The block's own table from keys to ordinals below private_groups: a cache in front of the global one, filled first
/// come first served and never emptied in a launch. Its slots: 0 free, else 20 bits of the hash and below them 1
/// (being written) or ordinal + 2.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t* Machine<kVariant, R>::PrivateSlots() const {
  return reinterpret_cast<uint32_t*>(shared + launch.layout.private_slots);
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ volatile uint64_t* Machine<kVariant, R>::PrivateRecord(uint32_t ordinal) const {
  return reinterpret_cast<volatile uint64_t*>(shared + launch.layout.private_records) +
         ordinal * launch.groups.record_words;
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::PrivateTag(uint64_t hash) {
  return static_cast<uint32_t>(hash >> 32) & ~kPrivateOrdinal;
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::FindPrivate(const RowKey& key, uint64_t hash) const {
  const uint32_t mask = 2 * launch.private_groups - 1;
  uint32_t at = static_cast<uint32_t>(hash) & mask;
#pragma unroll 1
  for (uint32_t probe = 0; probe < kPrivateProbes; ++probe) {
    const uint32_t slot = LoadAcquireShared(PrivateSlots() + at);
    if (slot == 0) return kNowhere;
    const uint32_t ordinal = (slot & kPrivateOrdinal) - 2;
    if ((slot & ~kPrivateOrdinal) == PrivateTag(hash) && (slot & kPrivateOrdinal) != 1 &&
        key.EqualsPrivate(PrivateRecord(ordinal)))
      return ordinal;
    at = (at + 1) & mask;
  }
  return kNowhere;
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::InsertPrivate(const RowKey& key, uint64_t hash,
                                                                    uint32_t ordinal) const {
  const uint32_t mask = 2 * launch.private_groups - 1, tag = PrivateTag(hash);
  uint32_t at = static_cast<uint32_t>(hash) & mask;
#pragma unroll 1
  for (uint32_t probe = 0; probe < kPrivateProbes; ++probe) {
    const uint32_t slot = LoadAcquireShared(PrivateSlots() + at);
    if (slot == 0) {
      if (atomicCAS(PrivateSlots() + at, 0u, tag | 1) != 0) return;
      key.Write(PrivateRecord(ordinal));
      StoreReleaseShared(PrivateSlots() + at, tag | (ordinal + 2));
      return;
    }
    if ((slot & kPrivateOrdinal) == 1 || (slot & kPrivateOrdinal) == ordinal + 2)
      return;  // another thread is writing it, perhaps with this key
    at = (at + 1) & mask;
  }
}

/// The keys have a small domain: they give the group's number by themselves. Lowering has made an instruction for
/// each key.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::GroupDirectly(const DeviceInstruction& in, OperandRows<R>& b) {
  uint32_t* numbers = Ordinals();
  const uint32_t k = static_cast<uint32_t>(in.p3);
  const DirectKey key = launch.direct.keys[k];
  const bool last = k + 1 == launch.keys.of_groups;
  uint8_t* touched = shared + launch.layout.private_slots;
  if (!kPrivateGroups && launch.private_groups == 0) touched = launch.direct.touched;
  const uint32_t most = launch.direct.groups - 1;
  const uint32_t copy = !kPrivateGroups && last && launch.direct.copies > 1
                            ? blockIdx.x % launch.direct.copies * launch.direct.groups
                            : 0;
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) {
    uint32_t number = (static_cast<uint32_t>(b.v[i]) - static_cast<uint32_t>(key.low) + key.nullable) * key.stride;
    if ((b.null >> i & 1) != 0) number = 0;
    if (k != 0) number += numbers[i * kThreads];
    // The ranges come from the tablets' descriptors. If those are wrong, nothing outside of the arrays may be written.
    number = min(number, most) + copy;
    numbers[i * kThreads] = number;
    if (last && (live >> i & 1) != 0) touched[number] = 1;
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoGroup(const DeviceInstruction& in, OperandRows<R>& b) {
  if constexpr (kNestedLoops) {
    if (launch.repeats && !IsReserving()) {
      const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(live)));
      if (Lane32() == 0) Warp()->fed += n;
    }
  }
  if constexpr (!kFull) {
    GroupDirectly(in, b);
  } else {
    if (launch.direct.active) {
      GroupDirectly(in, b);
    } else {
      GroupByHash(in, b);
    }
  }
}

/// The thread that has the `number`-th live row of the slice, and the row's index in it; of a number that is too high,
/// those of some row. `through`: the live rows of the lanes up to this one.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::FindLive(uint32_t number, uint32_t through,
                                                                   uint32_t* i) const {
  uint32_t lane = 0;
#pragma unroll
  for (uint32_t d = 16; d > 0; d >>= 1) {
    if (__shfl_sync(kAllLanes, through, lane + d - 1) <= number) lane += d;
  }
  uint32_t left = __shfl_sync(kAllLanes, live, lane);
  const uint32_t first = __shfl_sync(kAllLanes, through, lane) - static_cast<uint32_t>(__popc(left));
#pragma unroll 1
  for (uint32_t before = number - first; before > 0 && left != 0; --before) left &= left - 1;
  *i = left == 0 ? 0 : static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1;
  return thread - Lane32() + lane;
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::GroupByHash(const DeviceInstruction& in, OperandRows<R>& b) {
  if (in.head.source != OperandSource::kNone ||
      in.head.wide_source != OperandSource::kNone) {  // a key that is in no register gets one
    uint8_t* r = Register(in.state);
    if (in.head.wide_source != OperandSource::kNone) {
      uint32_t nulls = 0;
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
        if ((live >> i & 1) == 0) continue;
        bool is_null;
        const int128_t v = FetchWide(in, i, &is_null);
        RegisterValues<longlong2>(r, thread)[i * kThreads] = make_longlong2(Low64(v), High64(v));
        nulls |= static_cast<uint32_t>(is_null) << i;
      }
      *RegisterNulls(r, thread) = nulls;
    } else {
      *RegisterNulls(r, thread) = b.null;
      int64_t* values = RegisterValues<int64_t>(r, thread);
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) values[i * kThreads] = b.v[i];
    }
  }
  // A step looks up a row of each lane and waits for memory several times. If few rows are live, lane n takes every 32nd
  // one of the slice's, from the n-th on, whatever lane has them, so that there are few steps.
  const uint32_t mine = static_cast<uint32_t>(__popc(live));
  uint32_t through = mine;
#pragma unroll
  for (uint32_t d = 1; d < 32; d <<= 1) {
    const uint32_t before = __shfl_up_sync(kAllLanes, through, d);
    if (Lane32() >= d) through += before;
  }
  const uint32_t total = __shfl_sync(kAllLanes, through, 31);
  const uint32_t steps = total <= kFewGroupedRows<R> ? (total + 31) / 32 : R;
  __syncwarp();  // the keys of other lanes
  // One row after the other: looking several up at once, so that their loads overlap, gained nothing with millions of
  // groups (the additions that follow are what takes the time) and cost a sixth with few.
  bool no_room = false;
#pragma unroll 1
  for (uint32_t step = 0; step < steps; ++step) {
    uint32_t owner = thread, i = step;
    bool wanted = (live >> i & 1) != 0;
    if (total <= kFewGroupedRows<R>) {
      const uint32_t number = 32 * step + Lane32();
      wanted = number < total;
      owner = FindLive(number, through, &i);
    }
    wanted = wanted && !no_room;
    // The lanes meet after each step. Otherwise they would go through the following steps one by one.
    const RowKey key(*this, owner, i);
    uint32_t ordinal = kNowhere;
    if (wanted && launch.private_groups != 0) ordinal = FindPrivate(key, key.hash);
    __syncwarp();
    if (wanted && ordinal == kNowhere) {
      ordinal = FindOrMakeGroup(launch.groups, launch.state.control, key, key.hash);
      if (ordinal == kTableFull) {
        no_room = true;
      } else if (ordinal < launch.private_groups) {
        InsertPrivate(key, key.hash, ordinal);
      }
    }
    __syncwarp();
    if (wanted) (Ordinals() - thread)[i * kThreads + owner] = ordinal;
  }
  __syncwarp();
  if (__any_sync(kAllLanes, no_room)) {
    if (Lane32() == 0) Stop(kQueued ? kFailed : kGrow);  // (rows that are queued have room: launch.spare)
    full = true;
  }
}

}  // namespace tessera::kernels
