// Rows of all ranks' devices on each of them. Private to kernels/.
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
#include "vm/vm.h"

namespace tessera::kernels {

struct RowsToGather {
  const std::vector<SqlType>* columns = nullptr;
  std::vector<uint64_t> counts;  ///< of each rank's rows, which all ranks know
  DeviceRows* rows = nullptr;    ///< this rank's; after the call those of all, rank by rank

  /// Those of lower ranks.
  uint64_t RowsBefore(size_t rank) const {
    return std::accumulate(counts.begin(), counts.begin() + static_cast<ptrdiff_t>(rank), uint64_t{0});
  }
};

/// `mine`: an error of this rank, which then is that of all. Errors are the same on all ranks, but for what a copy said.
Status GatherRows(GpuDevice* gpu, RankLinks* links, vm::Exchange* exchange, Status mine,
                  std::vector<RowsToGather>* tables);

}  // namespace tessera::kernels
