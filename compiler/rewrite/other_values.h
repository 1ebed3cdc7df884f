// Joins of a table with itself that only ask whether a key has two values. Private to compiler/.
//
//   SELECT .. WHERE k IN (SELECT a.k FROM t a, t b WHERE a.k = b.k AND a.x <> b.x)
//
// becomes
//
//   SELECT .. WHERE k IN (SELECT k FROM t GROUP BY k HAVING min(x) <> max(x))
//
// because it does not matter how often a key is there. So a row for each key is made, not one for each pair.
//
// Start at: GroupOtherValues. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// Whether the block joins two relations of one table, and asks for different values.
bool AsksForOtherValues(const Query& query);

/// In all blocks under `query`, of whose rows each reader only asks whether there are any. To be called for the outermost block
/// when derived tables are merged.
void GroupOtherValues(Query* query);

}  // namespace tessera
