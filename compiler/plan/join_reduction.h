// Large sides of joins are restricted to the keys that can be looked up, and rows are dropped early that a side's own
// joins have dropped. Private to compiler/.
//
// A side is built before anything is known of the rows that will look into it. Where those come from a pipeline that
// leaves few of them, its keys are made first, by running the pipeline once more, and a semi join with them is the first
// join of the side ("magic sets", as in pushdown.h, here between sides of one block). If few rows come from there for
// what it costs to make them, the pipeline stores them instead: the keys are read from them, and the rest of the pipeline
// goes on with them.
//
// The other way round: a side that is looked up by several keys at once may be filtered by a join of its own on one of
// them. A semi join with that smaller table comes before the look-up then: it is a set of bits, and few rows are left.
//
// And across: rows that look into a side by a column may have looked into an earlier side of the pipeline by the same one.
// Then they have its keys, and a semi join with that side is the first join of the other one.
//
// Start at: RestrictSides. Pure functions; any thread.
#pragma once

#include "compiler/plan/join_graph.h"
#include "compiler/plan/plan.h"

namespace tessera {

/// Adds semi joins to the plan where they cost less than they save. REQUIRES: a plan of SearchJoins.
void RestrictSides(const JoinGraph& graph, Plan* plan);

}  // namespace tessera
