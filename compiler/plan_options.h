// What the planner may choose, and what else a session's SET says of compiling.
//
// Start at: PlanOptions. Plain data.
#pragma once

#include <cstdint>

#include "tablet/time_zone.h"

namespace tessera {

/// SET join_strategy: how joins find their pairs.
enum class JoinChoice : uint8_t {
  kAuto,  ///< probes if there are equalities; other inner joins are grids if possible
  kHash,  ///< probes; a join without an equality is refused
  kDp,    ///< as kGrid, but the GPU itself launches the work
  kGrid,  ///< inner joins compare all pairs, in units cut from both sides
  kLoop,  ///< all joins compare all pairs, row by row of the build side, on the host
};

struct PlanOptions {
  JoinChoice join = JoinChoice::kAuto;
  /// Sort the sides of a grid, so that column ranges show which of its units have no match.
  bool grid_pruning = true;
  const TimeZone* zone = nullptr;  ///< the session's time zone; nullptr: UTC
};

}  // namespace tessera
