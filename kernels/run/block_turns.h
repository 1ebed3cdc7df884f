// Some blocks of a launch after the others: where the group table has no room for the groups that all blocks bring with
// one tile each, all of them together could fill it, and none would make progress. Then a few run at a time, and the
// cursors of the others wait on the host. Private to kernels/.
//
// Start at: BlockTurns::Begin.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

class BlockTurns {
 public:
  /// All blocks run at once: how each launch begins.
  void End() { turn_ = 0; }
  bool active() const { return turn_ > 0; }
  /// From now on `turn` of the launch's `blocks` run at a time. Fetches the cursors that they have left.
  Status Begin(const Launch& launch, uint32_t blocks, uint32_t turn, cudaStream_t stream);
  /// Brings the cursors of the blocks that ran to the host. REQUIRES: active.
  Status FetchCursors(const Launch& launch, cudaStream_t stream);
  /// Whether a block that had to wait has tiles left; false if all blocks run at once. `tiles`: of the launch.
  /// REQUIRES: the cursors are here.
  bool HasUnfinished(uint32_t tiles) const;
  /// Sends the cursors of the next blocks that have not finished, and lets the others rest. REQUIRES: active.
  Status SendTurn(const Launch& launch, uint32_t tiles, cudaStream_t stream);
  /// The table was emptied again: lets fewer blocks run if none has moved since the last time. false: one block alone
  /// does not move.
  bool Shrink();

 private:
  bool IsUnfinished(uint32_t block, uint32_t tiles) const;

  uint32_t turn_ = 0;              ///< blocks that run at a time; 0: all
  uint32_t blocks_ = 0;            ///< of the launch
  std::vector<uint32_t> cursors_;  ///< of all warps
  std::vector<bool> running_;      ///< which blocks have run
  uint32_t next_ = 0;              ///< the block with which the next turn begins
  bool moved_ = false;             ///< a warp has, since the group table was emptied
};

}  // namespace tessera::kernels
