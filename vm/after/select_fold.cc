#include "vm/after/select_fold.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "base/uninitialized.h"
#include "vm/after/fold_rows.h"
#include "vm/rows/row_keys.h"
#include "vm/rows/row_order.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {
namespace {

/// Fewer rows are sorted.
constexpr size_t kLeastRows = 1 << 14;
/// Rows of more groups than this are sorted.
constexpr size_t kMostGroups = 4096;
/// This many values of a group are shared out to threads.
constexpr size_t kManyValues = 1 << 15;
/// Ranges of values that are counted to find the one that has the place.
constexpr int kRangeBits = 12;

/// Two values of a group, in the order of their codes.
struct Pair {
  uint64_t low, high;
};

class Selection {
 public:
  Selection(const Section& section, const std::vector<Value>& constants, ThreadPool* pool, RowSet* rows)
      : section_(section),
        keys_(static_cast<size_t>(section.keys)),
        pool_(pool),
        rows_(*rows),
        parts_(Workers(pool)),
        quantile_(constants[static_cast<size_t>(section.after.fold.constant)].f64) {}

  static bool Fits(const Section& section, const RowSet& rows) {
    const bool selects =
        section.after.fold.kind == Section::Fold::kQuantile || section.after.fold.kind == Section::Fold::kBetween;
    const size_t keys = static_cast<size_t>(section.keys);
    if (!selects || section.after.fold.distinct || rows.rows < kLeastRows || rows.rows > UINT32_MAX ||
        section.columns.size() != keys + 1 || section.after.order.size() != keys + 1 ||
        section.after.order[keys].column != section.keys) {
      return false;
    }
    const StorageClass value = section.columns[keys].storage();
    return (value == StorageClass::kInt || value == StorageClass::kFloat) &&
           std::all_of(section.columns.begin(), section.columns.end() - 1, IsPlainKey);
  }

  /// REQUIRES: Fits().
  Result<bool> Run() {
    is_float_ = section_.columns[keys_].storage() == StorageClass::kFloat;
    if (is_float_) {
      // A sort keeps zeros of both signs in the order of their rows.
      std::atomic<bool> negative_zeros{false};
      TESSERA_TRY(ForParts(rows_.rows, [&](size_t, size_t begin, size_t end) {
        const int64_t* const values = rows_.columns[keys_].low.data();
        bool any = false;
        for (size_t i = begin; i < end; ++i) any |= values[i] == INT64_MIN;
        if (any) negative_zeros = true;
      }));
      if (negative_zeros) return false;
    }
    TESSERA_ASSIGN(const bool few, NumberGroups());
    if (!few) return false;
    TESSERA_TRY(GatherValues());
    std::vector<std::pair<bool, int64_t>> folded(first_rows_.size());  // whether there is a value, and it
    for (size_t g = 0; g < folded.size(); ++g) {
      if (ends_[g + 1] - ends_[g] < kManyValues) continue;
      TESSERA_ASSIGN(folded[g], Fold(g, pool_));
    }
    TESSERA_TRY(ForEach(pool_, folded.size(), [&](size_t g) -> Status {
      if (ends_[g + 1] - ends_[g] >= kManyValues) return Status::Ok();
      TESSERA_ASSIGN(folded[g], Fold(g, nullptr));
      return Status::Ok();
    }));
    KeepRows(first_rows_, &rows_);
    RowColumn& value = rows_.columns[keys_];
    for (size_t g = 0; g < folded.size(); ++g) {
      value.low[g] = folded[g].second;
      if (!value.null.empty()) value.null[g] = folded[g].first ? 0 : 1;
    }
    return true;
  }

 private:
  /// f(part, begin, end) for ranges of `n` items, by all threads.
  template <class F>
  Status ForParts(size_t n, const F& f) const {
    return ForEach(pool_, parts_, [&](size_t part) {
      f(part, n * part / parts_, n * (part + 1) / parts_);
      return Status::Ok();
    });
  }

  std::span<const RowColumn> Keys() const { return std::span<const RowColumn>(rows_.columns).first(keys_); }

