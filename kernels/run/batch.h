// The tablets of one launch, on their way through a section's run: fed, planned, launched. Private to kernels/.
//
// Start at: TabletBatch (what is read), Batch (and how).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/join/probe_partition.h"
#include "kernels/launch/launch.h"
#include "kernels/memory/arena.h"
#include "kernels/memory/cached_pieces.h"
#include "kernels/memory/copy_parts.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/plan/launch_plan.h"
#include "kernels/run/block_turns.h"
#include "kernels/text/text_filter.h"
#include "kernels/unpack/bit_stream.h"
#include "vm/encode/section_encoder.h"

namespace tessera::kernels {

/// Batches that are in flight at a time. At a budget of 256 MB two have 115 MB each, not much more than pinned memory
/// holds, and the threads that copy wait for the next one (SSB q4.1 streamed at scale 20: 51 to 53 ms, 49 to 50 with
/// four).
inline constexpr size_t kBatches = 4;

/// What a launch needs of a slot.
struct SparseSlot {
  bool is_sparse = false;    ///< so little that to copy the column would take longer than to read it over the link
  double touched = 1;        ///< the part of the column's sectors that is read
  bool may_be_bits = false;  ///< its codes may be streams of bits
};
/// Those of a launch of such tablets; empty: none.
using FindSparseSlots = std::function<std::vector<SparseSlot>(const vm::TabletEncoding&)>;

/// Texts on the device, and the predicate that they are tested for.
struct TextPiece {
  size_t tablet = 0;  ///< of the batch
  size_t predicate = 0;
  const uint8_t* offsets = nullptr;
  const uint8_t* texts = nullptr;
  uint8_t* set = nullptr;  ///< once the launch is built
};

/// Tablets whose columns are on the device, or on their way there.
struct TabletBatch {
  std::vector<size_t> numbers;  ///< of the tablets in the table
  std::vector<vm::TabletEncoding> tablets;
  std::vector<const uint8_t*> codes, nulls;  ///< [tablet][slot]: device addresses
  std::vector<BitStream> bits;               ///< the same: what codes are that are read where they are packed
  std::vector<const int64_t*> highs;         ///< of rows, [slot]: the upper halves of wide values; of tablets: empty
  std::vector<TextPiece> texts;              ///< by tablet and predicate
  std::vector<CachedPiece*> pinned;
  CopiesList copies;  ///< of its columns, until it starts

  /// Forgets the tablets. What is pinned stays pinned.
  void ClearTablets() {
    numbers.clear();
    tablets.clear();
    codes.clear();
    highs.clear();
    nulls.clear();
    bits.clear();
    texts.clear();
  }
  uint64_t rows() const {
    uint64_t rows = 0;
    for (const vm::TabletEncoding& t : tablets) rows += t.rows;
    return rows;
  }
};

/// The tablets of one launch and all that the device must know of them.
struct Batch {
  TabletBatch input;
  ProbePartition partition;  ///< what the tablets have become, if it is used
  RunBuffer partitioned;     ///< its memory
  TextFilter text_filter;    ///< runs before the launch starts for the first time; without jobs: it has
  RunBuffer text_sets;       ///< what it makes
  LaunchPlan plan;
  Launch launch;
  uint32_t blocks = 0;
  BlockTurns turns;
  Arena* arena = nullptr;
  size_t control = 0;  ///< offset of the counters in the arena (builds have theirs elsewhere), right after the partial
                       ///< aggregates
};

}  // namespace tessera::kernels
