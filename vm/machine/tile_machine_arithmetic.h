// Arithmetic of the host interpreter. Included by interpreter.cc only, which keeps all loops in one translation unit,
// so that they are inlined into its switch.
#pragma once

#include "vm/machine/tile_machine.h"

namespace tessera::vm {

template <class M>
void TileMachine::DoBinary(const Instruction& in) {
  using T = typename M::Type;
  constexpr bool kWide = std::is_same_v<T, int128_t>;
  using Stored = std::conditional_t<kWide, int128_t, int64_t>;
  const Source<Stored> s = Fetch<Stored>(in.p2, 0);
  Stored* acc = acc_.Values<Stored>();
  uint8_t* acc_null = acc_.Nulls<Stored>();
  bool& may_be_null = acc_.MayBeNull<Stored>();
  auto as = [](Stored v) {
    if constexpr (kWide) {
      return v;
    } else {
      return FromBits<T>(v);
    }
  };
  auto back = [](T v) {
    if constexpr (kWide) {
      return v;
    } else {
      return ToBits<T>(v);
    }
  };
  // NULL bytes are computed only if an operand can be NULL or the operation can produce NULL.
  if (s.one && s.one_null) {
    memset(acc_null, 1, static_cast<size_t>(mask_.rows()));
    may_be_null = true;
    return;
  }
  if (s.nulls != nullptr) {
    if (!may_be_null) {
      mask_.ForLive([&](int i) { acc_null[i] = s.nulls[i]; });
    } else {
      mask_.ForLive([&](int i) { acc_null[i] |= s.nulls[i]; });
    }
    may_be_null = true;
  }
  if constexpr (std::is_same_v<M, meaning::ModI>) {
    if (s.one && s.values[0] > 0 && s.values[0] <= UINT32_MAX)
      return TakeRemainders(static_cast<uint64_t>(s.values[0]));
  }
  const bool was_null = may_be_null;
  uint8_t made_null = 0;
  auto apply = [&](int i, T b) {
    Lane lane;
    const T r = M::Apply(as(acc[i]), b, lane);
    acc[i] = back(r);
    if (lane.null) {
      if (!may_be_null) memset(acc_null, 0, static_cast<size_t>(mask_.rows()));
      may_be_null = true;
      acc_null[i] = 1;
      made_null = 1;
    }
    if (lane.error != LaneError::kNone && mask_[i] != 0 && !(was_null && acc_null[i] != 0)) error_.Note(lane.error);
  };
  if (s.one) {
    const T b = as(s.values[0]);
    mask_.ForLive([&](int i) { apply(i, b); });
  } else {
    mask_.ForLive([&](int i) { apply(i, as(s.values[i])); });
  }
}

/// ModI by one number of 32 bits. A number of 32 bits takes two multiplications, which are faster than a division (Lemire, Kaser and
/// Kurz, Faster remainder by direct computation, section 3).
inline void TileMachine::TakeRemainders(uint64_t divisor) {
  const uint64_t inverse = UINT64_MAX / divisor + 1;
  int64_t* const acc = acc_.a;
  mask_.ForLive([&](int i) {
    const uint64_t sign = acc[i] < 0 ? ~uint64_t{0} : 0;
    const uint64_t n = (static_cast<uint64_t>(acc[i]) ^ sign) - sign;
    const uint64_t rest =
        n <= UINT32_MAX ? static_cast<uint64_t>((uint128_t{inverse * n} * divisor) >> 64) : n % divisor;
    acc[i] = static_cast<int64_t>((rest ^ sign) - sign);
  });
}

template <class M>
void TileMachine::DoTernary(const Instruction& in) {
  if constexpr (kApart<M>) return DoApart(in);
  using T = typename M::Type;
  const Source<int64_t> b = Fetch<int64_t>(in.p2, 0), c = Fetch<int64_t>(in.p3, 1);
  uint8_t* null = b.one_null || c.one_null || b.nulls != nullptr || c.nulls != nullptr ? NullsOfA() : nullptr;
  const auto is_null = [](const Source<int64_t>& s, int i) {
    return s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
  };
  mask_.ForOnlyLive([&](int i) {
    if (null != nullptr && (is_null(b, i) || is_null(c, i))) null[i] = 1;
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    Lane lane;
    acc_.a[i] = ToBits<T>(M::Apply(FromBits<T>(acc_.a[i]), FromBits<T>(b.values[b.one ? 0 : i]),
                                   FromBits<T>(c.values[c.one ? 0 : i]), lane));
    if (lane.null) NullsOfA()[i] = 1;
    if (lane.error != LaneError::kNone) error_.Note(lane.error);
  });
}

template <class M>
void TileMachine::DoUnary(const Instruction&) {
  using In = typename M::In;
  using Out = typename M::Out;
  constexpr bool kWideIn = std::is_same_v<In, int128_t>, kWideOut = std::is_same_v<Out, int128_t>;
  if constexpr (kWideIn != kWideOut) {
    bool& to = kWideOut ? acc_.w_may_be_null : acc_.a_may_be_null;
    to = kWideIn ? acc_.w_may_be_null : acc_.a_may_be_null;
    if (to)
      memcpy(kWideOut ? acc_.w_null.data() : acc_.a_null, kWideIn ? acc_.w_null.data() : acc_.a_null,
             static_cast<size_t>(mask_.rows()));
  }
  const uint8_t* nulls =
      (kWideIn ? acc_.w_may_be_null : acc_.a_may_be_null) ? (kWideIn ? acc_.w_null.data() : acc_.a_null) : nullptr;
  int128_t* w = acc_.w.data();
  mask_.ForLive([&](int i) {
    Lane lane;
    In v;
    if constexpr (kWideIn) {
      v = w[i];
    } else {
      v = FromBits<In>(acc_.a[i]);
    }
    const Out r = M::Apply(v, lane);
    if constexpr (kWideOut) {
      w[i] = r;
    } else {
      acc_.a[i] = ToBits<Out>(r);
    }
    if (lane.error != LaneError::kNone && mask_[i] != 0 && (nulls == nullptr || nulls[i] == 0)) error_.Note(lane.error);
  });
}

template <class M>
void TileMachine::DoUnaryField(const Instruction& in) {
  using T = typename M::Type;
  if constexpr (kApart<M>) return DoApart(in);
  mask_.ForLive([&](int i) {
    Lane lane;
    acc_.a[i] = ToBits<T>(M::Apply(FromBits<T>(acc_.a[i]), in.p3, lane));
  });
}

template <class M>
void TileMachine::DoCheck(const Instruction& in) {
  using T = typename M::Type;
  const Value& low_value = program_.constants[static_cast<size_t>(in.p2)];
  const Value& high_value = program_.constants[static_cast<size_t>(in.p3)];
  T low, high;
  if constexpr (std::is_same_v<T, int128_t>) {
    low = low_value.wide;
    high = high_value.wide;
  } else {
    low = low_value.i64;
    high = high_value.i64;
  }
  const T* acc = acc_.Values<T>();
  const uint8_t* nulls = acc_.MayBeNull<T>() ? acc_.Nulls<T>() : nullptr;
  mask_.ForLive([&](int i) {
    Lane lane;
    M::Apply(acc[i], low, high, lane);
    if (lane.error != LaneError::kNone && mask_[i] != 0 && (nulls == nullptr || nulls[i] == 0)) error_.Note(lane.error);
  });
}

}  // namespace tessera::vm
