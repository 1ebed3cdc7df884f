// This rank's portion of a section's source: which units it runs. Private to vm/.
//
// Start at: Portion. Any thread; it is immutable.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tablet/tablet.h"
#include "vm/tile_machine.h"
#include "vm/vm.h"

namespace tessera::vm {

/// Rows that a worker takes at a time: enough that taking costs nothing, few enough that all workers finish at about
/// the same time. A multiple of kTileRows.
inline constexpr uint32_t kUnitRows = 1 << 16;

/// Tablets are assigned round robin, so that each is read by one rank. A table with too few tablets for that, or one
/// that every rank has, is shared by units, which are made small enough to give every rank some.
class Portion {
 public:
  /// For a stored table. `exchange`: nullptr if this process runs alone.
  Portion(const TableInfo& table, const Exchange* exchange) {
    if (exchange == nullptr) return;
    rank_ = static_cast<uint64_t>(exchange->rank());
    ranks_ = static_cast<uint64_t>(exchange->ranks());
    by_tablet_ = SharedByTablets(table, exchange->ranks(), exchange->replicate_below());
    if (by_tablet_) return;
    const uint64_t tiles = (table.rows + kTileRows - 1) / kTileRows;
    const uint64_t tiles_each = std::clamp<uint64_t>(tiles / ranks_, 1, kUnitRows / kTileRows);
    unit_rows_ = static_cast<uint32_t>(tiles_each) * kTileRows;
  }
  /// For rows that every rank has. `exchange`: nullptr if this rank runs all of them.
  explicit Portion(const Exchange* exchange) : by_tablet_(exchange == nullptr) {
    if (exchange == nullptr) return;
    rank_ = static_cast<uint64_t>(exchange->rank());
    ranks_ = static_cast<uint64_t>(exchange->ranks());
  }

  bool by_tablet() const { return by_tablet_; }
  bool HasTablet(size_t tablet) const { return !by_tablet_ || tablet % ranks_ == rank_; }
  uint32_t unit_rows() const { return unit_rows_; }
  /// If not by tablet: the first unit of this rank, and the distance from one of its units to the next.
  uint64_t first_unit() const { return by_tablet_ ? 0 : rank_; }
  uint64_t unit_step() const { return by_tablet_ ? 1 : ranks_; }

 private:
  uint64_t rank_ = 0, ranks_ = 1;
  bool by_tablet_ = true;
  uint32_t unit_rows_ = kUnitRows;
};

}  // namespace tessera::vm
