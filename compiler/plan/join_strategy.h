// How the joins of a block find their pairs: probes of hash tables, grids, loops. Private to compiler/.
//
// Start at: ChooseStrategies. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/plan_options.h"

namespace tessera {

/// Gives each join of the block its strategy. If the first join is a grid, also decides what is computed once for each
/// row instead of once for each pair, and by which columns the sides are sorted. Errors: kUnsupported, why options.join
/// cannot run the block.
Status ChooseStrategies(const PlanOptions& options, Plan* plan);

/// Whether a join without keys must compare pairs of rows. Otherwise one look at the join table answers for all of
/// them: whether it has a row, or its only row.
bool NeedsPairs(const Query& q, const JoinStep& step);

}  // namespace tessera
