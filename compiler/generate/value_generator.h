// The instructions of values. A value is computed into accumulator A (W for 128 bits). A right operand that is a
// column, constant, register or payload is used directly; any other is computed first and kept in a scratch register.
// Private to compiler/.
//
// Start at: ValueGenerator::Value. A view of a SectionBuilder, made where it is used.
#pragma once

#include "base/status.h"
#include "compiler/generate/section_builder.h"

namespace tessera {

class ValueGenerator {
 public:
  explicit ValueGenerator(SectionBuilder* builder) : b_(builder) {}

  /// Leaves the value of `e` in accumulator A, or W if its type is wide.
  Status Value(const Expr& e);
  /// The same without a look whether it is at hand or must be kept.
  Status Compute(const Expr& e);
  /// Accumulator = left op right, in A, or in W if `wide`. `reversed` is the operation with its operands swapped, or
  /// kNoOpcode.
  Status Operands(const Expr& left, const Expr& right, bool wide, vm::Opcode op, vm::Opcode reversed);

 private:
  /// A function whose meaning is one opcode for each class of its arguments.
  Status ByOpcode(const Expr& e);
  /// Emits that opcode for the arguments of `e`, in A, or in W if `wide`.
  Status Apply(const Expr& e, bool wide, vm::Opcode op);
  /// The same for an opcode with two operands besides the accumulator. Operands that cannot be used directly go through
  /// registers.
  Status WithOperands(const Expr& e, bool wide, vm::Opcode op);
  /// A function of doubles from vm/program/math_functions.def.
  Status Math(const Expr& e);
  Status Interval(const Expr& e);
  Status Extract(const Expr& e);
  Status Case(const Expr& e);

  SectionBuilder* b_;
};

}  // namespace tessera
