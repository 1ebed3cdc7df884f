// Filters: the instructions that take rows out of the selection mask or move the mask to and from mask registers.
// Members of Machine (machine.cuh).
//
// Apart because they alone work on codes as a tablet stores them: FilterAtOnce tests narrow codes where they lie,
// DoFilter those that had to be fetched. Comparisons of values come after them.
//
// Start at: FilterAtOnce.
#pragma once

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/machine.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

/// Tests the codes of a predicate without making 64-bit values of them. Returns false if the codes must be fetched.
template <Variant kVariant, uint32_t R>
__device__ __forceinline__ bool Machine<kVariant, R>::FilterAtOnce(const PredicateRecord& p,
                                                                   const PredicateHead& head) {
  if (head.kind == PredicateKind::kAll) return true;
  if (head.kind == PredicateKind::kNone) {
    live = 0;
    return true;
  }
  if constexpr (Selects(kVariant) && !kQueued) {
    if (head.kind == PredicateKind::kSet) {
      uint32_t at[R];
      LoadNarrow(stage + head.stage, head.width, thread, 0, at);
      LookUpDirect<uint8_t>(p.set, live, at);
      live = 0;
#pragma unroll
      for (uint32_t i = 0; i < R; ++i) live |= static_cast<uint32_t>(at[i] != 0) << i;
      return true;
    }
  }
  // Few rows: a test of 64-bit values costs no more.
  if (kQueued || head.kind != PredicateKind::kRange || head.width > 4) return false;
  const ulonglong2 range = *reinterpret_cast<const ulonglong2*>(&p.low);
  uint32_t low = static_cast<uint32_t>(range.x), span = static_cast<uint32_t>(range.y);
  bool negated = head.negated;
#pragma unroll 1
  for (bool last = !head.exclude_null;; last = true) {
    uint32_t pass;
    if (head.stage != kNowhere) {
      pass = TestRange<false>(stage + head.stage, head.width, thread, live, low, span);
    } else {
      pass = TestRange<true>(head.codes + static_cast<uint64_t>(tile->first) * head.width, head.width, thread, live,
                             low, span);
    }
    live &= negated ? ~pass : pass;
    if (last) return true;
    low = static_cast<uint32_t>(p.null_code), span = 0, negated = true;  // the second test drops the NULL code
  }
}

/// A filter whose codes were fetched as 64-bit values, or have 128 bits.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoFilter(const DeviceInstruction& in, OperandRows<R>& b) {
  const PredicateRecord& p = Predicate(in.head.p1);
  uint32_t pass = 0;
  if (p.head.kind == PredicateKind::kSet) {
    const uint8_t* set = p.set;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      if ((live >> i & 1) != 0 && __ldg(set + b.v[i]) != 0) pass |= 1u << i;
    }
    live &= pass;
    return;
  }
  if (kQueued && p.head.width <= 4) {
    const uint32_t low = static_cast<uint32_t>(p.low), span = static_cast<uint32_t>(p.span);
    const uint32_t null_code = static_cast<uint32_t>(p.null_code);
    uint32_t nulls = 0;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      const uint32_t code = static_cast<uint32_t>(b.v[i]);
      pass |= static_cast<uint32_t>(code - low <= span) << i;
      nulls |= static_cast<uint32_t>(code == null_code) << i;
    }
    if (p.head.negated) pass = ~pass;
    if (p.head.exclude_null) pass &= ~nulls;
    live &= pass;
    return;
  }
  if (p.head.width == 8) {
    const uint64_t low = p.low, span = p.span, null_code = p.null_code;
    uint32_t nulls = 0;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      pass |= static_cast<uint32_t>(static_cast<uint64_t>(b.v[i]) - low <= span) << i;
      nulls |= static_cast<uint32_t>(static_cast<uint64_t>(b.v[i]) == null_code) << i;
    }
    if (p.head.negated) pass = ~pass;
    if (p.head.exclude_null) pass &= ~nulls;
    live &= pass;
    return;
  }
  const uint8_t* codes = kQueued                    ? p.head.codes
                         : p.head.stage != kNowhere ? stage + p.head.stage
                                                    : p.head.codes + static_cast<uint64_t>(tile->first) * 16;
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    if ((live >> i & 1) == 0) continue;
    const longlong2 c = reinterpret_cast<const longlong2*>(codes)[RowOf(i)];
    const uint128_t code = static_cast<uint128_t>(Make128(c.y, c.x));
    const uint128_t low =
        static_cast<uint128_t>(Make128(static_cast<int64_t>(p.low_high), static_cast<int64_t>(p.low)));
    const uint128_t span =
        static_cast<uint128_t>(Make128(static_cast<int64_t>(p.span_high), static_cast<int64_t>(p.span)));
    bool keep = (code - low <= span) != p.head.negated;
    if (p.head.exclude_null &&
        code == static_cast<uint128_t>(Make128(p.null_code_high, static_cast<int64_t>(p.null_code))))
      keep = false;
    pass |= static_cast<uint32_t>(keep) << i;
  }
  live &= pass;
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoTest(const DeviceInstruction&, OperandRows<R>&) {
  uint32_t pass = 0;
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) pass |= static_cast<uint32_t>(M::Apply(a[i], (null >> i & 1) != 0)) << i;
  live &= pass;
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoTestNull(const DeviceInstruction&, OperandRows<R>&) {
  const uint32_t nulls = M::kWide ? null_w : null;
  live &= M::Apply(true) ? nulls : ~nulls;
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoCompare(const DeviceInstruction& in, OperandRows<R>& b) {
  using T = typename M::Type;
  if constexpr (kIsWide<T>) {
    uint32_t pass = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      if (((live & ~null_w) >> i & 1) == 0) continue;
      bool is_null;
      const int128_t v = FetchWide(in, i, &is_null);
      pass |= static_cast<uint32_t>(!is_null && M::Apply(LoadWide(i), v)) << i;
    }
    live &= pass;
  } else {
    uint32_t pass = 0;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i)
      pass |= static_cast<uint32_t>(M::Apply(FromBits<T>(a[i]), FromBits<T>(b.v[i]))) << i;
    live &= pass & ~(null | b.null);
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoMaskRegister(const DeviceInstruction& in, OperandRows<R>&) {
  uint32_t* saved = MaskRegister(in.head.p1);
  uint32_t bits = *saved;
  M::Apply(live, bits);
  *saved = bits;
}

}  // namespace tessera::kernels
