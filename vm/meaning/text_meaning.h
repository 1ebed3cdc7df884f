// What the text opcodes mean for one row: the host half of meaning.h.
//
//   TextUnary    void Apply(std::string_view, std::string* out)
//   TextLength   int64_t Apply(std::string_view)
//   TextNumber   void Apply(std::string_view, int64_t, std::string* out, Lane&)
//   TextFind     int64_t Apply(std::string_view a, std::string_view b)
//   TextReplace  void Apply(std::string_view a, std::string_view b, std::string_view c, std::string* out, Lane&)
//   TextPad      void Apply(std::string_view a, int64_t b, std::string_view c, std::string* out, Lane&)
//   TextPart     void Apply(std::string_view a, std::string_view b, int64_t c, std::string* out, Lane&)
//   TextCompare  bool Apply(std::string_view a, std::string_view b)
//   Like         kNegated; LikePattern of like.h
//   RegexPart, RegexReplace: regex.h
//   Zone         int64_t Apply(const TimeZone&, int64_t, Lane&), or from a text or to one: text_functions.h
// What takes more than a few lines is in text_functions.cc. The other text shapes have one opcode each (or one per
// class) and call functions of characters.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vm/meaning/characters.h"
#include "vm/meaning/interval_meaning.h"
#include "vm/meaning/like.h"
#include "vm/meaning/regex.h"
#include "vm/meaning/text_functions.h"
#include "vm/program/opcode.h"

namespace tessera::vm {

namespace meaning {

/// MapLetters, where a text is ASCII without utf8proc.
inline void MapCase(std::string_view s, bool upper, std::string* out) {
  const char first = upper ? 'a' : 'A', last = upper ? 'z' : 'Z';
  const char shift = upper ? -32 : 32;
  char all = 0;
  out->assign(s);
  for (char& c : *out) {
    all = static_cast<char>(all | c);
    if (c >= first && c <= last) c = static_cast<char>(c + shift);
  }
  if ((all & '\x80') != 0) MapLetters(s, upper, out);
}
inline std::string_view TrimStart(std::string_view s) {
  size_t i = s.find_first_not_of(' ');
  return i == std::string_view::npos ? std::string_view() : s.substr(i);
}
inline std::string_view TrimEnd(std::string_view s) { return s.substr(0, s.find_last_not_of(' ') + 1); }

struct UpperT {
  static void Apply(std::string_view s, std::string* out) { MapCase(s, true, out); }
};
struct LowerT {
  static void Apply(std::string_view s, std::string* out) { MapCase(s, false, out); }
};
struct TrimT {
  static void Apply(std::string_view s, std::string* out) { out->assign(TrimEnd(TrimStart(s))); }
};
struct TrimLeftT {
  static void Apply(std::string_view s, std::string* out) { out->assign(TrimStart(s)); }
};
struct TrimRightT {
  static void Apply(std::string_view s, std::string* out) { out->assign(TrimEnd(s)); }
};
struct LengthT {
  static int64_t Apply(std::string_view s) { return CharacterCount(s); }
};
struct OctetLengthT {
  static int64_t Apply(std::string_view s) { return static_cast<int64_t>(s.size()); }
};
struct FilterLtT {
  static bool Apply(std::string_view a, std::string_view b) { return a < b; }
};
struct FilterLeT {
  static bool Apply(std::string_view a, std::string_view b) { return a <= b; }
};
struct FilterGtT {
  static bool Apply(std::string_view a, std::string_view b) { return a > b; }
};
struct FilterGeT {
  static bool Apply(std::string_view a, std::string_view b) { return a >= b; }
};
struct FilterLike {
  static constexpr bool kNegated = false;
};
struct FilterNotLike {
  static constexpr bool kNegated = true;
};
struct MinT {
  static bool Better(std::string_view a, std::string_view b) { return a < b; }
};
struct MaxT {
  static bool Better(std::string_view a, std::string_view b) { return a > b; }
};
struct CutT {};
struct ConcatT {};
struct SubstringT {
  static std::string_view Apply(std::string_view s, int64_t from, bool bounded, int64_t length) {
    return Substring(s, from, bounded, length);
  }
};
struct SubbytesT {
  static std::string_view Apply(std::string_view s, int64_t from, bool bounded, int64_t length) {
    return Subbytes(s, from, bounded, length);
  }
};
struct IToT {};
struct FToT {};
struct WToT {};
struct FormatI {};
struct FormatF {};
struct FormatW {};
struct TToI {};
struct TToF {};
struct TToW {};

}  // namespace meaning

/// Calls f.template operator()<meaning::Op>() for an aggregate of shape FoldText; does nothing for others.
template <class F>
void WithFoldText(Opcode op, F f) {
  switch (static_cast<uint16_t>(op)) {
#define TESSERA_CountRows_CASE(Name)
#define TESSERA_CountValues_CASE(Name)
#define TESSERA_Fold_CASE(Name)
#define TESSERA_FoldText_CASE(Name)         \
  case static_cast<uint16_t>(Opcode::Name): \
    return f.template operator()<meaning::Name>();
#define OPCODE(...)
#define AGGREGATE(Name, ShapeName, ...) TESSERA_##ShapeName##_CASE(Name)
#include "vm/program/opcodes.def"
#undef OPCODE
#undef TESSERA_CountRows_CASE
#undef TESSERA_CountValues_CASE
#undef TESSERA_Fold_CASE
#undef TESSERA_FoldText_CASE
  }
}

}  // namespace tessera::vm
