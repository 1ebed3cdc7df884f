#include "kernels/run/row_tablet.h"

#include <cstdint>
#include <utility>

namespace tessera::kernels {

const int64_t* RowTablet::ReadPacked(size_t column, Chunk* chunk, vm::SlotEncoding* b) const {
  const PackedColumn& packed = rows_->packed.column(column);
  b->codes = packed.width == 0 ? nullptr : rows_->packed_at + packed.at;
  b->null_bytes = packed.has_null_bytes ? rows_->packed_at + packed.null_at : nullptr;
  if (b->wide) return reinterpret_cast<const int64_t*>(rows_->packed_at + (&packed)[1].at);
  b->decode = packed.width == 0 ? vm::Decode::kConstant : vm::Decode::kFrame;
  b->width = packed.width;
  b->base = packed.base;
  b->has_null_code = packed.has_null_code && packed.width > 0;
  b->all_null = packed.has_null_code && packed.width == 0;
  b->null_code = packed.null_code;
  chunk->encoding = packed.width == 0 ? Encoding::kConstant : Encoding::kFrame;
  chunk->width = packed.width;
  chunk->base = static_cast<int64_t>(packed.base);
  chunk->null_code = packed.null_code;
  chunk->null_count = b->all_null ? chunk->rows : b->has_null_code ? 1 : 0;  // (there are some)
  return nullptr;
}

void RowTablet::AddTo(TabletBatch* batch) {
  if (rows_->rows == 0) return;
  vm::TabletEncoding encoded;
  encoded.rows = static_cast<uint32_t>(rows_->rows);
  chunks_.resize(section_.slots.size());
  for (size_t i = 0; i < section_.slots.size(); ++i) {
    const vm::Slot& slot = section_.slots[i];
    const PayloadShape& column = rows_->columns[static_cast<size_t>(slot.column)];
    Chunk& chunk = chunks_[i];
    chunk = {};
    chunk.type = slot.type;
    chunk.width = 8;
    chunk.rows = encoded.rows;
    chunk.min = column.low;
    chunk.max = column.high;
    encoded.chunks.emplace_back(ChunkPointer(), &chunk);
    vm::SlotEncoding b;
    b.decode = vm::Decode::kRaw;
    b.width = 8;
    b.wide = column.wide;
    b.codes = reinterpret_cast<const uint8_t*>(column.column);
    b.null_bytes = reinterpret_cast<const uint8_t*>(column.nulls);
    auto high = reinterpret_cast<const int64_t*>(column.column_high);
    if (rows_->packed_at != nullptr) high = ReadPacked(static_cast<size_t>(slot.column), &chunk, &b);
    encoded.slots.push_back(b);
    batch->codes.push_back(b.codes);
    batch->nulls.push_back(b.null_bytes);
    batch->highs.push_back(high);
  }
  batch->numbers.push_back(0);
  batch->tablets.push_back(std::move(encoded));
}

}  // namespace tessera::kernels
