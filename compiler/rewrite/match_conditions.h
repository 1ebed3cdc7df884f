// Conditions of joins that are decided before pairs of rows are looked at. Private to compiler/.
//
// Start at: DecideMatches. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// A condition of ON that concerns the left side alone becomes part of a key, so that rows for which it is not true look for
/// no match; and one that is true of no two values, by the statistics of their columns, becomes false.
void DecideMatches(Query* query);

}  // namespace tessera
