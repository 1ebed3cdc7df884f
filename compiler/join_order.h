// Decides in what order the relations of a block are joined, by which keys, and where each predicate is tested. Private
// to compiler/.
//
// Start at: OrderJoins. Pure functions; any thread.
#pragma once

#include <memory>
#include <vector>

#include "compiler/plan.h"
#include "compiler/plan_options.h"

namespace tessera {

/// For each relation the plan of its derived table, or nullptr for a stored table.
using DerivedPlans = std::vector<std::shared_ptr<Plan>>;

/// A plan with driver, filters, joins in their order, and the estimates `rows` and `joined_rows`. It has no strategies
/// yet. Only result_rows of the plans in `derived` is read.
Plan OrderJoins(const Query& q, const PlanOptions& options, const DerivedPlans& derived);

/// Whether equalities of inner joins are conditions on pairs, and not keys: join_strategy is dp, grid or loop.
bool KeysAreConditions(const PlanOptions& options);

}  // namespace tessera
