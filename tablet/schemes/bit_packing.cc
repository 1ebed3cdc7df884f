// 64 values are as many words as they have bits each, so one loop of constant shifts for each number of bits unpacks
// them; the compiler unrolls it.
#include "tablet/schemes/bit_packing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tessera {
namespace {

constexpr size_t kBlock = 64;

template <int kBits, class Value>
void UnpackBlock(const uint8_t* from, uint64_t base, Value* out) {
  if constexpr (kBits == 0) {
    for (size_t i = 0; i < kBlock; ++i) out[i] = static_cast<Value>(base);
  } else {
    constexpr uint64_t kMask = kBits == 64 ? ~uint64_t{0} : (uint64_t{1} << (kBits % 64)) - 1;
    uint64_t words[static_cast<size_t>(kBits)];
    memcpy(words, from, sizeof words);
#pragma GCC unroll 64
    for (size_t i = 0; i < kBlock; ++i) {
      const size_t word = i * kBits / 64, shift = i * kBits % 64;
      uint64_t value = words[word] >> shift;
      if (shift + kBits > 64) value |= words[std::min<size_t>(word + 1, kBits - 1)] << (64 - shift) % 64;
      out[i] = static_cast<Value>((value & kMask) + base);
    }
  }
}

template <class Value>
using BlockFunction = void (*)(const uint8_t*, uint64_t, Value*);

template <class Value, size_t... kBits>
constexpr std::array<BlockFunction<Value>, sizeof...(kBits)> BlockFunctions(std::index_sequence<kBits...>) {
  return {UnpackBlock<static_cast<int>(kBits), Value>...};
}

}  // namespace

void PackBits(std::span<const uint64_t> values, int bits, uint64_t* words) {
  if (bits == 0) return;
  uint64_t pending = 0;
  int used = 0;
  for (const uint64_t value : values) {
    pending |= value << used;
    used += bits;
    if (used < 64) continue;
    *words++ = pending;
    used -= 64;
    pending = used == 0 ? 0 : value >> (bits - used);
  }
  if (used > 0) *words = pending;
}

template <class Value>
void UnpackBits(const uint8_t* words, uint64_t values, int bits, uint64_t base, Value* out) {
  static constexpr auto kFunctions = BlockFunctions<Value>(std::make_index_sequence<8 * sizeof(Value) + 1>());
  const BlockFunction<Value> unpack = kFunctions[static_cast<size_t>(bits)];
  const size_t block_bytes = static_cast<size_t>(bits) * 8;
  for (; values >= kBlock; values -= kBlock, out += kBlock, words += block_bytes) unpack(words, base, out);
  if (values == 0) return;
  uint8_t last[kBlock * 8] = {};
  Value unpacked[kBlock];
  memcpy(last, words, PackedWords(values, bits) * 8);
  unpack(last, base, unpacked);
  std::copy_n(unpacked, values, out);
}

template void UnpackBits(const uint8_t*, uint64_t, int, uint64_t, uint8_t*);
template void UnpackBits(const uint8_t*, uint64_t, int, uint64_t, uint16_t*);
template void UnpackBits(const uint8_t*, uint64_t, int, uint64_t, uint32_t*);
template void UnpackBits(const uint8_t*, uint64_t, int, uint64_t, uint64_t*);

}  // namespace tessera
