#include "tablet/files/live_rows.h"

#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>

#include "tablet/chunk/tablet_format.h"

namespace tessera {

LiveRows::LiveRows(uint32_t rows, std::vector<uint64_t> deleted)
    : rows_(rows),
      deleted_(std::move(deleted)),
      checksum_(XXH3_64bits(deleted_.data(), deleted_.size() * sizeof(uint64_t))) {
  for (const uint64_t word : deleted_) deleted_rows_ += static_cast<uint32_t>(std::popcount(word));
}

const Chunk& LiveRows::chunk() const {
  std::call_once(made_, [&] {
    Chunk& c = chunk_;
    c.type = SqlType::Of(TypeId::kBoolean);
    c.rows = rows_;
    c.min = deleted_rows_ == 0 ? 1 : 0;
    c.max = deleted_rows_ == rows_ ? 0 : 1;
    c.base = c.min;
    if (c.min == c.max) return;
    codes_.resize(AlignToStream(rows_) / sizeof(Line));
    uint8_t* const codes = codes_[0].bytes;
    for (uint32_t row = 0; row < rows_; ++row) codes[row] = IsLive(row) ? 1 : 0;
    c.encoding = Encoding::kFrame;
    c.width = 1;
    c.codes = codes;
    c.codes_bytes = AlignToStream(rows_);
    c.encoded_bytes = c.codes_bytes;
  });
  return chunk_;
}

std::string LiveRows::Pack() const {
  static_assert(std::endian::native == std::endian::little);
  const size_t bytes = deleted_.size() * sizeof(uint64_t);
  std::string packed(ZSTD_compressBound(bytes), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), deleted_.data(), bytes, 1));
  return packed;
}

std::shared_ptr<const LiveRows> LiveRows::Unpack(uint32_t rows, std::string_view packed) {
  std::vector<uint64_t> deleted((uint64_t{rows} + 63) / 64);
  const size_t bytes = deleted.size() * sizeof(uint64_t);
  if (ZSTD_decompress(deleted.data(), bytes, packed.data(), packed.size()) != bytes) return nullptr;
  if (rows % 64 != 0 && deleted.back() >> rows % 64 != 0) return nullptr;
  auto live = std::make_shared<const LiveRows>(rows, std::move(deleted));
  return live->deleted() == 0 || live->deleted() == rows ? nullptr : live;
}

}  // namespace tessera
