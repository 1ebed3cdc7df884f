#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"

namespace tessera {

Result<std::shared_ptr<const ColumnRanges>> RangesOf(const TableInfo& table, int column) {
  if (std::shared_ptr<const ColumnRanges> known = table.ranges.Find(column); known != nullptr) return known;
  auto ranges = std::make_shared<ColumnRanges>();
  for (const auto& tablet : table.tablets) {
    TESSERA_ASSIGN(const ChunkPointer chunk, tablet->Describe(column));
    if (chunk->type.storage() != StorageClass::kInt)
      return Status(ErrorCode::kUnsupported, "a chunk of " + tablet->path() + " does not have integers");
    ColumnRange& range = ranges->emplace_back();
    if (chunk->min <= chunk->max) range = {static_cast<int64_t>(chunk->min), static_cast<int64_t>(chunk->max)};
  }
  return table.ranges.Keep(column, std::move(ranges));
}

}  // namespace tessera
