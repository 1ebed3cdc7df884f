// The cheapest tree of joins for the relations of a block. Private to compiler/.
//
// A set of relations is a pipeline: one relation drives it, and others are looked up in join tables. The side that
// makes a join table is a pipeline itself. Every way to split a set into the pipeline and the side of its last join is
// tried, for up to kMostRelations relations (G. Moerkotte, T. Neumann, "Analysis of Two Existing and One New Dynamic
// Programming Algorithm for the Generation of Optimal Bushy Join Trees without Cross Products", VLDB 2006: DPsub);
// with more of them, the join that leaves the fewest rows is made first, again and again (L. Fegaras, "A New Heuristic
// for Optimizing Large Queries", DEXA 1998).
//
// Start at: SearchJoins. Pure functions; any thread.
#pragma once

#include "compiler/plan/join_graph.h"
#include "compiler/plan/plan.h"

namespace tessera {

/// Sets driver, joins with the strategy that costs least for each, and joined_rows of the plan. False, and the plan is left
/// as it is, if no relation is joined by an inner join or equalities do not connect those that are.
bool SearchJoins(const JoinGraph& graph, const PlanOptions& options, Plan* plan);

}  // namespace tessera
