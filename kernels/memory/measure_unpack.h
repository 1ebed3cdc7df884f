// How long the kernels of unpack.h take. Private to kernels/.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "tablet/chunk/chunk.h"

namespace tessera::kernels {

/// See Gpu::MeasureUnpack. REQUIRES: `gpu` is open, and its mutex held.
tessera::Result<double> MeasureUnpack(const Chunk& chunk, uint64_t bytes, GpuDevice* gpu, std::vector<uint8_t>* codes);

}  // namespace tessera::kernels
