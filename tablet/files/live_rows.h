// Which rows of a tablet are live: tablets never change, so a deleted row is a bit beside its tablet. FORMAT.md gives the
// bytes in which the catalog keeps them.
//
// To readers this is a column like others, of BOOLEAN (live_tablet.h), which each scan of the table filters by first.
//
// Start at: LiveRows. Immutable; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tablet/chunk/chunk.h"

namespace tessera {

/// The bits of word `word` that stand for rows, where there are `rows`.
inline uint64_t BitsOfRows(uint64_t rows, size_t word) {
  const uint64_t left = rows - std::min<uint64_t>(rows, 64 * word);
  return left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
}

class LiveRows {
 public:
  /// `deleted`: bit row % 64 of word row / 64 is set where the row has been deleted. REQUIRES: as many words as `rows` need,
  /// no bit at or beyond `rows`.
  LiveRows(uint32_t rows, std::vector<uint64_t> deleted);
  LiveRows(const LiveRows&) = delete;
  LiveRows& operator=(const LiveRows&) = delete;

  uint32_t rows() const { return rows_; }
  uint32_t deleted() const { return deleted_rows_; }
  bool IsLive(uint32_t row) const { return (deleted_[row / 64] >> row % 64 & 1) == 0; }
  const std::vector<uint64_t>& words() const { return deleted_; }

  /// Of the words.
  uint64_t checksum() const { return checksum_; }
  /// Whether a row is live, as a column of BOOLEAN: its codes packed, one bit each.
  const Chunk& packed_chunk() const { return packed_chunk_; }
  /// ... and with a byte each; made when it is first asked for, and kept.
  const Chunk& chunk() const;

  /// The words, little endian, as a zstd frame; made when it is first asked for, and kept.
  const std::string& packed() const;
  /// nullptr if the bytes are not what packed() is for a tablet of `rows` rows of which some but not all are deleted.
  static std::shared_ptr<const LiveRows> Unpack(uint32_t rows, std::string_view packed);

 private:
  void MakePacked();

  struct alignas(128) Line {
    uint8_t bytes[128];
  };

  const uint32_t rows_;
  const std::vector<uint64_t> deleted_;
  const uint64_t checksum_;
  uint32_t deleted_rows_ = 0;
  std::vector<uint64_t>
      packed_;  ///< the packed stream: PackedHeader, PackedNode, and the words with the bits of live rows
  Chunk packed_chunk_;
  mutable std::once_flag packed_once_;
  mutable std::string frame_;
  mutable std::once_flag made_;
  mutable std::vector<Line> codes_;
  mutable Chunk chunk_;
};

}  // namespace tessera
