#include "tablet/catalog/pack_marks.h"

#include <algorithm>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tablet/files/live_rows.h"

namespace tessera {
namespace {

constexpr unsigned kGreatestThreads = 16;

}  // namespace

std::unique_ptr<ThreadPool> ThreadsOfMarks() {
  return std::make_unique<ThreadPool>(
      static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, kGreatestThreads)));
}

Status PackMarks(const CatalogContents& before, const CatalogContents& after) {
  std::unordered_set<const LiveRows*> known;
  std::vector<const LiveRows*> made;
  uint64_t rows = 0;
  for (const auto& table : after.tables) {
    const auto at = std::ranges::find(before.tables, table->id, [](const auto& t) { return t->id; });
    if (at != before.tables.end() && *at == table) continue;
    known.clear();
    if (at != before.tables.end()) {
      for (const TabletRecord& tablet : (*at)->tablets) known.insert(tablet.live.get());
    }
    for (const TabletRecord& tablet : table->tablets) {
      if (tablet.live == nullptr || known.contains(tablet.live.get())) continue;
      made.push_back(tablet.live.get());
      rows += tablet.rows;
    }
  }
  if (rows <= kMarksOfOneThread) return {};
  return ForEach(ThreadsOfMarks().get(), made.size(), [&](size_t i) -> Status {
    (void)made[i]->packed();
    return {};
  });
}

}  // namespace tessera
