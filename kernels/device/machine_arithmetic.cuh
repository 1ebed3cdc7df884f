// Loops over the rows for opcodes that compute values: one loop per shape, instantiated with an opcode's meaning. Loads
// into the accumulators and stores from them stand here too. Members of Machine (machine.cuh).
//
// Apart because a new opcode of a known shape needs nothing else of the machine, and a new shape is one more loop here.
//
// Start at: DoBinary.
#pragma once

#include <type_traits>

#include "kernels/device/aggregate_state.cuh"
#include "kernels/device/machine.cuh"
#include "kernels/device/row_vectors.cuh"
#include "kernels/launch/launch.h"
#include "vm/meaning/meaning.h"

namespace tessera::kernels {

/// Whether the row of a meaning says Long. Unrolled 16 times these would crowd the instruction cache, and their
/// temporaries would cost every opcode registers.
template <class M>
inline constexpr bool kLong = false;
#define OPCODE(Name, Shape, In, Out, Tier, LoopName, ...) \
  template <>                                             \
  inline constexpr bool kLong<meaning::Name> = vm::Loop::LoopName == vm::Loop::Long;
#include "vm/program/opcodes.def"
#undef OPCODE

/// Load is done where operands are fetched: straight into the accumulator.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoLoad(const DeviceInstruction&, OperandRows<R>&) {}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoLoadWide(const DeviceInstruction& in, OperandRows<R>&) {
  null_w = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    if ((live >> i & 1) == 0) continue;
    bool is_null;
    StoreWide(i, FetchWide(in, i, &is_null));
    null_w |= static_cast<uint32_t>(is_null) << i;
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoStore(const DeviceInstruction& in, OperandRows<R>&) {
  uint8_t* r = Register(in.head.register_at);
  uint32_t* nulls = RegisterNulls(r, thread);
  *nulls = (*nulls & ~live) | (null & live);
  int64_t* values = RegisterValues<int64_t>(r, thread);
#pragma unroll
  for (uint32_t i = 0; i < R; ++i) {
    if ((live >> i & 1) != 0) values[i * kThreads] = a[i];
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoStoreWide(const DeviceInstruction& in, OperandRows<R>&) {
  uint8_t* r = Register(in.head.register_at);
  uint32_t* nulls = RegisterNulls(r, thread);
  *nulls = (*nulls & ~live) | (null_w & live);
  longlong2* values = RegisterValues<longlong2>(r, thread);
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    if ((live >> i & 1) != 0) values[i * kThreads] = Wide()[i * kThreads];
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoBinary(const DeviceInstruction& in, OperandRows<R>& b) {
  using T = typename M::Type;
  if constexpr (kIsWide<T>) {
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      if ((live >> i & 1) == 0) continue;
      bool is_null;
      const int128_t v = FetchWide(in, i, &is_null);
      null_w |= static_cast<uint32_t>(is_null) << i;
      if ((null_w >> i & 1) != 0) continue;
      Lane lane;
      StoreWide(i, M::Apply(LoadWide(i), v, lane));
      null_w |= static_cast<uint32_t>(lane.null) << i;
      Note(i, lane.error);
    }
  } else {
    null |= b.null;
    const uint32_t count = live & ~null;
    uint32_t made_null = 0;
    if constexpr (kLong<M>) {
#pragma unroll 1
      for (uint32_t i = 0; i < R; ++i) {
        int64_t x = a[0];
        const int64_t y = b.v[0];
        RotateBy<1>(a);
        RotateBy<1>(b.v);
        if ((count >> i & 1) != 0) {
          Lane lane;
          x = ToBits(M::Apply(FromBits<T>(x), FromBits<T>(y), lane));
          made_null |= static_cast<uint32_t>(lane.null) << i;
          Note(i, lane.error);
        }
        a[R - 1] = x;
      }
    } else {
#pragma unroll
      for (uint32_t g = 0; g < R / 4; ++g) {
#pragma unroll
        for (uint32_t i = 4 * g; i < 4 * g + 4; ++i) {
          Lane lane;
          a[i] = ToBits(M::Apply(FromBits<T>(a[i]), FromBits<T>(b.v[i]), lane));
          made_null |= static_cast<uint32_t>(lane.null) << i;
          if ((count >> i & 1) != 0) Note(i, lane.error);
        }
      }
    }
    null |= made_null;
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoTernary(const DeviceInstruction& in, OperandRows<R>& b) {
  using T = typename M::Type;
  const DeviceOperand second = SecondOf(in);
  null |= b.null;
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    int64_t x = a[0];
    const int64_t y = b.v[0];
    RotateBy<1>(a);
    RotateBy<1>(b.v);
    if (((live & ~null) >> i & 1) != 0) {
      bool is_null;
      const int64_t z = FetchSecond(second, i, &is_null);
      if (is_null) {
        null |= 1u << i;
      } else {
        Lane lane;
        x = ToBits(M::Apply(FromBits<T>(x), FromBits<T>(y), FromBits<T>(z), lane));
        null |= static_cast<uint32_t>(lane.null) << i;
        Note(i, lane.error);
      }
    }
    a[R - 1] = x;
  }
}

/// a[i] = f(i, a[i]) in a loop that is not unrolled; f may do anything but index a.
template <Variant kVariant, uint32_t R>
template <class F>
__device__ __forceinline__ void Machine<kVariant, R>::Rotating(F f) {
#pragma unroll 1
  for (uint32_t i = 0; i < R; ++i) {
    const int64_t x = a[0];
    RotateBy<1>(a);
    a[R - 1] = f(i, x);
  }
}

/// What a state of several words stands for: A has the first, registers have the others.
template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoTotal(const DeviceInstruction& in, OperandRows<R>&) {
  using State = typename M::State;
  Rotating([&](uint32_t i, int64_t x) {
    if (((live & ~null) >> i & 1) == 0) return x;
    uint64_t words[vm::kStateWords<State>] = {static_cast<uint64_t>(x)};
#pragma unroll
    for (uint32_t k = 1; k < vm::kStateWords<State>; ++k) {
      uint8_t* const r = Register(reinterpret_cast<const uint32_t*>(&in.low)[k - 1]);
      words[k] = static_cast<uint64_t>(RegisterValues<int64_t>(r, thread)[i * kThreads]);
    }
    return ToBits(M::Apply(vm::FromWords<State>(words)));
  });
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoUnary(const DeviceInstruction&, OperandRows<R>&) {
  using In = typename M::In;
  using Out = typename M::Out;
  if constexpr (kIsWide<In> && kIsWide<Out>) {
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      if (((live & ~null_w) >> i & 1) == 0) continue;
      Lane lane;
      StoreWide(i, M::Apply(LoadWide(i), lane));
      Note(i, lane.error);
    }
  } else if constexpr (kIsWide<In>) {
    null = null_w;
    Rotating([&](uint32_t i, int64_t x) {
      if (((live & ~null) >> i & 1) == 0) return x;
      Lane lane;
      x = ToBits(M::Apply(LoadWide(i), lane));
      Note(i, lane.error);
      return x;
    });
  } else if constexpr (kIsWide<Out>) {
    null_w = null;
    Rotating([&](uint32_t i, int64_t x) {
      if (((live & ~null) >> i & 1) == 0) return x;
      Lane lane;
      StoreWide(i, M::Apply(FromBits<In>(x), lane));
      Note(i, lane.error);
      return x;
    });
  } else if constexpr (kLong<M>) {
    Rotating([&](uint32_t i, int64_t x) {
      if (((live & ~null) >> i & 1) == 0) return x;
      Lane lane;
      x = ToBits(M::Apply(FromBits<In>(x), lane));
      Note(i, lane.error);
      return x;
    });
  } else {
    const uint32_t count = live & ~null;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      Lane lane;
      a[i] = ToBits(M::Apply(FromBits<In>(a[i]), lane));
      if ((count >> i & 1) != 0) Note(i, lane.error);
    }
  }
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoUnaryField(const DeviceInstruction& in, OperandRows<R>&) {
  using T = typename M::Type;
  const int field = in.p3;
  Rotating([&](uint32_t i, int64_t x) {
    if (((live & ~null) >> i & 1) == 0) return x;
    Lane lane;
    return ToBits(M::Apply(FromBits<T>(x), field, lane));
  });
}

template <Variant kVariant, uint32_t R>
template <class M>
__device__ __forceinline__ void Machine<kVariant, R>::DoCheck(const DeviceInstruction& in, OperandRows<R>&) {
  using T = typename M::Type;
  if constexpr (kIsWide<T>) {
#pragma unroll 1
    for (uint32_t i = 0; i < R; ++i) {
      if (((live & ~null_w) >> i & 1) == 0) continue;
      Lane lane;
      M::Apply(LoadWide(i), Make128(in.high, in.low), Make128(in.upper_high, in.upper_low), lane);
      Note(i, lane.error);
    }
  } else {
    const int64_t low = in.low, high = in.upper_low;
    const uint32_t count = live & ~null;
#pragma unroll
    for (uint32_t i = 0; i < R; ++i) {
      Lane lane;
      M::Apply(a[i], low, high, lane);
      if ((count >> i & 1) != 0) Note(i, lane.error);
    }
  }
}

}  // namespace tessera::kernels
