#include "kernels/join/order_rows.h"

#include <cstdint>

#include "kernels/join/probe_partition.h"
#include "kernels/rows/sort_rows.h"

namespace tessera::kernels {
namespace {

/// The part of the free memory that a second copy of a table's rows may have while they are ordered.
constexpr uint64_t kOrderedShare = 4;

}  // namespace

Status SortTableRows(GpuDevice* gpu, const std::vector<SqlType>& columns, size_t by, const ColumnSummary* summaries,
                     DeviceRows* rows) {
  const uint64_t n = rows->rows();
  if (n < 2) return Status::Ok();
  const ColumnSummary known = by < kMaxSummaries ? summaries[by] : ColumnSummary{INT64_MIN, INT64_MAX, n};
  if (known.low > known.high) return Status::Ok();  // all NULL
  std::vector<SortPart> parts(2);
  parts[0].code = SortCode::kNull;
  parts[0].high = known.nulls > 0 ? 1 : 0;
  parts[1].values = rows->low(by);
  parts[0].null = parts[1].null = rows->null(by);
  if (columns[by].storage() == StorageClass::kFloat) {
    parts[1].code = SortCode::kFloat;
  } else {
    constexpr uint64_t kSign = uint64_t{1} << 63;
    parts[1].low = static_cast<uint64_t>(known.low) ^ kSign;
    parts[1].high = static_cast<uint64_t>(known.high) ^ kSign;
  }
  const uint32_t count = static_cast<uint32_t>(n);
  size_t scratch_bytes = 0;
  CUDA_TRY(SortScratchBytes(count, &scratch_bytes));
  RunBuffer scratch;
  TESSERA_TRY(scratch.Allocate(gpu, scratch_bytes));
  const uint32_t* order = nullptr;
  CUDA_TRY(StartSort(PackParts(parts), nullptr, count, scratch.As<void>(), scratch_bytes, &order, gpu->stream));
  DeviceRows sorted;
  TESSERA_TRY(sorted.Allocate(gpu, columns, n));
  sorted.set_rows(n);
  const uint32_t wide = static_cast<uint32_t>(CountWide(columns));
  CUDA_TRY(StartGather(rows->columns(), sorted.columns(), static_cast<uint32_t>(columns.size()) + wide,
                       static_cast<uint32_t>(columns.size()), order, count, gpu->stream));
  swap(sorted, *rows);
  return Status::Ok();
}

Result<bool> OrderRowsBySlots(GpuDevice* gpu, const vm::Section& builder, const ColumnSummary* summaries,
                              vm::JoinPartitioning partitioning, DeviceTable* table) {
  const JoinRecord& record = table->shape.record;
  DeviceRows& rows = table->rows;
  const uint64_t n = rows.rows();
  // (Values that are the payload itself are not filled in faster then than it takes to order the rows.)
  const bool can = record.rows_in_values && record.hashed == 0 && builder.keys > 0 && n > 1 && n < UINT32_MAX / 2;
  if (!can || !MayOrder(partitioning, record, gpu->limits.cache_bytes)) return false;
  if (n * RowBytes(builder.columns) > gpu->Room() / kOrderedShare) return false;
  const size_t columns = builder.columns.size();
  if (2 * columns + CountWide(builder.columns) > kMostRadixColumns) return false;
  struct Head {
    RadixSource sources[kMostRadixColumns];
    uint32_t first_tile = 0, rows = 0;
  } head;
  DeviceRows ordered;
  RunBuffer memory;
  if (!ordered.TryAllocate(gpu, builder.columns, n) ||
      !memory.TryAllocate(gpu, sizeof head + kMostRadixParts * sizeof(uint32_t)))
    return false;
  TESSERA_TRY(rows.ClearPadding(gpu->stream));
  ordered.set_rows(n);
  RadixPartition p;
  const auto move = [&](void* from, void* to, uint32_t width) {
    head.sources[p.columns].codes = static_cast<const uint8_t*>(from);
    head.sources[p.columns].width = width;
    p.to[p.columns++] = {static_cast<uint8_t*>(to), 0, width};
  };
  // (Keys come first, are not wide, and are not NULL.)
  for (size_t c = 0, wide = 0; c < columns; ++c) {
    move(rows.low(c), ordered.low(c), 8);
    const bool is_wide = IsWide(builder.columns[c]);
    if (is_wide) move(rows.high(wide), ordered.high(wide), 8);
    wide += is_wide ? 1 : 0;
    if (is_wide || c >= kMaxSummaries || summaries[c].nulls > 0) {
      move(rows.null(c), ordered.null(c), 1);
    } else {
      CUDA_TRY(cudaMemsetAsync(ordered.null(c), 0, n, gpu->stream));
    }
  }
  head.rows = p.rows = static_cast<uint32_t>(n);
  // (Pageable memory: the copy is done when the call returns.)
  CUDA_TRY(cudaMemcpyAsync(memory.As<void>(), &head, sizeof head, cudaMemcpyHostToDevice, gpu->stream));
  const Head* const at = memory.As<Head>();
  p.from = at->sources;
  p.first_tile = &at->first_tile;
  p.source_rows = &at->rows;
  p.next = reinterpret_cast<uint32_t*>(memory.As<Head>() + 1);
  p.sources = 1;
  p.tiles = (p.rows - 1) / kRadixTileRows + 1;
  SetKeys(record, std::vector<uint64_t>(static_cast<size_t>(builder.keys), 0), &p);
  CUDA_TRY(StartRadixPartition(p, gpu->info.multiprocessors, gpu->stream));
  swap(ordered, table->rows);
  return true;
}

}  // namespace tessera::kernels
