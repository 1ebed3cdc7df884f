// Decides in what order the relations of a block are joined, by which keys, and where each predicate is tested. Private
// to compiler/.
//
// There are two ways. If equalities connect all relations, join_search.h looks for the cheapest tree of joins.
// Otherwise, or if join_strategy makes equalities conditions on pairs, the joins are a chain: the largest relation
// drives, and the others follow, the most selective first.
//
// Start at: OrderJoins. Pure functions; any thread.
#pragma once

#include "compiler/plan/join_graph.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/plan_options.h"

namespace tessera {

/// A plan with driver, filters, joins in their order, and the estimates `rows` and `joined_rows`. Where the order depends on
/// strategies, it has them. Only result_rows of the plans in `derived` is read.
Plan OrderJoins(const Query& q, const PlanOptions& options, const DerivedPlans& derived);

}  // namespace tessera
