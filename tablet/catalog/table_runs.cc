// RunsOf: a table read as the runs of one of its columns.
#include <algorithm>
#include <memory>
#include <vector>

#include "tablet/catalog/table_info.h"
#include "tablet/chunk/tablet_format.h"

namespace tessera {
namespace {

Result<std::shared_ptr<const TableInfo>> MakeRuns(const TableInfo& table, int column,
                                                  const std::vector<int32_t>* runs) {
  auto out = std::make_shared<TableInfo>(table);
  out->runs_of = column;
  out->rows = 0;
  for (size_t t = 0; t < table.tablets.size(); ++t) {
    TESSERA_ASSIGN(out->tablets[t],
                   table.tablets[t]->Runs(column, runs == nullptr ? 0 : static_cast<uint32_t>((*runs)[t])));
    out->rows += out->tablets[t]->rows();
  }
  out->schema.columns.push_back({"(rows of a run)", SqlType::Of(TypeId::kBigint), true});
  ColumnStatistics counts;
  counts.has_range = true;
  counts.min = 1;
  counts.max = kGreatestTabletRows;
  counts.distinct = std::min<uint64_t>(out->rows, kGreatestTabletRows);
  out->statistics.push_back(counts);
  for (ColumnStatistics& s : out->statistics) s.distinct = std::min(s.distinct, out->rows);
  return std::shared_ptr<const TableInfo>(std::move(out));
}

/// Whether the tablets may have that many runs.
bool MayBeRuns(const TableInfo& table, const std::vector<int32_t>& runs) {
  if (runs.size() != table.tablets.size()) return false;
  for (size_t t = 0; t < runs.size(); ++t) {
    if (runs[t] <= 0 || static_cast<uint32_t>(runs[t]) > table.tablets[t]->rows()) return false;
  }
  return true;
}

bool HasRuns(const TableInfo& table, const std::vector<int32_t>& runs) {
  return std::ranges::equal(table.tablets, runs, {}, [](const auto& t) { return static_cast<int32_t>(t->rows()); });
}

}  // namespace

Result<std::shared_ptr<const TableInfo>> RunsOf(const TableInfo& table, int column, const std::vector<int32_t>* runs) {
  if (column < 0 || static_cast<size_t>(column) >= table.schema.columns.size() || table.runs_of >= 0 ||
      (runs != nullptr && !MayBeRuns(table, *runs)))
    return Status(ErrorCode::kCorrupt, "table \"" + table.schema.name + "\" has no such runs");
  std::shared_ptr<const TableInfo> made = table.runs.Find(column);
  if (made != nullptr && (runs == nullptr || HasRuns(*made, *runs))) return made;
  TESSERA_ASSIGN(made, MakeRuns(table, column, runs));
  return table.runs.Keep(column, std::move(made));
}

}  // namespace tessera
