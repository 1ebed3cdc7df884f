// Tablets of which many rows have been deleted, and runs of small ones, become new ones within a load's commit.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "tablet/load/table_load.h"

namespace tessera {
namespace {

/// More are encoded by several threads.
constexpr uint64_t kRowsOfOneThread = 1u << 16;
constexpr unsigned kGreatestThreads = 8;

Status RunTasks(TabletCutter* tablets, std::vector<std::string>* unsynced) {
  tablets->EndOfRows();
  if (tablets->rows_added() <= kRowsOfOneThread) return tablets->Finish(unsynced);
  ThreadPool pool(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, kGreatestThreads)));
  TESSERA_TRY(pool.Run(pool.threads(), [&](int) {
    while (tablets->RunTask()) {
    }
    return Status::Ok();
  }));
  return tablets->Finish(unsynced);
}

}  // namespace

Status TableLoad::CompactRange(const TabletRange& range, std::vector<std::string>* unsynced) {
  TabletTarget target = this->target();
  target.first_tablet_id += static_cast<int64_t>(tablets_cut() + adopted_.tablets + compacted_.tablets);
  auto tablets = std::make_unique<TabletCutter>(std::move(target), table_->schema, tablet_rows_, cancel_);
  std::vector<Moved> moved;
  for (size_t t = range.begin; t < range.end; ++t) {
    if (!kept_[t]) continue;
    const std::shared_ptr<const Tablet> file = FileOf(*table_, table_->tablets[t]);
    TESSERA_ASSIGN(RowBatch batch, LiveRowsIn(t, *file));
    TESSERA_TRY(file->Intact());
    moved.push_back({t, LiveOf(t), tablets->rows_added()});
    TESSERA_TRY(tablets->Add(std::move(batch)));
  }
  TESSERA_TRY(RunTasks(tablets.get(), unsynced));
  compacted_.tablets += tablets->made().records.size();
  compacted_.parts.push_back({range, std::move(tablets), std::move(moved)});
  return {};
}

Status TableLoad::Compact(std::vector<std::string>* unsynced) {
  if (keeps_tablets_) return {};
  std::vector<TabletFill> fill;
  for (size_t t = 0; t < kept_.size(); ++t) {
    const TabletRecord& record = table_->tablets[t];
    const std::shared_ptr<const LiveRows> live = LiveOf(t);
    const uint32_t deleted = live != nullptr ? live->deleted() : 0;
    fill.push_back(
        {record.rows, kept_[t] ? record.rows - deleted : 0, record.live != nullptr ? record.live->deleted() : 0});
  }
  for (const TabletRange& range : RangesToCompact(fill, tablet_rows_, rows_loaded(), !IsDistributed())) {
    // (Without room on the disk or in memory the change is made all the same: it may be the DELETE that makes room.)
    try {
      if (!CompactRange(range, unsynced).ok()) break;
    } catch (...) {
      break;
    }
    for (size_t t = range.begin; t < range.end; ++t) {
      if (kept_[t]) TESSERA_TRY(Forget(t, *FileOf(*table_, table_->tablets[t])));
    }
  }
  return {};
}

}  // namespace tessera
