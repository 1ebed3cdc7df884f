// A chunk: one column of one tablet, as it is stored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {

/// How a chunk (one column of one tablet) is stored. A *code* is what the stream holds for a row.
enum class Encoding : uint8_t {
  kConstant,    ///< every row has the same value (or every row is NULL); no stream, width 0
  kFrame,       ///< frame of reference: value = base + code (modulo 2^64; floats through OrderedFloat, reals through
                ///< OrderedFloat32)
  kDictionary,  ///< TEXT: code = index into the chunk's own dictionary, sorted by bytes, without duplicates
  kPlain,       ///< TEXT, nearly unique: no code stream, the code of a row is its row number; entries in row order
};

/// Which part of a packed stream codes are.
enum class PackedPart : uint8_t {
  kAll,
  kRunValues,   ///< the stream is of runs: the value of each
  kRunLengths,  ///< ... and its rows less 1
};

/// A verified, decoded-on-the-fly view of one chunk. Streams start on 128 bytes and are zero-padded to 128, so that a
/// bulk copy of a last partial tile may be rounded up inside the padding. Pointers live as long as the Tablet.
struct alignas(64) Chunk {
  // First what all readers of tablets look at, in two cache lines: a scan of many tablets waits for memory here.
  SqlType type;
  Encoding encoding = Encoding::kConstant;
  uint8_t width =
      0;  ///< bytes a code: 1, 2, 4 or 8; 16 for DECIMAL of 19+ digits where 64-bit codes cannot; 0 without stream
  bool has_nulls = false;
  bool codes_are_rows = false;  ///< the code of a row is its number in the tablet
  bool packed_entries = false;  ///< entries or NULL bytes are packed, and what points to them is not to be read
  PackedPart packed_part = PackedPart::kAll;
  uint32_t rows = 0;
  uint32_t null_count = 0;
  uint32_t entries = 0;  ///< TEXT: dictionary entries (kDictionary), rows (kPlain), 1 or 0 (kConstant)
  int128_t base = 0;     ///< kFrame: value = base + code; kConstant: the value (its integer or ordered form)
  /// Least and greatest value that is not NULL: kInt and kWide the integer, kFloat the ordered form, kText codes of the
  /// dictionary (0 and entries - 1; for kPlain not meaningful). min > max if every row is NULL.
  int128_t min = 0, max = -1;
  const uint8_t* codes = nullptr;         ///< rows codes of `width` bytes, little endian; nullptr if width is 0
  uint64_t codes_bytes = 0;               ///< with padding, unpacked
  const uint8_t* packed_codes = nullptr;  ///< if they are stored packed: the packed stream (schemes/packed_stream.h)
  /// kPlain with NULLs: one byte a row, 1 for NULL (its entry is empty); else nullptr.
  const uint8_t* null_bytes = nullptr;
  uint64_t null_code = 0;  ///< the code that means NULL if has_nulls and width is 1..8; kConstant: all rows are NULL
  uint64_t encoded_bytes = 0;  ///< of all streams, as stored

  int128_t null_code_wide = 0;              ///< as null_code, for width 16
  uint64_t packed_bytes = 0;                ///< of packed_codes
  uint32_t packed_rows = 0;                 ///< of runs: their rows
  const uint64_t* entry_offsets = nullptr;  ///< TEXT: entries + 1 offsets into entry_bytes
  const char* entry_bytes = nullptr;
  uint64_t text_bytes = 0;  ///< TEXT: bytes of all entries
  /// TEXT: bytes of the longest entry, or more; known once the chunk's streams were verified.
  uint64_t longest_entry = UINT64_MAX;

  /// Entry `code` of a TEXT chunk. REQUIRES: code < entries.
  /// (Offsets were in order when they were verified, but may turn into zeros: see file_mapping.h.)
  std::string_view Entry(uint32_t code) const {
    const uint64_t begin = entry_offsets[code], end = entry_offsets[code + 1];
    return begin <= end && end <= text_bytes ? std::string_view(entry_bytes + begin, end - begin) : std::string_view();
  }
  /// The greatest code that is not NULL. REQUIRES: width is 1 .. 8.
  uint64_t GreatestCode() const {
    return encoding == Encoding::kDictionary ? entries - 1 : static_cast<uint64_t>(max) - static_cast<uint64_t>(min);
  }
};

/// A chunk, and what it was unpacked to, if it was: that may go when the last pointer does. Otherwise the chunk lives as
/// long as the tablet.
using ChunkPointer = std::shared_ptr<const Chunk>;

/// How a chunk is stored, for people.
struct ChunkStorage {
  std::string schemes;        ///< "FOR, NS7", "DICT, [ZSTD | NS8]"
  uint64_t plain_bytes = 0;   ///< of its streams, as compression none stores them
  uint64_t stored_bytes = 0;  ///< of them as they are
  uint64_t nulls = 0;
  Value min, max;  ///< NULL if every row is, and for nearly unique texts
};

}  // namespace tessera
