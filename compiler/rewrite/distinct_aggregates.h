// Aggregates of different values, many at once. Private to compiler/.
//
// Start at: SplitDistinct. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Of a stored table without GROUP BY, DISTINCT aggregates of several arguments: each argument is read and grouped by itself,
/// by a block with one row. Together they would be grouped by keys as wide as all of them.
void SplitDistinct(Query* query);

}  // namespace tessera
