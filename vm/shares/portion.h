// This rank's portion of a section's source: which units it runs. Private to vm/.
//
// Start at: Portion. Any thread; it is immutable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"
#include "vm/program/tile_rows.h"
#include "vm/shares/exchange.h"
#include "vm/shares/tablet_shares.h"

namespace tessera::vm {

/// Rows that a worker takes at a time: enough that taking costs nothing, few enough that all workers finish at about
/// the same time. A multiple of kTileRows.
inline constexpr uint32_t kUnitRows = 1 << 16;

/// This many rows of the section's rows, or fewer if these have many columns: they take no more memory then. At least a
/// tile.
inline size_t RowsByWidth(size_t rows, const Section& s) {
  constexpr size_t kFewColumns = 64;
  if (s.sink == Section::Sink::kGroups || s.columns.size() <= kFewColumns) return rows;
  return std::max<size_t>(rows * kFewColumns / s.columns.size() / kTileRows, 1) * kTileRows;
}

/// A stored table is shared by tablets (vm/shares/tablet_shares.h). One with too few of them, or one that every rank has, is
/// shared by units, which are made small enough to give every rank some.
class Portion {
 public:
  /// For the stored table that a section scans. `exchange`: nullptr if this process runs alone.
  Portion(const TableInfo& table, const Section& section, const Exchange* exchange) {
    if (exchange == nullptr) return;
    if (!section.placement.spans.empty() || SharedByTablets(table, exchange->ranks(), exchange->replicate_below())) {
      by_tablets_ = true;
      for (const TabletPart& part : PartsOf(table, section, exchange->ranks())) {
        if (part.rank == exchange->rank()) parts_.push_back(part);
      }
      return;
    }
    ShareUnits(*exchange);
    const uint64_t tiles = (table.rows + kTileRows - 1) / kTileRows;
    const uint64_t tiles_each = std::clamp<uint64_t>(tiles / step_, 1, kUnitRows / kTileRows);
    unit_rows_ = static_cast<uint32_t>(tiles_each) * kTileRows;
  }
  /// For rows that every rank has. `exchange`: nullptr if this rank runs all of them.
  explicit Portion(const Exchange* exchange) {
    if (exchange != nullptr) ShareUnits(*exchange);
  }

  bool by_tablets() const { return by_tablets_; }
  /// If by tablets: those of this rank, in the order of the rows.
  const std::vector<TabletPart>& parts() const { return parts_; }
  uint32_t unit_rows() const { return unit_rows_; }
  /// If not by tablets: the first unit of this rank, and the distance from one of its units to the next.
  uint64_t first_unit() const { return first_; }
  uint64_t unit_step() const { return step_; }

 private:
  void ShareUnits(const Exchange& exchange) {
    first_ = static_cast<uint64_t>(exchange.rank());
    step_ = static_cast<uint64_t>(exchange.ranks());
  }

  bool by_tablets_ = false;
  std::vector<TabletPart> parts_;
  uint64_t first_ = 0, step_ = 1;
  uint32_t unit_rows_ = kUnitRows;
};

}  // namespace tessera::vm
