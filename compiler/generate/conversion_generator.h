// The instructions of casts and of rounding: values that change their type, their scale or their class. Private to
// compiler/.
//
// Start at: ConversionGenerator::Cast. A view of a SectionBuilder, made where it is used.
#pragma once

#include "base/status.h"
#include "compiler/generate/section_builder.h"
#include "compiler/query/conversion.h"
#include "compiler/query/value_range.h"

namespace tessera {

class ConversionGenerator {
 public:
  explicit ConversionGenerator(SectionBuilder* builder) : b_(builder) {}

  /// kCast; kTryCast of a text.
  Status Cast(const Expr& e);
  /// The text of an ENUM.
  Status Label(const Expr& e);
  /// kRound, kTrunc, kFloor, kCeil.
  Status Round(const Expr& e);

 private:
  /// Makes the accumulator's value one of `to`, step by step, and checks it. REQUIRES: wide_ and range_ are the value's.
  void Convert(const SqlType& to, const ConversionSteps& steps);
  void Step(const ConversionStep& step);
  /// An instruction with a constant operand, in the accumulator's width.
  void Exact(vm::Opcode wide, vm::Opcode narrow, int128_t operand);
  void Remainder(int128_t divisor);
  /// Whether the steps of a cast of exact values need 128 bits.
  bool NeedsWide(const SqlType& from, const SqlType& to, const ConversionSteps& steps) const;

  SectionBuilder* b_;
  // Of the accumulator, while a value is converted.
  bool wide_ = false;  ///< an exact value is in W, not in A
  ValueRange range_;
};

}  // namespace tessera
