#include "vm/sinks/first_of_keys.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/interrupt.h"
#include "vm/rows/row_keys.h"
#include "vm/rows/row_order.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {
namespace {

/// Rows of a unit that start a cut. Fewer hide how often a key comes back, and the table of more outgrows the caches.
constexpr size_t kCutAt = 8192;

}  // namespace

FirstOfKeys::FirstOfKeys(const Section& section) : section_(section) {
  const auto keys = std::span(section.columns).first(static_cast<size_t>(section.keys));
  cuts_ = section.after.fold.kind == Section::Fold::kFirst && !keys.empty() &&
          std::all_of(keys.begin(), keys.end(), [](const SqlType& type) { return IsPlainKey(type); });
}

void FirstOfKeys::Cut(bool end, const StringPool& strings, RowSet* rows) {
  if (!cuts_.load(std::memory_order_relaxed) || rows->rows == 0 || rows->rows > UINT32_MAX ||
      (!end && rows->rows < kCutAt)) {
    return;
  }
  const auto keys = static_cast<size_t>(section_.keys);
  const auto key_columns = std::span<const RowColumn>(rows->columns).first(keys);
  const RowLess less(std::span(section_.after.order).subspan(keys), strings, *rows);
  RowsByKey groups(key_columns, rows->rows);
  std::vector<uint32_t>& first = groups.rows();
  for (size_t i = 0; i < rows->rows; ++i) {
    ThrowIfInterrupted(i);
    const auto row = static_cast<uint32_t>(i);
    uint32_t& best = first[groups.Find(row)];
    if (less(row, best)) best = row;
  }
  if (rows->rows >= kCutAt && first.size() > rows->rows / 2) cuts_.store(false, std::memory_order_relaxed);
  std::sort(first.begin(), first.end(), InterruptibleLess(std::less<>()));
  KeepRows(first, rows);
}

}  // namespace tessera::vm
