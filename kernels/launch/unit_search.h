// The search for the units of a grid that can hold a match: what the host hands over and what the search counts. A unit
// is a tile of the outer rows and a range of the inner ones. Private to kernels/. Plain data, compiled by g++ and nvcc;
// pointers are device pointers.
//
// Start at: UnitSearch.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "vm/encode/pair_ranges.h"

namespace tessera::kernels {

/// What a column's 64 bits are.
enum class RangeKind : uint8_t { kUnknown, kInteger, kFloat };
inline constexpr uint32_t kMaxRangeColumns = 32;  ///< nothing is known of the columns after them

/// Rows cut into pieces of `piece_rows`, the last one shorter.
struct PieceRanges {
  uint32_t rows = 0, piece_rows = 1;
  uint32_t columns = 0;
  RangeKind kinds[kMaxRangeColumns] = {};
  vm::KnownRange* ranges = nullptr;  ///< [piece][columns]

  TESSERA_HD uint32_t pieces() const { return rows / piece_rows + (rows % piece_rows != 0 ? 1 : 0); }
};

/// What a search for units has found.
struct UnitTotals {
  unsigned long long pairs;  ///< of rows, in the units
  uint32_t count;            ///< of units
  uint32_t child_grids;      ///< dp: launched from the device
};

struct UnitSearch {
  const vm::RangeStep* steps = nullptr;
  int32_t count = 0;
  bool may_skip = false;  ///< units all of whose pairs pass are marked so
  PieceRanges outer, inner;
  uint32_t* units = nullptr;     ///< as LaunchGrid::units; nullptr: they are only counted
  UnitTotals* totals = nullptr;  ///< cleared
};

}  // namespace tessera::kernels
