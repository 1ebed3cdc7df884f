// The values of a group, read from its record and its state as the device keeps them. Private to kernels/. Compiled by
// g++ and nvcc.
//
// Start at: ReadValue.
#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"
#include "base/int128.h"
#include "tablet/values/ordered_float.h"
#include "vm/meaning/float_sum.h"

namespace tessera::kernels {

/// Where a value of a group is, and how it is kept there.
struct GroupValue {
  enum class Kind : uint8_t {
    kKey,           ///< word `word` of the record; NULL if bit `bit` of its NULL bits is set
    kWideKey,       ///< ... and the word after it
    kCount,         ///< word `word` of the state; never NULL
    kWord,          ///< the same; NULL if bit `bit` of the seen bits is not set. So for all that follow
    kWideWord,      ///< ... and the word after it
    kOrderedFloat,  ///< vm::GroupState::kLeastFloat, kGreatestFloat
    kHalves,        ///< vm::GroupState::kHalves: two words
    kParts,         ///< vm::GroupState::kParts: four words
    kFloatSum,      ///< word `part` of the vm::FloatSum that a vm::FloatWindow holds
  };
  Kind kind = Kind::kKey;
  uint8_t part = 0;
  uint32_t word = 0, bit = 0;
};

/// The sum of two parts of 32 bits and more, the upper one signed.
TESSERA_HD int128_t SumOfHalves(const uint64_t* s) {
  return static_cast<int128_t>(static_cast<int64_t>(s[1])) * (int128_t{1} << 32) + static_cast<int128_t>(s[0]);
}

/// The sum of four parts of 32 bits and more each, the last one signed. false: it does not fit.
TESSERA_HD bool SumOfParts(const uint64_t* s, int128_t* sum) {
  // Carry upward first: then the lower three parts have 32 bits, and the last one must, too.
  const uint64_t p1 = s[1] + (s[0] >> 32);
  const uint64_t p2 = s[2] + (p1 >> 32);
  const int64_t top = static_cast<int64_t>(s[3]) + static_cast<int64_t>(p2 >> 32);
  const uint64_t low = (p1 << 32) | (s[0] & 0xFFFFFFFFu);
  const int64_t high = static_cast<int64_t>(static_cast<uint64_t>(top) << 32 | (p2 & 0xFFFFFFFFu));
  *sum = Make128(high, static_cast<int64_t>(low));
  return top == static_cast<int32_t>(top);
}

/// A group's value, which is 0 if it is NULL; a double's bits. *fits becomes false if it is a sum that 128 bits do not
/// hold.
TESSERA_HD int128_t ReadValue(const GroupValue& v, const uint64_t* record, const uint64_t* state, bool* null,
                              bool* fits) {
  using Kind = GroupValue::Kind;
  const bool is_key = v.kind == Kind::kKey || v.kind == Kind::kWideKey;
  *null =
      is_key ? (record[0] >> v.bit & 1) != 0 : v.kind != Kind::kCount && (state[v.bit / 64] >> (v.bit % 64) & 1) == 0;
  if (*null) return 0;
  const uint64_t* word = (is_key ? record : state) + v.word;
  int128_t value = 0;
  switch (v.kind) {
    case Kind::kKey:
    case Kind::kCount:
    case Kind::kWord:
      value = static_cast<int64_t>(word[0]);
      break;
    case Kind::kWideKey:
    case Kind::kWideWord:
      value = Make128(static_cast<int64_t>(word[1]), static_cast<int64_t>(word[0]));
      break;
    case Kind::kOrderedFloat:
      value = std::bit_cast<int64_t>(FromOrderedFloat(word[0]));
      break;
    case Kind::kHalves:
      value = SumOfHalves(word);
      break;
    case Kind::kParts:
      if (!SumOfParts(word, &value)) *fits = false;
      break;
    case Kind::kFloatSum: {
      const vm::FloatSum sum = vm::FloatWindow::SumOf(word);
      value = static_cast<int64_t>(sum.head);
      for (int k = 0; k < vm::FloatSum::kBins; ++k) value = v.part == k + 1 ? sum.bins[k] : value;
      break;
    }
  }
  return value;
}

}  // namespace tessera::kernels
