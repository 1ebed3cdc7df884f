// The bytes that give CSV its form, found 64 at a time.
//
// Start at: FindBytes. Any thread.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace tessera {

/// Bit i of the result: the parity of bits 0..i.
inline uint64_t PrefixParity(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

/// One bit for each of 64 bytes.
struct ByteMasks {
  uint64_t delimiters, lines, returns, quotes, zeros, high;
};

#if defined(__AVX2__)
inline uint64_t EqualBytes(__m256i low, __m256i high, char c) {
  const __m256i wanted = _mm256_set1_epi8(c);
  const auto a = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)));
  const auto b = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)));
  return a | (uint64_t{b} << 32);
}

inline ByteMasks FindBytes(const char* text, char delimiter, char quote) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + 32));
  const uint64_t sign = static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
                        (uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(high))} << 32);
  return {EqualBytes(low, high, delimiter), EqualBytes(low, high, '\n'), EqualBytes(low, high, '\r'),
          EqualBytes(low, high, quote),     EqualBytes(low, high, '\0'), sign};
}
#else
inline ByteMasks FindBytes(const char* text, char delimiter, char quote) {
  ByteMasks masks{};
  for (int i = 0; i < 64; ++i) {
    const uint64_t bit = uint64_t{1} << i;
    if (text[i] == delimiter) masks.delimiters |= bit;
    if (text[i] == '\n') masks.lines |= bit;
    if (text[i] == '\r') masks.returns |= bit;
    if (text[i] == quote) masks.quotes |= bit;
    if (text[i] == '\0') masks.zeros |= bit;
    if (static_cast<signed char>(text[i]) < 0) masks.high |= bit;
  }
  return masks;
}
#endif

}  // namespace tessera
