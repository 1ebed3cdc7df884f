// Aggregate states between registers, shared memory and device memory: what a block does at the start and at the end of
// a launch.
//
// Start at: SetUpBlock, TearDownBlock.
#pragma once

#include <type_traits>

#include "base/int128.h"
#include "kernels/device/float_window.cuh"
#include "kernels/device/group_table.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"
#include "vm/meaning/meaning.h"

namespace tessera::kernels {

namespace meaning = vm::meaning;
using vm::GroupState;
using vm::Lane;
using vm::LaneError;
using vm::WithFold;

template <class T>
__device__ __forceinline__ T FromBits(int64_t v) {
  if constexpr (std::is_same_v<T, double>) {
    return __longlong_as_double(v);
  } else {
    return v;
  }
}
__device__ __forceinline__ int64_t ToBits(int64_t v) { return v; }
__device__ __forceinline__ int64_t ToBits(double v) { return __double_as_longlong(v); }

template <class T>
inline constexpr bool kIsWide = std::is_same_v<T, int128_t>;

template <class T>
__device__ __forceinline__ T ShuffleXor(T v, int d) {
  if constexpr (kIsWide<T>) {
    return Make128(__shfl_xor_sync(kAllLanes, High64(v), d), __shfl_xor_sync(kAllLanes, Low64(v), d));
  } else if constexpr (sizeof(T) == 8) {
    return __shfl_xor_sync(kAllLanes, v, d);
  } else {
    uint64_t words[vm::kStateWords<T>];
    vm::ToWords(v, words);
    for (uint64_t& word : words) word = __shfl_xor_sync(kAllLanes, word, d);
    return vm::FromWords<T>(words);
  }
}

/// An aggregate state in Partials, and back.
template <class State>
__device__ __forceinline__ State StateOf(const Partial* p) {
  if constexpr (kIsWide<State>) {
    return Make128(p->high, p->low);
  } else if constexpr (sizeof(State) == 8) {
    return FromBits<State>(p->low);
  } else {
    return FromPartials<State>(p);
  }
}
template <class State>
__device__ __forceinline__ void SetState(Partial* p, const State& s) {
  if constexpr (kIsWide<State>) {
    p->low = Low64(s);
    p->high = High64(s);
  } else if constexpr (sizeof(State) == 8) {
    p->low = ToBits(s);
  } else {
    ToPartials(s, p);
  }
}

/// Whether a group's state is not 0 at first.
__device__ __forceinline__ bool IsExtreme(Op op) {
  return vm::IsKept<GroupState::kLeast, GroupState::kGreatest, GroupState::kLeastFloat, GroupState::kGreatestFloat>(op);
}

/// Adds a private state of 8 bytes to that of a group in device memory.
template <class M>
__device__ __forceinline__ void AddWhole(uint64_t* to, uint64_t whole) {
  if constexpr (M::kGroupState == GroupState::kLeast) {
    atomicMin(reinterpret_cast<long long*>(to), static_cast<long long>(whole));
  } else if constexpr (M::kGroupState == GroupState::kGreatest) {
    atomicMax(reinterpret_cast<long long*>(to), static_cast<long long>(whole));
  } else if constexpr (M::kGroupState == GroupState::kLeastFloat) {
    atomicMin(AtomicWord(to), static_cast<unsigned long long>(whole));
  } else if constexpr (M::kGroupState == GroupState::kGreatestFloat) {
    atomicMax(AtomicWord(to), static_cast<unsigned long long>(whole));
  } else {
    static_assert(vm::PrivateStateBytes(M::kGroupState) != 8);
  }
}

/// change(State&) under the group's lock. `word`: where the state is in the group's.
template <class M, class F>
__device__ __forceinline__ void ChangeLocked(const DeviceGroups& groups, uint32_t ordinal, uint32_t word, F change) {
  using State = typename M::State;
  constexpr int kWords = vm::kStateWords<State>;
  uint64_t* group = groups.states + static_cast<uint64_t>(ordinal) * groups.state_words;
  uint64_t* s = group + word;
  for (bool done = false; !done;) {
    if (atomicCAS(AtomicWord(group + groups.lock_word), 0ull, 1ull) == 0) {
      __threadfence();
      uint64_t words[kWords];
      for (int w = kWords; w-- > 0;) words[w] = LoadRelaxed(s + w);
      State now = vm::FromWords<State>(words);
      change(now);
      vm::ToWords(now, words);
      for (int w = 0; w < kWords; ++w) atomicExch(AtomicWord(s + w), static_cast<unsigned long long>(words[w]));
      __threadfence();
      atomicExch(AtomicWord(group + groups.lock_word), 0ull);
      done = true;
    }
  }
}

/// Adds a sum to a group's window, which is at a word of its state.
__device__ __forceinline__ void AddSum(const DeviceGroups& groups, uint32_t ordinal, uint32_t window,
                                       const vm::FloatSum& sum) {
  uint64_t* const group = groups.states + static_cast<uint64_t>(ordinal) * groups.state_words;
  if (AddToWindow(DeviceWindow{group + window}, sum)) return;
  ChangeLocked<meaning::SumF>(groups, ordinal, SumAfter(window), [&](vm::FloatSum& all) { all.Merge(sum); });
}

/// Adds the windows of a group that the block has kept apart. `of_block`: the first.
template <class M>
__device__ __forceinline__ void AddBlockWindows(const DeviceGroups& groups, uint32_t ordinal,
                                                const DeviceInstruction& fold, BlockWindow of_block) {
  if constexpr (kHasCount<M>) {
    uint64_t* const group = groups.states + static_cast<uint64_t>(ordinal) * groups.state_words;
    atomicAdd(AtomicWord(group + fold.state), static_cast<unsigned long long>(*of_block.words));
    of_block.words += of_block.stride;
  }
#pragma unroll 1
  for (uint32_t k = 0; k < M::kSums; ++k) {
    AddSum(groups, ordinal, fold.state + WindowAt<M>(k), of_block.Sum());
    of_block.words += BlockWindow::kWords * of_block.stride;
  }
}

/// Copies the program to shared memory and clears aggregate states. Called by all threads of the block; the caller
/// synchronises.
__device__ __forceinline__ void SetUpBlock(const Launch& launch, uint8_t* shared) {
  const Layout& layout = launch.layout;
  const uint32_t threads = blockDim.x;
  if (layout.code != kNowhere) {
    const uint4* from = reinterpret_cast<const uint4*>(launch.code.instructions);
    uint4* to = reinterpret_cast<uint4*>(shared + layout.code);
    for (uint32_t i = threadIdx.x; i < launch.code.length * sizeof(DeviceInstruction) / 16; i += threads)
      to[i] = from[i];
  }
  for (uint32_t i = threadIdx.x; i < launch.joins.count * sizeof(JoinRecord) / 16; i += threads) {
    reinterpret_cast<uint4*>(shared + layout.joins)[i] = reinterpret_cast<const uint4*>(launch.joins.records)[i];
  }
  for (uint32_t j = 0; j < launch.joins.count; ++j) {
    const JoinRecord& join = launch.joins.records[j];
    if (join.shared_bits == kNowhere) continue;
    const uint4* from = reinterpret_cast<const uint4*>(join.bits);
    uint4* to = reinterpret_cast<uint4*>(shared + join.shared_bits);
    for (uint32_t i = threadIdx.x; i < join.bits_bytes / 16; i += threads) to[i] = __ldg(from + i);
  }
  for (uint32_t i = threadIdx.x; launch.joins.marks != nullptr && i < kWarps * launch.joins.mark_count; i += threads)
    reinterpret_cast<Mark*>(shared + layout.marks)[i] = Mark();
  if (launch.keys.of_groups == 0) {
    Partial* states = reinterpret_cast<Partial*>(shared + layout.warp_states);
    for (uint32_t i = threadIdx.x; i < kWarps * launch.aggregates.count; i += threads) {
      const uint32_t k = i % launch.aggregates.count, all = launch.aggregates.block_partials;
      const DeviceInstruction& fold = launch.folds[k];
      const uint32_t end = k + 1 < launch.aggregates.count ? launch.folds[k + 1].state : all;
      Partial* warp = states + i / launch.aggregates.count * all;
      for (uint32_t p = fold.state; p < end; ++p)
        warp[p] = p == fold.state ? Partial{fold.low, fold.high, 0, 0} : Partial{0, 0, 0, 0};
    }
    for (uint32_t i = threadIdx.x; layout.thread_states != kNowhere && i < kThreads * launch.aggregates.count;
         i += threads) {
      const DeviceInstruction& fold = launch.folds[i / kThreads];
      reinterpret_cast<ThreadState*>(shared + layout.thread_states)[i] = {static_cast<uint64_t>(fold.low), 0};
      reinterpret_cast<uint32_t*>(shared + layout.thread_counts)[i] = 0;
    }
  } else {
    // A row that was masked off at Group and is live again after it must find some group.
    for (uint32_t i = threadIdx.x; i < launch.layout.row_places; i += threads)
      reinterpret_cast<uint32_t*>(shared + layout.ordinals)[i] = 0;
    for (uint32_t at = layout.private_begin + 4 * threadIdx.x; at < layout.private_end; at += 4 * threads) {
      *reinterpret_cast<uint32_t*>(shared + at) = 0;
    }
    __syncthreads();
    for (uint32_t k = 0; k < launch.aggregates.count; ++k) {
      const DeviceInstruction& fold = launch.folds[k];
      if (fold.private_state == kNowhere || !IsExtreme(fold.head.op)) continue;
      for (uint32_t g = threadIdx.x; g < launch.private_groups; g += threads) {
        reinterpret_cast<int64_t*>(shared + fold.private_state)[g] = fold.low;
      }
    }
  }
}

/// The key that a direct group's number stands for.
struct NumberKey {
  const Launch& launch;
  uint32_t number;

