#include "vm/sinks/top_rows.h"

#include <algorithm>

#include "vm/rows/row_set.h"
#include "vm/rows/sorted_rows.h"

namespace tessera::vm {
namespace {

/// The number of a unit's rows that starts the first cut.
constexpr size_t kCutAt = 8192;

}  // namespace

TopRows::TopRows(const Section& section, const SectionTraits& traits) : section_(section) {
  keep_ = static_cast<size_t>(TopRowsOf(section));
  if (keep_ == 0) return;
  const StorageClass storage = section.columns[column()].storage();
  is_float_ = storage == StorageClass::kFloat;
  is_text_ = storage == StorageClass::kText;
  has_bound_ = is_float_ || is_text_ || storage == StorageClass::kInt;
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
  RowsAfter best = WithoutOffset(section_.after);
  best.limit = static_cast<int64_t>(keep_);
  TESSERA_TRY(OrderAndLimit(best, strings, nullptr, rows));
  const RowColumn& c = rows->columns[has_bound_ ? column() : 0];
  if (!has_bound_ || (!c.null.empty() && c.null[keep_ - 1] != 0)) return Status::Ok();
  const int64_t last = c.low[keep_ - 1];
  const uint64_t code = is_text_ ? Code(strings.Get(last)) : Code(last);
  uint64_t before = bound();
  while (code < before && !bound_.compare_exchange_weak(before, code, std::memory_order_relaxed)) {
  }
  return Status::Ok();
}

}  // namespace tessera::vm
