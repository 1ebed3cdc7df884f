#include "tablet/catalog/older_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tablet/catalog/live_tablet.h"
#include "tablet/catalog/moved_rows.h"

namespace tessera {
namespace {

using Words = std::vector<uint64_t>;
using TabletPointer = std::shared_ptr<const Tablet>;

constexpr int64_t kRowMask = (int64_t{1} << kRowNumberBits) - 1;

Words DeletedIn(const Tablet& tablet) {
  if (const LiveRows* const live = tablet.live()) return live->words();
  return Words((size_t{tablet.rows()} + 63) / 64);
}

bool Has(const Words& words, uint64_t row) { return (words[row / 64] >> row % 64 & 1) != 0; }
void Set(Words* words, uint64_t row) { (*words)[row / 64] |= uint64_t{1} << row % 64; }

bool IsLive(const Tablet& tablet, uint64_t row) {
  const LiveRows* const live = tablet.live();
  return live == nullptr || live->IsLive(static_cast<uint32_t>(row));
}

/// The tablets of a table by what they store.
std::map<StoredTablet, size_t> NumbersOf(const TableInfo& table) {
  std::map<StoredTablet, size_t> numbers;
  for (size_t t = 0; t < table.tablets.size(); ++t) numbers.emplace(StoredOf(*table.tablets[t]), t);
  return numbers;
}

}  // namespace

/// Makes one, tablet by tablet.
class OlderRows::Maker {
 public:
  Maker(const std::string& directory, std::shared_ptr<const TableInfo> before, const TableInfo& first,
        std::shared_ptr<const TableInfo> now)
      : directory_(directory),
        held_(std::make_shared<Held>(std::move(before), std::move(now))),
        before_(*held_->before),
        first_(first),
        now_(*held_->now),
        in_first_(NumbersOf(first_)),
        in_now_(NumbersOf(now_)),
        info_(&held_->info) {}

  Result<std::shared_ptr<const OlderRows>> Make() {
    for (size_t t = 0; t < before_.tablets.size(); ++t) {
      const TabletPointer& tablet = before_.tablets[t];
      const StoredTablet stored = StoredOf(*tablet);
      Place place;
      Words deleted = DeletedIn(*tablet), changed(deleted.size());
      if (const auto at = in_first_.find(stored); at != in_first_.end()) {
        Stayed(*first_.tablets[at->second], stored, &place, &deleted, &changed);
      } else {
        Gone(stored, &place, &deleted, &changed);
      }
      TESSERA_TRY(Add(tablet, before_.buckets.empty() ? -1 : before_.buckets[t], std::move(deleted), std::move(place)));
      AddChanged(tablet, std::move(changed));
    }
    for (size_t t = 0; t < now_.tablets.size(); ++t) {
      const TabletPointer& tablet = now_.tablets[t];
      if (in_first_.contains(StoredOf(*tablet))) continue;
      made_->own_.push_back(tablet);
      Place place;
      place.tablet = static_cast<int64_t>(t);
      TESSERA_TRY(Add(tablet, now_.buckets.empty() ? -1 : now_.buckets[t], DeletedIn(*tablet), std::move(place)));
      TESSERA_TRY(Count(*tablet, 1));
    }
    MarkLive(live_, info_);
    // (Others may see other rows of this version, or of that of `now`.)
    info_->version = -static_cast<int64_t>(info_->number.value());
    made_->version_ = now_.version;
    made_->table_ = std::shared_ptr<const TableInfo>(held_, info_);
    return std::shared_ptr<const OlderRows>(std::move(made_));
  }

 private:
  /// Of a tablet that others have kept; `first`: with their marks. What they have not deleted, and is deleted now, was deleted by
  /// the transaction.
  void Stayed(const Tablet& first, const StoredTablet& stored, Place* place, Words* deleted, Words* changed) const {
    const auto at = in_now_.find(stored);
    const Tablet* const now = at != in_now_.end() ? now_.tablets[at->second].get() : nullptr;
    const Words of_others = DeletedIn(first);
    const Words all = now != nullptr ? DeletedIn(*now) : Words(deleted->size(), ~uint64_t{0});
    bool any = false;
    for (size_t w = 0; w < deleted->size(); ++w) {
      (*changed)[w] = of_others[w] & ~(*deleted)[w];
      any |= (*changed)[w] != 0;
      (*deleted)[w] |= all[w] & ~of_others[w] & BitsOfRows(stored.rows, w);
    }
    place->tablet = now != nullptr ? static_cast<int64_t>(at->second) : kChanged;
    if (any) place->unchanged = std::make_shared<const LiveRows>(stored.rows, *changed);
  }

  /// Of a tablet that others have written anew.
  void Gone(const StoredTablet& stored, Place* place, Words* deleted, Words* changed) {
    place->rows.assign(stored.rows, kChanged);
    for (uint64_t row = 0; row < stored.rows; ++row) {
      if (Has(*deleted, row)) continue;
      const Found found = Follow(stored, row);
      if (found.tablet == nullptr || !IsLive(*first_.tablets[found.tablet->second], found.row)) {
        Set(changed, row);
        continue;
      }
      const auto at = in_now_.find(found.tablet->first);
      if (at == in_now_.end() || !IsLive(*now_.tablets[at->second], found.row)) {
        Set(deleted, row);
      } else {
        place->rows[row] = (static_cast<int64_t>(at->second) << kRowNumberBits) + static_cast<int64_t>(found.row);
      }
    }
  }

