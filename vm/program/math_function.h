// The functions of doubles that opcodes MathF and MathPairF have as P3. What they mean is in vm/meaning/math_meaning.h.
//
// Start at: MathFunction.
#pragma once

#include <cstdint>

namespace tessera::vm {

/// Functions of one operand come first.
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

/// Its name in SQL; "?" from kAllMathFunctions on.
constexpr const char* NameOf(MathFunction f) {
  switch (f) {
#define MATH_FUNCTION(Name, text) \
  case MathFunction::k##Name:     \
    return text;
#define MATH_PAIR MATH_FUNCTION
#include "vm/program/math_functions.def"
  }
  return "?";
}

}  // namespace tessera::vm
