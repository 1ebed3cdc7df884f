// The bytes of a tablet file, as FORMAT.md beside this file specifies them. Little endian throughout.
//
// Start at: TabletHeader, ChunkDescriptor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/int128.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/types.h"

namespace tessera {

static_assert(std::endian::native == std::endian::little, "tablet files are read in place");

inline constexpr uint64_t kTabletMagic = 0x0A54454C42415454u;  // the bytes "TTABLET\n"
/// Of files without packed streams, and of others. Programs before compression read the former.
inline constexpr uint32_t kTabletVersion = 1, kPackedTabletVersion = 2;
/// Streams start on this many bytes and are zero-padded to it, so that a bulk copy may be rounded up.
inline constexpr uint64_t kStreamAlignment = 128;
inline constexpr uint32_t kGreatestTabletRows = 1u << 20;
/// Columns of a table, at most.
inline constexpr size_t kGreatestColumns = 4096;

constexpr uint64_t AlignToStream(uint64_t bytes) { return (bytes + kStreamAlignment - 1) & ~(kStreamAlignment - 1); }

/// First bytes of a tablet file; `columns` ChunkDescriptors follow, then zeros up to header_bytes.
struct TabletHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t columns;
  uint8_t database[16];  ///< the database's random identifier: a file of another database is not taken for ours
  int64_t table_id;
  int64_t tablet_id;
  uint64_t header_bytes;  ///< of this struct, the descriptors and padding to kStreamAlignment
  uint64_t file_bytes;
  uint32_t rows;
  uint8_t reserved[52];  ///< 0
  uint64_t checksum;     ///< XXH3-64 of the first header_bytes bytes with this field 0
};
static_assert(sizeof(TabletHeader) == 128);
static_assert(offsetof(TabletHeader, checksum) == 120);

/// Streams of a chunk, in the order in which they are stored. A stream that an encoding has not has 0 bytes.
enum Stream : int { kCodes, kEntryOffsets, kEntryBytes, kNullBytes, kStreams };

struct StreamExtent {
  uint64_t offset;  ///< in the file; a multiple of kStreamAlignment, also if `bytes` is 0
  uint64_t bytes;   ///< without padding
};

struct ChunkDescriptor {
  uint8_t type;  ///< TypeId
  uint8_t precision;
  uint8_t scale;
  uint8_t encoding;   ///< Encoding
  uint8_t width;      ///< bytes a code
  uint8_t has_nulls;  ///< 0 or 1
  uint16_t packed;    ///< version 2: bit s says that stream s is packed; else 0
  int32_t length;     ///< VARCHAR(length)
  uint32_t null_count;
  uint32_t entries;
  uint32_t reserved1;  ///< 0
  uint64_t null_code;
  int128_t null_code_wide;
  int128_t base;
  int128_t min;
  int128_t max;
  StreamExtent streams[kStreams];
  uint64_t bytes;        ///< of all streams with padding; they lie one after the other from streams[0].offset
  uint64_t checksum;     ///< XXH3-64 of these bytes
  uint64_t text_bytes;   ///< of entry_bytes unpacked, if these are packed; else 0
  uint8_t reserved2[8];  ///< 0
};
static_assert(sizeof(ChunkDescriptor) == 192);
static_assert(offsetof(ChunkDescriptor, null_code_wide) == 32);
static_assert(offsetof(ChunkDescriptor, streams) == 96);
static_assert(offsetof(ChunkDescriptor, checksum) == 168);

// The numbers of these enumerations are in files.
static_assert(static_cast<int>(TypeId::kBoolean) == 1 && static_cast<int>(TypeId::kText) == 10);
static_assert(static_cast<int>(Encoding::kConstant) == 0 && static_cast<int>(Encoding::kPlain) == 3);

inline bool IsPacked(const ChunkDescriptor& d, Stream s) { return (d.packed >> s & 1) != 0; }

/// Why a descriptor cannot be right; nullptr if it can. `version`: the file's. `file_bytes` bounds the streams, which
/// must start at `offset`.
const char* CheckDescriptor(const ChunkDescriptor& descriptor, const SqlType& type, uint32_t version, uint32_t rows,
                            uint64_t offset, uint64_t file_bytes);

/// The chunk that a descriptor describes; `file` is where offset 0 of its streams lies. Packed streams are as they lie
/// there: UnpackChunk() comes next. REQUIRES: CheckDescriptor().
Chunk ViewChunk(const ChunkDescriptor& descriptor, uint32_t rows, const uint8_t* file);

/// Why the bytes of a chunk's streams are not those that were written; nullptr if they are.
const char* CheckChecksum(const ChunkDescriptor& descriptor, const uint8_t* file);
/// Why the streams of a chunk, unpacked, contradict its descriptor (a code without meaning, offsets out of order, a wrong
/// NULL count); nullptr if they do not. Reads every byte of them; sets the chunk's longest_entry.
const char* CheckContents(Chunk* chunk);
/// The same of its texts alone, and of all but those.
const char* CheckTexts(Chunk* chunk);
const char* CheckCodes(const Chunk& chunk);

}  // namespace tessera
