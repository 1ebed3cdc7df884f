// What must be true in a block, as more and simpler conditions, so that each is tested as early as it can be. Private to
// compiler/.
//
//   (a = b AND x) OR (a = b AND y)         a = b AND (x OR y)
//   (r.i = 1 AND s.k = 2) OR (r.i = 3 ..)  and so r.i = 1 OR r.i = 3, which filters the scan of r
//   a = b AND a < 5                        and so b < 5
//   t LEFT JOIN u ON t.a = u.b WHERE a < 5 and so u.b < 5, in ON
//   a < 5 AND a > 7                        FALSE
//
// Only tests of bare columns are moved or added, because these cannot fail: what stands before another condition may
// protect it from an error.
//
// Start at: SimplifyConditions. Pure functions; any thread.
#pragma once

#include <functional>
#include <vector>

#include "compiler/query/bound_query.h"

namespace tessera {

/// Rewrites the conjuncts of the block itself, not of blocks inside it.
void SimplifyConditions(Query* query);

/// What follows from an OR if every arm of it has tests that `takes` accepts: that those of one arm are true. Else nullptr.
ExprPtr ImpliedOr(const Expr& either, const std::function<bool(const Expr&)>& takes);

/// The parts as one condition, a chain of AND or of OR. REQUIRES: there are some.
ExprPtr Chain(std::vector<ExprPtr> parts, Function chain, int position);

}  // namespace tessera
