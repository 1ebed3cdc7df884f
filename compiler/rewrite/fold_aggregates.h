// Aggregates that need all values of a group, as blocks that sort rows. Private to compiler/.
//
// A block that groups by k, with sum(x) and median(y), becomes
//
//   GROUP BY k: max(sum), max(median)             each column has one value that is not NULL, at most
//     rows of FROM, grouped by k:  k, sum(x), NULL
//     UNION ALL
//     rows of FROM, sorted by k and y, folded:  k, NULL, median(y)
//
// The rows of FROM are made once.
//
// Start at: FoldAggregates. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"
#include "vm/program/program.h"

namespace tessera {

/// Takes aggregates of StateRule::kValues out of the block and those inside it. After Unnest.
void FoldAggregates(Query* query);

/// What becomes of the values of such an aggregate; kNone for others.
vm::Section::Fold FoldOf(AggregateFunction function);

}  // namespace tessera
