// The one place that says how numbers and moments are cast and rounded.
#include "compiler/query/conversion.h"

#include <algorithm>

#include "vm/meaning/text_functions.h"

namespace tessera {
namespace {

using Kind = ConversionStep::Kind;

/// 10^38 is the greatest power of ten in 128 bits.
constexpr int kMostDigits = 38;

}  // namespace

void ConversionSteps::AddRescale(int from, int to) {
  if (to > from) Add(Kind::kTimes, PowerOf10(to - from));
  if (to < from) Add(Kind::kDivideRound, PowerOf10(from - to));
}

ConversionSteps CastSteps(const SqlType& from, const SqlType& to) {
  ConversionSteps steps;
  if (from.IsFloat() && to.IsFloat()) {
    if (to.id == TypeId::kReal && from.id != TypeId::kReal) steps.Add(Kind::kSingle);
  } else if (from.IsFloat()) {
    if (to.id == TypeId::kDecimal && to.scale > 0) steps.Add(Kind::kFloatTimes, PowerOf10(to.scale));
    steps.Add(to.id == TypeId::kDecimal ? Kind::kToExact : Kind::kToInteger);
  } else if (to.IsFloat()) {
    steps.Add(Kind::kToFloat);
    if (from.scale > 0) steps.Add(Kind::kFloatDivide, PowerOf10(from.scale));
    if (to.id == TypeId::kReal) steps.Add(Kind::kSingle);
  } else if (from.id == TypeId::kDate && to.IsTimestamp()) {
    steps.Add(Kind::kTimes, vm::kMicrosPerDay);
  } else if (from.IsTimestamp() && to.id == TypeId::kDate) {
    steps.Add(Kind::kDivideDown, vm::kMicrosPerDay);
  } else if (from.IsTimestamp() && to.id == TypeId::kTime) {
    steps.Add(Kind::kRemainder, vm::kMicrosPerDay);
  } else {
    steps.AddRescale(from.scale, to.scale);
  }
  return steps;
}

ConversionSteps RoundingSteps(Function function, const SqlType& from, const SqlType& to, const int64_t* digits) {
  ConversionSteps steps;
  // (No double has 400 digits on either side of the point.)
  const int kept = digits == nullptr ? 0 : static_cast<int>(std::clamp<int64_t>(*digits, -400, 400));
  if (to.IsFloat()) {
    if (function == Function::kFloor) {
      steps.Add(Kind::kFloatFloor);
    } else if (function == Function::kCeil) {
      steps.Add(Kind::kFloatCeil);
    } else if (digits != nullptr) {
      steps.AddDigits(Kind::kFloatRoundDigits, kept);
    } else {
      steps.Add(Kind::kFloatRound);
    }
    if (to.id == TypeId::kReal) steps.Add(Kind::kSingle);
    return steps;
  }
  const int dropped = static_cast<int>(from.scale) - kept;
  if (dropped > kMostDigits) {
    steps.Add(Kind::kZero);
    return steps;
  }
  if (dropped <= 0) {
    steps.AddRescale(from.scale, to.scale);
    return steps;
  }
  const int128_t unit = PowerOf10(dropped);
  if (function == Function::kRound) {
    steps.Add(Kind::kDivideRound, unit);
  } else if (function == Function::kTrunc) {
    steps.Add(Kind::kDivide, unit);
  } else if (function == Function::kFloor) {
    steps.Add(Kind::kDivideDown, unit);
  } else {  // ceil(x) = -floor(-x)
    steps.Add(Kind::kNegate);
    steps.Add(Kind::kDivideDown, unit);
    steps.Add(Kind::kNegate);
  }
  // Rounding to a negative number of digits leaves zeros before the point.
  steps.AddRescale(kept, to.scale);
  return steps;
}

}  // namespace tessera
