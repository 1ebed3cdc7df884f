// Groups rows before they are joined, and leaves out a grouping whose groups are single rows. Private to compiler/.
//
//   SELECT c_custkey, count(o_orderkey) FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY c_custkey
//
// becomes
//
//   SELECT c_custkey, CASE WHEN n IS NULL THEN 0 ELSE n END
//   FROM customer LEFT JOIN (SELECT o_custkey, count(o_orderkey) AS n FROM orders GROUP BY o_custkey)
//     ON c_custkey = o_custkey
//
// so that a join table has a row for each customer who has orders, not one for each order, and the groups come from
// numbers of a column. (W. P. Yan and P.-A. Larson, "Eager Aggregation and Lazy Aggregation", VLDB 1995.)
//
// Start at: GroupEarly. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Groups a relation of the block by the columns that the block reads of it outside of aggregates, if few rows are left and
/// it is left-joined, or its groups are joined to single rows, so that they are not grouped again. Then makes a block
/// without grouping of one whose keys determine its rows.
void GroupEarly(Query* query);

}  // namespace tessera
