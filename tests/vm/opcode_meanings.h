// The second meaning of each opcode, for one row: what the opcode walk compares the interpreters with. Written in plain
// C++ that calls nothing of vm/ and shares nothing with vm/meaning/meaning.h. Numbers are in opcode_meanings.cc, texts in
// opcode_text_meanings.cc; aggregates, and opcodes that move rows, are in opcode_reference_code.cc.
//
// A new opcode of a known shape gets its case here: without one the walk fails and says so.
//
// Start at: Fate, BinaryI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/int128.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"

namespace tessera::test::walk {

using vm::Opcode;

/// What an opcode makes of a row: a value, NULL, an SQL error, or something that no document defines.
enum class Fate : uint8_t { kValue, kNull, kError, kUnspecified, kUnknownOpcode };

/// A narrow or a wide value: what opcodes with one operand take and give.
struct Scalar {
  int64_t v = 0;
  int128_t w = 0;
};

// ---- Numbers --------------------------------------------------------------------------------------------------------

int64_t FloorOf(int64_t a, int64_t b);
Fate BinaryI(Opcode op, int64_t a, int64_t b, int64_t* out);
Fate BinaryF(Opcode op, double a, double b, double* out);
Fate BinaryW(Opcode op, int128_t a, int128_t b, int128_t* out);
/// Of integers and bits of doubles.
Fate TernaryAny(Opcode op, int64_t a, int64_t b, int64_t c, int64_t* out);
Fate UnaryAny(Opcode op, const Scalar& in, Scalar* out);
Fate UnaryField(Opcode op, int64_t v, int field, int64_t* out);
/// Of bits of doubles.
Fate BinaryField(Opcode op, int64_t a, int64_t b, int field, int64_t* out);
/// How many functions of one operand MathF has; those of MathPairF follow.
inline constexpr int kMathNames = 16;

/// Intervals, whose 128 bits are w: one more operand of AddInterval, Between and IntervalTimes, two of MakeWide.
Fate OfInterval(Opcode op, int64_t a, const Scalar& b, int64_t c, Scalar* out);
/// Opcodes of shapes Unary and Binary.
Fate IntervalToAny(Opcode op, int128_t v, Scalar* out);
Fate OfTwoIntervals(Opcode op, int128_t a, int128_t b, int128_t* out);

/// The comparison of an opcode, from the order of its operands; nullopt: not a comparison that is known here.
std::optional<bool> Compares(Opcode op, int order);

// ---- Texts ----------------------------------------------------------------------------------------------------------

/// The characters of UTF-8, one string each.
std::vector<std::string> Characters(std::string_view s);

/// Whether the characters from the i-th on match the pattern: % is any number of them, _ is one, \ quotes the next.
bool Like(const std::vector<std::string>& s, size_t i, std::string_view p);

/// Regular expressions that this and RE2 read in the same way; in some "(b)" is a group.
const std::vector<std::string>& RegexPatterns();
/// A part, a number of matches, a place or a replacement; or, of a filter, whether the text has a match, in `number`.
/// `fields` are P3 and P4.
Fate OfRegex(Opcode op, const std::string& s, const std::string& pattern, const std::string& replacement,
             const int32_t (&fields)[2], std::string* out, int64_t* number);

Fate TextUnary(Opcode op, const std::string& s, std::string* out);
Fate TextLength(Opcode op, const std::string& s, int64_t* out);

/// An operand of a text function: an integer or a text.
struct TextOperand {
  int64_t v = 0;
  std::string text;
};
/// Text opcodes with one or two operands; the result is in `out`, or in `number` if it is an integer.
Fate TextOfOperands(Opcode op, const std::string& s, const TextOperand& b, const TextOperand& c, std::string* out,
                    int64_t* number);
/// CHR.
Fate CharacterOf(int64_t code, std::string* out);
Fate ToTextOf(const SqlType& type, const Scalar& in, std::string* out);

/// A moment and a time zone, as the C library knows it: another moment in `v`, or `text`; or the moment of `text`.
Fate InZone(Opcode op, const std::string& zone, int64_t* v, std::string* text);
/// The format that the walk gives FormatI, FormatF and FormatW for values of a type, and what they make of one.
std::string FormatFor(const SqlType& type, int language);
Fate FormatOf(const SqlType& type, const Scalar& in, std::string* out);

/// Reads the forms of text that the walk writes: "-12", " 12.345 ", "1998-12-01", "1998-12-01 10:11:12.5", "true",
/// "1e5", "NaN".
Fate FromTextOf(const SqlType& type, const std::string& text, Scalar* out);

}  // namespace tessera::test::walk
