#include "vm/meaning/float_sum.h"

#include <immintrin.h>

#include <algorithm>

namespace tessera::vm {
namespace {

constexpr int kRows = 4;  ///< whose slices are made together: a lane of a vector each
static_assert(FloatSum::kBins == kRows);

__m256i Each(int64_t v) { return _mm256_set1_epi64x(v); }

/// Four numbers, taken apart.
struct FourNumbers {
  __m256i exponents, magnitudes, signs;

  explicit FourNumbers(const int64_t* x) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    const __m256i zero = _mm256_setzero_si256(), field = _mm256_and_si256(_mm256_srli_epi64(bits, 52), Each(0x7FF));
    const __m256i tiny = _mm256_cmpeq_epi64(field, zero);  // -1 where there is no leading one
    const __m256i fraction = _mm256_and_si256(bits, Each((int64_t{1} << 52) - 1));
    exponents = _mm256_sub_epi64(field, tiny);
    magnitudes = _mm256_or_si256(fraction, _mm256_andnot_si256(tiny, Each(int64_t{1} << 52)));
    signs = _mm256_cmpgt_epi64(zero, bits);
  }

  /// FloatSum::Slice of each, for its own shift. (A lane that is moved by 64 bits or more is 0, and a distance below 0 is
  /// more than that.)
  __m256i Slices(__m256i shifts) const {
    const __m256i left = _mm256_sllv_epi64(magnitudes, shifts);
    const __m256i right = _mm256_srlv_epi64(magnitudes, _mm256_sub_epi64(_mm256_setzero_si256(), shifts));
    const __m256i slices = _mm256_and_si256(_mm256_or_si256(left, right), Each((int64_t{1} << FloatSum::kBinBits) - 1));
    return _mm256_sub_epi64(_mm256_xor_si256(slices, signs), signs);
  }
};

/// FloatSum::ShiftTo of an exponent is the exponent less this.
int ShiftOrigin(int top) { return -FloatSum::ShiftTo(top, 0); }

bool IsBeyond(__m256i exponents, __m256i limits) {
  const __m256i beyond = _mm256_cmpgt_epi64(exponents, limits);
  return _mm256_testz_si256(beyond, beyond) == 0;
}

/// Sums that are asked for ahead of their rows, where they are more than the caches next to a core hold.
constexpr int kAhead = 32;
constexpr size_t kManySums = 4096;

}  // namespace

void AddAll(const int64_t* values, int count, FloatSum* sum) {
  int i = 0;
  while (i + kRows <= count) {
    // As long as no number is beyond the highest bin.
    const __m256i limits = Each(FloatSum::LimitOf(sum->Top())), origins = Each(ShiftOrigin(sum->Top()));
    __m256i bins[FloatSum::kBins] = {};
    for (; i + kRows <= count; i += kRows) {
      const FourNumbers numbers(values + i);
      if (IsBeyond(numbers.exponents, limits)) break;
      __m256i shifts = _mm256_sub_epi64(numbers.exponents, origins);
      for (__m256i& bin : bins) {
        bin = _mm256_add_epi64(bin, numbers.Slices(shifts));
        shifts = _mm256_add_epi64(shifts, Each(FloatSum::kBinBits));
      }
    }
    for (int k = 0; k < FloatSum::kBins; ++k) {
      int64_t lanes[kRows];
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), bins[k]);
      for (const int64_t lane : lanes) sum->bins[k] += lane;
    }
    for (int r = 0; r < kRows && i < count; ++r) sum->Add(std::bit_cast<double>(values[i++]));
  }
  while (i < count) sum->Add(std::bit_cast<double>(values[i++]));
}

void AddToGroups(const int64_t* values, const uint32_t* groups, int count, const GroupSums& sums) {
  const bool many = sums.count > kManySums;
  int i = 0;
  for (; i + kRows <= count; i += kRows) {
    for (int r = 0; many && r < kRows; ++r) {
      const char* const ahead = reinterpret_cast<const char*>(sums.of(groups[std::min(i + r + kAhead, count - 1)]));
      __builtin_prefetch(ahead, 1);
      __builtin_prefetch(ahead + sizeof(FloatSum) - 1, 1);
    }
    FloatSum* const to[kRows] = {sums.of(groups[i]), sums.of(groups[i + 1]), sums.of(groups[i + 2]),
                                 sums.of(groups[i + 3])};
    const FourNumbers numbers(values + i);
    // The exponents' limits follow from the highest bins, as far as the numbers are finite.
    const __m256i heads = _mm256_setr_epi64x(static_cast<int64_t>(to[0]->head), static_cast<int64_t>(to[1]->head),
                                             static_cast<int64_t>(to[2]->head), static_cast<int64_t>(to[3]->head));
    const __m256i tops = _mm256_and_si256(heads, Each(FloatSum::kTopMask));
    const __m256i bits = _mm256_mul_epu32(tops, Each(FloatSum::kBinBits));
    const __m256i limits = _mm256_add_epi64(bits, Each(FloatSum::LimitOf(0)));
    if (IsBeyond(numbers.exponents, limits) || IsBeyond(numbers.exponents, Each(0x7FE))) [[unlikely]] {
      for (int r = 0; r < kRows; ++r) to[r]->Add(std::bit_cast<double>(values[i + r]));
      continue;
    }
    __m256i shifts = _mm256_sub_epi64(numbers.exponents, _mm256_add_epi64(bits, Each(ShiftOrigin(0))));
    __m256i by_bin[FloatSum::kBins];
    for (__m256i& slices : by_bin) {
      slices = numbers.Slices(shifts);
      shifts = _mm256_add_epi64(shifts, Each(FloatSum::kBinBits));
    }
    // From a vector for each bin to one for each number.
    const __m256i low01 = _mm256_unpacklo_epi64(by_bin[0], by_bin[1]),
                  high01 = _mm256_unpackhi_epi64(by_bin[0], by_bin[1]);
    const __m256i low23 = _mm256_unpacklo_epi64(by_bin[2], by_bin[3]),
                  high23 = _mm256_unpackhi_epi64(by_bin[2], by_bin[3]);
    const __m256i by_number[kRows] = {
        _mm256_permute2x128_si256(low01, low23, 0x20), _mm256_permute2x128_si256(high01, high23, 0x20),
        _mm256_permute2x128_si256(low01, low23, 0x31), _mm256_permute2x128_si256(high01, high23, 0x31)};
    for (int r = 0; r < kRows; ++r) {
      auto* const bins = reinterpret_cast<__m256i*>(to[r]->bins);
      _mm256_storeu_si256(bins, _mm256_add_epi64(_mm256_loadu_si256(bins), by_number[r]));
    }
  }
  for (; i < count; ++i) sums.of(groups[i])->Add(std::bit_cast<double>(values[i]));
}

}  // namespace tessera::vm
