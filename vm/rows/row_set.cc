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

}  // namespace tessera::vm
