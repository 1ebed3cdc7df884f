#include "tablet/files/made_tablet.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/memory_budget.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/chunk/stored_range.h"
#include "tablet/chunk/tablet_format.h"

namespace tessera {
namespace {

std::string NumberedPath(const std::string& path) {
  static std::atomic<uint64_t> last{0};
  return path + " (" + std::to_string(++last) + ")";
}

/// The chunk before it is made: its codes are not to be looked at.
Chunk Described(const ColumnBounds& known, const SqlType& type, uint32_t rows) {
  Chunk chunk;
  chunk.type = type;
  chunk.rows = rows;
  chunk.has_nulls = known.null_count != 0;
  // (One row whose NULL is not known must not look like a column of NULLs.)
  chunk.null_count = known.null_count >= 0 ? static_cast<uint32_t>(known.null_count) : rows > 1 ? 1 : 0;
  chunk.encoded_bytes = known.bytes;
  if (known.null_count == int64_t{rows}) return chunk;
  if (type.storage() == StorageClass::kText) {
    chunk.encoding = Encoding::kPlain;
    chunk.entries = rows;
    chunk.max = int128_t{rows} - 1;
    return chunk;
  }
  const StoredRange all = StoredRangeOf(type);
  chunk.encoding = Encoding::kFrame;
  chunk.width = 8;
  chunk.min = chunk.base = known.has_range ? known.min : all.least;
  chunk.max = known.has_range ? known.max : all.greatest;
  return chunk;
}

}  // namespace

MadeTablet::MadeTablet(const std::string& path, uint32_t rows, std::vector<SqlType> types,
                       std::vector<ColumnBounds> bounds)
    : rows_(rows), path_(NumberedPath(path)), columns_(types.size()) {
  for (size_t c = 0; c < columns_.size(); ++c) {
    columns_[c].bounds = bounds[c];
    columns_[c].described = Described(bounds[c], types[c], rows_);
  }
}

MadeTablet::~MadeTablet() {
  for (const Column& column : columns_) ForgetUnpacked(column.made.lock());
}

Result<ChunkPointer> MadeTablet::Chunk(int column) const {
  const Column& c = columns_[static_cast<size_t>(column)];
  std::lock_guard lock(c.mutex);
  std::shared_ptr<UnpackedChunk> made = c.made.lock();
  if (made == nullptr) {
    TESSERA_ASSIGN(made, Make(column));
    c.made = made;
  }
  KeepUnpacked(made);
  return ChunkPointer(made, &made->chunk);
}

Result<ChunkPointer> MadeTablet::Describe(int column) const {
  const Column& c = columns_[static_cast<size_t>(column)];
  return ChunkPointer(ChunkPointer(), &c.described);
}

Result<std::shared_ptr<UnpackedChunk>> MadeTablet::MakeOfCodes(int column) const {
  const ColumnBounds& known = bounds(column);
  const bool can =
      known.has_range && known.null_count == 0 && known.min < known.max && type(column).storage() == StorageClass::kInt;
  if (!can) return std::shared_ptr<UnpackedChunk>();
  const auto span = static_cast<uint64_t>(known.max - known.min);
  const int width = span <= UINT8_MAX ? 1 : span <= UINT16_MAX ? 2 : span <= UINT32_MAX ? 4 : 8;
  const uint64_t bytes = uint64_t{rows_} * static_cast<uint64_t>(width), room = AlignToStream(bytes);
  auto made = std::make_shared<UnpackedChunk>(room, tessera::Chunk(), weak_from_this(), column);
  uint8_t* const codes = made->streams.get();
  TESSERA_ASSIGN(const bool all, Codes(column, width, codes));
  if (!all) return std::shared_ptr<UnpackedChunk>();
  memset(codes + bytes, 0, room - bytes);
  tessera::Chunk& chunk = made->chunk;
  chunk.type = type(column);
  chunk.encoding = Encoding::kFrame;
  chunk.width = static_cast<uint8_t>(width);
  chunk.rows = rows_;
  chunk.base = chunk.min = known.min;
  chunk.max = known.max;
  chunk.codes = codes;
  chunk.codes_bytes = chunk.encoded_bytes = room;
  return made;
}

Result<std::shared_ptr<UnpackedChunk>> MadeTablet::Make(int column) const {
  const MemoryPurpose purpose("columns of files");
  TESSERA_ASSIGN(std::shared_ptr<UnpackedChunk> of_codes, MakeOfCodes(column));
  if (of_codes != nullptr) return of_codes;
  TESSERA_ASSIGN(const MadeColumn values, Values(column));
  const ColumnPiece piece{&values.values, 0, rows_};
  const EncodedChunk encoded = values.is_numbered ? EncodeNumberedTexts(type(column), values.values, values.numbers)
                                                  : EncodeChunk(type(column), {&piece, 1}, false);
  const auto made = std::make_shared<UnpackedChunk>(std::max<size_t>(encoded.streams.size(), kStreamAlignment),
                                                    tessera::Chunk(), weak_from_this(), column);
  if (!encoded.streams.empty()) memcpy(made->streams.get(), encoded.streams.data(), encoded.streams.size());
  made->chunk = ViewChunk(encoded.descriptor, rows_, made->streams.get());
  (void)CheckTexts(&made->chunk);  // for the length of the longest
  const ColumnBounds& known = bounds(column);
  const tessera::Chunk& chunk = made->chunk;
  const bool in_range = !known.has_range || chunk.min > chunk.max || (chunk.min >= known.min && chunk.max <= known.max);
  if (in_range && (known.null_count < 0 || int64_t{chunk.null_count} == known.null_count)) return made;
  return OutOfBounds(column);
}

}  // namespace tessera
