#include "tablet/catalog/statistics_check.h"

#include <string>

#include "tablet/chunk/stored_range.h"

namespace tessera {

Status CheckStatistics(const TableRecord& table) {
  const uint64_t rows = table.rows();
  for (size_t c = 0; c < table.statistics.size(); ++c) {
    const ColumnSchema& column = table.schema.columns[c];
    const ColumnStatistics& s = table.statistics[c];
    const bool text = column.type.storage() == StorageClass::kText;
    bool possible =
        s.null_count <= rows && s.distinct <= rows - s.null_count && (!column.not_null || s.null_count == 0);
    possible &= s.has_range == (!text && s.null_count < rows);
    if (s.has_range) {
      const StoredRange range = StoredRangeOf(column.type);
      possible &= range.least <= s.min && s.min <= s.max && s.max <= range.greatest;
    }
    if (!possible) return {ErrorCode::kCorrupt, "impossible statistics of column " + std::to_string(c + 1)};
  }
  return {};
}

}  // namespace tessera
