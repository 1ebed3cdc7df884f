// What the text opcodes mean for one row: the host half of meaning.h. Text is UTF-8; characters are counted by lead
// bytes.
//
//   TextUnary    void Apply(std::string_view, std::string* out)
//   TextLength   int64_t Apply(std::string_view)
//   TextNumber   void Apply(std::string_view, int64_t, std::string* out, Lane&)
//   TextFind     int64_t Apply(std::string_view a, std::string_view b)
//   TextReplace  void Apply(std::string_view a, std::string_view b, std::string_view c, std::string* out, Lane&)
//   TextPad      void Apply(std::string_view a, int64_t b, std::string_view c, std::string* out, Lane&)
//   TextPart     void Apply(std::string_view a, std::string_view b, int64_t c, std::string* out, Lane&)
//   TextCompare  bool Apply(std::string_view a, std::string_view b)
//   Like         kNegated; LikeMatches(text, pattern)
//   RegexPart, RegexReplace: regex.h
//   Zone         int64_t Apply(const TimeZone&, int64_t, Lane&), or from a text or to one: text_functions.h
// What takes more than a few lines is in text_functions.cc. The other text shapes have one opcode each (or one per
// class) and call the functions below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vm/meaning/interval_meaning.h"
#include "vm/meaning/like.h"
#include "vm/meaning/regex.h"
#include "vm/meaning/text_functions.h"
#include "vm/program/opcode.h"

namespace tessera::vm {

constexpr bool IsLeadByte(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

inline int64_t CharacterCount(std::string_view s) {
  int64_t n = 0;
  for (char c : s) n += IsLeadByte(c) ? 1 : 0;
  return n;
}

/// Byte offset of character `index` (from 0), or s.size() if there are fewer.
inline size_t CharacterOffset(std::string_view s, int64_t index) {
  size_t i = 0;
  for (; i < s.size(); ++i) {
    if (IsLeadByte(s[i]) && index-- == 0) return i;
  }
  return i;
}

/// SUBSTRING(s FROM from FOR length): the characters from..from+length-1 that exist, counted from 1. REQUIRES: length
/// >= 0 if has_length.
inline std::string_view Substring(std::string_view s, int64_t from, bool has_length, int64_t length) {
  int64_t end = INT64_MAX;  // exclusive
  if (has_length && __builtin_add_overflow(from, length, &end)) end = INT64_MAX;
  if (from < 1) from = 1;
  if (end <= from) return {};
  size_t a = CharacterOffset(s, from - 1);
  std::string_view rest = s.substr(a);
  return rest.substr(0, end == INT64_MAX ? rest.size() : CharacterOffset(rest, end - from));
}

/// The same, in bytes.
inline std::string_view Subbytes(std::string_view s, int64_t from, bool has_length, int64_t length) {
  int64_t end = INT64_MAX;
  if (has_length && __builtin_add_overflow(from, length, &end)) end = INT64_MAX;
  if (from < 1) from = 1;
  if (end <= from || static_cast<uint64_t>(from) > s.size()) return {};
  return s.substr(static_cast<size_t>(from - 1), static_cast<size_t>(end - from));
}

/// LIKE: % any characters, _ one character, \ quotes the next byte.
inline bool LikeMatches(std::string_view s, std::string_view p) {
  size_t i = 0, k = 0;
  // Going back to the last % is quick for what people write, and takes the product of the lengths for some others.
  size_t patience = 1024 + 16 * (s.size() + p.size());
  size_t star = std::string_view::npos, resume = 0;  // after the last %; where in s to try it next
  while (true) {
    if (k < p.size() && p[k] == '%') {
      star = ++k;
      resume = i;
      continue;
    }
    bool matched = false;
    if (i < s.size() && k < p.size()) {
      if (p[k] == '_') {
        ++i;
        while (i < s.size() && !IsLeadByte(s[i])) ++i;
        ++k;
        matched = true;
      } else {
        size_t literal = p[k] == '\\' && k + 1 < p.size() ? k + 1 : k;
        if (s[i] == p[literal]) {
          ++i;
          k = literal + 1;
          matched = true;
        }
      }
    } else if (i == s.size() && k == p.size()) {
      return true;
    }
    if (matched) continue;
    if (star == std::string_view::npos || resume >= s.size()) return false;
    if (k - star > 8) [[unlikely]] {  // fewer cost little at each place
      if (k - star > patience) return LikeBehindPercent(s.substr(resume), p.substr(star));
      patience -= k - star;
    }
    i = ++resume;  // the last % takes one byte more
    k = star;
  }
}

namespace meaning {

/// Letters in lower or upper case, character by character (utf8proc).
void MapLetters(std::string_view s, bool upper, std::string* out);
/// The same, where a text is ASCII without that.
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
