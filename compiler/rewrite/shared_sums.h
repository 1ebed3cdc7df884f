// Sums that differ by a constant for each row: sum(x + 1), sum(x + 2) are made of one sum(x) and one count(x). Private to
// compiler/.
//
// Start at: ShareSums. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Replaces sums of integers in that way, where neither a row nor a sum can be out of range before or after.
void ShareSums(Query* query);

}  // namespace tessera
