// Subqueries above a grouping. Private to compiler/.
//
// Start at: SplitGrouping. Pure functions; any thread.
#pragma once

#include <memory>

#include "base/status.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// Splits a grouped block whose HAVING or outputs have subqueries into two blocks. `q` keeps everything above the
/// grouping, over one relation, "groups". Returns the query of that relation, which does the grouping. Errors: a
/// subquery refers to a column that is not grouped by.
Result<std::shared_ptr<Query>> SplitGrouping(Query* q);

}  // namespace tessera
