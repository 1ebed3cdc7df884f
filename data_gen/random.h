// Random numbers by counter: draw i of row r of a table is a function of (seed, table, r, i) and of nothing else. So a
// row has the same values whichever thread makes it and whatever was made before it.
//
// The function is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014), whose
// n-th output is a mix of start + n * gamma; it can therefore start at any n at no cost. Row r uses the outputs from
// number r * kDrawsPerRow on, so rows never share a number.
//
// Start at: RandomRow.
#pragma once

#include <cstdint>

namespace tessera {

/// The finaliser of SplitMix64: a bijection in which every output bit depends on every input bit.
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// The random numbers of one row. Cheap to make: make one for each row.
class RandomRow {
 public:
  /// A row must not draw more often than this, or it shares numbers with the next one.
  static constexpr uint64_t kDrawsPerRow = 64;

  /// REQUIRES: row < 2^58
  RandomRow(uint64_t seed, uint64_t table, uint64_t row)
      : state_(MixBits(seed + table * kGamma) + row * kDrawsPerRow * kGamma) {}

  /// 64 uniform bits.
  uint64_t Bits() {
    state_ += kGamma;
    return MixBits(state_);
  }

  /// Uniform in [0, n); biased by less than n / 2^64. REQUIRES: n > 0
  uint64_t Below(uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(Bits()) * n) >> 64);
  }

  /// Uniform in [low, high]. REQUIRES: low <= high
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }

  /// Uniform in [0, 1), a multiple of 2^-53.
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }

 private:
  static constexpr uint64_t kGamma = 0x9E3779B97F4A7C15u;

  uint64_t state_;
};

}  // namespace tessera
