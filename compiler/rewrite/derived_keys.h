// Group keys that are computed of other keys are left out of a grouping. Private to compiler/.
//
//   SELECT a, a + 1, count(*) FROM t GROUP BY a, a + 1      becomes      SELECT a, a + 1, count(*) FROM t GROUP BY a
//
// so that fewer keys are hashed, and what is computed of them is computed once a group.
//
// Start at: LeaveOutDerivedKeys. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Leaves out the keys of the block all of whose columns are keys themselves, of types whose equal values are the same.
void LeaveOutDerivedKeys(Query* query);

}  // namespace tessera
