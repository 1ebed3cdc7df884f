#include "tablet/files/part_tablet.h"

#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/tablet_format.h"

namespace tessera {

struct PartTablet::Part {
  tessera::Chunk chunk;
  ChunkPointer whole;  ///< has what `chunk` points to
};

uint64_t PartTablet::weight() const {
  return static_cast<uint64_t>(static_cast<double>(of_.weight()) * rows_ / of_.rows());
}

Result<ChunkPointer> PartTablet::Chunk(int column) const {
  TESSERA_ASSIGN(ChunkPointer whole, of_.Chunk(column));
  std::lock_guard lock(mutex_);
  Known& known = known_[column];
  std::shared_ptr<Part> part = known.part.lock();
  if (part != nullptr && part->whole == whole) return ChunkPointer(part, &part->chunk);
  if (!known.has_count) {
    known.nulls = CountNulls(*whole);
    known.has_count = true;
  }
  part = std::make_shared<Part>();
  tessera::Chunk& chunk = part->chunk;
  chunk = *whole;
  chunk.rows = rows_;
  chunk.null_count = known.nulls;
  chunk.has_nulls = known.nulls > 0;
  chunk.packed_codes = nullptr;
  chunk.packed_bytes = 0;
  const uint64_t before = uint64_t{first_} * chunk.width;
  if (chunk.codes != nullptr) chunk.codes += before;
  if (chunk.width != 0) chunk.codes_bytes = AlignToStream(uint64_t{rows_} * chunk.width);
  if (chunk.null_bytes != nullptr) chunk.null_bytes = chunk.has_nulls ? chunk.null_bytes + first_ : nullptr;
  if (chunk.encoding == Encoding::kPlain) {
    chunk.entries = rows_;
    chunk.entry_offsets += first_;
    chunk.text_bytes = chunk.entry_offsets[rows_];
  }
  chunk.encoded_bytes = static_cast<uint64_t>(static_cast<double>(whole->encoded_bytes) * rows_ / whole->rows);
  part->whole = std::move(whole);
  known.part = part;
  return ChunkPointer(part, &chunk);
}

uint32_t PartTablet::CountNulls(const tessera::Chunk& whole) const {
  if (whole.null_count == 0) return 0;
  if (whole.null_count == whole.rows) return rows_;
  uint32_t nulls = 0;
  for (uint32_t row = first_; row < first_ + rows_; ++row) nulls += IsNullAt(whole, row) ? 1 : 0;
  return nulls;
}

const Tablet* TabletParts::Find(const Tablet& of, uint32_t first, uint32_t rows) const {
  std::lock_guard lock(mutex_);
  std::unique_ptr<const PartTablet>& part = parts_[{first, rows}];
  if (part == nullptr) part = std::make_unique<const PartTablet>(of, first, rows);
  return part.get();
}

}  // namespace tessera
