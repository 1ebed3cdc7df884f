// Radix partitioning: rows are brought into the order of the partitions of a join table that they probe, so that what
// is probed at a time stays within the device's cache. How the host starts it. Private to kernels/.
//
// The partition of a row decides only how fast its probe is: every answer is right. So numbers may wrap around, and no
// check is made whether a key is NULL or outside of the table.
//
// Start at: StartRadixPartition.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/launch/launch.h"

namespace tessera::kernels {

inline constexpr uint32_t kMostRadixParts = 256;
inline constexpr uint32_t kMostRadixColumns = 16;

/// The partition of a key is its number in the table if that is addressed directly, else the product whose upper bits
/// are its hash; in both cases without the lowest `shift` bits, modulo `parts`.
struct RadixKey {
  ProbeKind probe = ProbeKind::kDirect;
  uint32_t shift = 0;
  uint32_t parts = 1;  ///< a power of two, up to kMostRadixParts
};

/// A column of a source of rows.
struct alignas(16) RadixSource {
  const uint8_t* codes = nullptr;  ///< nullptr: all rows have the code 0
  uint64_t add = 0;                ///< code in the parts = code + add
  uint64_t null_code = 0;
  uint32_t width = 0;  ///< 0, 1, 2, 4, 8
  bool has_null_code = false;
  bool all_null = false;
};
/// The column in the parts.
struct RadixTarget {
  uint8_t* codes = nullptr;
  uint64_t null_code = 0;
  uint32_t width = 0;  ///< 1, 2, 4, 8
};

struct RadixPartition {
  const RadixSource* from = nullptr;     ///< [source][column]; the first ones are the keys
  const uint32_t* first_tile = nullptr;  ///< [source]: of kRadixTileRows rows
  const uint32_t* source_rows = nullptr;
  uint32_t sources = 0, columns = 0, tiles = 0, rows = 0;
  RadixKey key;
  /// The number of a row's keys = number_add + the sum of their codes in the parts * number_stride, which is 1 first.
  uint32_t keys = 1;
  uint64_t number_add = 0, number_stride[kMaxJoinKeys] = {1};
  RadixTarget to[kMostRadixColumns];
  uint32_t* next = nullptr;  ///< [kMostRadixParts]: where the next row of a part goes
  /// The tiles of the partitions are assigned round robin to the blocks of the launch that reads them: tiles that run
  /// at the same time lie beside each other. tile_places[i]: where the i-th tile in the order of the partitions is. 0
  /// blocks: all tiles are in that order.
  uint32_t blocks = 0;
  uint32_t* tile_places = nullptr;
};
inline constexpr uint32_t kRadixTileRows = 4 * kTileRows;

/// Moves the rows of all sources. Writes next and tile_places first, and zeros after the rows. REQUIRES: codes of
/// sources can be read up to a multiple of four rows, the columns have room for a multiple of sixteen.
cudaError_t StartRadixPartition(const RadixPartition& p, int multiprocessors, cudaStream_t stream);

}  // namespace tessera::kernels
