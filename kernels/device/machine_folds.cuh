// Aggregates: values of rows go into states. Without keys a state per warp, or per thread where a row can come more
// than once; with keys one per group, in shared memory or in device memory. Members of Machine (machine.cuh).
//
// Apart because here rows meet states, while aggregate_state.cuh moves states between memories at the begin and the end
// of a launch.
//
// Start at: DoFold.
#pragma once

#include <type_traits>

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/float_window.cuh"
#include "kernels/device/group_table.cuh"
#include "kernels/device/machine.cuh"
#include "kernels/device/machine_arithmetic.cuh"
#include "kernels/device/ptx.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"
#include "vm/meaning/meaning.h"

namespace tessera::kernels {

/// Whether a ThreadState holds the state: a sum in two halves, or one word. Others go to the warp's state at once.
template <class M>
inline constexpr bool kHasThreadState = M::kGroupState == GroupState::kHalves ||
                                        (!kIsWide<typename M::Type> && sizeof(typename M::State) == 8);

/// For WithFold: merges what one thread has added up into its warp's state. A struct, because cudafe++ makes invalid
/// C++ of a lambda with template parameters in a member that is defined outside of its class.
struct MergeThreadState {
  ThreadState from;
  Partial* to;

  template <class M>
  __device__ __forceinline__ void operator()() const {
    if constexpr (kHasThreadState<M>) {
      using State = typename M::State;
      State s;
      if constexpr (kIsWide<State>) {
        s = vm::WrapAdd(static_cast<int128_t>(static_cast<int64_t>(from.high)) * (int128_t{1} << 32),
                        static_cast<int128_t>(from.low));
      } else {
        s = FromBits<State>(static_cast<int64_t>(from.low));
      }
      State now = StateOf<State>(to);
      Lane ignored;
      M::Merge(now, s, ignored);
      SetState(to, now);
    }
  }
};

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint32_t* Machine<kVariant, R>::PrivateArray(const DeviceInstruction& in) const {
  return reinterpret_cast<uint32_t*>(shared + in.private_state);
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ uint64_t* Machine<kVariant, R>::GlobalState(uint32_t ordinal) const {
  return launch.groups.states + static_cast<uint64_t>(ordinal) * launch.groups.state_words;
}

/// Notes that the aggregate has a value in a group. Bits are only ever set in a launch, so an old line of L1 does no
/// harm.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::MarkSeen(uint64_t* state, uint32_t aggregate) const {
  uint64_t* word = state + aggregate / 64;
  const uint64_t bit = uint64_t{1} << (aggregate % 64);
  if ((__ldca(reinterpret_cast<const unsigned long long*>(word)) & bit) == 0)
    atomicOr(AtomicWord(word), static_cast<unsigned long long>(bit));
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::MarkSeenPrivate(uint32_t ordinal, uint32_t aggregate) const {
  shared[launch.layout.private_seen + aggregate * launch.private_groups + ordinal] = 1;
}

/// Adds a value to the state of a group in device memory. Integer sums keep the lower halves of their values apart from
/// the upper ones: neither half can overflow 64 bits in 2^32 rows, and no addition needs the result of another.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::AddToGlobal(uint64_t* s, int64_t v) {
  if constexpr (M::kGroupState == GroupState::kHalves) {
    atomicAdd(AtomicWord(s), static_cast<unsigned long long>(static_cast<uint32_t>(v)));
    if ((v >> 32) != 0) atomicAdd(AtomicWord(s + 1), static_cast<unsigned long long>(v >> 32));
  } else if constexpr (M::kGroupState == GroupState::kLeast) {
    atomicMin(reinterpret_cast<long long*>(s), static_cast<long long>(v));
  } else if constexpr (M::kGroupState == GroupState::kGreatest) {
    atomicMax(reinterpret_cast<long long*>(s), static_cast<long long>(v));
  } else if constexpr (M::kGroupState == GroupState::kLeastFloat) {
    atomicMin(AtomicWord(s), static_cast<unsigned long long>(OrderedFloat(__longlong_as_double(v))));
  } else {
    static_assert(M::kGroupState == GroupState::kGreatestFloat);
    atomicMax(AtomicWord(s), static_cast<unsigned long long>(OrderedFloat(__longlong_as_double(v))));
  }
}

/// The same in the block's own arrays. A sum is four words of 32 bits there, because shared memory has no atomic
/// addition of 64 bits.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::AddToPrivate(const DeviceInstruction& in, uint32_t ordinal,
                                                                   int64_t v) const {
  const uint32_t n = launch.private_groups;
  if constexpr (M::kGroupState == GroupState::kHalves) {
    uint32_t* s = PrivateArray(in) + ordinal;
    const uint32_t low = static_cast<uint32_t>(v);
    const int32_t high = static_cast<int32_t>(v >> 32);
    if (atomicAdd(s, low) + low < low) atomicAdd(s + n, 1u);
    if (high != 0) {
      const uint32_t h = static_cast<uint32_t>(high);
      const uint32_t carry = (atomicAdd(s + 2 * n, h) + h < h ? 1u : 0u) + static_cast<uint32_t>(high >> 31);
      if (carry != 0) atomicAdd(s + 3 * n, carry);
    }
  } else {
    uint64_t* s = reinterpret_cast<uint64_t*>(PrivateArray(in)) + ordinal;
    if constexpr (M::kGroupState == GroupState::kLeast) {
      if (*reinterpret_cast<volatile int64_t*>(s) <= v) return;
    } else if constexpr (M::kGroupState == GroupState::kGreatest) {
      if (*reinterpret_cast<volatile int64_t*>(s) >= v) return;
    }
    AddToGlobal<M>(s, v);
  }
}

