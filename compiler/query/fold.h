// Constant folding: expressions made simpler, functions of constants made constants. Private to compiler/.
//
// Start at: Fold. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/query/bound_query.h"
#include "compiler/query/evaluate.h"

namespace tessera {

/// The node `e`, whose arguments are folded already, made simpler: a function of constants becomes a constant; TRUE,
/// FALSE and NULL leave AND, OR, CASE, IS NULL where they can. If the machine would raise an error, so does this, at
/// e->position; but with `may_skip` (a row might never get there: a branch of CASE, an operand of AND and OR) e stays
/// as it is.
Result<ExprPtr> Fold(ExprPtr e, bool may_skip);

}  // namespace tessera
