#include "tablet/catalog/changed_rows.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "tablet/catalog/live_tablet.h"

namespace tessera {
namespace {

/// Marks of which the rows are live that are live in `here` (nullptr: all are) and not in `there`; nullptr: there are none.
std::shared_ptr<const LiveRows> LiveIn(uint32_t rows, const LiveRows* here, const LiveRows& there) {
  std::vector<uint64_t> deleted(there.words().size());
  for (size_t w = 0; w < deleted.size(); ++w) {
    deleted[w] = ((here != nullptr ? here->words()[w] : 0) | ~there.words()[w]) & BitsOfRows(rows, w);
  }
  auto live = std::make_shared<const LiveRows>(rows, std::move(deleted));
  return live->deleted() < rows ? live : nullptr;
}

}  // namespace

std::shared_ptr<const TableInfo> RowsNotIn(const TableInfo& table, const TableInfo* other) {
  std::unordered_map<const Tablet*, const Tablet*> known;
  if (other != nullptr) {
    for (const auto& tablet : other->tablets) known[WithoutMarks(tablet).get()] = tablet.get();
  }
  auto out = std::make_shared<TableInfo>(WithoutTablets(table));
  out->schema.distribute_by.clear();
  std::vector<std::shared_ptr<const LiveRows>> live;
  for (const auto& tablet : table.tablets) {
    const std::shared_ptr<const Tablet> stored = WithoutMarks(tablet);
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
