// What the variance of doubles is computed from: their sum and that of their squares, in any order of rows the same. Compiled
// by g++ and nvcc.
//
// A square is the double next to it and what is missing to the square, which is a double, too. Each has its sum: together
// they would have twice the bits that a sum keeps.
//
// Start at: FloatMoments.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "vm/meaning/float_sum.h"
#include "vm/program/opcode.h"

namespace tessera::vm {

struct FloatMoments {
  static constexpr AccumulatorSpec kColumns[] = {
      AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I,
      AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I,
      AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I,
      AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I};

  static constexpr uint32_t kSums = 3;

  int64_t count;
  FloatSum sum, squares, missing;

  static TESSERA_HD FloatMoments Zero() { return {0, FloatSum::Zero(), FloatSum::Zero(), FloatSum::Zero()}; }
  TESSERA_HD void Add(double x) {
    ++count;
    sum.Add(x);
    const double square = x * x;
    squares.Add(square);
    missing.Add(MissingOf(x, square));
  }
  /// What Add adds to the k-th of them.
  static TESSERA_HD double Part(double x, uint32_t k) {
    const double square = x * x;
    return k == 0 ? x : k == 1 ? square : MissingOf(x, square);
  }
  TESSERA_HD void Merge(const FloatMoments& other) {
    count += other.count;
    sum.Merge(other.sum);
    squares.Merge(other.squares);
    missing.Merge(other.missing);
  }
  static TESSERA_HD double MissingOf(double x, double square) {
    const double missing = fma(x, x, -square);
    return missing - missing == 0 ? missing : 0;
  }

  /// The sum of the squared differences from the mean: squares + missing - sum^2 / count, in integers and without an error up
  /// to the division and the rounding at its end. So it is wrong by what the sums have forgotten: less than
  /// 2^-78 count max(x^2), and nothing where no number is less than 2^-28 of the greatest. It is 0 where all numbers are the same.
  /// Squares of numbers below 1e-140 lose bits. Infinite if a square is, NaN if a number is not finite.
  double Deviations() const;
};

}  // namespace tessera::vm
