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
#include "base/uninitialized.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

class SortKeys {
 public:
  /// Makes the keys of all rows. Uses the threads of `pool`, if not nullptr, for many rows, here and later. REQUIRES:
  /// fewer than 2^32 rows. Errors: kResource, out of memory.
  static Result<SortKeys> Make(const std::vector<SortKey>& order, const StringPool& strings, const RowSet& rows,
                               ThreadPool* pool = nullptr);

  /// Whether row a comes before row b. Of equal rows the one with the lower number comes first.
  bool Less(uint32_t a, uint32_t b) const {
    const uint64_t* x = words_.data() + a * size_t{width_};
    const uint64_t* y = words_.data() + b * size_t{width_};
    for (uint32_t w = 0; w < width_; ++w) {
      if (x[w] != y[w]) return x[w] < y[w];
    }
    return a < b;
  }
  /// The numbers of the first `count` rows in order. Errors: kResource, out of memory.
  Result<UninitializedVector<uint32_t>> First(size_t count) const;

 private:
  SortKeys(size_t rows, ThreadPool* pool) : rows_(rows), pool_(pool) {}

  /// Calls f(part, begin, end) for parts of the rows, by threads if there are many rows.
  template <class F>
  Status ForParts(const F& f) const;
  size_t Parts() const;
  /// This many bits at the low end of each row's words, in one of them.
  Status MakeRoom(uint32_t bits);
  /// Appends value(i) of each row i, from 0 to `last`.
  template <class F>
  Status Append(uint64_t last, const F& value);
  /// Appends a column whose values are in the order of number(i), which is asked for rows that are not NULL.
  template <class F>
  Status AppendNumbers(const SortKey& key, const RowColumn& column, bool with_nulls, const F& number);
  Status AppendColumn(const SortKey& key, const StringPool& strings, const RowColumn& column);

  size_t rows_;
  ThreadPool* pool_;
  uint32_t width_ = 0;      ///< words of a row
  uint32_t free_bits_ = 0;  ///< of a row's last word
  UninitializedVector<uint64_t> words_;
};

}  // namespace tessera::vm
