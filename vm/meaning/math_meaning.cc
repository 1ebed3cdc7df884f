// One switch over the functions, out of line: the host interpreter's loops call it once for each row, and the call is
// short against what it computes. Errors and special values are PostgreSQL's (float.c), except that a result too close to
// 0 is 0 and not an error.
#include "vm/meaning/math_meaning.h"

#include <cmath>

#include "vm/program/math_function.h"

namespace tessera::vm {
namespace {

double Fail(Lane& lane, LaneError error) {
  lane.error = error;
  return 0;
}

/// The result of finite operands must be finite.
double Finite(double r, bool operands_finite, Lane& lane) {
  return std::isinf(r) && operands_finite ? Fail(lane, LaneError::kFloatOverflow) : r;
}

template <class F>
double Logarithm(double a, Lane& lane, F f) {
  if (a == 0) return Fail(lane, LaneError::kLogarithmOfZero);
  if (a < 0) return Fail(lane, LaneError::kLogarithmOfNegative);
  return f(a);
}

/// sin, cos and tan have no value for infinity.
template <class F>
double OfAngle(double a, Lane& lane, F f) {
  return std::isinf(a) ? Fail(lane, LaneError::kOutOfDomain) : Finite(f(a), true, lane);
}

template <class F>
double OfSine(double a, Lane& lane, F f) {
  return a < -1 || a > 1 ? Fail(lane, LaneError::kOutOfDomain) : f(a);
}

double Power(double a, double b, Lane& lane) {
  if (a == 0 && b < 0) return Fail(lane, LaneError::kZeroToNegative);
  if (a < 0 && std::isfinite(b) && std::floor(b) != b && !std::isinf(a)) return Fail(lane, LaneError::kComplexPower);
  return Finite(std::pow(a, b), std::isfinite(a) && std::isfinite(b), lane);
}

/// The logarithm of x to base `base`. The library's functions for the bases 2 and 10 are exact for their powers, as the
/// quotient of two logarithms is not.
double LogOfBase(double base, double x, Lane& lane) {
  return Logarithm(base, lane, [&](double b) {
    return Logarithm(x, lane, [&](double v) {
      if (b == 1) return Fail(lane, LaneError::kLogarithmToBaseOne);
      if (b == 2) return std::log2(v);
      if (b == 10) return std::log10(v);
      return std::log(v) / std::log(b);
    });
  });
}

}  // namespace

namespace meaning {

double MathF::Apply(double a, int function, Lane& lane) {
  switch (static_cast<MathFunction>(function)) {
    case MathFunction::kSqrt:
      return a < 0 ? Fail(lane, LaneError::kRootOfNegative) : std::sqrt(a);
    case MathFunction::kCbrt:
      return std::cbrt(a);
    case MathFunction::kExp:
      return Finite(std::exp(a), std::isfinite(a), lane);
    case MathFunction::kLn:
      return Logarithm(a, lane, [](double x) { return std::log(x); });
    case MathFunction::kLog10:
      return Logarithm(a, lane, [](double x) { return std::log10(x); });
    case MathFunction::kLog2:
      return Logarithm(a, lane, [](double x) { return std::log2(x); });
    case MathFunction::kSin:
      return OfAngle(a, lane, [](double x) { return std::sin(x); });
    case MathFunction::kCos:
      return OfAngle(a, lane, [](double x) { return std::cos(x); });
    case MathFunction::kTan:
      return OfAngle(a, lane, [](double x) { return std::tan(x); });
    case MathFunction::kCot:
      if (std::isinf(a)) return Fail(lane, LaneError::kOutOfDomain);
      return 1.0 / std::tan(a);  // of 0 infinity, as in PostgreSQL
    case MathFunction::kAsin:
      return OfSine(a, lane, [](double x) { return std::asin(x); });
    case MathFunction::kAcos:
      return OfSine(a, lane, [](double x) { return std::acos(x); });
    case MathFunction::kAtan:
      return std::atan(a);
    case MathFunction::kSinh:
      return Finite(std::sinh(a), std::isfinite(a), lane);
    case MathFunction::kCosh:
      return Finite(std::cosh(a), std::isfinite(a), lane);
    case MathFunction::kTanh:
      return std::tanh(a);
#define MATH_PAIR(Name, ...) case MathFunction::k##Name:
#include "vm/program/math_functions.def"
      break;
  }
  return 0;
}

double MathPairF::Apply(double a, double b, int function, Lane& lane) {
  switch (static_cast<MathFunction>(function)) {
    case MathFunction::kPower:
      return Power(a, b, lane);
    case MathFunction::kAtan2:
      return std::atan2(a, b);
    case MathFunction::kLogOfBase:
      return LogOfBase(a, b, lane);
#define MATH_FUNCTION(Name, ...) case MathFunction::k##Name:
#include "vm/program/math_functions.def"
      break;
  }
  return 0;
}

}  // namespace meaning
}  // namespace tessera::vm
