// When keys have enough rows of an exchanged join that the rank of a key would get much more than its share. Private to
// the interpreters (vm/ and kernels/).
//
// Start at: HeavyCount. Pure functions; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera::vm {

/// Keys are heavy from this fraction of a rank's share on: with smaller ones no rank gets much more than its share.
inline constexpr uint64_t kHeavyFraction = 4;
/// With fewer rows nothing is gained.
inline constexpr uint64_t kLeastHeavyRows = 8;

/// Rows from which on a key, or keys that are counted together, are heavy among `all` rows of this many ranks.
inline uint64_t HeavyFrom(uint64_t all, uint64_t ranks) {
  return std::max(kLeastHeavyRows, all / ranks / kHeavyFraction);
}

/// How many rows there are of a key, or of keys that are counted together.
struct HeavyCount {
  uint64_t rows = 0, most = 0;  ///< over all ranks, and on the one with the most

  void Add(uint64_t of_rank) {
    rows += of_rank;
    most = std::max(most, of_rank);
  }
  /// Rows that every rank has about as many of may stay where they are.
  bool MayStay(uint64_t ranks) const {
    const uint64_t mean = rows / ranks;
    return most <= mean + mean / 2;
  }
};

}  // namespace tessera::vm