/// States that blocks do not keep apart. A wide sum is four sums of 32-bit parts, the last one signed; any other state is
/// changed under the group's lock.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::AddToShared(uint32_t ordinal, const DeviceInstruction& in,
                                                                  typename M::Type v) const {
  uint64_t* group = GlobalState(ordinal);
  uint64_t* s = group + in.state;
  if constexpr (M::kGroupState == GroupState::kParts) {
    const int64_t low = Low64(v), high = High64(v);
    atomicAdd(AtomicWord(s), static_cast<unsigned long long>(static_cast<uint32_t>(low)));
    atomicAdd(AtomicWord(s + 1), static_cast<unsigned long long>(static_cast<uint64_t>(low) >> 32));
    atomicAdd(AtomicWord(s + 2), static_cast<unsigned long long>(static_cast<uint32_t>(high)));
    atomicAdd(AtomicWord(s + 3), static_cast<unsigned long long>(high >> 32));
  } else {
    static_assert(M::kGroupState == GroupState::kLocked);
    ChangeLocked<M>(launch.groups, ordinal, in.state, [&](typename M::State& now) {
      Lane lane;
      M::Apply(now, v, lane);
    });
  }
  MarkSeen(group, in.head.p1);
}

/// A number that a window of its group has no bins for.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::AddOutsideOfWindow(uint32_t ordinal, uint32_t window,
                                                                         double v) const {
  ChangeLocked<meaning::SumF>(launch.groups, ordinal, SumAfter(window), [&](vm::FloatSum& s) { s.Add(v); });
}

/// Adds values to the windows of their groups. What windows have before is asked for four rows at a time, so that the
/// answers come together; a head that is old is good enough.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::AddToWindows(const DeviceInstruction& in, uint32_t take) {
  constexpr uint32_t kTogether = 4;
#pragma unroll 1
  for (uint32_t g = 0; g < R / kTogether; ++g) {
    uint32_t ordinal[kTogether];
#pragma unroll
    for (uint32_t e = 0; e < kTogether; ++e)
      ordinal[e] = (take >> (kTogether * g + e) & 1) != 0 ? Ordinals()[(kTogether * g + e) * kThreads] : kNowhere;
#pragma unroll 1
    for (uint32_t k = 0; k < M::kSums; ++k) {
      const uint32_t window = in.state + WindowAt<M>(k);
      uint64_t head[kTogether];
#pragma unroll
      for (uint32_t e = 0; e < kTogether; ++e) {
        if (ordinal[e] != kNowhere)
          head[e] = __ldca(reinterpret_cast<const unsigned long long*>(GlobalState(ordinal[e]) + window));
      }
#pragma unroll
      for (uint32_t e = 0; e < kTogether; ++e) {
        if (ordinal[e] == kNowhere) continue;
        uint64_t* const group = GlobalState(ordinal[e]);
        const double v = M::Part(__longlong_as_double(a[e]), k);
        if (!AddToWindow(DeviceWindow{group + window}, head[e], v)) AddOutsideOfWindow(ordinal[e], window, v);
        if (k > 0) continue;
        if constexpr (kHasCount<M>) atomicAdd(AtomicWord(group + in.state), 1ull);
        // (The others leave it to the row that opens the window.)
        if (head[e] == 0) MarkSeen(group, in.head.p1);
      }
    }
    RotateBy<kTogether>(a);
  }
}

