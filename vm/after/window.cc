#include "vm/after/window.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "vm/after/window_values.h"
#include "vm/meaning/aggregate.h"
#include "vm/meaning/meaning.h"
#include "vm/rows/sort_keys.h"

namespace tessera::vm {
namespace {

/// Rows that are worth a turn of a thread.
constexpr size_t kTurnRows = 1 << 16;

/// Whether rows a and b have the same value in the column, where NULLs are the same.
bool IsSame(const RowColumn& c, size_t a, size_t b) {
  if (!c.null.empty()) {
    if (c.null[a] != c.null[b]) return false;
    if (c.null[a] != 0) return true;
  }
  if (c.type.storage() == StorageClass::kFloat)
    return FloatEqual(std::bit_cast<double>(c.low[a]), std::bit_cast<double>(c.low[b]));
  return c.low[a] == c.low[b] && (c.high.empty() || c.high[a] == c.high[b]);
}

Status FindDifferences(ThreadPool* pool, OrderedRows* rows) {
  const size_t n = rows->rows.rows;
  rows->differs.assign(n, OrderedRows::kSame);
  const std::vector<SortKey>& order = rows->section.after.order;
  return ForEach(n < kTurnRows ? nullptr : pool, (n + kTurnRows - 1) / kTurnRows, [&](size_t turn) {
    ThrowIfInterrupted();
    const size_t begin = std::max<size_t>(turn * kTurnRows, 1), end = std::min(n, (turn + 1) * kTurnRows);
    for (size_t k = order.size(); k-- > 0;) {
      const RowColumn& c = rows->column(order[k].column);
      for (size_t i = begin; i < end; ++i) {
        if (!IsSame(c, i - 1, i)) rows->differs[i] = static_cast<uint8_t>(k);
      }
    }
    return Status::Ok();
  });
}

/// Rows in turns of threads, each of which begins with a partition; the last one ends with the rows.
std::vector<size_t> CutAtPartitions(const OrderedRows& rows, int32_t partition_keys) {
  std::vector<size_t> begins = {0};
  const size_t n = rows.rows.rows;
  for (size_t i = kTurnRows; i < n; ++i) {
    ThrowIfInterrupted(i);
    if (rows.differs[i] >= partition_keys) continue;
    begins.push_back(i);
    i += kTurnRows;
  }
  begins.push_back(n);
  return begins;
}

}  // namespace

const char* NameOf(WindowFunction function) {
  static constexpr const char* kNames[] = {
#define WINDOW_FUNCTION(Name, name, ...) name,
#include "vm/program/window_functions.def"
      "aggregate", "fold"};
  return kNames[static_cast<size_t>(function)];
}

std::vector<SqlType> TypesOf(const WindowSpec& window) {
  std::vector<SqlType> types = {window.type};
  if (window.function != WindowFunction::kAggregate) return types;
  const std::span<const AccumulatorSpec> classes = ColumnClasses(window.aggregate);
  for (size_t k = 1; k < classes.size(); ++k) types.push_back(WordType(classes[k]));
  return types;
}

std::vector<SqlType> TypesOfRows(const Section& section) {
  std::vector<SqlType> types = section.columns;
  for (const WindowSpec& w : section.after.windows) {
    for (const SqlType& t : TypesOf(w)) types.push_back(t);
  }
  return types;
}

Status AddWindows(const Section& section, const std::vector<Value>& constants, StringPool* strings, ThreadPool* pool,
                  RowSet* rows) {
  const MemoryPurpose purpose("window functions");
  const size_t n = rows->rows;
  ThreadPool* const shared = n < kTurnRows ? nullptr : pool;
  OrderedRows ordered{section, *rows, {}};
  TESSERA_TRY(FindDifferences(pool, &ordered));
  const std::vector<SqlType> types = TypesOfRows(section);
  std::vector<RowColumn> added(types.size() - section.columns.size());
  TESSERA_TRY(ForEach(shared, 2 * added.size(), [&](size_t job) {
    RowColumn& c = added[job / 2];
    if (job % 2 == 0) {
      c.type = types[section.columns.size() + job / 2];
      c.low.resize(n);
      c.null.resize(n);
    } else if (IsWide(types[section.columns.size() + job / 2])) {
      c.high.resize(n);
    }
    return Status::Ok();
  }));
  size_t first = 0;
  for (const WindowSpec& w : section.after.windows) {
    const size_t columns = TypesOf(w).size();
    WindowTask task{ordered, w, *strings, std::span(added).subspan(first, columns)};
    if (w.fold_constant >= 0) task.constant = &constants[static_cast<size_t>(w.fold_constant)];
    std::optional<SortKeys> order;
    if (OrdersValues(w) && (w.distinct || !w.order.empty())) {
      const std::vector<SortKey> by_value = {{w.value}};
      TESSERA_ASSIGN(order,
                     SortKeys::Make(w.function == WindowFunction::kFold ? w.order : by_value, *strings, *rows, shared));
      task.order = &*order;
    }
    const std::vector<size_t> begins = CutAtPartitions(ordered, w.partition_keys);
    TESSERA_TRY(ForEach(shared, begins.size() - 1,
                        [&](size_t turn) { return EvaluateWindow(task, begins[turn], begins[turn + 1]); }));
    first += columns;
  }
  for (RowColumn& c : added) {
    if (std::find(c.null.begin(), c.null.end(), uint8_t{1}) == c.null.end()) c.null = {};
    rows->columns.push_back(std::move(c));
  }
  return Status::Ok();
}

}  // namespace tessera::vm
