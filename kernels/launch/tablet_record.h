// The encoding of a tablet as the VM kernel sees it, and what the producer tells the interpreters. Private to kernels/.
// Plain data, compiled by g++ and nvcc; pointers are device pointers.
//
// Start at: SlotRecord, PredicateRecord.
#pragma once

#include <cstdint>

#include "kernels/launch/tile.h"
#include "vm/encode/tablet_encoding.h"

namespace tessera::kernels {

/// SlotHead::width, if the codes are a stream of bits: this, and how many each has, 1 to 32. Rows of queues alone read those.
inline constexpr uint32_t kOfBits = 64, kMostBits = 32;

/// vm::SlotEncoding with device pointers. The head is what most instructions need: one load of 16 bytes.
struct alignas(16) SlotHead {
  const uint8_t* codes = nullptr;
  uint32_t stage = kNowhere;  ///< byte offset in a stage of the ring; kNowhere: read on demand
  uint8_t width = 0;
  vm::Decode decode = vm::Decode::kConstant;
  bool may_be_null = false;
  bool all_null = false;
};
struct alignas(16) SlotRecord {
  SlotHead head;
  uint64_t base = 0;
  int64_t base_high = 0;
  uint64_t null_code = 0;  ///< of slots that are not wide: base + the NULL code
  int64_t null_code_high = 0;
  const int64_t* map = nullptr;  ///< Decode::kRaw: the upper halves of a wide slot's values
  const uint8_t* map_null = nullptr;
  const uint8_t* null_bytes = nullptr;
  bool has_null_code = false;
};
static_assert(sizeof(SlotRecord) == 80);

enum class PredicateKind : uint8_t { kAll, kNone, kRange, kSet };

/// vm::PredicateEncoding, complete in itself. A set by row and a test of NULL bytes are ranges over a stream of bytes
/// here. Ranges of 1 and 2 bytes do not wrap around: the host has turned those that would into the negation of what
/// they leave out.
struct alignas(16) PredicateHead {
  const uint8_t* codes = nullptr;
  uint32_t stage = kNowhere;
  uint8_t width = 0;
  PredicateKind kind = PredicateKind::kAll;
  bool negated = false;
  bool exclude_null = false;
};
struct alignas(16) PredicateRecord {
  PredicateHead head;
  uint64_t low = 0, span = 0;
  uint64_t low_high = 0, span_high = 0;  ///< width 16
  uint64_t null_code = 0;
  int64_t null_code_high = 0;
  const uint8_t* set = nullptr;
  uint64_t unused = 0;
};
static_assert(sizeof(PredicateRecord) == 80);

/// A Probe whose key is a column slot, for one tablet. kRange: the codes of a staged column of 1, 2 or 4 bytes without
/// NULLs become hash slots of a direct table by adding `delta`, modulo 2^32. Otherwise the key is fetched as a value.
struct alignas(16) ProbeRecord {
  PredicateHead head;
  uint32_t delta = 0;
  bool is_inside = false;  ///< all keys of the tablet are in the table's range
  uint8_t unused[11] = {};
};

/// A column of the ring.
struct StagedSlot {
  uint32_t slot;
  uint32_t offset;  ///< in a stage
};

/// What the producer says about a stage. rows == 0: there is no tile, the launch ends here.
struct alignas(16) TileHeader {
  uint32_t index;  ///< number of the tile, or of the first unit of a grid, in the launch
  uint32_t tablet;
  uint32_t first;  ///< row of the tablet
  uint32_t rows;
};
/// ... and about units of a grid that are run as one: a tile, and adjacent ranges of the join table.
struct alignas(8) UnitHeader {
  uint32_t part;  ///< the first one
  uint32_t count : 31;
  uint32_t all : 1;  ///< all pairs pass the program's filters
};
/// In LaunchGrid::units: all pairs of the unit pass.
inline constexpr uint32_t kAllPairs = 1u << 31;

/// What a warp keeps in shared memory instead of registers, because it needs it at most once a tile.
struct alignas(16) WarpState {
  unsigned long long rows_at = 0;              ///< second pass: where the next rows go
  unsigned long long rows_counted = 0;         ///< first pass: rows that are going to be emitted
  uint32_t next = 0;                           ///< the first tile that the warp has not applied
  uint32_t tablet = 0;                         ///< whose rows are queued
  uint32_t fed = 0;                            ///< rows that went to groups in this slice
  uint32_t slice_rows = 0;                     ///< of the tile whose slice is queued; 0: at the end
  unsigned long long marked_at = 0;            ///< the clock at its latest mark
  uint32_t slice_tablet = 0, slice_first = 0;  ///< ... as in its TileHeader
};
/// A point of a program that is measured: the rows that came there, and the cycles since the mark before it.
struct alignas(16) Mark {
  unsigned long long rows = 0, cycles = 0;  ///< sums over all warps
};

}  // namespace tessera::kernels
