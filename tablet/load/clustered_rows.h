// The rows of a load in the order of WITH (cluster_by = ...): runs that are sorted one by one, and merged at the end.
//
// Decoded rows of a large load take more than memory. They are kept in a few large vectors a run, which lie in temporary
// files near the memory limit (base/memory_budget.h), and both steps use them from front to back.
//
// Rows that are equal in the columns keep the order in which they came. NULLs are last; texts are compared by bytes.
//
// Start at: ClusteredRows. One thread at a time, but Sort: any thread, of different runs at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tablet/values/row_batch.h"

namespace tessera {

class ClusteredRows {
 public:
  /// Decoded rows of a run. A run is also full when a column of eight bytes a row fills a large block.
  static constexpr uint64_t kRunBytes = uint64_t{64} << 20;

  struct Run {
    std::shared_ptr<RowBatch> batch;
    size_t next = 0;  ///< the first row that the merge has not taken
  };
  /// Rows of one run that follow each other in the order of all.
  struct Piece {
    std::shared_ptr<const RowBatch> batch;
    size_t begin = 0;
    size_t rows = 0;
  };

  /// `columns`: numbers of those to sort by, at least one. `run_bytes` is for tests.
  explicit ClusteredRows(std::vector<int> columns, uint64_t run_bytes = kRunBytes);

  uint64_t rows() const { return rows_; }
  /// Adds rows to the last run. A run that became full is returned, and has to be sorted before the merge.
  std::shared_ptr<RowBatch> Add(const RowBatch& batch);
  /// No more rows come: the last run, to be sorted; nullptr if there is none.
  std::shared_ptr<RowBatch> End();
  /// Puts a run's rows in order.
  void Sort(RowBatch* run) const;
  /// The next `rows` rows of all, or what is left; `of_one`: only those that are equal in the first column, which then has
  /// class I and no NULLs. REQUIRES: End() was called, every run is sorted.
  std::vector<Piece> Take(size_t rows, bool of_one = false);

 private:
  bool Less(const Run& a, const Run& b) const;

  const std::vector<size_t> columns_;
  const uint64_t run_bytes_;
  uint64_t rows_ = 0;
  std::shared_ptr<RowBatch> open_;
  uint64_t open_bytes_ = 0;
  size_t rows_of_full_ = 0;   ///< of the last run that became full; 0: none did
  std::vector<Run> runs_;     ///< in the order in which they came
  std::vector<size_t> heap_;  ///< numbers of runs with rows left; the one with the least row is in front
  bool merging_ = false;
};

/// Bytes of the batch's values.
uint64_t BytesOf(const RowBatch& batch);

}  // namespace tessera
