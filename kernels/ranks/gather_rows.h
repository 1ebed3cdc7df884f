// Rows of all ranks' devices on each of them. Private to kernels/.
//
// Start at: GatherRows. REQUIRES: the device's mutex is held; all ranks call it together.
#pragma once

#include <cstdint>
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
  DeviceRows* rows = nullptr;    ///< this rank's; after the call those of all ranks, this one's first
};

/// `mine`: an error of this rank, which then is that of all. Errors are the same on all ranks, but for what a copy said.
Status GatherRows(GpuDevice* gpu, RankLinks* links, vm::Exchange* exchange, Status mine,
                  std::vector<RowsToGather>* tables);

}  // namespace tessera::kernels
