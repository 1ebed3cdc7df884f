// What the opcodes of text functions with code of their own mean for one row: a part of text_meaning.h. They work on the
// characters of UTF-8, and as PostgreSQL's functions of these names do; letters have the case of Unicode (utf8proc). Text
// that is not UTF-8 gives some text, never a read outside of it. Any thread.
//
// Start at: meaning::ReplaceT.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tablet/values/time_zone.h"
#include "vm/meaning/characters.h"
#include "vm/meaning/meaning.h"

namespace tessera::vm::meaning {

/// Letters in lower or upper case, character by character (utf8proc).
void MapLetters(std::string_view s, bool upper, std::string* out);

// kApart: an opcode of a shape that others have, too, whose loop is in tile_machine_functions.cc.

// ---- Zone. What is no timestamp of the years 1 to 9999 is an error
struct ZoneLocalI {
  static int64_t Apply(const TimeZone& zone, int64_t moment, Lane& lane);
};
struct ZoneMomentI {
  static int64_t Apply(const TimeZone& zone, int64_t local, Lane& lane);
};
struct ZoneTextT {
  static void Apply(const TimeZone& zone, int64_t moment, std::string* out);
};
struct ZoneParseT {
  static Result<int64_t> Apply(const TimeZone& zone, std::string_view text);
};

// ---- TextUnary
struct ReverseT {
  static constexpr bool kApart = true;
  static void Apply(std::string_view s, std::string* out);
};
/// The first letter of each run of letters and digits in upper case, the others in lower case.
struct InitcapT {
  static constexpr bool kApart = true;
  static void Apply(std::string_view s, std::string* out);
};
/// The digest of RFC 1321 as 32 hexadecimal digits.
struct Md5T {
  static constexpr bool kApart = true;
  static void Apply(std::string_view s, std::string* out);
};
/// The SHA-256 digest of FIPS 180-4 as 64 hexadecimal digits.
struct Sha256T {
  static constexpr bool kApart = true;
  static void Apply(std::string_view s, std::string* out);
};

// ---- TextLength: to an integer
/// The first eight bytes of the MD5 digest.
struct HashT {
  static constexpr bool kApart = true;
  static int64_t Apply(std::string_view s);
};
/// The code point of the first character; 0 of "".
struct AsciiT {
  static constexpr bool kApart = true;
  static int64_t Apply(std::string_view s);
};

// ---- ToText: `out` is the character of a code point
struct ChrT {
  static constexpr bool kApart = true;
  static void Apply(int64_t code, std::string* out, Lane& lane);
};

// ---- TextNumber. A negative n leaves out that many characters at the other end
struct LeftT {
  static void Apply(std::string_view s, int64_t n, std::string* out, Lane& lane);
};
struct RightT {
  static void Apply(std::string_view s, int64_t n, std::string* out, Lane& lane);
};
struct RepeatT {
  static void Apply(std::string_view s, int64_t n, std::string* out, Lane& lane);
};
/// Bytes as a text and back; n is a form.
enum ByteForm : int64_t { kByteaForm = 0, kHexForm = 1, kBase64Form = 2, kEscapeForm = 3 };
struct EncodeT {
  static void Apply(std::string_view s, int64_t n, std::string* out, Lane& lane);
};
struct DecodeT {
  static void Apply(std::string_view s, int64_t n, std::string* out, Lane& lane);
};

// ---- TextFind
/// The character of s at which `part` first begins, from 1; 0 if nowhere.
struct PositionT {
  static int64_t Apply(std::string_view s, std::string_view part);
};
/// 1 if s is LIKE `pattern`, else 0.
struct LikeT {
  static int64_t Apply(std::string_view s, std::string_view pattern);
};

/// The place of a label in a list of them, see tablet/values/enum_type.h. An error that lists them if it is none.
struct LabelT {
  static Result<int64_t> Apply(std::string_view s, std::string_view list);
};

// ---- TextReplace
struct ReplaceT {
  static void Apply(std::string_view s, std::string_view from, std::string_view to, std::string* out, Lane& lane);
};
/// Each character of `from` becomes the one at its place in `to`, or nothing if there is none.
struct TranslateT {
  static void Apply(std::string_view s, std::string_view from, std::string_view to, std::string* out, Lane& lane);
};

// ---- TextPad: to n characters; a longer text is cut
struct LpadT {
  static void Apply(std::string_view s, int64_t n, std::string_view fill, std::string* out, Lane& lane);
};
struct RpadT {
  static void Apply(std::string_view s, int64_t n, std::string_view fill, std::string* out, Lane& lane);
};

// ---- TextPart: the n-th of the fields between `delimiter`; a negative n counts from the last
struct SplitPartT {
  static void Apply(std::string_view s, std::string_view delimiter, int64_t n, std::string* out, Lane& lane);
};

}  // namespace tessera::vm::meaning
