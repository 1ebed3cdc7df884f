// The first eight bytes of a string as a number.
#pragma once

#include <algorithm>
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

/// How many bytes two strings begin with alike, `most` at most.
inline size_t CommonPrefix(std::string_view a, std::string_view b, size_t most) {
  most = std::min({most, a.size(), b.size()});
  size_t i = 0;
  while (i < most && a[i] == b[i]) ++i;
  return i;
}

}  // namespace tessera
