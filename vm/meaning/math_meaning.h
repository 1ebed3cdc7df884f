// What MathF and MathPairF mean for one row: functions of doubles from the C library, with SQL's errors. The host half of
// meaning.h for numbers. Any thread.
//
// Start at: MathFunction, meaning::MathF.
#pragma once

#include <cstdint>

#include "vm/meaning/meaning.h"

namespace tessera::vm {

/// P3 of MathF and MathPairF. Functions of one operand come first.
enum class MathFunction : uint8_t {
#define MATH_FUNCTION(Name, ...) k##Name,
#include "vm/program/math_functions.def"
#define MATH_PAIR(Name, ...) k##Name,
#include "vm/program/math_functions.def"
};
/// How many there are of one operand, and in all.
inline constexpr int kMathFunctions = 0
#define MATH_FUNCTION(...) +1
#include "vm/program/math_functions.def"
    ;
inline constexpr int kAllMathFunctions = kMathFunctions
#define MATH_PAIR(...) +1
#include "vm/program/math_functions.def"
    ;
constexpr bool IsPair(MathFunction f) { return static_cast<int>(f) >= kMathFunctions; }

/// Its name in SQL. REQUIRES: less than kAllMathFunctions.
const char* NameOf(MathFunction f);

namespace meaning {

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

}  // namespace meaning
}  // namespace tessera::vm
