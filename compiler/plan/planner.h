// From a bound query to its plan. Private to compiler/.
//
// The driver is the largest relation of those joined by inner joins; every other relation is built into a join table
// from its own filtered scan, and they are probed one after another, the most selective first. A relation that is not joined by an inner
// join comes as soon as all relations in its condition are joined. If join_strategy asks for grids, equalities are not
// keys but conditions on pairs.
//
// Start at: MakePlan; then join_order.h and join_strategy.h. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/plan_options.h"

namespace tessera {

/// Plans the block and all blocks inside it, each once. `query` must outlive the plan. Errors: kUnsupported, a block
/// cannot be run with options.join.
Result<Plan> MakePlan(const Query& query, const PlanOptions& options);

}  // namespace tessera
