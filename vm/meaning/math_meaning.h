// What MathF and MathPairF mean for one row: functions of doubles from the C library, with SQL's errors. The host half of
// meaning.h for numbers. `function` is a MathFunction (vm/program/math_function.h). Any thread.
//
// Start at: meaning::MathF.
#pragma once

#include "vm/meaning/meaning.h"

namespace tessera::vm::meaning {

/// NaN gives NaN. What has no value is an error, and so is an infinite result of finite operands; a result too close to 0
/// is 0.
struct MathF {
  static constexpr bool kApart = true;
  using Type = double;
  static double Apply(double a, int function, Lane& lane);
};
struct MathPairF {
  using Type = double;
  static double Apply(double a, double b, int function, Lane& lane);
};

}  // namespace tessera::vm::meaning
