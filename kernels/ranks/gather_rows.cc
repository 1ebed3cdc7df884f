#include "kernels/ranks/gather_rows.h"

#include <algorithm>

namespace tessera::kernels {
namespace {

/// Room for all rows, with this rank's in their place.
Status MakeRoom(GpuDevice* gpu, const RowsToGather& table, size_t own, DeviceRows* all) {
  const uint64_t before = table.RowsBefore(own), total = table.RowsBefore(table.packed.size());
  TESSERA_TRY(all->Allocate(gpu, *table.columns, std::max<uint64_t>(total, 1)));
  all->set_rows(total);
  return all->Put(*table.rows, before, gpu->stream);
}

}  // namespace

Status GatherRows(GpuDevice* gpu, RankLinks* links, vm::Exchange* exchange, Status mine,
                  std::vector<RowsToGather>* tables) {
  const auto ranks = static_cast<size_t>(exchange->ranks()), own = static_cast<size_t>(exchange->rank());
  std::vector<DeviceRows> all(tables->size());
  std::vector<RunBuffer> packed(ranks);  // own: what is sent to all, else what comes
  std::vector<std::vector<DeviceBytes>> outgoing(ranks), incoming(ranks);
  for (size_t r = 0; r < ranks && mine.ok(); ++r) {
    uint64_t bytes = 0;
    for (const RowsToGather& table : *tables) bytes += table.packed[r].bytes();
    mine = packed[r].Allocate(gpu, bytes);
    if (r != own) incoming[r].push_back({packed[r].As<void>(), bytes});
    for (size_t to = 0; r == own && to < ranks; ++to) {
      if (to != own) outgoing[to].push_back({packed[own].As<void>(), bytes});
    }
  }
  if (mine.ok()) {
    mine = [&]() -> Status {
      uint8_t* to = packed[own].As<uint8_t>();
      for (size_t t = 0; t < tables->size(); ++t) {
        const RowsToGather& table = (*tables)[t];
        TESSERA_TRY(MakeRoom(gpu, table, own, &all[t]));
        CUDA_TRY(StartPack(table.packed[own], table.rows->columns(), to, gpu->stream));
        to += table.packed[own].bytes();
      }
      return Status::Ok();
    }();
  }
  TESSERA_TRY(links->Agree(std::move(mine), exchange));
  TESSERA_TRY(links->Move(outgoing, incoming, exchange, gpu->stream));
  for (size_t r = 0; r < ranks; ++r) {
    const uint8_t* from = packed[r].As<uint8_t>();
    for (size_t t = 0; t < tables->size() && r != own; ++t) {
      const RowsToGather& table = (*tables)[t];
      CUDA_TRY(StartUnpack(table.packed[r], from, all[t].columns(), table.RowsBefore(r), gpu->stream));
      from += table.packed[r].bytes();
    }
  }
  for (size_t t = 0; t < tables->size(); ++t) swap(all[t], *(*tables)[t].rows);
  return Status::Ok();
}

}  // namespace tessera::kernels
