// Groups by the key of a table in place of that table's texts. Private to compiler/.
//
//   SELECT c.id, c.name, s.year, sum(s.x) FROM s, c WHERE s.customer = c.k GROUP BY c.id, c.name, s.year
//
// becomes
//
//   SELECT c.id, c.name, g.year, sum(g.x) FROM (SELECT customer, year, sum(x) AS x FROM s GROUP BY customer, year) g, c
//   WHERE g.customer = c.k GROUP BY c.id, c.name, g.year
//
// so that rows are grouped by few numbers, and texts come to one row for each group of these. It does not matter whether c.k is
// unique. (W. P. Yan and P.-A. Larson, "Eager Aggregation and Lazy Aggregation", VLDB 1995: eager group-by.)
//
// Start at: GroupByKeys. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Rewrites the blocks under `query` in that way that make few groups of many rows. To be called when conditions are where they
/// are tested.
void GroupByKeys(Query* query);

}  // namespace tessera
