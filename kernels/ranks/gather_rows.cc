#include "kernels/ranks/gather_rows.h"

#include <numeric>

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

/// Room for all rows, with this rank's in front.
Status MakeRoom(GpuDevice* gpu, const RowsToGather& table, uint64_t total, DeviceRows* all) {
  TESSERA_TRY(all->Allocate(gpu, *table.columns, std::max<uint64_t>(total, 1)));
  TESSERA_TRY(all->CopyFrom(*table.rows, table.rows->rows(), gpu->stream));
  all->set_rows(total);
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
    mine = MakeRoom(gpu, table, std::accumulate(table.counts.begin(), table.counts.end(), uint64_t{0}), &all[t]);
    uint64_t at = table.counts[own];
    for (size_t r = 0; r < ranks && mine.ok(); ++r) {
      if (r == own) continue;
      AddBytes(*table.rows, *table.columns, 0, table.counts[own], &outgoing[r]);
      AddBytes(all[t], *table.columns, at, table.counts[r], &incoming[r]);
      at += table.counts[r];
    }
  }
  TESSERA_TRY(links->Agree(std::move(mine), exchange));
  TESSERA_TRY(links->Move(outgoing, incoming, exchange, gpu->stream));
  for (size_t t = 0; t < tables->size(); ++t) swap(all[t], *(*tables)[t].rows);
  return Status::Ok();
}

}  // namespace tessera::kernels