  /// Each part numbers its groups for itself, then these are put together. False: there are too many.
  Result<bool> NumberGroups() {
    if (keys_ == 0) {
      first_rows_ = {0};
      return true;
    }
    group_in_part_.resize(rows_.rows);
    std::vector<RowsByKey> of_parts(parts_, RowsByKey(Keys(), 2 * kMostGroups));
    std::atomic<bool> many{false};
    TESSERA_TRY(ForParts(rows_.rows, [&](size_t part, size_t begin, size_t end) {
      RowsByKey& groups = of_parts[part];
      for (size_t i = begin; i < end; ++i) {
        ThrowIfInterrupted(i);
        group_in_part_[i] = static_cast<uint16_t>(groups.Find(static_cast<uint32_t>(i)));
        if (groups.rows().size() <= kMostGroups) continue;
        many = true;
        return;
      }
    }));
    if (many) return false;
    RowsByKey all(Keys(), kMostGroups * parts_);
    for (const RowsByKey& of_part : of_parts) {
      group_of_.emplace_back();
      for (const uint32_t row : of_part.rows()) group_of_.back().push_back(all.Find(row));
    }
    first_rows_ = all.rows();
    return first_rows_.size() <= kMostGroups;
  }

  size_t GroupAt(size_t part, size_t row) const { return keys_ == 0 ? 0 : group_of_[part][group_in_part_[row]]; }

  /// Puts the codes of values that are not NULL side by side, group by group.
  Status GatherValues() {
    const size_t groups = first_rows_.size();
    const RowColumn& c = rows_.columns[keys_];
    std::vector<std::vector<size_t>> next(parts_, std::vector<size_t>(groups));
    TESSERA_TRY(ForParts(rows_.rows, [&](size_t part, size_t begin, size_t end) {
      if (keys_ == 0 && c.null.empty()) {
        next[part][0] = end - begin;
        return;
      }
      for (size_t i = begin; i < end; ++i) next[part][GroupAt(part, i)] += IsNullAt(c, i) ? 0 : 1;
    }));
    size_t before = 0;
    for (size_t g = 0; g < groups; ++g) {
      ends_.push_back(before);
      for (std::vector<size_t>& of_part : next) before += std::exchange(of_part[g], before);
    }
    ends_.push_back(before);
    codes_.resize(before);
    return ForParts(rows_.rows, [&](size_t part, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        ThrowIfInterrupted(i);
        if (!IsNullAt(c, i)) codes_[next[part][GroupAt(part, i)]++] = Code(c.low[i]);
      }
    });
  }

  uint64_t Code(int64_t value) const { return OrderCode(value, is_float_, section_.after.order[keys_].descending); }
  int64_t ValueOf(uint64_t code) const {
    return ValueOfOrderCode(code, is_float_, section_.after.order[keys_].descending);
  }

  Result<std::pair<bool, int64_t>> Fold(size_t group, ThreadPool* pool) {
    const auto values = std::span(codes_).subspan(ends_[group], ends_[group + 1] - ends_[group]);
    if (values.empty()) return std::pair(false, int64_t{0});
    if (section_.after.fold.kind == Section::Fold::kQuantile) {
      const size_t place = PlaceOfQuantile(quantile_, values.size());
      TESSERA_ASSIGN(const Pair found, Find(values, place, place, pool));
      return std::pair(true, ValueOf(found.low));
    }
    const PlaceBetween place(quantile_, values.size());
    TESSERA_ASSIGN(const Pair found, Find(values, place.below, place.above, pool));
    const auto number = [&](uint64_t code) { return std::bit_cast<double>(ValueOf(code)); };
    return std::pair(true, std::bit_cast<int64_t>(place.Value(number(found.low), number(found.high))));
  }

