// The sum of doubles that does not depend on their order: the same bits from any number of threads, on a GPU, on any
// number of ranks. Compiled by g++ and nvcc.
//
// The line of bits is cut into bins of 27, whose places do not depend on the numbers. A slice of a number is what it has in
// a bin: a whole number of the bin's unit, so that the sums of slices in 64 bits are exact in any order. A sum keeps the
// four highest bins that the greatest of its numbers reaches, and forgets what is below. Which bins these are does not
// depend on the order either. (J. Demmel, H. D. Nguyen, "Parallel Reproducible Summation", IEEE Transactions on Computers
// 64, 2015, here with integers.)
//
// What is forgotten of a number is less than 2^-81 of the greatest one, so the sum of n is wrong by less than
// 2^-81 n max|x|, and is then rounded once to a double. Infinities and NaN are as in IEEE 754; a sum of finite numbers is
// infinite only if the result is. Up to 2^36 numbers.
//
// Start at: FloatSum.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "base/int128.h"
#include "vm/program/opcode.h"

namespace tessera::vm {

struct FloatSum {
  static constexpr int kBins = 4;
  static constexpr AccumulatorSpec kColumns[] = {AccumulatorSpec::I, AccumulatorSpec::I, AccumulatorSpec::I,
                                                 AccumulatorSpec::I, AccumulatorSpec::I};

  uint64_t head;        ///< the number of the highest bin, and kPositive, kNegative, kNaN
  int64_t bins[kBins];  ///< the slices' sums, in units of their bins: the highest first

  static TESSERA_HD FloatSum Zero() { return {0, {0, 0, 0, 0}}; }

  TESSERA_HD void Add(double x) {
    const int exponent = ExponentBits(x);
    if (exponent > LimitOf(Top()) && !MakeRoom(x)) return;
    const uint64_t magnitude = Magnitude(x);
    const int64_t sign = std::bit_cast<int64_t>(x) >> 63;
    int shift = ShiftTo(Top(), exponent);
    for (int k = 0; k < kBins; ++k) {
      bins[k] += (Slice(magnitude, shift) ^ sign) - sign;
      shift += kBinBits;
    }
  }

  TESSERA_HD void Merge(const FloatSum& other) {
    head |= other.head & ~kTopMask;
    if (other.Top() > Top()) Raise(other.Top());
    const int below = Top() - other.Top();
    for (int k = kBins - 1; k >= 0; --k) {
      // (Not as other.bins[k - below]: an array that is indexed by a variable would not stay in registers.)
      int64_t v = 0;
      for (int i = 0; i <= k; ++i) v = k - i == below ? other.bins[i] : v;
      bins[k] += v;
    }
  }

  TESSERA_HD double Value() const {
    const uint64_t special = head & ~kTopMask;
    if (special != 0) {
      const double infinity = std::bit_cast<double>(uint64_t{0x7FF} << 52);
      return special == kPositive ? infinity : special == kNegative ? -infinity : infinity - infinity;
    }
    // high * 2^54 + low, 0 <= low < 2^54, in units of the lowest bin.
    constexpr int kHalf = 2 * kBinBits;
    constexpr int128_t kUnit = int128_t{1} << kBinBits;
    const int128_t lower = bins[2] * kUnit + bins[3];
    const int128_t high = bins[0] * kUnit + bins[1] + (lower >> kHalf);
    const uint64_t low = static_cast<uint64_t>(lower) & ((uint64_t{1} << kHalf) - 1);
    return Times(Rounded(high, low), LowestUnit());
  }

  static constexpr int kBinBits = 27;
  static constexpr uint64_t kTopMask = 0x7F;
  static constexpr uint64_t kPositive = 0x100, kNegative = 0x200, kNaN = 0x400;  ///< such a number came in

  // ---- Bins: number `top` has the unit 2^UnitExponent(top).
  static constexpr int kLowestUnit = -1029;
  static TESSERA_HD int UnitExponent(int top) { return kLowestUnit + kBinBits * top; }
  TESSERA_HD int Top() const { return static_cast<int>(head & kTopMask); }
  /// The exponent of the lowest bin's unit.
  TESSERA_HD int LowestUnit() const { return UnitExponent(Top()) - (kBins - 1) * kBinBits; }

  /// A finite number is Magnitude * 2^(ExponentBits - kExponentOfOne). 0x7FF of others.
  static constexpr int kExponentOfOne = 1075;
  static TESSERA_HD int ExponentBits(double x) {
    const int bits = static_cast<int>(std::bit_cast<uint64_t>(x) >> 52 & 0x7FF);
    return bits == 0 ? 1 : bits;
  }
  static TESSERA_HD uint64_t Magnitude(double x) {
    const uint64_t bits = std::bit_cast<uint64_t>(x) & ((uint64_t{1} << 63) - 1);
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
    return bits >> 52 == 0 ? fraction : fraction | uint64_t{1} << 52;
  }
  /// The highest bin of numbers with such an exponent.
  static TESSERA_HD int TopOf(int exponent) { return (exponent - kExponentOfOne + 52 - kLowestUnit) / kBinBits; }
  /// The greatest exponent of which it is the highest bin.
  static TESSERA_HD int LimitOf(int top) {
    const int limit = UnitExponent(top) + kBinBits - 1 - 52 + kExponentOfOne;
    return limit < 0x7FF ? limit : 0x7FE;
  }
  /// By how much to the left a magnitude is moved, so that what the bin has of it are its last bits.
  static TESSERA_HD int ShiftTo(int top, int exponent) { return exponent - kExponentOfOne - UnitExponent(top); }
  static TESSERA_HD int64_t Slice(uint64_t magnitude, int shift) {
    const uint64_t moved = shift >= 0 ? (shift < 64 ? magnitude << shift : 0) : (shift > -64 ? magnitude >> -shift : 0);
    return static_cast<int64_t>(moved & ((uint64_t{1} << kBinBits) - 1));
  }

