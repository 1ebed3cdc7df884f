// Rows of a column vector to an encoded chunk: chooses the encoding and the least width, writes the streams.
//
// Start at: EncodeChunk. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tablet/chunk/distinct_count.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// `rows` rows of a column vector from `begin` on. A tablet is made of the pieces in which its rows arrived, so that
/// they are never copied together first.
struct ColumnPiece {
  const ColumnVector* column = nullptr;
  size_t begin = 0;
  size_t rows = 0;
};

struct EncodedChunk {
  ChunkDescriptor descriptor{};  ///< stream offsets from 0, the start of `streams`; no checksum yet
  std::vector<uint8_t> streams;  ///< padded
  DistinctCount distinct;        ///< of the values that are not NULL
};

/// REQUIRES: 1 to kGreatestTabletRows rows in all, vectors of the storage class of `type`.
/// REAL values must be singles (they are rounded to it). Any NaN becomes the canonical one.
/// `counts`: whether `distinct` is wanted, which takes half of the time of numbers.
EncodedChunk EncodeChunk(const SqlType& type, std::span<const ColumnPiece> pieces, bool counts = true);

inline constexpr uint32_t kNullEntry = UINT32_MAX;

/// Texts that rows have by their numbers, kNullEntry for NULL: `entries` may have one several times, and some that no row has.
/// REQUIRES: as above; numbers of entries.
EncodedChunk EncodeNumberedTexts(const SqlType& type, const ColumnVector& entries, std::span<const uint32_t> numbers);

}  // namespace tessera