/// The same for groups that the block keeps apart. What their windows have no bins for goes to the group in device memory.
/// Returns the rows of other groups.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::AddToBlockWindows(const DeviceInstruction& in,
                                                                            uint32_t take) {
  const uint32_t n = in.private_state != kNowhere ? launch.private_groups : 0;
  if (n == 0) return take;
  uint32_t rest = 0;
  Rotating([&](uint32_t i, int64_t x) {
    if ((take >> i & 1) == 0) return x;
    const uint32_t ordinal = Ordinals()[i * kThreads];
    if (ordinal >= n) {
      rest |= 1u << i;
      return x;
    }
    MarkSeenPrivate(ordinal, in.head.p1);
    uint32_t* words = PrivateArray(in) + ordinal;
    if constexpr (kHasCount<M>) atomicAdd(words, 1u);
#pragma unroll 1
    for (uint32_t k = 0; k < M::kSums; ++k) {
      const BlockWindow window{words + ((kHasCount<M> ? 1 : 0) + k * BlockWindow::kWords) * n, n};
      const double v = M::Part(__longlong_as_double(x), k);
      if (AddToWindow(window, window.Head(), v)) continue;
      const uint32_t group = launch.direct.active ? EnterGroup(launch, ordinal) : ordinal;
      if (group != kTableFull) AddOutsideOfWindow(group, in.state + WindowAt<M>(k), v);
    }
    return x;
  });
  return rest;
}

/// Thousands of threads that add to the windows of few groups would wait for each other. So a warp adds up the rows that it
/// has of one group, and adds their sum, group after group, as long as a group has a sixteenth of the warp's rows or more.
/// Returns the rows that are left. Called by whole warps.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ uint32_t Machine<kVariant, R>::AddLargeGroups(const DeviceInstruction& in, uint32_t take) {
  for (;;) {
    const uint32_t lanes = __ballot_sync(kAllLanes, take != 0);
    if (lanes == 0) return 0;
    const uint32_t first = take == 0 ? 0 : Ordinals()[(__ffs(static_cast<int>(take)) - 1) * kThreads];
    const uint32_t ordinal = __shfl_sync(kAllLanes, first, __ffs(static_cast<int>(lanes)) - 1);
    uint32_t same = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) same |= static_cast<uint32_t>(Ordinals()[i * kThreads] == ordinal) << i;
    same &= take;
    const uint32_t rows = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(same)));
    if (rows < 2 * R) return take;
#pragma unroll 1
    for (uint32_t k = 0; k < M::kSums; ++k) {
      vm::FloatSum sum = vm::FloatSum::Zero();
      Rotating([&](uint32_t i, int64_t x) {
        if ((same >> i & 1) != 0) sum.Add(M::Part(__longlong_as_double(x), k));
        return x;
      });
#pragma unroll 1
      for (int d = 16; d > 0; d >>= 1) sum.Merge(ShuffleXor(sum, d));
      if (Lane32() == 0) AddSum(launch.groups, ordinal, in.state + WindowAt<M>(k), sum);
    }
    if (Lane32() == 0) {
      uint64_t* const group = GlobalState(ordinal);
      if constexpr (kHasCount<M>) atomicAdd(AtomicWord(group + in.state), static_cast<unsigned long long>(rows));
      MarkSeen(group, in.head.p1);
    }
    take &= ~same;
  }
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::CountGroups(const DeviceInstruction& in, uint32_t count) const {
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    if ((count >> i & 1) == 0) continue;
    const uint32_t ordinal = Ordinals()[i * kThreads];
    if (kPrivateGroups || (ordinal < launch.private_groups && in.private_state != kNowhere)) {
      atomicAdd(PrivateArray(in) + ordinal, 1u);
    } else {
      atomicAdd(AtomicWord(GlobalState(ordinal) + in.state), 1ull);
    }
  }
}

