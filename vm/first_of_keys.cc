#include "vm/first_of_keys.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "vm/row_order.h"
#include "vm/row_set.h"

namespace tessera::vm {
namespace {

/// Rows of a unit that start a cut. Fewer hide how often a key comes back, and the table of more outgrows the caches.
constexpr size_t kCutAt = 8192;

/// Whether equal values have equal bits.
bool IsPlain(const SqlType& type) { return type.storage() != StorageClass::kFloat && type.id != TypeId::kInterval; }

bool IsNull(const RowColumn& c, size_t row) { return !c.null.empty() && c.null[row] != 0; }

uint64_t HashOf(std::span<const RowColumn> keys, size_t row) {
  uint64_t hash = kHashSeed;
  for (const RowColumn& c : keys) {
    const bool null = IsNull(c, row);
    hash = HashWord(hash, null ? -1 : c.low[row]);
    if (!null && !c.high.empty()) hash = HashWord(hash, c.high[row]);
  }
  return hash;
}

bool AreEqual(std::span<const RowColumn> keys, size_t a, size_t b) {
  return std::all_of(keys.begin(), keys.end(), [&](const RowColumn& c) {
    if (IsNull(c, a) || IsNull(c, b)) return IsNull(c, a) && IsNull(c, b);
    return c.low[a] == c.low[b] && (c.high.empty() || c.high[a] == c.high[b]);
  });
}

/// Leaves the rows whose numbers `kept` gives, which rise.
void KeepRows(std::span<const uint32_t> kept, RowSet* rows) {
  const auto keep = [&](auto* values) {
    if (values->empty()) return;
    for (size_t i = 0; i < kept.size(); ++i) (*values)[i] = (*values)[kept[i]];
    values->resize(kept.size());
  };
  for (RowColumn& c : rows->columns) {
    keep(&c.low);
    keep(&c.high);
    keep(&c.null);
  }
  rows->rows = kept.size();
}

}  // namespace

FirstOfKeys::FirstOfKeys(const Section& section) : section_(section) {
  const auto keys = std::span(section.columns).first(static_cast<size_t>(section.keys));
  cuts_ = section.fold == Section::Fold::kFirst && !keys.empty() && std::all_of(keys.begin(), keys.end(), IsPlain);
}

void FirstOfKeys::Cut(bool end, const StringPool& strings, RowSet* rows) {
  if (!cuts_.load(std::memory_order_relaxed) || rows->rows == 0 || (!end && rows->rows < kCutAt)) return;
  const auto keys = static_cast<size_t>(section_.keys);
  const auto key_columns = std::span<const RowColumn>(rows->columns).first(keys);
  const RowLess less(std::span(section_.order).subspan(keys), strings, *rows);
  constexpr uint32_t kEmpty = UINT32_MAX;
  const size_t mask = std::bit_ceil(2 * rows->rows) - 1;
  std::vector<uint32_t> places(mask + 1, kEmpty), first;  // numbers in `first`, which has the best row of each key
  for (uint32_t row = 0; row < rows->rows; ++row) {
    size_t at = HashOf(key_columns, row) & mask;
    while (places[at] != kEmpty && !AreEqual(key_columns, first[places[at]], row)) at = (at + 1) & mask;
    if (places[at] == kEmpty) {
      places[at] = static_cast<uint32_t>(first.size());
      first.push_back(row);
    } else if (less(row, first[places[at]])) {
      first[places[at]] = row;
    }
  }
  if (rows->rows >= kCutAt && first.size() > rows->rows / 2) cuts_.store(false, std::memory_order_relaxed);
  std::sort(first.begin(), first.end());
  KeepRows(first, rows);
}

}  // namespace tessera::vm
