#include "vm/machine/tile_mask.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tessera::vm {
namespace {

/// Below one live row in this many, loops run over the list of live rows.
constexpr int kSparse = 6;

uint64_t WordAt(const uint8_t* bytes, int k) {
  uint64_t word;
  memcpy(&word, bytes + 8 * k, 8);
  return word;
}

/// How many of 8 * `words` bytes, which are 0 or 1, are 1. REQUIRES: words <= 256.
int CountOnes(const uint8_t* bytes, int words) {
  int ones = 0;
  for (int first = 0; first < words; first += 128) {
    uint64_t sums = 0;  // of each of eight bytes, at most 128
    const int end = std::min(words, first + 128);
    for (int k = first; k < end; ++k) sums += WordAt(bytes, k);
    constexpr uint64_t kEven = 0x00FF00FF00FF00FFu;
    ones += static_cast<int>(((sums & kEven) + (sums >> 8 & kEven)) * 0x0001000100010001u >> 48);
  }
  return ones;
}

/// (The compiler's vectors: eight stores of their own took as long as all else.)
using Eight = uint16_t __attribute__((vector_size(16)));

/// By a byte: the places of its ones, in front.
constexpr auto kPlacesOfOnes = [] {
  std::array<std::array<uint16_t, 8>, 256> places{};
  for (size_t bits = 0; bits < places.size(); ++bits) {
    size_t ones = 0;
    for (uint16_t j = 0; j < 8; ++j) {
      if ((bits >> j & 1) != 0) places[bits][ones++] = j;
    }
  }
  return places;
}();

}  // namespace

void TileMask::SetToAll(int rows) {
  rows_ = rows;
  memset(bytes_, 1, static_cast<size_t>(rows));
  memset(bytes_ + rows, 0, static_cast<size_t>(kTileRows - rows));
  live_ = rows;
  sparse_ = listed_ = false;
}

void TileMask::Changed() {
  const int words = (rows_ + 7) / 8;  // rows beyond rows_ are never set
  live_ = CountOnes(bytes_, words);
  sparse_ = live_ * kSparse < rows_;
  listed_ = false;
  if (sparse_) List();
}

void TileMask::List() {
  listed_ = true;
  const int words = (rows_ + 7) / 8;
  int out = 0;
  for (int first = 0; first < words; first += 8) {
    uint64_t any = 0;
    for (int k = first; k < first + 8; ++k) any |= WordAt(bytes_, k);
    if (any == 0) continue;
    for (int k = first; k < first + 8; ++k) {
      // The eight bytes, each 0 or 1, become the bits of one; eight places are written, of which the first ones count.
      const uint8_t bits = static_cast<uint8_t>(WordAt(bytes_, k) * 0x0102040810204080u >> 56);
      Eight places;
      memcpy(&places, kPlacesOfOnes[bits].data(), sizeof places);
      places += static_cast<uint16_t>(8 * k);
      memcpy(list_ + out, &places, sizeof places);
      out += std::popcount(bits);
    }
  }
}

}  // namespace tessera::vm
