// Filters of the host interpreter. Included by interpreter.cc only, which keeps all loops in one translation unit, so
// that they are inlined into its switch.
#pragma once

#include "vm/machine/tile_machine.h"
#include "vm/meaning/like.h"

namespace tessera::vm {

template <class Code>
void TileMachine::FilterCodes(const PredicateEncoding& p, const SlotEncoding& s) {
  const Code* codes = reinterpret_cast<const Code*>(CodesOf(p.slot));
  if (p.kind == PredicateEncoding::Kind::kSet) {
    if constexpr (sizeof(Code) <= 8) mask_.Keep([&](int i) { return p.set[codes[i]] != 0; });
    return;
  }
  Code low, span, null_code;
  if constexpr (sizeof(Code) == 16) {
    low = static_cast<Code>(p.low_high) << 64 | p.low;
    span = static_cast<Code>(p.span_high) << 64 | p.span;
    null_code = static_cast<Code>(static_cast<uint64_t>(s.null_code_high)) << 64 | s.null_code;
  } else {
    low = static_cast<Code>(p.low);
    span = static_cast<Code>(p.span);
    null_code = static_cast<Code>(s.null_code);
  }
  if (p.negated) {
    if (p.exclude_null) {
      mask_.Keep([=](int i) { return (static_cast<Code>(codes[i] - low) > span) & (codes[i] != null_code); });
    } else {
      mask_.Keep([=](int i) { return static_cast<Code>(codes[i] - low) > span; });
    }
  } else if (p.exclude_null) {
    mask_.Keep([=](int i) { return (static_cast<Code>(codes[i] - low) <= span) & (codes[i] != null_code); });
  } else {
    mask_.Keep([=](int i) { return static_cast<Code>(codes[i] - low) <= span; });
  }
}

template <class M>
void TileMachine::DoFilter(const Instruction& in) {
  const PredicateEncoding& p = tile_.tablet->predicates[in.p1];
  switch (p.kind) {
    case PredicateEncoding::Kind::kAll:
      return;
    case PredicateEncoding::Kind::kNone:
      return mask_.SetToNone();
    case PredicateEncoding::Kind::kNulls: {
      const uint8_t* nulls = p.null_bytes + tile_.first;
      const uint8_t flip = p.negated ? 1 : 0;
      return mask_.Keep([=](int i) { return (nulls[i] ^ flip) != 0; });
    }
    case PredicateEncoding::Kind::kSet:
      if (p.by_row) {
        const uint8_t* set = p.set + tile_.first;
        return mask_.Keep([=](int i) { return set[i] != 0; });
      }
      break;
    case PredicateEncoding::Kind::kRange:
      break;
  }
  const SlotEncoding& s = tile_.tablet->slots[static_cast<size_t>(p.slot)];
  switch (s.width) {
    case 1:
      return FilterCodes<uint8_t>(p, s);
    case 2:
      return FilterCodes<uint16_t>(p, s);
    case 4:
      return FilterCodes<uint32_t>(p, s);
    case 8:
      return FilterCodes<uint64_t>(p, s);
    default:
      return FilterCodes<uint128_t>(p, s);
  }
}

template <class M>
void TileMachine::DoTest(const Instruction&) {
  if (acc_.a_may_be_null) {
    mask_.Keep([&](int i) { return M::Apply(acc_.a[i], acc_.a_null[i] != 0); });
  } else {
    mask_.Keep([&](int i) { return M::Apply(acc_.a[i], false); });
  }
}

template <class M>
void TileMachine::DoTestNull(const Instruction&) {
  const bool may = M::kWide ? acc_.w_may_be_null : acc_.a_may_be_null;
  const uint8_t* nulls = M::kWide ? acc_.w_null.data() : acc_.a_null;
  mask_.Keep([&](int i) { return M::Apply(may && nulls[i] != 0); });
}

/// Where texts may lie elsewhere than in the pool, their bytes count.
template <class M>
void TileMachine::CompareTexts(const Source<int64_t>& s) {
  constexpr bool kEqual = std::is_same_v<M, meaning::FilterEqT>;
  if (s.one && s.one_null) return mask_.Keep([](int) { return false; });
  const std::string_view one = s.one ? Text(s.values[0]) : std::string_view();
  mask_.Keep([&](int i) {
    if (mask_[i] == 0 || (acc_.a_may_be_null && acc_.a_null[i] != 0) || (s.nulls != nullptr && s.nulls[i] != 0))
      return false;
    const int64_t a = acc_.a[i], b = s.values[s.one ? 0 : i];
    return (a == b || (std::max(a, b) >= kFirstMade && Text(a) == (s.one ? one : Text(b)))) == kEqual;
  });
}

template <class M>
void TileMachine::DoCompare(const Instruction& in) {
  using T = typename M::Type;
  using Stored = std::conditional_t<std::is_same_v<T, int128_t>, int128_t, int64_t>;
  const Source<Stored> s = Fetch<Stored>(in.p2, 0);
  const Stored* acc = acc_.Values<Stored>();
  const uint8_t* acc_null = acc_.MayBeNull<Stored>() ? acc_.Nulls<Stored>() : nullptr;
  auto as = [](Stored v) {
    if constexpr (std::is_same_v<Stored, int128_t>) {
      return v;
    } else {
      return FromBits<T>(v);
    }
  };
  if constexpr (std::is_same_v<M, meaning::FilterEqT> || std::is_same_v<M, meaning::FilterNeT>) {
    if (texts_.may_be_made) return CompareTexts<M>(s);
  }
  if (s.one) {
    if (s.one_null) return mask_.Keep([](int) { return false; });
    const T b = as(s.values[0]);
    if (acc_null == nullptr) return mask_.Keep([&](int i) { return M::Apply(as(acc[i]), b); });
    return mask_.Keep([&](int i) { return M::Apply(as(acc[i]), b) & (acc_null[i] == 0); });
  }
  if (acc_null == nullptr && s.nulls == nullptr)
    return mask_.Keep([&](int i) { return M::Apply(as(acc[i]), as(s.values[i])); });
  mask_.Keep([&](int i) {
    return M::Apply(as(acc[i]), as(s.values[i])) & (acc_null == nullptr || acc_null[i] == 0) &
           (s.nulls == nullptr || s.nulls[i] == 0);
  });
}

template <class M>
void TileMachine::DoTextCompare(const Instruction& in) {
  const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
  mask_.Keep([&](int i) {
    if (mask_[i] == 0 || (acc_.a_may_be_null && acc_.a_null[i] != 0)) return false;
    if (s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0) return false;
    return M::Apply(Text(acc_.a[i]), Text(s.values[s.one ? 0 : i]));
  });
}

template <class M>
void TileMachine::DoLike(const Instruction& in) {
  if constexpr (kApart<M>) return DoApart(in);
  const LikePattern pattern(program_.constants[static_cast<size_t>(in.p2)].text);
  mask_.Keep([&](int i) {
    if (mask_[i] == 0 || (acc_.a_may_be_null && acc_.a_null[i] != 0)) return false;
    return pattern.Matches(Text(acc_.a[i])) != M::kNegated;
  });
}

}  // namespace tessera::vm
