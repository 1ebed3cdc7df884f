#include "vm/shares/tablet_shares.h"

#include <algorithm>
#include <numeric>

#include "base/int128.h"
#include "vm/program/tile_rows.h"

namespace tessera::vm {
namespace {

/// What a rank gets beyond an equal share is worth a change from this part of one on: to find tablets again where they
/// were is better, and each rank that scans some of a tablet reads, checks and unpacks all of it.
constexpr uint64_t kTolerance = 32;
/// Tables whose largest tablet has fewer rows are not worth cutting.
constexpr uint32_t kLeastCutRows = 8 * kTileRows;

/// Columns that GPUs read whole have at most this many times the bytes of SET replicate_below. Rows made on four GPUs
/// need 0.15 ms to meet on each of them, in which a GPU reads some 2 M rows of a few bytes each.
constexpr uint64_t kReadWhole = 16;

/// Tablets on their way to ranks.
class Dealing {
 public:
  Dealing(const TableInfo& table, size_t ranks) : tablets_(ranks), loads_(ranks) {
    for (const auto& tablet : table.tablets) {
      // (A rank that is sent tablets is sent them whether they are read as runs or not.)
      rows_.push_back(tablet->stored().rows());
      made_rows_.push_back(tablet->rows());
      bytes_.push_back(std::max<uint64_t>(tablet->weight(), 1));
    }
    share_ = std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0}) / ranks;
  }

  void DealInTurn() {
    for (size_t t = 0; t < bytes_.size(); ++t) Give(t % loads_.size(), t);
  }

  /// In rounds, in which each rank gets one tablet: the largest goes to the rank that has least.
  void DealBySize() {
    const size_t ranks = loads_.size();
    for (size_t first = 0; first < bytes_.size(); first += ranks) {
      std::vector<size_t> round(std::min(ranks, bytes_.size() - first)), by_load(ranks);
      std::iota(round.begin(), round.end(), first);
      std::iota(by_load.begin(), by_load.end(), size_t{0});
      std::ranges::stable_sort(round, [&](size_t a, size_t b) { return bytes_[a] > bytes_[b]; });
      std::ranges::stable_sort(by_load, [&](size_t a, size_t b) { return loads_[a] < loads_[b]; });
      for (size_t k = 0; k < round.size(); ++k) Give(by_load[k], round[k]);
    }
  }

  uint64_t greatest() const { return *std::ranges::max_element(loads_); }
  bool IsEven() const { return greatest() <= share_ + share_ / kTolerance; }
  bool IsBetterThan(const Dealing& other) const { return greatest() + share_ / kTolerance < other.greatest(); }
  bool CanCut() const { return *std::ranges::max_element(rows_) >= kLeastCutRows; }

  /// Takes back what ranks have beyond their shares, and gives it to those that have least: the largest first.
  void Move() {
    std::vector<size_t> left = TakeBack();
    std::ranges::stable_sort(left, [&](size_t a, size_t b) { return bytes_[a] > bytes_[b]; });
    for (const size_t t : left) Give(static_cast<size_t>(std::ranges::min_element(loads_) - loads_.begin()), t);
  }

  /// Takes the same back, and cuts it such that all ranks get equal shares.
  void Cut() {
    size_t rank = 0;
    for (const size_t t : TakeBack()) {
      uint64_t at = 0;     // of the tablet's bytes
      uint32_t first = 0;  // of its rows
      while (first < rows_[t]) {
        while (rank + 1 < loads_.size() && loads_[rank] >= share_) ++rank;
        const bool is_last = rank + 1 == loads_.size();
        const uint64_t bytes = is_last ? bytes_[t] - at : std::min(share_ - loads_[rank], bytes_[t] - at);
        at += bytes;
        loads_[rank] += bytes;
        const uint32_t end = at == bytes_[t] ? rows_[t] : TileAt(t, at);
        if (end > first) parts_.push_back({t, first, end - first, static_cast<int>(rank)});
        first = end;
      }
    }
  }

  std::vector<TabletPart> Parts() {
    for (size_t r = 0; r < tablets_.size(); ++r) {
      for (const size_t t : tablets_[r]) parts_.push_back({t, 0, rows_[t], static_cast<int>(r)});
    }
    std::ranges::sort(parts_, [](const TabletPart& a, const TabletPart& b) {
      return a.tablet != b.tablet ? a.tablet < b.tablet : a.first < b.first;
    });
    for (TabletPart& part : parts_) {
      const uint32_t first = MadeRow(part.tablet, part.first), end = MadeRow(part.tablet, part.first + part.rows);
      part.first = first;
      part.rows = end - first;
    }
    std::erase_if(parts_, [](const TabletPart& part) { return part.rows == 0; });
    return std::move(parts_);
  }

 private:
  void Give(size_t rank, size_t tablet) {
    tablets_[rank].push_back(tablet);
    loads_[rank] += bytes_[tablet];
  }

