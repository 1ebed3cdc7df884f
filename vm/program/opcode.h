// The opcode table as data: opcodes.def and shapes.def expanded into enums and a row for each opcode. No strings or
// vectors, so that kernels can include it. Any thread.
//
// Start at: Opcode, Info.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::vm {

enum class Opcode : uint16_t {
#define OPCODE(Name, ...) Name,
#include "vm/program/opcodes.def"
#undef OPCODE
  kCount
};

enum class Shape : uint8_t {
#define SHAPE(Name, ...) Name,
#include "vm/program/shapes.def"
};
enum class Role : uint8_t { Control, Mask, Filter, Value, Probe, Next, Group, Count, Fold, Rows };

enum class OperandSpec : uint8_t {
#define OPERAND(Name, ...) Name,
#include "vm/program/shapes.def"
};
enum class AccumulatorSpec : uint8_t { None, I, F, T, W, X };
/// The smallest kernel that has an opcode, in the order of the kernels: each has all opcodes of those before it.
enum class Tier : uint8_t { Lean, Star, Pairs, Full, States, Host };
enum class Loop : uint8_t { Short, Long };

/// A row of shapes.def.
struct ShapeInfo {
  const char* name;
  Role role;
  OperandSpec p[4];
  const char* words;
};
inline constexpr ShapeInfo kShapes[] = {
#define SHAPE(Name, RoleName, P1, P2, P3, P4, Words) \
  {#Name, Role::RoleName, {OperandSpec::P1, OperandSpec::P2, OperandSpec::P3, OperandSpec::P4}, Words},
#include "vm/program/shapes.def"
};

/// A kind of operand as the manual shows it.
struct OperandWords {
  const char* name;
  const char* meaning;
  const char* text;  ///< in EXPLAIN
};
inline constexpr OperandWords kOperands[] = {
#define OPERAND(Name, Meaning, Text) {#Name, Meaning, Text},
#include "vm/program/shapes.def"
};

/// A row of opcodes.def, with the operands and the role of its shape.
struct OpcodeInfo {
  const char* name;
  Shape shape;
  Role role;
  OperandSpec p[4];
  AccumulatorSpec in, out;
  Tier tier;
  Loop loop;
  const char* synopsis;
  const char* comment;
};

/// The kind of operand k of a shape, for an opcode whose accumulator has class `in`.
constexpr OperandSpec OperandOf(Shape shape, int k, AccumulatorSpec in) {
  const OperandSpec spec = kShapes[static_cast<size_t>(shape)].p[k];
  if (in != AccumulatorSpec::W) return spec;
  return spec == OperandSpec::Src ? OperandSpec::SrcW : spec == OperandSpec::Const ? OperandSpec::ConstW : spec;
}

inline constexpr OpcodeInfo kOpcodes[] = {
#define OPCODE(Name, ShapeName, In, Out, TierName, LoopName, Synopsis, Comment)                                \
  {#Name,                                                                                                      \
   Shape::ShapeName,                                                                                           \
   kShapes[static_cast<size_t>(Shape::ShapeName)].role,                                                        \
   {OperandOf(Shape::ShapeName, 0, AccumulatorSpec::In), OperandOf(Shape::ShapeName, 1, AccumulatorSpec::In),  \
    OperandOf(Shape::ShapeName, 2, AccumulatorSpec::In), OperandOf(Shape::ShapeName, 3, AccumulatorSpec::In)}, \
   AccumulatorSpec::In,                                                                                        \
   AccumulatorSpec::Out,                                                                                       \
   Tier::TierName,                                                                                             \
   Loop::LoopName,                                                                                             \
   Synopsis,                                                                                                   \
   Comment},
#include "vm/program/opcodes.def"
#undef OPCODE
};

/// REQUIRES: op < Opcode::kCount.
constexpr const OpcodeInfo& Info(Opcode op) { return kOpcodes[static_cast<size_t>(op)]; }

/// Whether an operand of this kind is an operand reference, see Operand.
constexpr bool IsReference(OperandSpec spec) {
  return spec == OperandSpec::Src || spec == OperandSpec::SrcW || spec == OperandSpec::SrcPlain ||
         spec == OperandSpec::SrcInt;
}
/// Whether the opcode's keys are operand p2 and the p3 - 1 registers after it.
constexpr bool TakesKeys(const OpcodeInfo& info) { return info.role == Role::Probe || info.role == Role::Group; }
/// Whether these, of keys or the words of a state, are what it reads.
constexpr bool TakesSeveral(const OpcodeInfo& info) { return TakesKeys(info) || info.shape == Shape::Total; }
/// Whether the opcode feeds the section's sink.
constexpr bool FeedsSink(const OpcodeInfo& info) { return info.role >= Role::Group; }

}  // namespace tessera::vm
