// Estimates how many distinct values a column has, mergeable over tablets and loads.
//
// Up to 1024 distinct values the count is exact: the set holds their 64-bit hashes. Above, it becomes a HyperLogLog
// sketch of 2^12 registers (Flajolet et al., 2007), standard error 1.6 %, with the estimator of O. Ertl, "New
// cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithms 5 and 6 (no bias tables, good at any
// size). FORMAT.md gives the serialised form.
//
// Start at: DistinctCount::Add. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/int128.h"

namespace tessera {

/// The hash under which a value is counted; part of the file format.
uint64_t HashInteger(uint64_t value);
uint64_t HashWide(int128_t value);
uint64_t HashBytes(std::string_view value);

class DistinctCount {
 public:
  /// Counts a value's hash. Cheap when the value was seen before.
  void Add(uint64_t hash) {
    if (registers_.empty()) {
      AddExact(hash);
    } else {
      AddToRegisters(hash);
    }
  }
  void Merge(const DistinctCount& other);
  uint64_t Estimate() const;

  std::string Serialize() const;
  /// False if `bytes` is not what Serialize() wrote.
  bool Deserialize(std::string_view bytes);

 private:
  void AddExact(uint64_t hash);
  void AddToRegisters(uint64_t hash);
  void Convert();

  std::vector<uint64_t> slots_;  ///< open addressing, 0 is free; empty until the first value
  uint32_t used_ = 0;
  bool has_zero_ = false;           ///< the hash 0 was added
  std::vector<uint8_t> registers_;  ///< empty while the count is exact
};

}  // namespace tessera
