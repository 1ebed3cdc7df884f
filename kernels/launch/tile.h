// The shape of the machine: how many rows a thread, a warp and a block have, how many wait in a queue. Private to
// kernels/; README.md of that folder draws the machine.
//
// Start at: kTileRows.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// Rows of a queue that a thread takes at a time. Rows that filters leave wait in queues, and the rest of the program
/// takes them kBatchRows at a time.
inline constexpr uint32_t kQueuedRows = 4;
inline constexpr uint32_t kBatchRows = 32 * kQueuedRows;
/// A program can let its rows wait twice. A queue holds less than a batch when another one is added to it: a quarter of a
/// slice to the first queue, what a batch has left to the second one.
inline constexpr uint32_t kQueues = 2;
inline constexpr uint32_t kQueueRows = 2 * kBatchRows;
inline constexpr uint32_t kQueueEntries = kQueues * kQueueRows;
/// The most join tables whose cursors can wait with the rows.
inline constexpr uint32_t kMaxCarried = 8;
/// The most columns that are brought to the L2 cache ahead of rows that wait.
inline constexpr uint32_t kMaxPrefetched = 4;
/// 16 rows per thread share the cost of decoding an instruction: SSB q1.1 on an H100 takes 0.95 ms with 4, 0.57 ms with
/// 16.
inline constexpr uint32_t kRows = 16;
/// Interpreting threads of a block; the producer warp comes on top. Blocks of 128 and of 256 are equally fast; the
/// smaller tile halves what a register costs in shared memory (16 KiB).
inline constexpr uint32_t kThreads = 128;
inline constexpr uint32_t kWarps = kThreads / 32;
inline constexpr uint32_t kTileRows = kThreads * kRows;
/// Rows of a tile that belong to one warp: the unit that is applied wholly or not at all.
inline constexpr uint32_t kSliceRows = 32 * kRows;
inline constexpr uint32_t kMaxStages = 4;
/// The most rows of a warp that may still come to a sink once its producer has begun the last tile: those in queues, in the
/// ring, in the tile just begun, and in the one that is being queued; and a slice to be sure.
constexpr uint32_t RowsUnderWay(uint32_t stages) { return kQueueEntries + (stages + 3) * kSliceRows; }
inline constexpr uint32_t kNowhere = 0xFFFFFFFFu;
inline constexpr uint32_t kMaxGroupKeys = 63;  ///< one bit each in the first word of a group's record

static_assert(kTileRows == 2048,
              "tiles start at multiples of 2048 rows: only these are aligned for bulk copies at every width");

}  // namespace tessera::kernels
