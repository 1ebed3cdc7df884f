// Packed codes (tablet/schemes/packed_stream.h) that have come to the device become codes there, so that what crosses
// the link is what lies on disk. A scheme is a step or two over whole streams. A step reads streams of bits (NS, also
// below FOR) where they lie; other streams between two steps lie in scratch memory. To start a kernel takes the host
// longer than it takes the device to unpack a small chunk, and a deep tree has twenty steps: so the chunks of a batch are
// unpacked together, and steps of one kind that do not wait for each other are one launch. Streams that were not
// unpacked before may be anything that ParsePackedStream lets pass: the kernels stay within their bounds, and count what
// is wrong. Private to kernels/.
//
// Start at: PlanUnpack, UnpackBatch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/schemes/packed_stream.h"

namespace tessera::kernels {

struct UnpackPlan {
  PackedTree tree;
  int width = 0;  ///< bytes a code
  uint32_t rows = 0;
  ScaledCodes scaled;
  uint64_t packed_bytes = 0;
  uint64_t scratch_bytes = 0;  ///< beside the packed stream; aligned
  uint64_t greatest = 0;       ///< code that is not NULL
  uint32_t nulls = 0;          ///< rows that are NULL
};

/// What unpacking found.
struct FoundCodes {
  uint32_t wrong;  ///< not 0: the stream contradicts itself, or has codes without a meaning
  uint32_t nulls;
};

/// What this many bytes take between others that are read or written in vectors.
constexpr uint64_t AlignedForUnpack(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

/// For the codes of a chunk whose packed_codes have the right checksum.
tessera::Result<UnpackPlan> PlanUnpack(const Chunk& chunk);

/// A stream that a step reads: values in words of 64 bits, or integers of the reader's width.
struct UnpackSource {
  static constexpr uint32_t kWhole = UINT32_MAX;
  const void* at = nullptr;
  uint64_t base = 0;       ///< is added to each value of `bits` bits
  uint32_t bits = kWhole;  ///< of a value; kWhole: integers
};

/// What a block of a kernel does a part of.
struct UnpackStep {
  UnpackSource in, other;
  void* tiles;  ///< of what is summed: see SummedTile
  void* out;
  FoundCodes* found;         ///< nullptr: is not checked
  uint64_t base;             ///< is added to each value
  uint64_t parameter, null;  ///< as of PackedNode
  ScaledCodes scaled;
  uint32_t* starts;         ///< of runs, see EndRuns
  uint32_t rows_per_block;  ///< the same
  uint32_t values;          ///< that are made, or looked at
  uint32_t count;           ///< values of the input that is not as long, or its power of ten
  uint32_t first_block;     ///< of the launch
};

class UnpackBatch {
 public:
  /// Unpacks `packed` to plan.rows codes at `out`, which has room for a multiple of 128 bytes. All are addresses on the
  /// device that are multiples of 128; `scratch` has plan.scratch_bytes. `found`: where to count what is wrong, also of
  /// the codes that were made; nullptr: the stream is known to be right.
  void Add(const UnpackPlan& plan, const uint8_t* packed, uint8_t* out, uint8_t* scratch, FoundCodes* found);
  /// After the last Add: the steps, which have to be on the device for Start.
  const std::vector<UnpackStep>& Finish();
  const std::vector<UnpackStep>& steps() const { return steps_; }
  /// `steps`: what Finish gave, on the device.
  cudaError_t Start(const UnpackStep* steps, cudaStream_t stream) const;

 private:
  friend class TreeSteps;
  using Launch = cudaError_t (*)(const UnpackStep* steps, uint32_t count, uint32_t blocks, cudaStream_t stream);
  struct Entry {
    uint32_t level;  ///< after all steps of lower levels
    Launch launch;
    uint32_t blocks;
    UnpackStep step;
  };
  struct Group {
    Launch launch;
    uint32_t first, count, blocks;
  };

  std::vector<Entry> entries_;
  std::vector<UnpackStep> steps_;
  std::vector<Group> groups_;
};

/// Whether the codes are those that the chunk says.
inline bool AreRight(const UnpackPlan& plan, const FoundCodes& found) {
  return found.wrong == 0 && found.nulls == plan.nulls;
}

}  // namespace tessera::kernels
