// Rows of a load that are in no tablet yet, in their order.
//
// Start at: PendingRows. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tablet/load/clustered_rows.h"
#include "tablet/values/row_batch.h"

namespace tessera {

class PendingRows {
 public:
  using Piece = ClusteredRows::Piece;

  /// Batches of few rows are collected; Flush() puts what was collected after the rest, where Take() finds it.
  void Add(RowBatch batch);
  void Add(Piece piece);
  void Flush();
  /// Without those that are collected.
  uint64_t rows() const { return rows_; }
  /// Of all batches that were added so, those that were taken too.
  uint64_t bytes() const { return bytes_; }
  /// The first `rows` rows. REQUIRES: rows() has as many.
  std::vector<Piece> Take(uint64_t rows);

 private:
  RowBatch small_;  ///< rows of small batches, collected
  std::deque<Piece> pieces_;
  uint64_t rows_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace tessera
