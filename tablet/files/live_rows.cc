#include "tablet/files/live_rows.h"

#include <zstd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>

#include "tablet/chunk/tablet_format.h"
#include "tablet/schemes/bit_packing.h"
#include "tablet/schemes/packed_stream.h"

namespace tessera {
namespace {

/// Words of a packed stream of one node before its payload.
constexpr size_t kStreamHead = (sizeof(PackedHeader) + sizeof(PackedNode)) / sizeof(uint64_t);

}  // namespace

LiveRows::LiveRows(uint32_t rows, std::vector<uint64_t> deleted)
    : rows_(rows),
      deleted_(std::move(deleted)),
      checksum_(XXH3_64bits(deleted_.data(), deleted_.size() * sizeof(uint64_t))) {
  for (const uint64_t word : deleted_) deleted_rows_ += static_cast<uint32_t>(std::popcount(word));
  MakePacked();
}

void LiveRows::MakePacked() {
  Chunk& c = packed_chunk_;
  c.type = SqlType::Of(TypeId::kBoolean);
  c.rows = rows_;
  c.min = deleted_rows_ == 0 ? 1 : 0;
  c.max = deleted_rows_ == rows_ ? 0 : 1;
  c.base = c.min;
  if (c.min == c.max) return;
  PackedNode node{};
  node.scheme = static_cast<uint8_t>(Scheme::kNs);
  node.bits = 1;
  node.values = rows_;
  node.offset = kStreamHead * sizeof(uint64_t);
  node.bytes = deleted_.size() * sizeof(uint64_t);
  const PackedHeader header{.nodes = 1, .reserved = 0, .bytes = node.offset + node.bytes};
  packed_.resize(kStreamHead + deleted_.size());
  std::memcpy(packed_.data(), &header, sizeof header);
  std::memcpy(packed_.data() + sizeof header / sizeof(uint64_t), &node, sizeof node);
  for (size_t w = 0; w < deleted_.size(); ++w) packed_[kStreamHead + w] = ~deleted_[w];
  // (No bits after the last row.)
  if (rows_ % 64 != 0) packed_.back() &= (uint64_t{1} << rows_ % 64) - 1;
  c.encoding = Encoding::kFrame;
  c.width = 1;
  c.codes_bytes = AlignToStream(rows_);
  c.packed_codes = reinterpret_cast<const uint8_t*>(packed_.data());
  c.packed_bytes = header.bytes;
  c.encoded_bytes = header.bytes;
}

const Chunk& LiveRows::chunk() const {
  if (packed_chunk_.width == 0) return packed_chunk_;
  std::call_once(made_, [&] {
    Chunk& c = chunk_;
    c = packed_chunk_;
    c.packed_codes = nullptr;
    c.packed_bytes = 0;
    codes_.resize(AlignToStream(rows_) / sizeof(Line));
    uint8_t* const codes = codes_[0].bytes;
    UnpackBits(reinterpret_cast<const uint8_t*>(packed_.data() + kStreamHead), rows_, 1, 0, codes);
    c.codes = codes;
    c.encoded_bytes = c.codes_bytes;
  });
  return chunk_;
}

const std::string& LiveRows::packed() const {
  static_assert(std::endian::native == std::endian::little);
  std::call_once(packed_once_, [&] {
    const size_t bytes = deleted_.size() * sizeof(uint64_t);
    std::string frame(ZSTD_compressBound(bytes), '\0');
    frame.resize(ZSTD_compress(frame.data(), frame.size(), deleted_.data(), bytes, 1));
    frame.shrink_to_fit();
    frame_ = std::move(frame);
  });
  return frame_;
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
