// Rewrites a bound query into one that is cheaper to run. Private to compiler/.
//
// Start at: Simplify. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// LEFT JOINs become inner joins if a condition drops their NULL-extended rows. Derived tables that only filter and
/// compute become part of the block that reads them, so that their rows are not stored in between. Conditions are
/// simplified and moved inwards, as conditions.h and pushdown.h say. Unused outputs of other derived tables are removed.
/// To be called once, for the outermost block.
void Simplify(Query* query);

}  // namespace tessera
