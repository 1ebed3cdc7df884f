// Subqueries in expressions become relations of the block that they stand in, joined by JoinKind::kLeft, kSemi, kAnti
// or kMark. Private to compiler/.
//
// One that refers to columns of the block around it is first made independent of it: see decorrelate.h.
//
// Start at: Unnest. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/bound_query.h"

namespace tessera {

/// Replaces the subqueries in all expressions of the tree of blocks under `query`, of the innermost blocks first. To be
/// called once, for the outermost block. Errors: kUnsupported, one that cannot be decorrelated, by name.
Status Unnest(Query* query);

}  // namespace tessera
