// Outer joins by ranges. Private to compiler/.
//
// Start at: JoinRangesFirst. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// A relation that is joined by ranges alone, and not by an inner join, is joined to the different values that it is compared
/// with first. That is an inner join, a grid which leaves pairs out; its rows are found by these values as keys.
void JoinRangesFirst(Query* query);

}  // namespace tessera
