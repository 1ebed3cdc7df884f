// Sort keys: each row's ORDER BY values as one number, or as a few words if they need more than 64 bits. Rows are then
// compared without looking at types, NULLs, directions and strings. A column takes the bits that the range of its
// values needs. A string counts as its rank among the strings of the column, so each different string is compared only
// a few times, in however many rows it is. Private to vm/.
//
// Start at: SortKeys.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "vm/program.h"
#include "vm/string_pool.h"
#include "vm/vm.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

class SortKeys {
 public:
  /// Makes the keys of all rows. REQUIRES: fewer than 2^32 rows.
  SortKeys(const std::vector<SortKey>& order, const StringPool& strings, const RowSet& rows);

  /// Whether row a comes before row b. Of equal rows the one with the lower number comes first.
  bool Less(uint32_t a, uint32_t b) const {
    const uint64_t* x = words_.data() + a * size_t{width_};
    const uint64_t* y = words_.data() + b * size_t{width_};
    for (uint32_t w = 0; w < width_; ++w) {
      if (x[w] != y[w]) return x[w] < y[w];
    }
    return a < b;
  }
  /// The numbers of the first `count` rows in order. Uses the threads of `pool`, if not nullptr, for many rows. Errors:
  /// kResource, out of memory.
  Result<std::vector<uint32_t>> First(size_t count, ThreadPool* pool = nullptr) const;

 private:
  /// Appends a column's values, numbers from 0 to `last`, at the low end of each row's words.
  void Append(const std::vector<uint64_t>& values, uint64_t last);
  void AppendColumn(const SortKey& key, const StringPool& strings, const RowColumn& column);

  const size_t rows_;
  uint32_t width_ = 0;      ///< words of a row
  uint32_t free_bits_ = 0;  ///< of a row's last word
  std::vector<uint64_t> words_;
};

}  // namespace tessera::vm
