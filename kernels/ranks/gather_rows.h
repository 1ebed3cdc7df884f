// Rows of all ranks' devices on each of them. Private to kernels/.
//
// Each rank packs the rows of all tables into one piece of memory, which goes to every other rank.
//
// Start at: GatherRows. REQUIRES: the device's mutex is held; all ranks call it together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/ranks/rank_links.h"
#include "kernels/rows/device_rows.h"
#include "kernels/rows/pack_rows.h"
#include "tablet/values/types.h"
#include "vm/shares/exchange.h"

namespace tessera::kernels {

struct RowsToGather {
  const std::vector<SqlType>* columns = nullptr;
  std::vector<PackedRows> packed;  ///< each rank's, which all ranks know
  DeviceRows* rows = nullptr;      ///< this rank's; after the call those of all, rank by rank

  /// By rank.
  std::vector<uint64_t> RowsOf() const {
    std::vector<uint64_t> counts;
    for (const PackedRows& p : packed) counts.push_back(p.rows());
    return counts;
  }
  /// Those of lower ranks.
  uint64_t RowsBefore(size_t rank) const {
    return std::accumulate(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(rank), uint64_t{0},
                           [](uint64_t n, const PackedRows& p) { return n + p.rows(); });
  }
};

/// `mine`: an error of this rank, which then is that of all. Errors are the same on all ranks, but for what a copy said.
Status GatherRows(GpuDevice* gpu, RankLinks* links, vm::Exchange* exchange, Status mine,
                  std::vector<RowsToGather>* tables);

}  // namespace tessera::kernels
