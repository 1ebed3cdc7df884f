// Functions of text in the host interpreter. Included by interpreter.cc, which keeps all loops in one translation unit,
// so that they are inlined into its switch; and by tile_machine_functions.cc, for those that are apart.
#pragma once

#include "vm/machine/tile_machine.h"
#include "vm/meaning/text_meaning.h"

namespace tessera::vm {

/// A = f(text of A) as an identifier, for live rows that are not NULL.
template <class F>
void TileMachine::MapText(F f) {
  // Neighbouring rows often hold the same string.
  int64_t last = -1, last_result = 0;
  mask_.ForOnlyLive([&](int i) {
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    if (acc_.a[i] != last) {
      last = acc_.a[i];
      last_result = f(Text(last));
    }
    acc_.a[i] = last_result;
  });
}

template <class M>
void TileMachine::DoTextUnary(const Instruction& in) {
  if constexpr (kApart<M>) return DoApart(in);
  MapText([&](std::string_view s) {
    M::Apply(s, &scratch_.text);
    return MadeText(scratch_.text);
  });
}
template <class M>
void TileMachine::DoTextCut(const Instruction& in) {
  MapText([&](std::string_view s) { return PartOfText(s.substr(0, CharacterOffset(s, in.p3))); });
}
template <class M>
void TileMachine::DoTextLength(const Instruction& in) {
  if constexpr (kApart<M>) return DoApart(in);
  MapText([](std::string_view s) { return M::Apply(s); });
}

template <class M>
void TileMachine::DoTextConcat(const Instruction& in) {
  const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
  uint8_t* nulls = s.nulls != nullptr || (s.one && s.one_null) ? NullsOfA() : nullptr;
  mask_.ForOnlyLive([&](int i) {
    if (nulls != nullptr && (s.one || s.nulls[i] != 0)) nulls[i] = 1;
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    scratch_.text = Text(acc_.a[i]);
    scratch_.text += Text(s.values[s.one ? 0 : i]);
    acc_.a[i] = MadeText(scratch_.text);
  });
}

template <class M>
void TileMachine::DoTextSubstring(const Instruction& in) {
  const Source<int64_t> from = Fetch<int64_t>(in.p2, 0);
  const bool bounded = in.p3 != -1;
  const Source<int64_t> length = bounded ? Fetch<int64_t>(in.p3, 1) : Source<int64_t>{nullptr, nullptr, true, false};
  auto null = [](const Source<int64_t>& s, int i) {
    return s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
  };
  mask_.ForOnlyLive([&](int i) {
    if (null(from, i) || null(length, i)) NullsOfA()[i] = 1;
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    const int64_t count = bounded ? length.values[length.one ? 0 : i] : 0;
    if (count < 0) return error_.Note(LaneError::kNegativeLength);
    acc_.a[i] = PartOfText(M::Apply(Text(acc_.a[i]), from.values[from.one ? 0 : i], bounded, count));
  });
}

template <class M>
void TileMachine::DoToText(const Instruction& in) {
  if constexpr (kApart<M>) return DoApart(in);
  constexpr bool kWide = std::is_same_v<M, meaning::WToT>;
  if constexpr (kWide) acc_.CopyNullsToA(mask_.rows());
  Value v;
  v.type = UnpackType(in.p3);
  v.null = false;
  mask_.ForOnlyLive([&](int i) {
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    if constexpr (kWide) {
      v.wide = acc_.w[static_cast<size_t>(i)];
    } else if constexpr (std::is_same_v<M, meaning::FToT>) {
      v.f64 = std::bit_cast<double>(acc_.a[i]);
    } else {
      v.i64 = acc_.a[i];
    }
    acc_.a[i] = MadeText(ToText(v));
  });
}

template <class M>
void TileMachine::DoFromText(const Instruction& in) {
  constexpr bool kWide = std::is_same_v<M, meaning::TToW>;
  const SqlType type = UnpackType(in.p3);
  mask_.ForOnlyLive([&](int i) {
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    Result<Value> v = ParseValue(Text(acc_.a[i]), type);
    if (!v.ok() && in.p4 != 0) {
      NullsOfA()[i] = 1;
    } else if (!v.ok()) {
      error_.Note(v.status());
    } else if constexpr (kWide) {
      acc_.w[static_cast<size_t>(i)] = v->wide;
    } else {
      acc_.a[i] = std::is_same_v<M, meaning::TToF> ? std::bit_cast<int64_t>(v->f64) : v->i64;
    }
  });
  if constexpr (kWide) acc_.CopyNullsToW(mask_.rows());
}

}  // namespace tessera::vm
