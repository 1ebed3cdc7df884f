// The different values of a stream, numbered in ascending order: what a dictionary is made of. Any thread, one at a time.
//
// Start at: DifferentValues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tablet/schemes/packed_node.h"

namespace tessera {

/// Values that lie close to each other are bits of a map, others slots of a hash table. (Sorting the values would take most
/// of the time of the caller.)
class DifferentValues {
 public:
  /// `most`: nothing but whether there are more than that has to be known; it is enough to find this many.
  explicit DifferentValues(std::span<const uint64_t> values, size_t most = SIZE_MAX);

  /// How many there are, or more than `most`.
  size_t size() const { return count_; }

  /// The different values in ascending order. REQUIRES: no more than `most`.
  Values Sort();
  /// The number of each value in that order. REQUIRES: Sort() was called, and `values` are among those at construction.
  Values NumbersOf(std::span<const uint64_t> values) const;

 private:
  struct Slot {
    uint64_t value;
    uint32_t number;
    bool used;
  };

  bool IsMapped() const { return slots_.empty(); }
  void Map(std::span<const uint64_t> values, uint64_t words);
  void Hash(std::span<const uint64_t> values, size_t most);
  void Grow();
  size_t Find(uint64_t value) const;

  uint64_t least_ = 0;
  std::vector<uint64_t> map_;     ///< bit v - least_ says that v is there
  std::vector<uint32_t> before_;  ///< by word of the map: values in the words before it
  std::vector<Slot> slots_;
  int shift_ = 0;  ///< leaves as many upper bits of a hash as slots need
  size_t count_ = 0;
};

}  // namespace tessera
