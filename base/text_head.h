// The first eight bytes of a string as a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tessera {

/// As they lie in memory, the first one in the lowest bits; zeros after a shorter string.
inline uint64_t FirstBytes(std::string_view text) {
  const auto load = [&]<class T>(T, size_t at) {
    T part;
    memcpy(&part, text.data() + at, sizeof part);
    return uint64_t{part};
  };
  // Loads that overlap: shorter than a call of memcpy for a size that is not known.
  const size_t n = text.size();
  if (n >= 8) return load(uint64_t{}, 0);
  if (n >= 4) return load(uint32_t{}, 0) | load(uint32_t{}, n - 4) << (8 * (n - 4));
  if (n >= 2) return load(uint16_t{}, 0) | load(uint16_t{}, n - 2) << (8 * (n - 2));
  return n == 1 ? static_cast<uint8_t>(text[0]) : 0;
}

/// Ordered as the strings are: of a lesser string it is not greater.
inline uint64_t TextHead(std::string_view text) { return __builtin_bswap64(FirstBytes(text)); }

}  // namespace tessera
