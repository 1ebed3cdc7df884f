// What casts between numbers and moments do, and what rounding does: steps, each an operation of the machine but for its
// width. Instructions are generated from them and constants are computed by them, so that both mean the same. Private to
// compiler/.
//
// Start at: CastSteps, RoundingSteps. Pure functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/int128.h"
#include "compiler/query/functions.h"
#include "tablet/values/types.h"

namespace tessera {

struct ConversionStep {
  enum class Kind : uint8_t {
    // Of exact values: integers of 64 or 128 bits.
    kTimes,        ///< x * factor
    kDivide,       ///< x / factor, without its fraction
    kDivideRound,  ///< ... rounded, half away from zero
    kDivideDown,   ///< ... rounded down
    kRemainder,    ///< x - factor * (x / factor, rounded down)
    kNegate,
    kZero,  ///< nothing is left of x
    // From one to the other.
    kToFloat,
    kToInteger,  ///< rounded to 64 bits
    kToExact,    ///< rounded to 128 bits
    // Of floats.
    kFloatTimes,
    kFloatDivide,
    kFloatRound,
    kFloatRoundDigits,  ///< to `digits` after the point
    kFloatFloor,
    kFloatCeil,
    kSingle,  ///< rounded to a REAL
  };
  Kind kind = Kind::kZero;
  int digits = 0;
  int128_t factor = 1;
};

/// Steps in their order. The value is checked against its type after the last one.
class ConversionSteps {
 public:
  void Add(ConversionStep::Kind kind, int128_t factor = 1) { steps_[size_++] = {kind, 0, factor}; }
  void AddDigits(ConversionStep::Kind kind, int digits) { steps_[size_++] = {kind, digits, 1}; }
  /// The units of a decimal of scale `from` become those of scale `to`.
  void AddRescale(int from, int to);
  const ConversionStep* begin() const { return steps_.data(); }
  const ConversionStep* end() const { return steps_.data() + size_; }

 private:
  std::array<ConversionStep, 5> steps_;
  size_t size_ = 0;
};

/// CAST. REQUIRES: numbers, or dates, times and timestamps; neither is a text, and `to` is no BOOLEAN but of one.
ConversionSteps CastSteps(const SqlType& from, const SqlType& to);
/// kRound, kTrunc, kFloor and kCeil with the result type `to`. `digits`: after the point, where the call names them.
ConversionSteps RoundingSteps(Function function, const SqlType& from, const SqlType& to, const int64_t* digits);

}  // namespace tessera
