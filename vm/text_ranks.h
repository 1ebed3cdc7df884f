// The ranks of a pool's strings in their order, so that a device can sort text as numbers.
//
// Start at: TextRanks::Update. One thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/string_pool.h"

namespace tessera::vm {

class TextRanks {
 public:
  /// Gives every string of the pool a rank. Strings added since the last call change the ranks of others. REQUIRES: no
  /// string is being added; the same pool each time.
  void Update(const StringPool& pool);
  /// By identifier: the number of strings that are less.
  const std::vector<uint32_t>& ranks() const { return ranks_; }

 private:
  struct Entry {
    uint64_t head;  ///< the first eight bytes as a big-endian number
    uint32_t id;
  };
  std::vector<Entry> sorted_;
  std::vector<uint32_t> ranks_;
};

}  // namespace tessera::vm
