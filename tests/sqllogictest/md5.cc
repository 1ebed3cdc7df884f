#include "tests/sqllogictest/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tessera {
namespace {

using State = std::array<uint32_t, 4>;

/// RFC 1321, section 3.4: T[i] is the integer part of 2^32 times |sin(i + 1)|.
std::array<uint32_t, 64> SineTable() {
  std::array<uint32_t, 64> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<uint32_t>(std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
  }
  return table;
}

void Block(const char* block, State* state) {
  static const std::array<uint32_t, 64> kSine = SineTable();
  constexpr int kShift[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::array<uint32_t, 16> words;
  memcpy(words.data(), block, sizeof words);
  auto [a, b, c, d] = *state;
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t mixed = 0, word = 0;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d);
        word = i;
        break;
      case 1:
        mixed = (b & d) | (c & ~d);
        word = 5 * i + 1;
        break;
      case 2:
        mixed = b ^ c ^ d;
        word = 3 * i + 5;
        break;
      default:
        mixed = c ^ (b | ~d);
        word = 7 * i;
        break;
    }
    const uint32_t rotated = std::rotl(a + mixed + words[word % 16] + kSine[i], kShift[i / 16][i % 4]);
    a = d;
    d = c;
    c = b;
    b += rotated;
  }
  *state = {(*state)[0] + a, (*state)[1] + b, (*state)[2] + c, (*state)[3] + d};
}

}  // namespace

std::string Md5Hex(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  for (; bytes.size() >= 64; bytes.remove_prefix(64)) Block(bytes.data(), &state);
  std::string tail(bytes);
  tail += '\x80';
  while (tail.size() % 64 != 56) tail += '\0';
  tail.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  for (size_t at = 0; at < tail.size(); at += 64) Block(tail.data() + at, &state);
  std::string hex;
  for (size_t i = 0; i < 16; ++i) {
    const uint32_t byte = state[i / 4] >> (8 * (i % 4)) & 0xFF;
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace tessera
