// Leaves out what no one reads: columns of derived tables and of queries of WITH, and with them their expressions,
// aggregates, windows. So these cannot fail either. Private to compiler/.
//
// Start at: DropUnread. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// To be called for the outermost block, after Unnest. Rows stay the same.
void DropUnread(Query* query);

}  // namespace tessera
