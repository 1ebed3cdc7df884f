#include "tablet/file_keys.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/values/row_batch.h"

namespace tessera {
namespace {

bool IsInteger(const TableInfo& table, size_t column) { return table.schema.columns[column].type.IsInteger(); }

/// Whether the row groups' ranges allow that the column never descends, as far as that is said without reading it.
bool MayAscend(const TableInfo& table, int column) {
  std::optional<int128_t> last;
  for (const std::shared_ptr<const Tablet>& tablet : table.tablets) {
    const Result<ChunkPointer> described = tablet->Describe(column);
    if (!described.ok() || (*described)->has_nulls || (*described)->min > (*described)->max) return false;
    if (last && (*described)->min < *last) return false;
    last = (*described)->max;
  }
  return true;
}

/// More rows that are equal in the first column of two are no key: it would take long to compare them.
constexpr size_t kMostEqual = 1000;

/// What is left to be compared with the tablets beside it.
struct Edges {
  int64_t first = 0, last = 0;                 ///< of the first column
  std::vector<int64_t> with_first, with_last;  ///< of the second: the values beside those
  bool is_key = false;
};

bool AllDiffer(std::vector<int64_t> values) {
  std::ranges::sort(values);
  return std::ranges::adjacent_find(values) == values.end();
}

/// Of rows that are equal in the first column the second differs.
Edges LookAt(const ColumnVector& first, const ColumnVector* second) {
  Edges edges;
  const std::vector<int64_t>& a = first.fixed;
  edges.first = a.front();
  edges.last = a.back();
  for (size_t begin = 0, end = 0; begin < a.size(); begin = end) {
    for (end = begin + 1; end < a.size() && a[end] == a[begin];) ++end;
    if (end < a.size() && a[end] < a[begin]) return edges;
    if (second == nullptr) {
      if (end - begin > 1) return edges;
      continue;
    }
    if (end - begin > kMostEqual) return edges;
    const auto from = second->fixed.begin();
    std::vector<int64_t> run;
    if (end - begin > 1 || begin == 0 || end == a.size())
      run.assign(from + static_cast<int64_t>(begin), from + static_cast<int64_t>(end));
    if (run.size() > 1 && !AllDiffer(run)) return edges;
    if (begin == 0) edges.with_first = run;
    if (end == a.size()) edges.with_last = std::move(run);
  }
  edges.is_key = true;
  return edges;
}

Result<Edges> LookAt(const Tablet& tablet, const std::vector<int>& key) {
  std::vector<ColumnVector> values(key.size());
  for (size_t i = 0; i < key.size(); ++i) {
    TESSERA_ASSIGN(const ChunkPointer chunk, tablet.Chunk(key[i]));
    if (chunk->null_count > 0) return Edges();
    values[i].type = chunk->type;
    DecodeChunk(*chunk, 0, tablet.rows(), &values[i]);
  }
  return LookAt(values[0], values.size() > 1 ? &values[1] : nullptr);
}

/// Whether the last rows of tablets and the first of the next ones leave it a key.
bool AreKeysTogether(const std::vector<Edges>& all) {
  std::vector<int64_t> open;  // of the second column: beside the last value of the first one
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].is_key || (i > 0 && all[i].first < all[i - 1].last)) return false;
    const bool goes_on = i > 0 && all[i].first == all[i - 1].last;
    if (goes_on && all[i].with_first.empty()) return false;
    if (!goes_on) open.clear();
    open.insert(open.end(), all[i].with_first.begin(), all[i].with_first.end());
    if (goes_on && (open.size() > kMostEqual || !AllDiffer(open))) return false;
    if (all[i].first != all[i].last) open = all[i].with_last;
  }
  return true;
}

Result<bool> IsKey(const TableInfo& table, const std::vector<int>& key, const CopyFromOptions& options) {
  std::vector<Edges> all(table.tablets.size());
  std::atomic<bool> fails{false};
  const auto look = [&](size_t i) -> Status {
    if (options.cancel != nullptr && *options.cancel) return Cancelled();
    if (fails) return {};
    const Result<Edges> edges = LookAt(*table.tablets[i], key);
    if (!edges.ok() || !edges->is_key) {
      fails = true;
      return {};
    }
    all[i] = *edges;
    return {};
  };
  // What is none mostly shows soon.
  TESSERA_TRY(look(0));
  ThreadPool pool(options.threads);
  if (!fails) TESSERA_TRY(ForEach(&pool, all.size() - 1, [&](size_t i) { return look(i + 1); }));
  return !fails && AreKeysTogether(all);
}

}  // namespace

Result<std::vector<std::vector<int>>> FileKeys::Find(const TableInfo& table, const std::vector<bool>& read,
                                                     const CopyFromOptions& options) {
  std::vector<std::vector<int>> found;
  if (table.tablets.empty()) return found;
  const MemoryPurpose purpose("keys of files");
  const auto look = [&](std::vector<int> key) -> Status {
    if (!tried_.insert(key).second) return {};
    const TableSchema& schema = table.schema;
    const bool is_known =
        key == schema.primary_key || std::ranges::count(schema.unique_keys, key, &UniqueKey::columns) > 0;
    if (is_known && key.size() == 1) unique_.insert(key[0]);
    if (is_known) return {};
    TESSERA_ASSIGN(const bool is_key, IsKey(table, key, options));
    if (is_key && key.size() == 1) unique_.insert(key[0]);
    if (is_key) found.push_back(std::move(key));
    return {};
  };
  std::vector<int> integers;
  for (size_t c = 0; c < std::min(read.size(), table.schema.columns.size()); ++c) {
    if (read[c] && IsInteger(table, c)) integers.push_back(static_cast<int>(c));
  }
  for (const int column : integers) {
    if (looked_at_.insert(column).second && MayAscend(table, column)) ascending_.insert(column);
    if (ascending_.contains(column)) TESSERA_TRY(look({column}));
  }
  for (const int first : integers) {
    for (const int second : integers) {
      if (first != second && ascending_.contains(first) && !unique_.contains(first) && !unique_.contains(second))
        TESSERA_TRY(look({first, second}));
    }
  }
  return found;
}

}  // namespace tessera
