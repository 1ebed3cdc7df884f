#include "tablet/catalog/table_of_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/chunk/tablet_format.h"

namespace tessera {
namespace {

class TabletOfRows final : public Tablet {
 public:
  explicit TabletOfRows(uint32_t rows) : rows_(rows), path_("rows of a statement " + std::to_string(++number)) {}

  uint32_t rows() const override { return rows_; }
  Result<tessera::ChunkPointer> Chunk(int column) const override {
    return ChunkPointer(ChunkPointer(), &chunks_[static_cast<size_t>(column)]);
  }
  std::string path() const override { return path_; }

  const tessera::Chunk& Add(const EncodedChunk& encoded) {
    const size_t bytes = std::max<size_t>(encoded.streams.size(), kStreamAlignment);
    Streams streams(new (std::align_val_t{kStreamAlignment}) uint8_t[bytes]);
    if (!encoded.streams.empty()) memcpy(streams.get(), encoded.streams.data(), encoded.streams.size());
    tessera::Chunk& chunk = chunks_.emplace_back(ViewChunk(encoded.descriptor, rows_, streams.get()));
    (void)CheckTexts(&chunk);  // for the length of the longest
    streams_.push_back(std::move(streams));
    return chunk;
  }

 private:
  struct Free {
    void operator()(uint8_t* p) const { ::operator delete[](p, std::align_val_t{kStreamAlignment}); }
  };
  using Streams = std::unique_ptr<uint8_t[], Free>;

  static inline std::atomic<uint64_t> number{0};  // a device tells tablets apart
  const uint32_t rows_;
  const std::string path_;
  std::vector<tessera::Chunk> chunks_;
  std::vector<Streams> streams_;
};

void Count(const Chunk& chunk, ColumnStatistics* s) {
  s->null_count += chunk.null_count;
  s->encoded_bytes += chunk.encoded_bytes;
  if (chunk.type.storage() == StorageClass::kText || chunk.null_count == chunk.rows) return;
  s->min = s->has_range ? std::min(s->min, chunk.min) : chunk.min;
  s->max = s->has_range ? std::max(s->max, chunk.max) : chunk.max;
  s->has_range = true;
}

/// Rows [begin, begin + rows) of the batches.
std::vector<ColumnPiece> PiecesOf(std::span<const RowBatch> batches, size_t column, size_t begin, size_t rows) {
  std::vector<ColumnPiece> pieces;
  for (const RowBatch& batch : batches) {
    if (begin >= batch.rows) {
      begin -= batch.rows;
      continue;
    }
    const size_t taken = std::min(rows, batch.rows - begin);
    if (taken > 0) pieces.push_back({&batch.columns[column], begin, taken});
    rows -= taken;
    begin = 0;
  }
  return pieces;
}

}  // namespace

Status FillTable(std::span<const RowBatch> batches, TableInfo* table) {
  size_t all = 0;
  for (const RowBatch& batch : batches) all += batch.rows;
  const std::vector<ColumnSchema>& columns = table->schema.columns;
  table->rows = table->stored_rows = all;
  table->statistics.assign(columns.size(), {});
  std::vector<DistinctCount> distinct(columns.size());
  for (size_t begin = 0; begin < all; begin += kGreatestTabletRows) {
    const size_t rows = std::min<size_t>(all - begin, kGreatestTabletRows);
    auto tablet = std::make_shared<TabletOfRows>(static_cast<uint32_t>(rows));
    for (size_t c = 0; c < columns.size(); ++c) {
      ThrowIfInterrupted();
      const EncodedChunk encoded = EncodeChunk(columns[c].type, PiecesOf(batches, c, begin, rows));
      Count(tablet->Add(encoded), &table->statistics[c]);
      distinct[c].Merge(encoded.distinct);
    }
    table->tablets.push_back(std::move(tablet));
  }
  for (size_t c = 0; c < columns.size(); ++c)
    table->statistics[c].distinct = std::min(distinct[c].Estimate(), all - table->statistics[c].null_count);
  return {};
}

}  // namespace tessera
