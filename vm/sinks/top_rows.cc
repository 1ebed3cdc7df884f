#include "vm/sinks/top_rows.h"

#include <algorithm>

#include "vm/rows/row_set.h"
#include "vm/rows/sorted_rows.h"

namespace tessera::vm {
namespace {

/// The greatest OFFSET + LIMIT for which rows are cut, and the number of a unit's rows that starts the first cut. With
/// more rows, sorting twice costs more than it saves.
constexpr uint64_t kMostKept = 4096;
constexpr size_t kCutAt = 8192;

}  // namespace

TopRows::TopRows(const Section& section, const SectionTraits& traits) : section_(section) {
  if (section.sink != Section::Sink::kRows || section.order.empty()) return;
  const bool one = section.fold == Section::Fold::kFirst && section.keys == 0;
  if (!one && section.limit <= 0) return;
  const uint64_t keep = one ? 1 : static_cast<uint64_t>(section.limit) + static_cast<uint64_t>(section.offset);
  if (keep > kMostKept) return;
  keep_ = static_cast<size_t>(keep);
  const StorageClass storage = section.columns[column()].storage();
  is_float_ = storage == StorageClass::kFloat;
  has_bound_ = is_float_ || storage == StorageClass::kInt;
  if (section.source_kind == Section::Source::kTable && storage == StorageClass::kInt && traits.only_filters)
    slot_ = traits.SlotOf(column());
  if (slot_ >= 0 && section.slots[static_cast<size_t>(slot_)].map >= 0) slot_ = -1;
}

bool TopRows::LeavesOut(const TabletEncoding& tablet) const {
  if (slot_ < 0 || bound() == UINT64_MAX) return false;
  const Chunk& chunk = *tablet.chunks[static_cast<size_t>(slot_)];
  if (chunk.min > chunk.max || (keeps_nulls() && chunk.null_count > 0)) return false;
  return Code(static_cast<int64_t>(descends() ? chunk.max : chunk.min)) > bound();
}

Status TopRows::Cut(bool end, const StringPool& strings, RowSet* rows) {
  if (!active() || rows->rows <= keep_ || (!end && rows->rows < kCutAt)) return Status::Ok();
  Section best = WithoutOffset(section_);
  best.limit = static_cast<int64_t>(keep_);
  TESSERA_TRY(OrderAndLimit(best, strings, nullptr, rows));
  const RowColumn& c = rows->columns[has_bound_ ? column() : 0];
  if (!has_bound_ || (!c.null.empty() && c.null[keep_ - 1] != 0)) return Status::Ok();
  const uint64_t code = Code(c.low[keep_ - 1]);
  uint64_t before = bound();
  while (code < before && !bound_.compare_exchange_weak(before, code, std::memory_order_relaxed)) {
  }
  return Status::Ok();
}

}  // namespace tessera::vm
