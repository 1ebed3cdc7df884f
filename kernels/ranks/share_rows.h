// A rank's share of rows that all ranks have on their devices, one row after the other. Private to kernels/.
//
// Start at: TakeShare. REQUIRES: the device's mutex is held.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/rows/row_source.h"
#include "vm/shares/source_shares.h"

namespace tessera::kernels {

/// Copies the share of `from`, whose columns are in `shapes`, to *rows, which is empty before, and returns it as a source.
tessera::Result<RowSource> TakeShare(GpuDevice* gpu, const vm::SourceShare& share, const std::vector<SqlType>& columns,
                                     const DeviceRows& from, std::vector<PayloadShape> shapes, DeviceRows* rows);

/// order[i] becomes the number of the share's i-th row.
cudaError_t StartListShare(const vm::SourceShare& share, uint32_t* order, cudaStream_t stream);

}  // namespace tessera::kernels
