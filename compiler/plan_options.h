// What the planner may choose. The session sets it by SET.
//
// Start at: PlanOptions. Plain data.
#pragma once

#include <cstdint>

namespace tessera {

/// SET join_strategy: how joins find their pairs.
enum class JoinChoice : uint8_t {
  kAuto,  ///< probes where there are equalities; other inner joins are grids where they can be
  kHash,  ///< probes; a join without an equality is refused
  kDp,    ///< as kGrid, the work launched from the GPU
  kGrid,  ///< inner joins compare all pairs, in units cut from both sides
  kLoop,  ///< all joins compare all pairs, row by row of the build side, on the host
};

struct PlanOptions {
  JoinChoice join = JoinChoice::kAuto;
  /// The sides of a grid are sorted, so that the column ranges of its units tell which of them have no match.
  bool grid_pruning = true;
};

}  // namespace tessera
