// Rows in the machine's form.

#include "vm/rows/row_set.h"

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>

#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "tablet/values/ordered_float.h"
#include "vm/meaning/meaning.h"
#include "vm/rows/row_order.h"
#include "vm/rows/sort_keys.h"

namespace tessera::vm {
namespace {

/// From this number of rows on, threads share the moving of rows, and the first few are found without ranks of strings.
constexpr size_t kManyRows = 1 << 16;

}  // namespace

RowSet MakeRowSet(const std::vector<SqlType>& types) {
  RowSet r;
  for (const SqlType& t : types) r.columns.push_back({t, {}, {}, {}});
  return r;
}

void AppendRows(RowSet* to, RowSet&& from) {
  if (to->rows == 0) {
    std::vector<RowColumn> columns = std::move(from.columns);
    to->columns = std::move(columns);
    to->rows = from.rows;
    return;
  }
  for (size_t i = 0; i < to->columns.size(); ++i) {
    RowColumn& t = to->columns[i];
    const RowColumn& f = from.columns[i];
    ThrowIfInterrupted();
    t.low.insert(t.low.end(), f.low.begin(), f.low.end());
    t.high.insert(t.high.end(), f.high.begin(), f.high.end());
    if (!t.null.empty() || !f.null.empty()) {
      t.null.resize(to->rows);
      if (f.null.empty()) {
        t.null.resize(to->rows + from.rows);
      } else {
        t.null.insert(t.null.end(), f.null.begin(), f.null.end());
      }
    }
  }
  to->rows += from.rows;
}

Status AppendAll(RowSet* to, std::vector<RowSet> from, ThreadPool* pool) {
  std::erase_if(from, [](const RowSet& r) { return r.rows == 0; });
  size_t rows = to->rows;
  for (const RowSet& r : from) rows += r.rows;
  if (rows < kManyRows || (from.size() == 1 && to->rows == 0)) {
    for (RowSet& r : from) AppendRows(to, std::move(r));
    return Status::Ok();
  }
  TESSERA_TRY(ForEach(pool, to->columns.size(), [&](size_t c) {
    RowColumn& t = to->columns[c];
    const bool nulls =
        !t.null.empty() || std::ranges::any_of(from, [&](const RowSet& r) { return !r.columns[c].null.empty(); });
    t.low.reserve(rows);
    if (IsWide(t.type)) t.high.reserve(rows);
    if (nulls) t.null.reserve(rows);
    if (nulls) t.null.resize(to->rows);
    for (RowSet& r : from) {
      ThrowIfInterrupted();
      RowColumn f = std::move(r.columns[c]);  // its memory goes as soon as it has been copied
      t.low.insert(t.low.end(), f.low.begin(), f.low.end());
      t.high.insert(t.high.end(), f.high.begin(), f.high.end());
      if (nulls) f.null.resize(r.rows);
      t.null.insert(t.null.end(), f.null.begin(), f.null.end());
    }
    return Status::Ok();
  }));
  to->rows = rows;
  return Status::Ok();
}

void AppendRange(RowSet* to, const RowSet& from, size_t first, size_t count) {
  const auto begin = static_cast<ptrdiff_t>(first), end = static_cast<ptrdiff_t>(first + count);
  for (size_t i = 0; i < to->columns.size(); ++i) {
    RowColumn& t = to->columns[i];
    const RowColumn& f = from.columns[i];
    t.low.insert(t.low.end(), f.low.begin() + begin, f.low.begin() + end);
    if (!f.high.empty()) t.high.insert(t.high.end(), f.high.begin() + begin, f.high.begin() + end);
    if (!f.null.empty()) {
      t.null.resize(to->rows);
      t.null.insert(t.null.end(), f.null.begin() + begin, f.null.begin() + end);
    } else if (!t.null.empty()) {
      t.null.resize(to->rows + count);
    }
  }
  to->rows += count;
}

size_t RowsTogether(const std::vector<SqlType>& types, size_t rows, size_t usual) {
  constexpr size_t kTextPieces = 4;
  const bool texts = std::ranges::any_of(types, [](const SqlType& t) { return t.storage() == StorageClass::kText; });
  return texts ? std::max(usual, rows / kTextPieces + 1) : usual;
}

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

void RepeatRows(int column, RowSet* rows) {
  const MemoryPurpose purpose("repeated rows");
  constexpr int64_t kMost = int64_t{1} << 48;  // rows that no memory holds
  const RowColumn& by = rows->columns[static_cast<size_t>(column)];
  std::vector<int64_t> times(rows->rows);
  int64_t total = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const bool null = !by.null.empty() && by.null[i] != 0;
    times[i] = null ? 0 : std::clamp<int64_t>(by.low[i], 0, kMost);
    total += times[i];
    if (total > kMost) throw std::bad_alloc();
  }
  const auto repeat = [&](auto* values) {
    if (values->empty()) return;
    auto out = std::move(*values);
    values->clear();
    values->reserve(static_cast<size_t>(total));
    for (size_t i = 0; i < times.size(); ++i) {
      ThrowIfInterrupted(i);
      for (int64_t left = times[i]; left > 0; left -= kManyRows) {
        if (left > static_cast<int64_t>(kManyRows)) ThrowIfInterrupted();
        values->insert(values->end(), static_cast<size_t>(std::min<int64_t>(left, kManyRows)), out[i]);
      }
    }
  };
  for (RowColumn& c : rows->columns) {
    repeat(&c.low);
    repeat(&c.high);
    repeat(&c.null);
  }
  rows->rows = static_cast<size_t>(total);
}

