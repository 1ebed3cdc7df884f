// Group keys that others determine are read after the grouping, for the groups that are left. Private to compiler/.
//
//   SELECT c_custkey, c_name, sum(x) AS s FROM customer, ... GROUP BY c_custkey, c_name ORDER BY s LIMIT 20
//
// becomes
//
//   SELECT c_custkey, c_name, s FROM (SELECT c_custkey, sum(x) AS s ... GROUP BY c_custkey ORDER BY s LIMIT 20), customer
//   WHERE its key is c_custkey ORDER BY s
//
// so that fewer keys are hashed, and text is read for 20 rows instead of all.
//
// Start at: ReadLate. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Rewrites a block with GROUP BY, ORDER BY and LIMIT in that way if some key is text of a table whose primary key the
/// other keys determine. Returns the block that groups, or the block as it is.
Query* ReadLate(Query* query);

}  // namespace tessera
