// 128-bit integers: exact sums and decimals of more than 18 digits. Compiled by g++ and nvcc.
#pragma once

#include <cstdint>

namespace tessera {

__extension__ typedef __int128 int128_t;
__extension__ typedef unsigned __int128 uint128_t;

constexpr int64_t Low64(int128_t v) { return static_cast<int64_t>(static_cast<uint128_t>(v)); }
constexpr int64_t High64(int128_t v) { return static_cast<int64_t>(v >> 64); }
constexpr int128_t Make128(int64_t high, int64_t low) {
  return static_cast<int128_t>((static_cast<uint128_t>(static_cast<uint64_t>(high)) << 64) |
                               static_cast<uint64_t>(low));
}

inline constexpr int128_t kInt128Max = static_cast<int128_t>(~uint128_t{0} >> 1);
inline constexpr int128_t kInt128Min = -kInt128Max - 1;

/// 10^n. REQUIRES: 0 <= n <= 38.
constexpr int128_t PowerOf10(int n) {
  int128_t p = 1;
  while (n-- > 0) p *= 10;
  return p;
}

}  // namespace tessera
