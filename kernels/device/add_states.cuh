// Two states of a group become one, where no other thread has the group.
//
// Start at: AddStates.
#pragma once

#include <cstdint>

#include "kernels/device/float_window.cuh"
#include "vm/meaning/meaning.h"
#include "vm/program/opcode.h"

namespace tessera::kernels {

/// Adds one state of an aggregate to another.
template <class M>
__device__ __forceinline__ void AddState(const uint64_t* from, uint64_t* to) {
  using vm::GroupState;
  constexpr GroupState kKept = M::kGroupState;
  const long long mine = static_cast<long long>(*from), there = static_cast<long long>(*to);
  if constexpr (kKept == GroupState::kCount) {
    *to += *from;
  } else if constexpr (kKept == GroupState::kHalves || kKept == GroupState::kParts) {
    for (uint32_t w = 0; w < vm::GroupStateWords(kKept, 0); ++w) to[w] += from[w];
  } else if constexpr (kHasWindows<M>) {
    using vm::FloatWindow;
    if constexpr (kHasCount<M>) *to += *from;
#pragma unroll 1
    for (uint32_t k = 0; k < M::kSums; ++k) {
      const uint32_t at = WindowAt<M>(k);
      vm::FloatSum sum = FloatWindow::SumOf(to + at);
      sum.Merge(FloatWindow::SumOf(from + at));
      for (int w = 0; w < FloatWindow::kWords; ++w) to[at + static_cast<uint32_t>(w)] = 0;
      vm::ToWords(sum, to + SumAfter(at));
    }
  } else if constexpr (kKept == GroupState::kLeast) {
    *to = static_cast<uint64_t>(min(mine, there));
  } else if constexpr (kKept == GroupState::kGreatest) {
    *to = static_cast<uint64_t>(max(mine, there));
  } else if constexpr (kKept == GroupState::kLeastFloat) {
    *to = min(*from, *to);
  } else if constexpr (kKept == GroupState::kGreatestFloat) {
    *to = max(*from, *to);
  } else {
    static_assert(kKept == GroupState::kLocked);  // the caller has ruled these out: vm::MayAddStates
  }
}

/// An aggregate, and the word of the group's state where its own begins.
struct StateAt {
  vm::Opcode op;
  uint32_t word;
};

/// The same for all aggregates of a group, and the bits that say which have seen a value. `at`: the StateAt of each.
template <class At>
__device__ __forceinline__ void AddStates(uint32_t aggregates, At at, const uint64_t* from, uint64_t* to) {
  const uint32_t seen_words = (aggregates + 63) / 64;
  for (uint32_t w = 0; w < seen_words; ++w) to[w] |= from[w];
  for (uint32_t k = 0; k < aggregates; ++k) {
    const StateAt state = at(k);
    vm::WithAggregate(state.op, [&]<class M>() { AddState<M>(from + state.word, to + state.word); });
  }
}

}  // namespace tessera::kernels