  /// For a number that is beyond the highest bin. False: it is not finite, and noted.
  TESSERA_HD bool MakeRoom(double x) {
    const int exponent = ExponentBits(x);
    if (exponent == 0x7FF) {
      head |= x != x ? kNaN : x > 0 ? kPositive : kNegative;
      return false;
    }
    Raise(TopOf(exponent));
    return true;
  }
  /// REQUIRES: top is not less than Top().
  TESSERA_HD void Raise(int top) {
    const int by = top - Top();
    head = (head & ~kTopMask) | static_cast<uint64_t>(top);
    for (int k = kBins - 1; k >= 0; --k) {
      int64_t v = 0;
      for (int i = 0; i <= k; ++i) v = k - i == by ? bins[i] : v;
      bins[k] = v;
    }
  }

 private:
  /// x * 2^exponent: a product where 2^exponent is a double, which takes a tenth of the time.
  static TESSERA_HD double Times(double x, int exponent) {
    const bool is_double = exponent > -1023 && exponent < 1024;
    return is_double ? x * std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52) : ldexp(x, exponent);
  }
  /// To the nearest double, as its bits of 64 and fewer are, with a last one for all that is below.
  static TESSERA_HD double Rounded(int128_t magnitude, bool more = false) {
    auto m = static_cast<uint128_t>(magnitude);
    int shift = 0;
    while (static_cast<uint64_t>(m >> 64) >> shift != 0) ++shift;
    uint64_t top = static_cast<uint64_t>(m >> shift);
    if (more || (m & ((uint128_t{1} << shift) - 1)) != 0) top |= 1;
    return Times(static_cast<double>(top), shift);
  }
  /// high * 2^54 + low. |high| < 2^100.
  static TESSERA_HD double Rounded(int128_t high, uint64_t low) {
    constexpr int kHalf = 2 * kBinBits;
    const bool negative = high < 0;
    if (negative) {
      high = -high - (low != 0 ? 1 : 0);
      low = low != 0 ? (uint64_t{1} << kHalf) - low : 0;
    }
    const bool fits = high >> (126 - kHalf) == 0;
    const double r = fits ? Rounded(high << kHalf | static_cast<int128_t>(low)) : Times(Rounded(high, low != 0), kHalf);
    return negative ? -r : r;
  }
};

/// The sum of a group in the memory of a GPU, to which many threads add at once. Most numbers go into a window of bins, which
/// stays where the group's first number has opened it: they are added without a lock. Those that are above it, and what is
/// not finite, go to a FloatSum under the group's lock. The words: the window's head, its bins, those of the FloatSum.
struct FloatWindow {
  static constexpr int kBins = FloatSum::kBins + 2;
  static constexpr int kRoomAbove = kBins - FloatSum::kBins;  ///< bins above the first number's
  static constexpr int kWords = 1 + kBins;
  static constexpr int kAllWords = kWords + static_cast<int>(sizeof(FloatSum) / 8);
  /// Where a block keeps a group apart: the head in 32 bits, and the bins.
  static constexpr int kBlockBytes = 4 + 8 * kBins;

  /// The head of a window for a number of that highest bin. Its last bits are the highest bin of all numbers so far, so
  /// that the greater head is the one to keep. 0: there is none yet.
  static TESSERA_HD uint64_t Head(int top) { return static_cast<uint64_t>((1 << 16) | (top + kRoomAbove) << 8 | top); }
  static TESSERA_HD uint64_t WithTop(uint64_t head, int top) {
    return (head & ~uint64_t{0xFF}) | static_cast<uint64_t>(top);
  }
  static TESSERA_HD int First(uint64_t head) { return static_cast<int>(head >> 8 & 0xFF); }
  static TESSERA_HD int Top(uint64_t head) { return static_cast<int>(head & 0xFF); }

  static TESSERA_HD FloatSum SumOf(const uint64_t* words) {
    FloatSum sum;
    memcpy(&sum, words + kWords, sizeof sum);
    const uint64_t head = words[0];
    if (head == 0) return sum;
    FloatSum inside = FloatSum::Zero();
    inside.head = static_cast<uint64_t>(Top(head));
    const int above = First(head) - Top(head);
    for (int k = 0; k < FloatSum::kBins; ++k) inside.bins[k] = static_cast<int64_t>(words[1 + above + k]);
    sum.Merge(inside);
    return sum;
  }
};

/// Adds numbers, whose bits these are, to a sum: the same as one Add after the other, several times as fast.
void AddAll(const int64_t* values, int count, FloatSum* sum);
/// Sums of groups, in an array of states of which each has one.
struct GroupSums {
  FloatSum* first;
  size_t stride;  ///< bytes from one to the next
  size_t count;

  FloatSum* of(uint32_t group) const {
    return reinterpret_cast<FloatSum*>(reinterpret_cast<char*>(first) + group * stride);
  }
};
/// Adds each number to the sum of its group.
void AddToGroups(const int64_t* values, const uint32_t* groups, int count, const GroupSums& sums);

}  // namespace tessera::vm
