// Texts that are made of others are made for the rows that LIMIT leaves. Private to compiler/.
//
//   SELECT a, b || ', ' || c FROM ... ORDER BY a LIMIT 20
//
// becomes
//
//   SELECT a, b || ', ' || c FROM (SELECT a, b, c FROM ... ORDER BY a LIMIT 20) ORDER BY a
//
// so that the texts of all other rows are never made, and the block below runs on a GPU, which moves texts but makes
// none. A row that LIMIT leaves out raises no error.
//
// Start at: MakeOutputsLate. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Rewrites a block without groups, with ORDER BY and LIMIT, in that way if it has such outputs and does not order by them.
void MakeOutputsLate(Query* query);

}  // namespace tessera
