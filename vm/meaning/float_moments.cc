#include "vm/meaning/float_moments.h"

#include <array>
#include <bit>

#include "base/int128.h"

namespace tessera::vm {
namespace {

/// An integer of 512 bits, as two's complement, the lowest word first.
class Integer {
 public:
  explicit Integer(int128_t v) {
    words_.fill(v < 0 ? ~uint64_t{0} : 0);
    words_[0] = static_cast<uint64_t>(v);
    words_[1] = static_cast<uint64_t>(v >> 64);
  }
  static Integer OfBins(const FloatSum& s) {
    Integer sum(s.bins[0]);
    for (int k = 1; k < FloatSum::kBins; ++k) {
      sum.Shift(FloatSum::kBinBits);
      sum.Add(Integer(s.bins[k]));
    }
    return sum;
  }

  bool IsNegative() const { return words_[kWords - 1] >> 63 != 0; }
  void Negate() {
    for (uint64_t& w : words_) w = ~w;
    Add(Integer(1));
  }
  void Add(const Integer& other) {
    uint128_t carry = 0;
    for (size_t i = 0; i < kWords; ++i) {
      carry += static_cast<uint128_t>(words_[i]) + other.words_[i];
      words_[i] = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
  }
  /// To the left; if `bits` is negative to the right, rounding down.
  void Shift(int bits) {
    if (bits < 0) return ShiftRight(-bits);
    const auto words = static_cast<size_t>(bits / 64);
    const int rest = bits % 64;
    for (size_t i = kWords; i-- > 0;) {
      const uint64_t high = i >= words ? words_[i - words] : 0, low = i >= words + 1 ? words_[i - words - 1] : 0;
      words_[i] = rest == 0 ? high : high << rest | low >> (64 - rest);
    }
  }
  void ShiftRight(int bits) {
    const uint64_t sign = IsNegative() ? ~uint64_t{0} : 0;
    const auto words = static_cast<size_t>(bits / 64);
    const int rest = bits % 64;
    for (size_t i = 0; i < kWords; ++i) {
      const uint64_t low = i + words < kWords ? words_[i + words] : sign;
      const uint64_t high = i + words + 1 < kWords ? words_[i + words + 1] : sign;
      words_[i] = rest == 0 ? low : low >> rest | high << (64 - rest);
    }
  }
  /// Of two that are not negative.
  static Integer Product(const Integer& a, const Integer& b) {
    Integer product(0);
    for (size_t i = 0; i < kWords; ++i) {
      uint128_t carry = 0;
      for (size_t k = 0; a.words_[i] != 0 && i + k < kWords; ++k) {
        carry += static_cast<uint128_t>(a.words_[i]) * b.words_[k] + product.words_[i + k];
        product.words_[i + k] = static_cast<uint64_t>(carry);
        carry >>= 64;
      }
    }
    return product;
  }
  /// The double next to it, divided by n, times 2^exponent. REQUIRES: not negative.
  double Quotient(int64_t n, int exponent) const {
    size_t top = kWords - 1;
    while (top > 0 && words_[top] == 0) --top;
    const int zeros = std::countl_zero(words_[top]);
    uint64_t bits = words_[top];
    bool more = false;
    if (top > 0) {
      if (zeros > 0) bits = bits << zeros | words_[top - 1] >> (64 - zeros);
      more = zeros > 0 && words_[top - 1] << zeros != 0;
      for (size_t i = 0; i < top - (zeros > 0 ? 1 : 0); ++i) more = more || words_[i] != 0;
      exponent += static_cast<int>(top) * 64 - zeros;
    }
    return ldexp(static_cast<double>(bits | (more ? 1 : 0)) / static_cast<double>(n), exponent);
  }

 private:
  static constexpr size_t kWords = 8;
  std::array<uint64_t, kWords> words_;
};

}  // namespace

double FloatMoments::Deviations() const {
  const uint64_t special = (sum.head | squares.head) & ~FloatSum::kTopMask;
  if (special != 0) return (sum.head & ~FloatSum::kTopMask) != 0 ? NAN : INFINITY;
  // count * (squares + missing) - sum^2, in units of 2^(2 * that of the sum's lowest bin).
  const int unit = 2 * sum.LowestUnit();
  constexpr int kMostShift = 200;  // (more, where squares are too small for doubles)
  if (squares.LowestUnit() - unit > kMostShift) return 0;
  Integer result = Integer::OfBins(missing);
  result.Shift(missing.LowestUnit() - unit);
  Integer rounded = Integer::OfBins(squares), of_sum = Integer::OfBins(sum);
  rounded.Shift(squares.LowestUnit() - unit);
  result.Add(rounded);
  if (result.IsNegative()) return 0;
  result = Integer::Product(result, Integer(count));
  if (of_sum.IsNegative()) of_sum.Negate();
  of_sum = Integer::Product(of_sum, of_sum);
  of_sum.Negate();
  result.Add(of_sum);
  return result.IsNegative() ? 0 : result.Quotient(count, unit);
}

}  // namespace tessera::vm
