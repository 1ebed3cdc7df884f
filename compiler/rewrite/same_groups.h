// Groupings that a query has several times are made once. Private to compiler/.
//
//   SELECT .. FROM (SELECT s, avg(n) FROM (SELECT s, i, sum(x) AS n FROM t GROUP BY s, i) GROUP BY s) a,
//                  (SELECT s, i, sum(x) AS n FROM t GROUP BY s, i) b ..
//
// reads one derived table twice, as it would if it were a query of WITH. They may have other columns and other aggregates.
//
// Start at: ShareGroups. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// To be called for the outermost block, when conditions are where they are tested.
void ShareGroups(Query* query);

}  // namespace tessera