  /// Takes tablets from ranks that have more than their shares, in the order of the rows.
  std::vector<size_t> TakeBack() {
    std::vector<size_t> left;
    for (size_t r = 0; r < tablets_.size(); ++r) {
      while (loads_[r] > share_ && !tablets_[r].empty()) {
        left.push_back(tablets_[r].back());
        loads_[r] -= bytes_[left.back()];
        tablets_[r].pop_back();
      }
    }
    std::ranges::sort(left);
    return left;
  }

  /// The first row of the tile whose begin is nearest to a place in the tablet's bytes.
  uint32_t TileAt(size_t tablet, uint64_t at) const {
    const auto row = static_cast<uint64_t>(int128_t{static_cast<int64_t>(at)} * rows_[tablet] /
                                           static_cast<int64_t>(bytes_[tablet]));
    return static_cast<uint32_t>(std::min<uint64_t>((row + kTileRows / 2) / kTileRows * kTileRows, rows_[tablet]));
  }

  /// Of runs: where those of the rows before `row` end, between two tiles.
  uint32_t MadeRow(size_t tablet, uint32_t row) const {
    if (row == rows_[tablet]) return made_rows_[tablet];
    const uint64_t made = uint64_t{row} * made_rows_[tablet] / rows_[tablet];
    return static_cast<uint32_t>(
        std::min<uint64_t>((made + kTileRows / 2) / kTileRows * kTileRows, made_rows_[tablet]));
  }

  std::vector<uint32_t> rows_, made_rows_;    // by tablet: as stored, as they are read
  std::vector<uint64_t> bytes_;               // by tablet
  uint64_t share_ = 0;                        // of each rank, if all are equal
  std::vector<std::vector<size_t>> tablets_;  // by rank: those that it has whole
  std::vector<uint64_t> loads_;               // by rank: bytes
  std::vector<TabletPart> parts_;             // of tablets that are cut
};

}  // namespace

const TableInfo* TableOf(const Snapshot& snapshot, const TableRef& ref) { return snapshot.FindById(ref.id); }

const TableInfo* ScannedTable(const Snapshot& snapshot, const Program& program, const Section& section) {
  if (section.source_kind != Section::Source::kTable) return nullptr;
  return TableOf(snapshot, program.tables[static_cast<size_t>(section.source)]);
}

bool SharedByTablets(const TableInfo& table, int ranks, uint64_t replicate_below) {
  if (!table.buckets.empty()) return true;
  uint64_t bytes = 0;
  for (const ColumnStatistics& c : table.statistics) bytes += c.encoded_bytes;
  return table.tablets.size() >= static_cast<size_t>(ranks) && bytes >= replicate_below;
}

bool IsReadWhole(const TableInfo& table, const Section& section, uint64_t replicate_below) {
  if (section.sink != Section::Sink::kJoin || section.placement.by_key || section.placement.co_located) return false;
  uint64_t bytes = 0;
  for (const Slot& slot : section.slots) {
    const auto column = static_cast<size_t>(slot.column);
    if (column < table.statistics.size()) bytes += table.statistics[column].encoded_bytes;  // (else: with the runs)
  }
  return bytes < kReadWhole * replicate_below;
}

std::vector<TabletPart> ShareTablets(const TableInfo& table, int ranks) {
  if (table.tablets.empty()) return {};
  if (!table.buckets.empty()) {
    std::vector<TabletPart> parts;
    for (size_t t = 0; t < table.tablets.size(); ++t)
      parts.push_back({t, 0, table.tablets[t]->rows(), table.buckets[t] % ranks});
    return parts;
  }
  const Dealing none(table, static_cast<size_t>(ranks));
  Dealing dealt = none;
  dealt.DealInTurn();
  if (dealt.IsEven()) return dealt.Parts();
  Dealing other = none;
  other.DealBySize();
  if (other.IsBetterThan(dealt)) dealt = other;
  other = dealt;
  if (other.CanCut()) {
    other.Cut();
  } else {
    other.Move();
  }
  if (other.IsBetterThan(dealt)) dealt = std::move(other);
  return dealt.Parts();
}

std::vector<TabletPart> PartsOf(const TableInfo& table, const Section& section, int ranks) {
  if (section.placement.spans.empty()) return ShareTablets(table, ranks);
  std::vector<TabletPart> parts;
  for (size_t r = 0; r < section.placement.spans.size(); ++r) {
    for (uint32_t t = section.placement.spans[r].first; t < section.placement.spans[r].end; ++t)
      parts.push_back({t, 0, table.tablets[t]->rows(), static_cast<int>(r)});
  }
  return parts;
}

Status CheckSpans(const TableInfo& table, const Section& section, int ranks) {
  const std::vector<TabletSpan>& spans = section.placement.spans;
  if (spans.empty()) return Status::Ok();
  const auto of_table = [&](const TabletSpan& s) { return s.first <= s.end && s.end <= table.tablets.size(); };
  const bool complete = section.sink == Section::Sink::kJoin || spans.back().end == table.tablets.size();
  if (spans.size() == static_cast<size_t>(ranks) && std::ranges::all_of(spans, of_table) && complete)
    return Status::Ok();
  return {ErrorCode::kCorrupt, "program refused: the ranks' tablets of table \"" + table.schema.name + "\""};
}

}  // namespace tessera::vm
