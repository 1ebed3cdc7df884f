// Rows on the device that a section can read, and whether rows that it makes stay there. Private to kernels/.
//
// Start at: RowSource.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/plan/join_shape.h"
#include "kernels/rows/device_rows.h"
#include "kernels/rows/pack_rows.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// No more rows than one launch takes stay.
inline constexpr uint64_t kMostKeptRows = uint64_t{1} << 31;
/// Whether that many rows stay, if there is room for them.
inline bool Stay(const vm::SectionContext& context, uint64_t rows) {
  return rows > 0 && rows >= context.keep_from && rows <= kMostKeptRows;
}

/// Rows that a section can read: where their columns are, and what is known of these.
struct RowSource {
  uint64_t rows = 0;
  std::vector<PayloadShape> columns;
  RowColumns at = {};
  /// Where they are packed, their memory; nullptr: the columns are at the addresses in `columns`.
  const uint8_t* packed_at = nullptr;
  PackedRows packed = {};
};

}  // namespace tessera::kernels
