// Packed codes (tablet/schemes/packed_stream.h) that have come to the device become codes there, so that what crosses
// the link is what lies on disk. A scheme is a kernel or two over whole streams; the streams between them lie in scratch
// memory. Private to kernels/.
//
// Start at: PlanUnpack, StartUnpack.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/status.h"
#include "tablet/schemes/packed_stream.h"
#include "tablet/tablet.h"

namespace tessera::kernels {

struct UnpackPlan {
  PackedTree tree;
  int width = 0;  ///< bytes a code
  uint32_t rows = 0;
  ScaledCodes scaled;
  uint64_t packed_bytes = 0;
  uint64_t scratch_bytes = 0;  ///< beside the packed stream
};

/// For the codes of a chunk whose packed_codes are verified.
tessera::Result<UnpackPlan> PlanUnpack(const Chunk& chunk);

/// Unpacks `packed` to plan.rows codes at `out`, which has room for a multiple of 128 bytes. All are addresses on the
/// device that are multiples of 128; `scratch` has plan.scratch_bytes.
cudaError_t StartUnpack(const UnpackPlan& plan, const uint8_t* packed, uint8_t* out, uint8_t* scratch,
                        cudaStream_t stream);

}  // namespace tessera::kernels
