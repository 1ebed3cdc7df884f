// Turns subqueries in expressions into relations of their block, joined by JoinKind::kLeft, kSemi, kAnti or kMark.
// Private to compiler/.
//
// A subquery that refers to columns of the block around it is first made independent of it: see decorrelate.h.
//
// Start at: Unnest. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// Replaces the subqueries in all expressions of the tree of blocks under `query`, in the innermost blocks first. To be
/// called once, for the outermost block. Errors: kUnsupported, naming a subquery that cannot be decorrelated.
Status Unnest(Query* query);

}  // namespace tessera