  /// The values at two places of an order, the second at the first or right after it. `values` change their places.
  Result<Pair> Find(std::span<uint64_t> values, size_t below, size_t above, ThreadPool* pool) const {
    if (values.size() >= kManyValues) return FindByRanges(values, below, above, pool);
    const auto place = values.begin() + static_cast<ptrdiff_t>(below);
    std::nth_element(values.begin(), place, values.end());
    return Pair{*place, above == below ? *place : *std::min_element(place + 1, values.end())};
  }

  /// Counts values in ranges of equal width, and goes on with those of the range that has the places.
  Result<Pair> FindByRanges(std::span<uint64_t> values, size_t below, size_t above, ThreadPool* pool) const {
    const size_t parts = Workers(pool);
    const auto for_parts = [&](const auto& f) {
      return ForEach(pool, parts, [&](size_t part) {
        const size_t begin = values.size() * part / parts, end = values.size() * (part + 1) / parts;
        f(part, values.subspan(begin, end - begin));
        ThrowIfInterrupted();
        return Status::Ok();
      });
    };
    std::vector<Pair> limits(parts, {UINT64_MAX, 0});
    TESSERA_TRY(for_parts([&](size_t part, std::span<const uint64_t> mine) {
      Pair limit = {UINT64_MAX, 0};
      for (const uint64_t v : mine) limit = {std::min(limit.low, v), std::max(limit.high, v)};
      limits[part] = limit;
    }));
    Pair all = limits[0];
    for (const Pair& limit : limits) all = {std::min(all.low, limit.low), std::max(all.high, limit.high)};
    if (all.low == all.high) return all;
    const int shift = std::max(0, static_cast<int>(std::bit_width(all.high - all.low)) - kRangeBits);
    const auto range_of = [&](uint64_t v) { return static_cast<size_t>((v - all.low) >> shift); };
    std::vector<std::vector<size_t>> counts(parts, std::vector<size_t>(size_t{1} << kRangeBits));
    TESSERA_TRY(for_parts([&](size_t part, std::span<const uint64_t> mine) {
      for (const uint64_t v : mine) ++counts[part][range_of(v)];
    }));
    size_t range = 0, before = 0, inside = 0;
    for (;; ++range) {
      inside = 0;
      for (const std::vector<size_t>& of_part : counts) inside += of_part[range];
      if (before + inside > below) break;
      before += inside;
    }
    // The second place may be in a later range: then it has the least value there is after this one.
    const bool apart = above >= before + inside;
    std::vector<std::vector<uint64_t>> found(parts);
    std::vector<uint64_t> least(parts, UINT64_MAX);
    TESSERA_TRY(for_parts([&](size_t part, std::span<const uint64_t> mine) {
      found[part].reserve(counts[part][range]);
      for (const uint64_t v : mine) {
        const size_t r = range_of(v);
        if (r == range) found[part].push_back(v);
        if (r > range) least[part] = std::min(least[part], v);
      }
    }));
    std::vector<uint64_t> rest;
    for (const std::vector<uint64_t>& of_part : found) rest.insert(rest.end(), of_part.begin(), of_part.end());
    TESSERA_ASSIGN(Pair pair, Find(rest, below - before, apart ? below - before : above - before, pool));
    if (apart) pair.high = *std::min_element(least.begin(), least.end());
    return pair;
  }

  const Section& section_;
  const size_t keys_;
  ThreadPool* const pool_;
  RowSet& rows_;
  const size_t parts_;
  const double quantile_;
  bool is_float_ = false;
  UninitializedVector<uint16_t> group_in_part_;  ///< by row: the number that its part gave its group
  std::vector<std::vector<uint32_t>> group_of_;  ///< by part and that number
  std::vector<uint32_t> first_rows_;             ///< by group
  std::vector<size_t> ends_;                     ///< where the values of each group begin, and the end
  UninitializedVector<uint64_t> codes_;
};

}  // namespace

Result<bool> SelectFold(const Section& section, const std::vector<Value>& constants, ThreadPool* pool, RowSet* rows) {
  if (!Selection::Fits(section, *rows)) return false;
  const MemoryPurpose purpose("values of groups");
  return Selection(section, constants, pool, rows).Run();
}

}  // namespace tessera::vm
