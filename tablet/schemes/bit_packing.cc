// 64 values are as many words as they have bits each, so a function for each number of bits unpacks them. With up to 57 bits
// a value is within 8 bytes: a shuffle brings the bytes of several values into the lanes of a vector, where each is shifted
// by its own number of bits (0.07 ns a value on a core, where a loop over words takes 0.25 to 0.36). The shuffle reads up to 16
// bytes, so the last blocks of a stream, and values of more bits, are unpacked by that loop.
#include "tablet/schemes/bit_packing.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

#if defined(__AVX2__)

/// Where a vector finds values of `bits` bits that lie one after the other from bit `start` of some bytes: values of
/// `lane` bytes, half of them in each half of the vector, whose bytes are loaded by themselves.
struct LaneMap {
  alignas(32) std::array<uint8_t, 32> bytes{};  ///< in the half's 16 bytes
  alignas(32) std::array<uint32_t, 8> shifts{};
  size_t second = 0;  ///< offset of the second half's bytes
};

constexpr LaneMap MapLanes(int bits, int start, int lane) {
  LaneMap map;
  const int values = 32 / lane;
  map.second = static_cast<size_t>((start + values / 2 * bits) / 8);
  for (int v = 0; v < values; ++v) {
    const int bit = start + v * bits - (v < values / 2 ? 0 : static_cast<int>(map.second) * 8);
    for (int b = 0; b < lane; ++b) {
      const int byte = bit / 8 + b;
      map.bytes[static_cast<size_t>(v * lane + b)] = static_cast<uint8_t>(byte < 16 ? byte : 0x80);  // 0x80: a zero
    }
    map.shifts[static_cast<size_t>(v * lane / 4)] = static_cast<uint32_t>(bit % 8);
  }
  return map;
}

template <class Array>
__m256i Load(const Array& array) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(array.data()));
}

__m256i LoadHalves(const uint8_t* first, const uint8_t* second) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(first))),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(second)), 1);
}

/// The most bits of values in lanes of 4 and 8 bytes, wherever they begin in their first byte.
constexpr int kMostOfFour = 25, kMostOfEight = 57;

/// Eight values from a byte's beginning on, in lanes of 4 bytes.
template <int kBits>
__m256i EightValues(const uint8_t* from) {
  static constexpr LaneMap kMap = MapLanes(kBits, 0, 4);
  const __m256i bytes = _mm256_shuffle_epi8(LoadHalves(from, from + kMap.second), Load(kMap.bytes));
  return _mm256_and_si256(_mm256_srlv_epi32(bytes, Load(kMap.shifts)), _mm256_set1_epi32((1 << kBits) - 1));
}

/// Four values from bit kStart on, in lanes of 8 bytes.
template <int kBits, int kStart>
__m256i FourValues(const uint8_t* from) {
  static constexpr LaneMap kMap = MapLanes(kBits, kStart, 8);
  const __m256i bytes = _mm256_shuffle_epi8(LoadHalves(from, from + kMap.second), Load(kMap.bytes));
  return _mm256_and_si256(_mm256_srlv_epi64(bytes, Load(kMap.shifts)), _mm256_set1_epi64x((int64_t{1} << kBits) - 1));
}

template <class Value>
void Store(__m256i values, uint64_t base, Value* out) {
  if constexpr (sizeof(Value) == 1) values = _mm256_add_epi8(values, _mm256_set1_epi8(static_cast<char>(base)));
  if constexpr (sizeof(Value) == 2) values = _mm256_add_epi16(values, _mm256_set1_epi16(static_cast<int16_t>(base)));
  if constexpr (sizeof(Value) == 4) values = _mm256_add_epi32(values, _mm256_set1_epi32(static_cast<int32_t>(base)));
  if constexpr (sizeof(Value) == 8) values = _mm256_add_epi64(values, _mm256_set1_epi64x(static_cast<int64_t>(base)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), values);
}