RowSet InUnitOrder(const Section& section, std::vector<Shipment> shipments) {
  struct Range {
    uint64_t unit;
    size_t shipment, first, count;
  };
  std::vector<Range> ranges;
  for (size_t s = 0; s < shipments.size(); ++s) {
    size_t first = 0;
    for (const UnitRows& u : shipments[s].units) {
      ranges.push_back({u.unit, s, first, u.rows});
      first += u.rows;
    }
  }
  std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.unit < b.unit; });
  RowSet out = MakeRowSet(section.columns);
  for (const Range& r : ranges) AppendRange(&out, shipments[r.shipment].rows, r.first, r.count);
  return out;
}

void AppendUnitColumn(Shipment* shipment) {
  RowColumn column{SqlType::Of(TypeId::kBigint), {}, {}, {}};
  for (const UnitRows& u : shipment->units) column.low.insert(column.low.end(), u.rows, static_cast<int64_t>(u.unit));
  shipment->rows.columns.push_back(std::move(column));
  shipment->units.clear();  // meaningless after sorting
}

namespace {

/// Rows [first, end) of a result of n rows that the section's OFFSET and LIMIT leave.
std::pair<size_t, size_t> Bounds(const Section& section, size_t n) {
  const size_t first = std::min<uint64_t>(n, static_cast<uint64_t>(section.offset));
  if (section.limit < 0) return {first, n};
  return {first, std::min<uint64_t>(n, first + static_cast<uint64_t>(std::min<int64_t>(section.limit, INT64_MAX / 2)))};
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

Status OrderAndLimit(const Section& section, const StringPool& strings, ThreadPool* pool, RowSet* rows) {
  const MemoryPurpose purpose("sorting");
  const size_t n = rows->rows;
  if (section.order.empty()) {
    ApplyBounds(section, rows);
    return Status::Ok();
  }
  const auto [first, end] = Bounds(section, n);
  UninitializedVector<uint32_t> order;
  const bool by_text = std::any_of(section.order.begin(), section.order.end(), [&](const SortKey& k) {
    return rows->columns[static_cast<size_t>(k.column)].type.storage() == StorageClass::kText;
  });
  if (by_text && n > kManyRows && end < n / 4) {
    // Finding the first few of many rows takes about one comparison a row. Ranks of all their strings would cost more.
    order.resize(n);
    std::iota(order.begin(), order.end(), 0u);
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(end), order.end(),
                      InterruptibleLess(RowLess(section.order, strings, *rows)));
    order.resize(end);
  } else {
    TESSERA_ASSIGN(const SortKeys keys, SortKeys::Make(section.order, strings, *rows, pool));
    TESSERA_ASSIGN(order, keys.First(end));
  }
  order.erase(order.begin(), order.begin() + static_cast<ptrdiff_t>(first));
  return Reorder(order, pool, rows);
}

void ApplyBounds(const Section& section, RowSet* rows) {
  const auto [first, end] = Bounds(section, rows->rows);
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

Section WithoutOffset(const Section& section) {
  Section s = section;
  s.offset = 0;
  if (s.limit >= 0) s.limit = s.limit > INT64_MAX - section.offset ? -1 : s.limit + section.offset;
  return s;
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

Status MergeRuns(const Section& section, const std::vector<size_t>& starts, const StringPool& strings, ThreadPool* pool,
                 RowSet* rows) {
  const MemoryPurpose purpose("sorting");
  const auto [first, end] = Bounds(section, rows->rows);
  const RowLess less(section.order, strings, *rows);
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

namespace {

/// The TEXT columns of DecodeRows. A text of few rows is seldom in a cache, so threads share many.
Status DecodeTexts(const RowSet& rows, const std::vector<size_t>& columns, size_t first, const StringPool& strings,
                   ThreadPool* pool, RowBatch* out) {
  constexpr size_t kPart = 1024;
  const size_t parts = (out->rows + kPart - 1) / kPart;
  std::vector<std::vector<std::string_view>> texts(columns.size());
  const auto for_parts = [&](const auto& f) {
    return ForEach(parts < 2 ? nullptr : pool, columns.size() * parts, [&](size_t i) {
      const size_t begin = i % parts * kPart;
      f(i / parts, begin, std::min(out->rows, begin + kPart));
      return Status::Ok();
    });
  };
  for (std::vector<std::string_view>& of_column : texts) of_column.resize(out->rows);
  TESSERA_TRY(for_parts([&](size_t c, size_t begin, size_t end) {
    const RowColumn& from = rows.columns[columns[c]];
    for (size_t k = begin; k < end; ++k)
      if (!out->columns[columns[c]].IsNull(k)) texts[c][k] = strings.Get(from.low[first + k]);
  }));
  for (size_t c = 0; c < columns.size(); ++c) {
    ColumnVector& v = out->columns[columns[c]];
    v.offsets.reserve(out->rows + 1);
    v.offsets.push_back(0);
    for (const std::string_view text : texts[c]) v.offsets.push_back(v.offsets.back() + text.size());
    v.bytes.resize(v.offsets.back());
  }
  return for_parts([&](size_t c, size_t begin, size_t end) {
    ColumnVector& v = out->columns[columns[c]];
    for (size_t k = begin; k < end; ++k) texts[c][k].copy(v.bytes.data() + v.offsets[k], texts[c][k].size());
  });
}

}  // namespace

Result<RowBatch> DecodeRows(const RowSet& rows, const std::vector<ResultColumn>& columns, size_t first, size_t count,
                            const StringPool& strings, ThreadPool* pool) {
  RowBatch out;
  out.rows = count;
  std::vector<size_t> texts;  // columns
  for (size_t i = 0; i < columns.size(); ++i) {
    const RowColumn& c = rows.columns[i];
    ColumnVector v;
    v.type = columns[i].type;
    if (!c.null.empty()) {
      v.null.assign(c.null.begin() + static_cast<ptrdiff_t>(first),
                    c.null.begin() + static_cast<ptrdiff_t>(first + count));
    }
    switch (v.type.storage()) {
      case StorageClass::kInt:
      case StorageClass::kFloat:
        v.fixed.assign(c.low.begin() + static_cast<ptrdiff_t>(first),
                       c.low.begin() + static_cast<ptrdiff_t>(first + count));
        break;
      case StorageClass::kWide:
        v.wide.resize(count);
        for (size_t k = 0; k < count; ++k) v.wide[k] = Make128(c.high[first + k], c.low[first + k]);
        break;
      case StorageClass::kText:
        texts.push_back(i);
        break;
    }
    out.columns.push_back(std::move(v));
  }
  TESSERA_TRY(DecodeTexts(rows, texts, first, strings, pool, &out));
  return out;
}

}  // namespace tessera::vm
