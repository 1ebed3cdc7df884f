// Integers of a given number of bits, one after the other in 64-bit words, the lowest bits first.
//
// Start at: PackBits, UnpackBits. Pure functions; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera {

/// Bits that hold values up to `greatest`: 0 for 0.
constexpr int BitsOf(uint64_t greatest) { return 64 - std::countl_zero(greatest); }
/// Words that `values` values take.
constexpr uint64_t PackedWords(uint64_t values, int bits) { return (values * static_cast<uint64_t>(bits) + 63) / 64; }

/// REQUIRES: every value fits; `words` has PackedWords() words. Bits after the last value are 0.
void PackBits(std::span<const uint64_t> values, int bits, uint64_t* words);

/// Adds `base` to each value, modulo 2^64, and keeps the bits that a Value has: uint8_t, uint16_t, uint32_t or uint64_t.
/// `words` has PackedWords() words, on any address. REQUIRES: `bits` is not more than a Value has.
template <class Value>
void UnpackBits(const uint8_t* words, uint64_t values, int bits, uint64_t base, Value* out);

}  // namespace tessera