/// As UnpackBlock. REQUIRES: 16 bytes after the block can be read.
template <int kBits, class Value>
void UnpackBlockByLanes(const uint8_t* from, uint64_t base, Value* out) {
  constexpr size_t kEight = static_cast<size_t>(kBits);  // bytes of eight values
  if constexpr (sizeof(Value) == 1) {
    for (size_t i = 0; i < kBlock; i += 32, from += 4 * kEight) {
      const __m256i low = _mm256_packus_epi32(EightValues<kBits>(from), EightValues<kBits>(from + kEight));
      const __m256i high =
          _mm256_packus_epi32(EightValues<kBits>(from + 2 * kEight), EightValues<kBits>(from + 3 * kEight));
      // (The packs put the lower halves of both before the upper ones.)
      Store(_mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)),
            base, out + i);
    }
  } else if constexpr (sizeof(Value) == 2) {
    for (size_t i = 0; i < kBlock; i += 16, from += 2 * kEight) {
      const __m256i both = _mm256_packus_epi32(EightValues<kBits>(from), EightValues<kBits>(from + kEight));
      Store(_mm256_permute4x64_epi64(both, 0xD8), base, out + i);
    }
  } else if constexpr (sizeof(Value) == 4 && kBits <= kMostOfFour) {
    for (size_t i = 0; i < kBlock; i += 8, from += kEight) Store(EightValues<kBits>(from), base, out + i);
  } else {
    constexpr size_t kFour = kEight / 2;
    constexpr int kStart = kBits * 4 % 8;  // of the second four, in their first byte
    for (size_t i = 0; i < kBlock; i += 8, from += kEight) {
      const __m256i low = FourValues<kBits, 0>(from), high = FourValues<kBits, kStart>(from + kFour);
      if constexpr (sizeof(Value) == 8) {
        Store(low, base, out + i);
        Store(high, base, out + i + 4);
      } else {
        const __m256i both = _mm256_castps_si256(
            _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), _MM_SHUFFLE(2, 0, 2, 0)));
        Store(_mm256_permute4x64_epi64(both, 0xD8), base, out + i);
      }
    }
  }
}

#endif  // __AVX2__

template <int kBits>
void PackBlock(const uint64_t* values, uint64_t* words) {
  uint64_t word = 0;
#pragma GCC unroll 64
  for (size_t i = 0; i < kBlock; ++i) {
    const int shift = static_cast<int>(i) * kBits % 64;
    word |= values[i] << shift;
    if (shift + kBits < 64) continue;
    *words++ = word;
    word = shift + kBits == 64 ? 0 : values[i] >> (64 - shift) % 64;
  }
}

using PackFunction = void (*)(const uint64_t*, uint64_t*);

template <size_t... kBits>
constexpr std::array<PackFunction, sizeof...(kBits)> AllPackFunctions(std::index_sequence<kBits...>) {
  return {PackBlock<static_cast<int>(kBits)>...};
}

template <class Value>
using BlockFunction = void (*)(const uint8_t*, uint64_t, Value*);

template <class Value>
struct BlockFunctions {
  BlockFunction<Value> exact, by_lanes;
};

template <class Value, int kBits>
constexpr BlockFunctions<Value> FunctionsFor() {
#if defined(__AVX2__)
  if constexpr (kBits > 0 && kBits <= kMostOfEight) {
    return {UnpackBlock<kBits, Value>, UnpackBlockByLanes<kBits, Value>};
  }
#endif
  return {UnpackBlock<kBits, Value>, UnpackBlock<kBits, Value>};
}

template <class Value, size_t... kBits>
constexpr std::array<BlockFunctions<Value>, sizeof...(kBits)> AllFunctions(std::index_sequence<kBits...>) {
  return {FunctionsFor<Value, static_cast<int>(kBits)>()...};
}

}  // namespace

void PackBits(std::span<const uint64_t> values, int bits, uint64_t* words) {
  if (bits == 0) return;
  static constexpr auto kFunctions = AllPackFunctions(std::make_index_sequence<65>());
  const auto pack_block = kFunctions[static_cast<size_t>(bits)];
  for (; values.size() >= kBlock; values = values.subspan(kBlock), words += bits) pack_block(values.data(), words);
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
  static constexpr auto kFunctions = AllFunctions<Value>(std::make_index_sequence<8 * sizeof(Value) + 1>());
  const auto [exact, by_lanes] = kFunctions[static_cast<size_t>(bits)];
  const size_t block_bytes = static_cast<size_t>(bits) * 8;
  constexpr size_t kReadBehind = 16;
  const uint8_t* const end = words + PackedWords(values, bits) * 8;
  for (; values >= kBlock; values -= kBlock, out += kBlock, words += block_bytes) {
    const bool has_more = static_cast<size_t>(end - words) >= block_bytes + kReadBehind;
    (has_more ? by_lanes : exact)(words, base, out);
  }
  if (values == 0) return;
  uint8_t last[kBlock * 8] = {};
  Value unpacked[kBlock];
  if (bits > 0) memcpy(last, words, PackedWords(values, bits) * 8);  // (otherwise there may be no words)
  exact(last, base, unpacked);
  std::copy_n(unpacked, values, out);
}

template void UnpackBits(const uint8_t*, uint64_t, int, uint64_t, uint8_t*);
template void UnpackBits(const uint8_t*, uint64_t, int, uint64_t, uint16_t*);
template void UnpackBits(const uint8_t*, uint64_t, int, uint64_t, uint32_t*);
template void UnpackBits(const uint8_t*, uint64_t, int, uint64_t, uint64_t*);

}  // namespace tessera