  /// f(word) for each key; returns the NULL bits. As RowKey::Words.
  template <class F>
  __device__ __forceinline__ uint64_t Words(F f) const {
    uint64_t nulls = 0;
#pragma unroll 1
    for (uint32_t k = 0; k < launch.keys.of_groups; ++k) {
      // The next key's stride bounds this key's part.
      const DirectKey key = launch.direct.keys[k];
      const uint32_t end = k + 1 < launch.keys.of_groups ? launch.direct.keys[k + 1].stride : launch.direct.groups;
      const uint32_t part = number % end / key.stride;
      const bool is_null = key.nullable != 0 && part == 0;
      nulls |= static_cast<uint64_t>(is_null) << k;
      f(is_null ? 0 : static_cast<uint64_t>(key.low) + part - key.nullable);
    }
    return nulls;
  }
  __device__ __forceinline__ uint64_t Hash() const {
    KeyHash hash;
    const uint64_t nulls = Words([&](uint64_t w) { hash.Add(w); });
    hash.Add(nulls);
    return hash.Finish();
  }
  __device__ __forceinline__ bool Equals(const uint64_t* record) const {
    bool equal = true;
    const uint64_t* at = record + 1;
    const uint64_t nulls =
        Words([&](uint64_t w) { equal &= __ldcg(reinterpret_cast<const unsigned long long*>(at++)) == w; });
    return equal && __ldcg(reinterpret_cast<const unsigned long long*>(record)) == nulls;
  }
  __device__ __forceinline__ void Write(uint64_t* record) const {
    uint64_t* at = record + 1;
    const uint64_t nulls = Words([&](uint64_t w) { *at++ = w; });
    *record = nulls;
  }
};

/// The group in the launch's table that a direct group's number stands for. kTableFull, which ends the query: the host has
/// made too little room.
__device__ __forceinline__ uint32_t EnterGroup(const Launch& launch, uint32_t number) {
  const NumberKey key{launch, number};
  const uint32_t ordinal = FindOrMakeGroup(launch.groups, launch.state.control, key, key.Hash());
  if (ordinal == kTableFull) atomicOr(&launch.state.control->reasons, kFailed);
  return ordinal;
}

/// Whether code for this aggregate's state would only be ballast: kernels without states of several words have no registers
/// to spare for them.
template <class State, Variant kVariant>
inline constexpr bool kIsForeignState = std::is_class_v<State> && !HasStates(kVariant);

/// Adds the block's aggregates to those in device memory. Called by all interpreting threads, after the last of them
/// has finished its tiles.
template <Variant kVariant>
__device__ __forceinline__ void TearDownBlock(const Launch& launch, uint8_t* shared) {
  const Layout& layout = launch.layout;
  for (uint32_t i = threadIdx.x; launch.joins.marks != nullptr && i < kWarps * launch.joins.mark_count; i += kThreads) {
    const Mark& mine = reinterpret_cast<const Mark*>(shared + layout.marks)[i];
    Mark* all = launch.joins.marks + i % launch.joins.mark_count;
    atomicAdd(&all->rows, mine.rows);
    atomicAdd(&all->cycles, mine.cycles);
  }
  if (launch.keys.of_groups == 0) {
    const Partial* states = reinterpret_cast<const Partial*>(shared + layout.warp_states);
    for (uint32_t k = threadIdx.x; k < launch.aggregates.count; k += kThreads) {
      const DeviceInstruction& fold = launch.folds[k];
      const uint32_t step = launch.aggregates.block_partials;
      Partial* to = launch.aggregates.partials + blockIdx.x * step + fold.state;
      const Partial* from = states + fold.state;
      *to = *from;
      WithFold(fold.head.op, [&]<class M>() {
        using State = typename M::State;
        if constexpr (!kIsForeignState<State, kVariant>) {
          State s = StateOf<State>(from);
          Lane lane;
#pragma unroll 1
          for (uint32_t w = 1; w < kWarps; ++w) M::Merge(s, StateOf<State>(from + w * step), lane);
          SetState(to, s);
          if (lane.error != LaneError::kNone && atomicCAS(&launch.state.control->error_claimed, 0u, 1u) == 0) {
            launch.state.control->error_address = fold.address;
            launch.state.control->error_code = static_cast<uint32_t>(lane.error);
            atomicOr(&launch.state.control->reasons, kFailed);
          }
        }
      });
      uint64_t count = 0;
#pragma unroll 1
      for (uint32_t w = 0; w < kWarps; ++w) count += from[w * step].count;
      to->count = count;
    }
    return;
  }
  const uint32_t n = launch.private_groups;
  const uint32_t groups = launch.direct.active ? n : min(n, LoadRelaxed(&launch.state.control->groups));
  for (uint32_t g = threadIdx.x; g < groups; g += kThreads) {
    uint32_t ordinal = g;
    if (launch.direct.active) {
      if (shared[layout.private_slots + g] == 0) continue;
      ordinal = EnterGroup(launch, g);
      if (ordinal == kTableFull) continue;
    }
    uint64_t* group = launch.groups.states + static_cast<uint64_t>(ordinal) * launch.groups.state_words;
    for (uint32_t k = 0; k < launch.aggregates.count; ++k) {
      const DeviceInstruction& fold = launch.folds[k];
      if (fold.private_state == kNowhere) continue;
      uint64_t* to = group + fold.state;
      const uint32_t* words = reinterpret_cast<const uint32_t*>(shared + fold.private_state) + g;
      const Op op = fold.head.op;
      if (vm::IsKept<GroupState::kCount>(op)) {
        if (*words != 0) atomicAdd(AtomicWord(to), static_cast<unsigned long long>(*words));
        continue;
      }
      if (shared[layout.private_seen + k * n + g] == 0) continue;
      if (vm::IsKept<GroupState::kHalves>(op)) {
        const uint64_t low = words[0] | static_cast<uint64_t>(words[n]) << 32;
        const uint64_t high = words[2 * n] | static_cast<uint64_t>(words[3 * n]) << 32;
        atomicAdd(AtomicWord(to), static_cast<unsigned long long>(low));
        if (high != 0) atomicAdd(AtomicWord(to + 1), static_cast<unsigned long long>(high));
      } else if (vm::IsKept<GroupState::kFloatWindow, GroupState::kMomentWindows>(op)) {
        if constexpr (HasStates(kVariant)) {
          WithFold(op, [&]<class M>() {
            if constexpr (kHasWindows<M>)
              AddBlockWindows<M>(launch.groups, ordinal, fold, {const_cast<uint32_t*>(words), n});
          });
        }
      } else {
        const uint64_t whole = reinterpret_cast<const uint64_t*>(shared + fold.private_state)[g];
        WithFold(op, [&]<class M>() { AddWhole<M>(to, whole); });
      }
      atomicOr(AtomicWord(group + k / 64), 1ull << (k % 64));
    }
  }
}

}  // namespace tessera::kernels
