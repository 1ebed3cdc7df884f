#include "vm/rows/sorted_rows.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "base/uninitialized.h"
#include "vm/rows/row_order.h"
#include "vm/rows/sort_keys.h"

namespace tessera::vm {
namespace {

/// From this number of rows on, threads share the moving of rows, and the first few are found without ranks of strings.
constexpr size_t kManyRows = 1 << 16;

/// Rows [first, end) of a result of n rows that the section's OFFSET and LIMIT leave.
std::pair<size_t, size_t> Bounds(const RowsAfter& after, size_t n) {
  const size_t first = std::min<uint64_t>(n, static_cast<uint64_t>(after.offset));
  if (after.limit < 0) return {first, n};
  return {first, std::min<uint64_t>(n, first + static_cast<uint64_t>(std::min<int64_t>(after.limit, INT64_MAX / 2)))};
}

/// The values of the rows order[begin .. end).
template <class T>
void Permute(const std::vector<T>& from, const UninitializedVector<uint32_t>& order, size_t begin, size_t end,
             std::vector<T>* to) {
  if (from.empty()) return;
  for (size_t i = begin; i < end; ++i) {
    ThrowIfInterrupted(i);
    (*to)[i] = from[order[i]];
  }
}

Status Reorder(const UninitializedVector<uint32_t>& order, ThreadPool* pool, RowSet* rows) {
  const size_t n = order.size();
  // (Waking threads for a few rows takes longer than moving them.)
  ThreadPool* const shared = n < kManyRows ? nullptr : pool;
  const size_t parts = (n + kManyRows - 1) / kManyRows;
  // As many columns at a time as there are threads: each of them takes its memory twice.
  const size_t together = shared == nullptr ? 1 : Workers(pool);
  std::vector<RowColumn> ordered(rows->columns.size());
  for (size_t first = 0; first < ordered.size(); first += together) {
    const size_t columns = std::min(together, ordered.size() - first);
    TESSERA_TRY(ForEach(shared, columns, [&](size_t job) {
      const RowColumn& from = rows->columns[first + job];
      RowColumn& to = ordered[first + job];
      to.type = from.type;
      if (!from.low.empty()) to.low.resize(n);
      if (!from.high.empty()) to.high.resize(n);
      if (!from.null.empty()) to.null.resize(n);
      return Status::Ok();
    }));
    TESSERA_TRY(ForEach(shared, parts * columns, [&](size_t job) {
      const RowColumn& from = rows->columns[first + job / parts];
      RowColumn& to = ordered[first + job / parts];
      const size_t begin = job % parts * kManyRows, end = std::min(n, begin + kManyRows);
      Permute(from.low, order, begin, end, &to.low);
      Permute(from.high, order, begin, end, &to.high);
      Permute(from.null, order, begin, end, &to.null);
      return Status::Ok();
    }));
    for (size_t c = first; c < first + columns; ++c) rows->columns[c] = std::move(ordered[c]);
  }
  rows->rows = n;
  return Status::Ok();
}

}  // namespace

Status OrderAndLimit(const RowsAfter& after, const StringPool& strings, ThreadPool* pool, RowSet* rows) {
  const MemoryPurpose purpose("sorting");
  const size_t n = rows->rows;
  if (after.order.empty()) {
    ApplyBounds(after, rows);
    return Status::Ok();
  }
  const auto [first, end] = Bounds(after, n);
  UninitializedVector<uint32_t> order;
  const bool by_text = std::any_of(after.order.begin(), after.order.end(), [&](const SortKey& k) {
    return rows->columns[static_cast<size_t>(k.column)].type.storage() == StorageClass::kText;
  });
  if (by_text && n > kManyRows && end < n / 4) {
    // Finding the first few of many rows takes about one comparison a row. Ranks of all their strings would cost more.
    order.resize(n);
    std::iota(order.begin(), order.end(), 0u);
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(end), order.end(),
                      InterruptibleLess(RowLess(after.order, strings, *rows)));
    order.resize(end);
  } else {
    TESSERA_ASSIGN(const SortKeys keys, SortKeys::Make(after.order, strings, *rows, pool));
    TESSERA_ASSIGN(order, keys.First(end));
  }
  order.erase(order.begin(), order.begin() + static_cast<ptrdiff_t>(first));
  return Reorder(order, pool, rows);
}

