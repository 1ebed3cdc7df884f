// A join table, as the VM kernel sees it. Private to kernels/. Plain data, compiled by g++ and nvcc; pointers are
// device pointers.
//
// Start at: JoinRecord.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/launch/tile.h"

namespace tessera::kernels {

/// The most keys of a join that make one number, and that the device can probe with at all.
inline constexpr uint32_t kMaxJoinKeys = 4, kMaxHashedKeys = 8;

/// Added to the offset of cursors that have 2 bytes: of a direct table whose values have no more, where the program has queues.
inline constexpr uint32_t kShortCursors = 1;

/// How a key becomes a value of the join table.
enum class ProbeKind : uint8_t {
  kNestedLoop,  ///< no key: each row matches all of the table's
  kBits,        ///< direct: one bit a slot says that there is a match, and nothing is read of it
  kDirect,      ///< direct: one value of `width` bytes a slot; 0: no match
  kHash32,      ///< open addressing, linear probing: slots of {key, value}, four bytes each; value 0: free
  kHash64,      ///< the same with {key, value, unused} of 8 + 4 + 4 bytes
};

/// A join table as the kernel sees it. Keys make one number, the sum of (key - low) * stride over the key columns.
/// Direct tables are indexed by it, hashed ones have it as their key. Keys that need more than 64 bits are hashed to
/// their number. Then `values` has a place for each number of the table, no two keys of the table have the same one, and
/// keys that probe are compared with those of the row that is found. The value of a match becomes the row's cursor: it
/// is the payload itself, packed into bit fields, or 1 + the number of the first matching row, whose number is then the
/// cursor.
struct alignas(16) JoinRecord {
  ProbeKind probe = ProbeKind::kBits;
  uint8_t width = 0;            ///< kDirect: 1, 2 or 4
  bool rows_in_values = false;  ///< cursors are numbers of rows
  uint8_t keys = 0;
  uint32_t rows = 0;
  uint32_t shared_bits = kNowhere;  ///< offset in shared memory of the block's copy of `bits`
  uint32_t bits_bytes = 0;          ///< multiple of 16
  const uint32_t* bits = nullptr;   ///< one bit a slot; nullptr if values are asked at once
  const void* values = nullptr;
  /// Offset in shared memory: uint32_t[kTileRows]; kNestedLoop: NestedLoopCursor[kThreads]; kNowhere: they are not
  /// read. With kShortCursors uint16_t[kTileRows].
  uint32_t cursors = kNowhere;
  uint32_t queue_cursors = kNowhere;  ///< the same for queued rows: [warps][queues.entries]
  uint32_t slot_shift = 0;            ///< hashed: 32 or 64 less the binary logarithm of the number of slots
  uint32_t slot_mask = 0;             ///< ... that number less 1
  uint16_t hashed = 0;                ///< 1: the number is the hash of the keys, from `low[0]` on
  /// A part of a tile meets every 1 << match_bits-th match of a row, from the one on whose number is in these bits of the
  /// part's number, `match_shift` from its last.
  uint8_t match_bits = 0, match_shift = 0;
  uint32_t columns = 0;  ///< ... of the table's rows, which begin with the keys
  const uint32_t* next =
      nullptr;        ///< per row 1 + the next one with the same key, 0 at the end; nullptr: keys are unique
  uint64_t last = 0;  ///< the greatest number that keys of the table make
  int64_t low[kMaxJoinKeys] = {};
  uint64_t span[kMaxJoinKeys] = {};  ///< greatest key - low
  uint64_t stride[kMaxJoinKeys] = {};
  const int64_t* row_columns = nullptr;  ///< hashed: the rows, see RowColumns::low; 64-bit columns, then upper halves
  uint64_t row_capacity = 0;
};
static_assert(sizeof(JoinRecord) % 16 == 0);

/// The rows of a table without keys that a warp's rows have still to be paired with, beginning with the current one.
/// All live rows are at the same one; each thread has its own copy.
struct NestedLoopCursor {
  uint32_t row, end;
};

/// One step of the hash that is the number of keys, over a word of a key: a wide one has its lower half first.
TESSERA_HD uint64_t AddToKeyNumber(uint64_t number, uint64_t word) {
  number = (number ^ word) * 0xD6E8FEB86659FD93u;
  return number ^ number >> 32;
}

/// Where a hashed key's search begins.
TESSERA_HD uint32_t JoinSlot32(uint32_t key, uint32_t shift) { return (key * 0x9E3779B1u) >> shift; }
TESSERA_HD uint64_t JoinProduct64(uint64_t key) {
  // Keys may differ in their upper bits only, as doubles do: these have to move down before the product spreads them.
  return (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
}
TESSERA_HD uint32_t JoinSlot64(uint64_t key, uint32_t shift) {
  return static_cast<uint32_t>(JoinProduct64(key) >> shift);
}
/// The hash slot of a step of the search: first, one after the other, those of the 32-byte sector where it begins
/// (memory is read by sectors), then those of the sectors after it.
template <class Slot>
TESSERA_HD uint32_t JoinSlotOfStep(uint32_t home, uint32_t step, uint32_t mask) {
  constexpr uint32_t kInSector = 32 / sizeof(Slot) - 1;
  return ((home & ~kInSector) + (step & ~kInSector) + ((home + step) & kInSector)) & mask;
}

}  // namespace tessera::kernels
