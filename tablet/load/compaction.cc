// The choice of tablets, by what they cost.
#include "tablet/load/compaction.h"

#include <algorithm>

namespace tessera {
namespace {

/// What any commit may write anew: some milliseconds.
constexpr uint64_t kFreeRows = 1u << 13;
/// To make, sync and remove a file takes as long as encoding this number of rows.
constexpr uint64_t kRowsOfAFile = 1u << 10;
/// A tablet is written anew if it has lost at least one row of this number.
constexpr uint64_t kDeadPart = 8;

class Choice {
 public:
  Choice(std::span<const TabletFill> tablets, uint32_t tablet_rows, uint64_t rows_written)
      : tablets_(tablets), tablet_rows_(tablet_rows), budget_(std::max(kFreeRows, rows_written)) {
    chosen_.resize(tablets.size());
  }

  /// Those with the most deleted rows first.
  void TakeDead() {
    std::vector<size_t> due;
    for (size_t t = 0; t < tablets_.size(); ++t) {
      if (tablets_[t].live > 0 && IsDead(t, kDeadPart)) due.push_back(t);
    }
    std::ranges::stable_sort(due, [&](size_t a, size_t b) {
      const TabletFill &x = tablets_[a], &y = tablets_[b];
      return uint64_t{x.live} * y.rows < uint64_t{y.live} * x.rows;
    });
    for (const size_t t : due) {
      const uint64_t cost = tablets_[t].live + kRowsOfAFile;
      // However large it is: this has been put off until half of it was deleted.
      const bool overdue = t == due.front() && IsDead(t, 2);
      if (cost > budget_ && !overdue) continue;
      budget_ -= std::min(budget_, cost);
      chosen_[t] = true;
      ranges_.push_back({t, t + 1});
    }
  }

  /// Adjacent ones that have room in one, none of them with more than half of the rows.
  void Merge() {
    for (size_t begin = 0; begin < tablets_.size();) {
      size_t best = begin;
      uint64_t rows = 0, greatest = 0, tablets = 0, read = 0, best_cost = 0;
      bool pays_file = true;  // unless one of them is written anew already
      for (size_t end = begin; end < tablets_.size(); ++end) {
        if (tablets_[end].live == 0) continue;
        const uint64_t size = tablets_[end].rows - tablets_[end].dead_earlier;
        rows += size;
        greatest = std::max(greatest, size);
        read += chosen_[end] ? 0 : size;
        pays_file &= !chosen_[end];
        const uint64_t cost = read + (pays_file ? kRowsOfAFile : 0);
        if (rows > tablet_rows_ || cost > budget_) break;
        if (++tablets < 2 || rows < 2 * greatest) continue;
        best = end + 1;
        best_cost = cost;
      }
      if (best == begin) {
        ++begin;
        continue;
      }
      budget_ -= best_cost;
      std::erase_if(ranges_, [&](const TabletRange& r) { return r.begin >= begin && r.end <= best; });
      ranges_.push_back({begin, best});
      begin = best;
    }
  }

  std::vector<TabletRange> Take() {
    std::ranges::sort(ranges_, {}, &TabletRange::begin);
    return std::move(ranges_);
  }

 private:
  bool IsDead(size_t tablet, uint64_t part) const {
    return uint64_t{tablets_[tablet].dead_earlier} * part >= tablets_[tablet].rows;
  }

  const std::span<const TabletFill> tablets_;
  const uint64_t tablet_rows_;
  uint64_t budget_;
  std::vector<bool> chosen_;
  std::vector<TabletRange> ranges_;
};

}  // namespace

std::vector<TabletRange> RangesToCompact(std::span<const TabletFill> tablets, uint32_t tablet_rows,
                                         uint64_t rows_written, bool merges) {
  Choice choice(tablets, tablet_rows, rows_written);
  choice.TakeDead();
  if (merges) choice.Merge();
  return choice.Take();
}

}  // namespace tessera
