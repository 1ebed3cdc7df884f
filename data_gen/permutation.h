// The numbers 0 .. n-1 in another order, computed one at a time: so that rows can be made by any thread in any order
// and a unique column needs no table of what was used.
//
// A Feistel network of four rounds permutes the numbers of an even number of bits; one that it takes beyond n goes
// through it again until it is below (cycle walking; Black and Rogaway: Ciphers with arbitrary finite domains, CT-RSA
// 2002, section 3). The domain is less than four times n, so that is less than four times on average.
//
// Start at: Permutation. Any thread.
#pragma once

#include <bit>
#include <cstdint>

#include "data_gen/random.h"

namespace tessera {

class Permutation {
 public:
  /// Of 0 .. n-1. REQUIRES: 1 <= n <= 2^62
  Permutation(uint64_t n, uint64_t seed)
      : n_(n),
        half_((n <= 1 ? 2 : std::bit_width(n - 1) + 1) / 2),
        mask_((uint64_t{1} << half_) - 1),
        seed_(MixBits(seed)) {}

  /// REQUIRES: i < n
  uint64_t operator()(uint64_t i) const {
    do {
      i = Once(i);
    } while (i >= n_);
    return i;
  }

 private:
  static constexpr uint64_t kRounds = 4;

  uint64_t Once(uint64_t i) const {
    uint64_t left = i >> half_, right = i & mask_;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (MixBits(seed_ + (round << 56) + right) & mask_);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  uint64_t n_;
  int half_;  ///< bits
  uint64_t mask_;
  uint64_t seed_;
};

}  // namespace tessera
