#include "tablet/load/pending_rows.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tessera {
namespace {

/// Smaller batches are collected into one of this many rows: kept one by one they would take kilobytes a row.
constexpr size_t kSmallBatchRows = 4096;

}  // namespace

void PendingRows::Add(RowBatch batch) {
  if (batch.rows < kSmallBatchRows) {
    if (small_.columns.empty()) {
      small_ = std::move(batch);
    } else {
      for (size_t c = 0; c < small_.columns.size(); ++c) small_.columns[c].AppendAll(batch.columns[c]);
      small_.rows += batch.rows;
    }
    if (small_.rows >= kSmallBatchRows) Flush();
    return;
  }
  Flush();
  const size_t rows = batch.rows;
  bytes_ += BytesOf(batch);
  Add({std::make_shared<const RowBatch>(std::move(batch)), 0, rows});
}

void PendingRows::Add(Piece piece) {
  rows_ += piece.rows;
  pieces_.push_back(std::move(piece));
}

void PendingRows::Flush() {
  if (small_.rows == 0) return;
  const size_t rows = small_.rows;
  bytes_ += BytesOf(small_);
  Add({std::make_shared<const RowBatch>(std::exchange(small_, {})), 0, rows});
}

std::vector<PendingRows::Piece> PendingRows::Take(uint64_t rows) {
  std::vector<Piece> taken;
  rows_ -= rows;
  while (rows > 0) {
    Piece& front = pieces_.front();
    const size_t some = std::min<size_t>(front.rows, rows);
    taken.push_back({front.batch, front.begin, some});
    front.begin += some;
    front.rows -= some;
    rows -= some;
    if (front.rows == 0) pieces_.pop_front();
  }
  return taken;
}

}  // namespace tessera
