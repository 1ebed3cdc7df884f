// Aggregates of groups that are aggregated again into larger groups. Private to compiler/.
//
// Start at: Merges. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Whether the aggregate of all rows is that of the groups' aggregates.
bool Merges(const Aggregate& a);

/// The aggregate that makes `part` of all rows of the groups' values of it. REQUIRES: Merges(part).
Aggregate MergeOf(const Aggregate& part, ExprPtr values);

/// x, a count, or `otherwise` if x is NULL because there were no groups to add up, or none that matches.
ExprPtr CountOr(ExprPtr x, int64_t otherwise);

}  // namespace tessera
