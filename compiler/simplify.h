// Rewriting a bound query into one that is cheaper to run. Private to compiler/.
//
// Start at: Simplify. Pure functions; any thread.
#pragma once

#include "compiler/bound_query.h"

namespace tessera {

/// LEFT JOINs whose NULL-extended rows a condition drops become inner joins; derived tables that only filter and
/// compute become part of the block that reads them, so that they are scanned and not stored in between; outputs of the
/// others that nobody reads go. To be called once, for the outermost block.
void Simplify(Query* query);

}  // namespace tessera
