// The instructions of casts and of rounding: values that change their type, their scale or their class. Private to
// compiler/.
//
// Start at: ConversionGenerator::Cast. A view of a SectionBuilder, made where it is used.
#pragma once

#include "base/status.h"
#include "compiler/generate/section_builder.h"

namespace tessera {

class ConversionGenerator {
 public:
  explicit ConversionGenerator(SectionBuilder* builder) : b_(builder) {}

  /// kCast; kTryCast of a text.
  Status Cast(const Expr& e);
  /// The text of an ENUM.
  Status Label(const Expr& e);
  /// kRound, kFloor, kCeil.
  Status Round(const Expr& e);

 private:
  /// Multiplies the accumulator by 10^digits, or divides by 10^-digits rounding half away from zero; `range` follows.
  void ScaleBy(int digits, bool wide, ValueRange* range);

  SectionBuilder* b_;
};

}  // namespace tessera
