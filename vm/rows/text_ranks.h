// The ranks of a pool's strings in their order, so that a device can sort text as numbers.
//
// Start at: TextRanks::Update. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

/// The numbers of texts, which are all different, in their order. The threads of `threads`, which may be nullptr, share many.
Result<std::vector<uint32_t>> OrderOf(std::span<const std::string_view> texts, ThreadPool* threads);

class TextRanks {
 public:
  /// Gives every string of the pool a rank. Strings added since the last call change the ranks of others. REQUIRES: no
  /// string is being added; the same pool each time. `threads`: as of OrderOf.
  Status Update(const StringPool& pool, ThreadPool* threads);
  /// By identifier: the number of strings that are less.
  const std::vector<uint32_t>& ranks() const { return ranks_; }

 private:
  std::vector<uint32_t> sorted_;  ///< identifiers
  std::vector<uint32_t> ranks_;
};

}  // namespace tessera::vm
