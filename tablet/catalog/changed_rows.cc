#include "tablet/catalog/changed_rows.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "tablet/catalog/live_tablet.h"

namespace tessera {
namespace {

/// The tablet as it is stored, without marks.
std::shared_ptr<const Tablet> Stored(const std::shared_ptr<const Tablet>& tablet) {
  std::shared_ptr<const Tablet> unmarked = tablet->unmarked();
  return unmarked != nullptr ? unmarked : tablet;
}

/// Marks of which the rows are live that are live in `here` (nullptr: all are) and not in `there`; nullptr: there are none.
std::shared_ptr<const LiveRows> LiveIn(uint32_t rows, const LiveRows* here, const LiveRows& there) {
  std::vector<uint64_t> deleted(there.words().size());
  for (size_t w = 0; w < deleted.size(); ++w) {
    const uint64_t bits = w + 1 < deleted.size() || rows % 64 == 0 ? ~uint64_t{0} : (uint64_t{1} << rows % 64) - 1;
    deleted[w] = ((here != nullptr ? here->words()[w] : 0) | ~there.words()[w]) & bits;
  }
  auto live = std::make_shared<const LiveRows>(rows, std::move(deleted));
  return live->deleted() < rows ? live : nullptr;
}

}  // namespace

std::shared_ptr<const TableInfo> RowsNotIn(const TableInfo& table, const TableInfo* other) {
  std::unordered_map<const Tablet*, const Tablet*> known;
  if (other != nullptr) {
    for (const auto& tablet : other->tablets) known[Stored(tablet).get()] = tablet.get();
  }
  auto out = std::make_shared<TableInfo>(table);
  out->tablets.clear();
  out->buckets.clear();
  out->schema.distribute_by.clear();
  out->statistics.resize(table.schema.columns.size());
  out->live_column = -1;
  out->stored_rows = 0;
  std::vector<std::shared_ptr<const LiveRows>> live;
  for (const auto& tablet : table.tablets) {
    const std::shared_ptr<const Tablet> stored = Stored(tablet);
    const auto at = known.find(stored.get());
    std::shared_ptr<const LiveRows> rows;
    if (at == known.end()) {
      // (The marks live as long as the tablet that has them.)
      if (tablet->live() != nullptr) rows = std::shared_ptr<const LiveRows>(tablet, tablet->live());
    } else {
      if (at->second->live() == nullptr) continue;
      rows = LiveIn(stored->rows(), tablet->live(), *at->second->live());
      if (rows == nullptr) continue;
    }
    out->tablets.push_back(stored);
    out->stored_rows += stored->rows();
    live.push_back(std::move(rows));
  }
  MarkLive(live, out.get());
  return out;
}

}  // namespace tessera
