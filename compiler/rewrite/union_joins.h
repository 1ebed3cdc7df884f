// Joins and groups the arms of UNION ALL each by itself. Private to compiler/.
//
//   SELECT d.k, sum(u.x) FROM (SELECT a AS day, x FROM s UNION ALL SELECT b, y FROM t) u, d WHERE u.day = d.day GROUP BY d.k
//
// becomes
//
//   SELECT k, sum(x) FROM (SELECT d.k, sum(s.x) AS x FROM s, d WHERE s.a = d.day GROUP BY d.k UNION ALL
//                          SELECT d.k, sum(t.y) FROM t, d WHERE t.b = d.day GROUP BY d.k) GROUP BY k
//
// so that the rows of the arms are not stored, and the joins leave out rows where they are read.
//
// Start at: JoinArms. Pure functions; any thread.
#pragma once

#include <functional>

#include "compiler/query/bound_query.h"

namespace tessera {

/// Rewrites a block that joins or groups the rows of a large UNION ALL in that way, if other relations are small. `merge` makes
/// the derived tables of a new arm part of it.
void JoinArms(Query* query, const std::function<void(Query*)>& merge);

}  // namespace tessera