template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::CountAll(const DeviceInstruction& in, uint32_t count) const {
  if (launch.keys.of_groups != 0) return CountGroups(in, count);
  if (KeepsThreadStates()) {
    *CountOfThread(in.head.p1) += static_cast<uint32_t>(__popc(count));
    return;
  }
  const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(count)));
  if (Lane32() == 0) PartialOf(in)->count += n;
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoCountRows(const DeviceInstruction& in, OperandRows<R>&) {
  if (!IsReserving()) CountAll(in, live);
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoCountValues(const DeviceInstruction& in, OperandRows<R>&) {
  if (!IsReserving()) CountAll(in, live & ~(M::kWide ? null_w : null));
}

/// Adds the lower halves of the values of `take`, which have no sign, and the upper halves, which have one. They are
/// kept apart, because then a wide multiplication by the row's bit adds 32 bits to 64 in one instruction, without a
/// carry and without a predicate (with them ptxas takes twelve instructions a row).
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::AddHalves(uint32_t take, uint64_t* low, uint64_t* high) const {
#pragma unroll
  for (uint32_t g = 0; g < R / 4; ++g) {
#pragma unroll
    for (uint32_t i = 4 * g; i < 4 * g + 4; ++i) {
      const uint32_t bit = take >> i & 1;
      MulAddWide(low, static_cast<uint32_t>(a[i]), bit);
      MulAddWide(high, static_cast<int32_t>(a[i] >> 32), static_cast<int32_t>(bit));
    }
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::AddToThread(uint32_t aggregate, uint32_t take) {
  *CountOfThread(aggregate) += static_cast<uint32_t>(__popc(take));
  ThreadState* state = StateOfThread(aggregate);
  ThreadState now = *state;
  if constexpr (M::kGroupState == GroupState::kHalves) {
    AddHalves(take, &now.low, &now.high);
  } else {
    using T = typename M::Type;
    typename M::State s = FromBits<typename M::State>(static_cast<int64_t>(now.low));
    Lane lane;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      typename M::State next = s;
      M::Apply(next, FromBits<T>(a[i]), lane);
      s = (take >> i & 1) != 0 ? next : s;
    }
    now.low = static_cast<uint64_t>(ToBits(s));
  }
  *state = now;
}

/// Moves what the threads have added up in a slice to the states of the warp. One lane does it: it happens rarely, and
/// this way takes few registers.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ void Machine<kVariant, R>::AddThreadsToWarp() {
  __syncwarp();
#pragma unroll 1
  for (uint32_t k = 0; k < launch.aggregates.count; ++k) {
    const DeviceInstruction& fold = launch.folds[k];
    if (Lane32() == 0) {
      Partial* to = PartialOf(fold);
#pragma unroll 1
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const uint32_t n = CountOfThread(k)[lane];
        if (n == 0) continue;
        to->count += n;
        WithFold(fold.head.op, MergeThreadState{StateOfThread(k)[lane], to});
      }
    }
    __syncwarp();
    *CountOfThread(k) = 0;
    *StateOfThread(k) = {static_cast<uint64_t>(fold.low), 0};
  }
  __syncwarp();
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoFold(const DeviceInstruction& in, OperandRows<R>&) {
  using T = typename M::Type;
  using State = typename M::State;
  if (IsReserving()) return;
  const uint32_t take = live & ~(kIsWide<T> ? null_w : null);
  if (!__any_sync(kAllLanes, take != 0)) return;
  if (launch.keys.of_groups != 0) {
    if constexpr (kIsWide<T>) {
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
        if ((take >> i & 1) == 0) continue;
        const uint32_t ordinal = Ordinals()[i * kThreads];
        AddToShared<M>(ordinal, in, LoadWide(i));
      }
    } else if constexpr (kHasWindows<M>) {
      const uint32_t rest = AddToBlockWindows<M>(in, take);
      AddToWindows<M>(in, AddLargeGroups<M>(in, rest));
    } else if constexpr (vm::PrivateStateBytes(M::kGroupState) == 0) {
      Rotating([&](uint32_t i, int64_t x) {
        if ((take >> i & 1) == 0) return x;
        const uint32_t ordinal = Ordinals()[i * kThreads];
        AddToShared<M>(ordinal, in, FromBits<T>(x));
        return x;
      });
    } else {
      const uint32_t private_groups = in.private_state != kNowhere ? launch.private_groups : 0;
#pragma unroll 1
      for (uint32_t g = 0; g < R / 4; ++g) {
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e) {
          if ((take >> (4 * g + e) & 1) == 0) continue;
          const uint32_t ordinal = Ordinals()[(4 * g + e) * kThreads];
          if (kPrivateGroups || ordinal < private_groups) {
            AddToPrivate<M>(in, ordinal, a[e]);
            MarkSeenPrivate(ordinal, in.head.p1);
          } else {
            AddToGlobal<M>(GlobalState(ordinal) + in.state, a[e]);
            MarkSeen(GlobalState(ordinal), in.head.p1);
          }
        }
        RotateBy<4>(a);
      }
    }
    return;
  }
  if constexpr (kNestedLoops && kHasThreadState<M>) {
    if (KeepsThreadStates()) {
      AddToThread<M>(in.head.p1, take);
      return;
    }
  }
  const uint32_t n = __reduce_add_sync(kAllLanes, static_cast<uint32_t>(__popc(take)));
  Partial* state = PartialOf(in);
  if constexpr (M::kGroupState == GroupState::kHalves) {
    uint64_t low_sum = 0, high_sum = 0;
    AddHalves(take, &low_sum, &high_sum);
    // As one number of 96 bits.
    const uint64_t middle = (low_sum >> 32) + static_cast<uint32_t>(high_sum);
    const uint32_t s0 = static_cast<uint32_t>(low_sum), s1 = static_cast<uint32_t>(middle);
    const uint32_t s2 = static_cast<uint32_t>(high_sum >> 32) + static_cast<uint32_t>(middle >> 32);
    // The lanes' sums are added in parts of 24 bits, which one instruction each does for a warp.
    const uint32_t part0 = __reduce_add_sync(kAllLanes, s0 & 0xFFFFFF);
    const uint32_t part1 = __reduce_add_sync(kAllLanes, __funnelshift_r(s0, s1, 24) & 0xFFFFFF);
    const uint32_t part2 = __reduce_add_sync(kAllLanes, __funnelshift_r(s1, s2, 16) & 0xFFFFFF);
    const int32_t part3 = __reduce_add_sync(kAllLanes, static_cast<int32_t>(s2) >> 8);
    if (Lane32() == 0) {
      const uint64_t low = part0 + (static_cast<uint64_t>(part1) << 24);
      const int64_t high = static_cast<int64_t>(part2) + (static_cast<int64_t>(part3) << 24);  // in units of 2^48
      const int128_t sum = static_cast<int128_t>(high) * (int128_t{1} << 48) + static_cast<int128_t>(low);
      SetState(state, vm::WrapAdd(StateOf<State>(state), sum));
      state->count += n;
    }
  } else {
    State s = M::Identity();
    Lane lane;
    if constexpr (kIsWide<T>) {
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
        if ((take >> i & 1) != 0) M::Apply(s, LoadWide(i), lane);
      }
    } else if constexpr (kLong<M>) {
      Rotating([&](uint32_t i, int64_t x) {
        if ((take >> i & 1) != 0) M::Apply(s, FromBits<T>(x), lane);
        return x;
      });
    } else {
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) {
        State next = s;
        M::Apply(next, FromBits<T>(a[i]), lane);
        s = (take >> i & 1) != 0 ? next : s;
      }
    }
    if constexpr (std::is_class_v<State>) {  // unrolled, it would take more registers than there are
#pragma unroll 1
      for (int d = 16; d > 0; d >>= 1) M::Merge(s, ShuffleXor(s, d), lane);
    } else {
#pragma unroll
      for (int d = 16; d > 0; d >>= 1) M::Merge(s, ShuffleXor(s, d), lane);
    }
    if (Lane32() == 0) {
      State now = StateOf<State>(state);
      M::Merge(now, s, lane);
      SetState(state, now);
      state->count += n;
    }
    if constexpr (kIsWide<T>) Note(0, lane.error);
  }
}

}  // namespace tessera::kernels
