// Functions of text in the host interpreter. Included by tile_machine.cc, which keeps all loops in one translation unit,
// so that they are inlined into its switch; and by tile_machine_functions.cc, for those that are apart.
#pragma once

#include "base/text_head.h"
#include "vm/machine/tile_machine.h"
#include "vm/meaning/text_meaning.h"

namespace tessera::vm {

/// The identifier of a string. Functions of text often give the same few strings, which all threads would ask the pool
/// for: those given last are known here.
inline int64_t TileMachine::Intern(std::string_view text) {
  const uint64_t start = FirstBytes(text);
  const size_t first = HashWord(text.size(), static_cast<int64_t>(start)) % interned_.size();
  const auto is = [&](const Interned& known) {
    return known.start == start && known.text.size() == text.size() && (text.size() <= 8 || known.text == text);
  };
  const auto take = [&](Interned* place) {
    place->id = strings_->Intern(text);
    place->text = strings_->Get(place->id);
    place->start = start;
    return place->id;
  };
  // Two strings that took the same place alternately would bring all threads to the pool's locks again.
  for (size_t at = first; at < first + kInternedProbes; ++at) {
    Interned& known = interned_[at % interned_.size()];
    if (known.id < 0) return take(&known);
    if (is(known)) return known.id;
  }
  return take(&interned_[first]);
}

/// A = f(text of A) as an identifier, for live rows that are not NULL.
template <class F>
void TileMachine::MapText(F f) {
  // Neighbouring rows often hold the same string.
  int64_t last = -1, last_result = 0;
  ForOnlyLive([&](int i) {
    if (a_may_be_null_ && a_null_[i] != 0) return;
    if (a_[i] != last) {
      last = a_[i];
      last_result = f(Text(last));
    }
    a_[i] = last_result;
  });
}

template <class M>
void TileMachine::DoTextUnary(const Instruction& in) {
  if constexpr (kApart<M>) return DoApart(in);
  MapText([&](std::string_view s) {
    M::Apply(s, &text_);
    return MadeText(text_);
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
  uint8_t* nulls = s.nulls != nullptr || (s.one && s.one_null) ? NullsA() : nullptr;
  ForOnlyLive([&](int i) {
    if (nulls != nullptr && (s.one || s.nulls[i] != 0)) nulls[i] = 1;
    if (a_may_be_null_ && a_null_[i] != 0) return;
    text_ = Text(a_[i]);
    text_ += Text(s.values[s.one ? 0 : i]);
    a_[i] = MadeText(text_);
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
  ForOnlyLive([&](int i) {
    if (null(from, i) || null(length, i)) NullsA()[i] = 1;
    if (a_may_be_null_ && a_null_[i] != 0) return;
    const int64_t count = bounded ? length.values[length.one ? 0 : i] : 0;
    if (count < 0) return NoteError(LaneError::kNegativeLength);
    a_[i] = PartOfText(M::Apply(Text(a_[i]), from.values[from.one ? 0 : i], bounded, count));
  });
}

template <class M>
void TileMachine::DoToText(const Instruction& in) {
  if constexpr (kApart<M>) return DoApart(in);
  constexpr bool kWide = std::is_same_v<M, meaning::WToT>;
  if constexpr (kWide) {
    a_may_be_null_ = w_may_be_null_;
    if (w_may_be_null_) memcpy(a_null_, w_null_.data(), static_cast<size_t>(n_));
  }
  Value v;
  v.type = UnpackType(in.p3);
  v.null = false;
  ForOnlyLive([&](int i) {
    if (a_may_be_null_ && a_null_[i] != 0) return;
    if constexpr (kWide) {
      v.wide = w_[static_cast<size_t>(i)];
    } else if constexpr (std::is_same_v<M, meaning::FToT>) {
      v.f64 = std::bit_cast<double>(a_[i]);
    } else {
      v.i64 = a_[i];
    }
    a_[i] = MadeText(ToText(v));
  });
}

template <class M>
void TileMachine::DoFromText(const Instruction& in) {
  constexpr bool kWide = std::is_same_v<M, meaning::TToW>;
  const SqlType type = UnpackType(in.p3);
  ForOnlyLive([&](int i) {
    if (a_may_be_null_ && a_null_[i] != 0) return;
    Result<Value> v = ParseValue(Text(a_[i]), type);
    if (!v.ok() && in.p4 != 0) {
      NullsA()[i] = 1;
    } else if (!v.ok()) {
      if (error_ == LaneError::kNone) text_error_ = v.status();
      NoteError(LaneError::kBadText);
    } else if constexpr (kWide) {
      w_[static_cast<size_t>(i)] = v->wide;
    } else {
      a_[i] = std::is_same_v<M, meaning::TToF> ? std::bit_cast<int64_t>(v->f64) : v->i64;
    }
  });
  if constexpr (kWide) {
    w_may_be_null_ = a_may_be_null_;
    if (a_may_be_null_) memcpy(w_null_.data(), a_null_, static_cast<size_t>(n_));
  }
}

}  // namespace tessera::vm