void ApplyBounds(const RowsAfter& after, RowSet* rows) {
  const auto [first, end] = Bounds(after, rows->rows);
  if (first == 0 && end == rows->rows) return;
  const auto cut = [first = static_cast<ptrdiff_t>(first), end = static_cast<ptrdiff_t>(end)](auto* values) {
    if (values->empty()) return;
    values->erase(values->begin() + end, values->end());
    values->erase(values->begin(), values->begin() + first);
  };
  for (RowColumn& c : rows->columns) {
    cut(&c.low);
    cut(&c.high);
    cut(&c.null);
  }
  rows->rows = end - first;
}

RowsAfter WithoutOffset(const RowsAfter& after) {
  RowsAfter changed = after;
  changed.offset = 0;
  if (after.limit >= 0) changed.limit = after.limit > INT64_MAX - after.offset ? -1 : after.limit + after.offset;
  return changed;
}

Status SortRows(int column, const StringPool& strings, ThreadPool* pool, RowSet* rows) {
  const MemoryPurpose purpose("sorting");
  TESSERA_ASSIGN(const SortKeys keys, SortKeys::Make({{column, false, false}}, strings, *rows, pool));
  TESSERA_ASSIGN(const UninitializedVector<uint32_t> order, keys.First(rows->rows));
  return Reorder(order, pool, rows);
}

namespace {

/// Number of result rows that is worth a thread of its own for merging.
constexpr size_t kMergedRows = 1 << 12;

/// Rows [at[r], ends[r]) of each run r; `before` rows of the result come before them.
struct MergeRange {
  std::vector<uint32_t> at, ends;
  size_t before = 0;
};

/// Cuts the runs at evenly spaced rows of the longest of them.
std::vector<MergeRange> CutRuns(const MergeRange& all, size_t parts, const RowLess& less) {
  size_t longest = 0;
  for (size_t r = 1; r < all.at.size(); ++r) {
    if (all.ends[r] - all.at[r] > all.ends[longest] - all.at[longest]) longest = r;
  }
  std::vector<MergeRange> cut(parts, all);
  for (size_t p = 1; p < parts; ++p) {
    const uint64_t rows = all.ends[longest] - all.at[longest];
    const uint32_t pivot = all.at[longest] + static_cast<uint32_t>(rows * p / parts);
    for (size_t r = 0; r < all.at.size(); ++r) {
      uint32_t low = all.at[r], high = all.ends[r];  // the first row that is not before the pivot lies here
      while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (less(middle, pivot)) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      cut[p - 1].ends[r] = cut[p].at[r] = low;
      cut[p].before += low - all.at[r];
    }
  }
  return cut;
}

/// Merges one range. Its rows that are between `first` and `end` of the result go to `order`, which begins at `first`.
void Merge(MergeRange part, const RowLess& less, size_t first, size_t end, UninitializedVector<uint32_t>* order) {
  // A heap of the runs' next rows.
  const auto later = [&](size_t a, size_t b) { return less(part.at[b], part.at[a]); };
  std::vector<size_t> heap;
  for (size_t r = 0; r < part.at.size(); ++r) {
    if (part.at[r] < part.ends[r]) heap.push_back(r);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  for (size_t n = part.before; n < end && !heap.empty(); ++n) {
    ThrowIfInterrupted(n);
    std::pop_heap(heap.begin(), heap.end(), later);
    const size_t r = heap.back();
    if (n >= first) (*order)[n - first] = part.at[r];
    if (++part.at[r] == part.ends[r]) {
      heap.pop_back();
    } else {
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
}

}  // namespace

Status MergeRuns(const RowsAfter& after, const std::vector<size_t>& starts, const StringPool& strings, ThreadPool* pool,
                 RowSet* rows) {
  const MemoryPurpose purpose("sorting");
  const auto [first, end] = Bounds(after, rows->rows);
  const RowLess less(after.order, strings, *rows);
  MergeRange all;
  all.at.assign(starts.begin(), starts.end());
  all.ends.assign(all.at.begin() + 1, all.at.end());
  all.ends.push_back(static_cast<uint32_t>(rows->rows));
  // (More ranges than threads: they differ in length, and those after LIMIT have no rows.)
  const size_t most = pool == nullptr ? 1 : 4 * Workers(pool);
  const std::vector<MergeRange> parts = CutRuns(all, std::clamp<size_t>(end / kMergedRows, 1, most), less);
  UninitializedVector<uint32_t> order(end - first);
  TESSERA_TRY(ForEach(pool, parts.size(), [&, first = first, end = end](size_t p) {
    Merge(parts[p], less, first, end, &order);
    return Status::Ok();
  }));
  return Reorder(order, pool, rows);
}

}  // namespace tessera::vm
