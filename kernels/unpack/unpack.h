// Packed codes (tablet/schemes/packed_stream.h) that have come to the device become codes there, so that what crosses
// the link is what lies on disk. A scheme is a kernel or two over whole streams; the streams between them lie in scratch
// memory. Streams that nobody has unpacked before may be anything that ParsePackedStream lets pass: the kernels stay
// within their bounds, and count what is wrong. Private to kernels/.
//
// Start at: PlanUnpack, StartUnpack, StartCheck.
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
  uint64_t greatest = 0;       ///< code that is not NULL
  uint32_t nulls = 0;          ///< rows that are NULL
};

/// What unpacking and StartCheck found.
struct FoundCodes {
  uint32_t wrong;  ///< not 0: the stream contradicts itself, or has codes without a meaning
  uint32_t nulls;
};

/// For the codes of a chunk whose packed_codes have the right checksum.
tessera::Result<UnpackPlan> PlanUnpack(const Chunk& chunk);

/// Unpacks `packed` to plan.rows codes at `out`, which has room for a multiple of 128 bytes. All are addresses on the
/// device that are multiples of 128; `scratch` has plan.scratch_bytes. `found`: on the device; nullptr: the stream is
/// known to be right.
cudaError_t StartUnpack(const UnpackPlan& plan, const uint8_t* packed, uint8_t* out, uint8_t* scratch,
                        FoundCodes* found, cudaStream_t stream);

/// Looks at the codes that were unpacked, and adds to `found`.
cudaError_t StartCheck(const UnpackPlan& plan, const uint8_t* codes, FoundCodes* found, cudaStream_t stream);
/// Whether the codes are those that the chunk says.
inline bool AreRight(const UnpackPlan& plan, const FoundCodes& found) {
  return found.wrong == 0 && found.nulls == plan.nulls;
}

}  // namespace tessera::kernels