  struct Found {
    const std::pair<const StoredTablet, size_t>* tablet = nullptr;  ///< of in_first_; nullptr: it is not there
    uint64_t row = 0;
  };
  /// Where others have put a row.
  Found Follow(StoredTablet tablet, uint64_t row) {
    for (;;) {
      if (const auto at = in_first_.find(tablet); at != in_first_.end()) return {&*at, row};
      const Step* const step = StepOf(tablet);
      if (step == nullptr || row >= tablet.rows) return {};
      const MovedRows::Move& move = step->move;
      if (move.live != nullptr && (move.live->rows() != tablet.rows || !move.live->IsLive(static_cast<uint32_t>(row))))
        return {};
      if (move.stay) {
        tablet = move.to->front();
        continue;
      }
      uint64_t at = move.first + (step->ranks.empty() ? row : step->ranks[row]);
      size_t number = 0;
      while (number < move.to->size() && at >= (*move.to)[number].rows) at -= (*move.to)[number++].rows;
      if (number == move.to->size()) return {};
      tablet = (*move.to)[number];
      row = at;
    }
  }

  struct Step {
    MovedRows::Move move;
    std::vector<uint32_t> ranks;  ///< of rows among those that have moved; empty: all have
  };
  /// nullptr: nothing is known of it.
  const Step* StepOf(const StoredTablet& tablet) {
    const auto [at, is_new] = steps_.try_emplace(tablet);
    if (!is_new) return at->second ? &*at->second : nullptr;
    std::optional<MovedRows::Move> move = MovedRows::OfProcess().Find(directory_, tablet);
    if (!move) return nullptr;
    Step step{*std::move(move), {}};
    if (step.move.live != nullptr && !step.move.stay) {
      uint32_t live = 0;
      for (uint32_t row = 0; row < step.move.live->rows(); ++row) {
        step.ranks.push_back(live);
        live += step.move.live->IsLive(row) ? 1 : 0;
      }
    }
    at->second = std::move(step);
    return &*at->second;
  }

  /// A tablet of what is seen, unless no row of it is.
  Status Add(const TabletPointer& tablet, int bucket, Words&& deleted, Place&& place) {
    auto live = std::make_shared<const LiveRows>(tablet->rows(), std::move(deleted));
    if (live->deleted() == tablet->rows()) return Count(*tablet, -1);
    info_->tablets.push_back(WithoutMarks(tablet));
    info_->stored_rows += tablet->rows();
    if (bucket >= 0) info_->buckets.push_back(static_cast<uint8_t>(bucket));
    live_.push_back(live->deleted() > 0 ? std::move(live) : nullptr);
    made_->places_.push_back(std::move(place));
    return {};
  }

  void AddChanged(const TabletPointer& tablet, Words&& changed) {
    if (std::ranges::all_of(changed, [](uint64_t w) { return w == 0; })) return;
    const uint32_t rows = tablet->rows();
    for (size_t w = 0; w < changed.size(); ++w) changed[w] = ~changed[w] & BitsOfRows(rows, w);
    made_->changed_.push_back(
        std::make_shared<const LiveTablet>(WithoutMarks(tablet), static_cast<int>(info_->schema.columns.size()),
                                           std::make_shared<const LiveRows>(rows, std::move(changed)), 0));
  }

  /// What a tablet adds to statistics, or takes from them.
  Status Count(const Tablet& tablet, int sign) {
    for (size_t c = 0; c < info_->schema.columns.size(); ++c) {
      TESSERA_ASSIGN(const ChunkPointer chunk, tablet.Describe(static_cast<int>(c)));
      ColumnStatistics& s = info_->statistics[c];
      if (sign < 0) {
        s.null_count -= std::min<uint64_t>(s.null_count, chunk->null_count);
        s.encoded_bytes -= std::min(s.encoded_bytes, chunk->encoded_bytes);
        continue;
      }
      s.null_count += chunk->null_count;
      s.encoded_bytes += chunk->encoded_bytes;
      const uint32_t values = chunk->rows - chunk->null_count;
      s.distinct += values;
      if (values == 0 || info_->schema.columns[c].type.storage() == StorageClass::kText) continue;
      s.min = s.has_range ? std::min(s.min, chunk->min) : chunk->min;
      s.max = s.has_range ? std::max(s.max, chunk->max) : chunk->max;
      s.has_range = true;
    }
    return {};
  }

  /// Files stay as long as the tables that have them.
  struct Held {
    Held(std::shared_ptr<const TableInfo> b, std::shared_ptr<const TableInfo> n)
        : before(std::move(b)), now(std::move(n)), info(WithoutTablets(*before)) {}
    const std::shared_ptr<const TableInfo> before, now;
    TableInfo info;
  };

  const std::string& directory_;
  const std::shared_ptr<Held> held_;
  const TableInfo &before_, &first_, &now_;
  const std::map<StoredTablet, size_t> in_first_, in_now_;
  TableInfo* const info_;
  const std::shared_ptr<OlderRows> made_ = std::make_shared<OlderRows>();
  std::vector<std::shared_ptr<const LiveRows>> live_;
  std::map<StoredTablet, std::optional<Step>> steps_;
};

Result<std::shared_ptr<const OlderRows>> OlderRows::See(const std::string& directory,
                                                        const std::shared_ptr<const TableInfo>& before,
                                                        const TableInfo& first,
                                                        const std::shared_ptr<const TableInfo>& now) {
  return Maker(directory, before, first, now).Make();
}

int64_t OlderRows::PlaceOf(int64_t number) const {
  const Place& place = places_[static_cast<size_t>(number >> kRowNumberBits)];
  const int64_t row = number & kRowMask;
  if (!place.rows.empty()) return place.rows[static_cast<size_t>(row)];
  if (place.tablet == kChanged) return kChanged;
  if (place.unchanged != nullptr && !place.unchanged->IsLive(static_cast<uint32_t>(row))) return kChanged;
  return (place.tablet << kRowNumberBits) + row;
}

}  // namespace tessera
