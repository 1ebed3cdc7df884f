#include "kernels/ranks/gather_rows.h"

#include <algorithm>

namespace tessera::kernels {
namespace {

/// Rows [first, first + count), column by column, in the same order on all ranks.
void AddBytes(const DeviceRows& rows, const std::vector<SqlType>& columns, uint64_t first, uint64_t count,
              std::vector<DeviceBytes>* out) {
  if (count == 0) return;
  const size_t words = columns.size() + CountWide(columns);
  for (size_t c = 0; c < words; ++c) out->push_back({rows.low(c) + first, count * sizeof(uint64_t)});
  for (size_t c = 0; c < columns.size(); ++c) out->push_back({rows.null(c) + first, count});
}

/// Room for all rows, with this rank's in their place.
Status MakeRoom(GpuDevice* gpu, const RowsToGather& table, size_t own, DeviceRows* all) {
  const uint64_t before = table.RowsBefore(own), total = table.RowsBefore(table.counts.size());
  TESSERA_TRY(all->Allocate(gpu, *table.columns, std::max<uint64_t>(total, 1)));
  all->set_rows(total);
  const auto nulls = static_cast<uint32_t>(table.columns->size());
  const RowColumns to = all->columns();
  CUDA_TRY(StartGather(table.rows->columns(), {to.low + before, to.null + before, to.capacity},
                       nulls + static_cast<uint32_t>(CountWide(*table.columns)), nulls, nullptr,
                       static_cast<uint32_t>(table.counts[own]), gpu->stream));
  return Status::Ok();
}

}  // namespace

Status GatherRows(GpuDevice* gpu, RankLinks* links, vm::Exchange* exchange, Status mine,
                  std::vector<RowsToGather>* tables) {
  const auto ranks = static_cast<size_t>(exchange->ranks()), own = static_cast<size_t>(exchange->rank());
  std::vector<DeviceRows> all(tables->size());
  std::vector<std::vector<DeviceBytes>> outgoing(ranks), incoming(ranks);
  for (size_t t = 0; t < tables->size() && mine.ok(); ++t) {
    const RowsToGather& table = (*tables)[t];
    mine = MakeRoom(gpu, table, own, &all[t]);
    for (size_t r = 0; r < ranks && mine.ok(); ++r) {
      if (r == own) continue;
      AddBytes(*table.rows, *table.columns, 0, table.counts[own], &outgoing[r]);
      AddBytes(all[t], *table.columns, table.RowsBefore(r), table.counts[r], &incoming[r]);
    }
  }
  TESSERA_TRY(links->Agree(std::move(mine), exchange));
  TESSERA_TRY(links->Move(outgoing, incoming, exchange, gpu->stream));
  for (size_t t = 0; t < tables->size(); ++t) swap(all[t], *(*tables)[t].rows);
  return Status::Ok();
}

}  // namespace tessera::kernels
