#include "tests/vm/sha256.h"

#include <cstdint>
#include <vector>

#include "base/int128.h"

namespace tessera {
namespace {

/// The first 32 bits after the point of the `root`-th root of n, 2 or 3.
uint32_t RootBits(uint64_t n, int root) {
  const uint128_t power = static_cast<uint128_t>(n) << (32 * root);
  uint128_t low = 0, high = uint128_t{1} << 38;
  while (high - low > 1) {
    const uint128_t middle = (low + high) / 2;
    (middle * middle * (root == 3 ? middle : 1) <= power ? low : high) = middle;
  }
  return static_cast<uint32_t>(low);
}

std::vector<uint64_t> Primes(size_t count) {
  std::vector<uint64_t> primes;
  for (uint64_t n = 2; primes.size() < count; ++n) {
    bool prime = true;
    for (const uint64_t p : primes) prime = prime && n % p != 0;
    if (prime) primes.push_back(n);
  }
  return primes;
}

uint32_t Turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  std::string text(bytes);
  text += '\x80';
  while (text.size() % 64 != 56) text += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(bytes.size() * 8 >> shift & 255);
  const std::vector<uint64_t> primes = Primes(64);
  std::vector<uint32_t> hash;
  for (size_t i = 0; i < 8; ++i) hash.push_back(RootBits(primes[i], 2));
  for (size_t block = 0; block < text.size(); block += 64) {
    std::vector<uint32_t> w;
    for (size_t t = 0; t < 64; ++t) {
      if (t < 16) {
        uint32_t word = 0;
        for (size_t i = 0; i < 4; ++i) word = word * 256 + static_cast<uint8_t>(text[block + 4 * t + i]);
        w.push_back(word);
      } else {
        const uint32_t x = w[t - 2], y = w[t - 15];
        w.push_back((Turned(x, 17) ^ Turned(x, 19) ^ x >> 10) + w[t - 7] + (Turned(y, 7) ^ Turned(y, 18) ^ y >> 3) +
                    w[t - 16]);
      }
    }
    uint32_t a = hash[0], b = hash[1], c = hash[2], d = hash[3], e = hash[4], f = hash[5], g = hash[6], h = hash[7];
    for (size_t t = 0; t < 64; ++t) {
      const uint32_t choice = (e & f) | (~e & g), majority = (a & b) | (a & c) | (b & c);
      const uint32_t first =
          h + (Turned(e, 6) ^ Turned(e, 11) ^ Turned(e, 25)) + choice + RootBits(primes[t], 3) + w[t];
      const uint32_t second = (Turned(a, 2) ^ Turned(a, 13) ^ Turned(a, 22)) + majority;
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const uint32_t add[] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) hash[i] += add[i];
  }
  std::string out;
  for (const uint32_t word : hash) {
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
  }
  return out;
}

}  // namespace tessera
