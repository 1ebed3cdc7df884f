// Moves conditions into derived tables, so that their rows are not made first and dropped later. Private to compiler/.
//
// A filter on the rows of a derived table passes its DISTINCT, and its GROUP BY if it is on keys; on aggregates it joins
// the HAVING. HAVING on keys becomes WHERE. And where groups are looked up by a key that only few values can have,
// because another relation with that key is filtered, only these groups are made: a semi join with the filtered relation
// goes into the derived table (the "magic sets" of I. S. Mumick and H. Pirahesh, "Implementation of Magic-sets in a
// Relational Database System", SIGMOD 1994).
//
// A query of WITH that is read several times runs once, and makes the rows that one of its readers asks for: the OR of their
// filters goes into it, and they keep theirs.
//
// Start at: PushDown. Pure functions; any thread.
#pragma once

#include <vector>

#include "compiler/query/bound_query.h"

namespace tessera {

/// HAVING on keys alone drops all rows of a group, or none: it becomes a condition on the rows. Of an OR what each arm asks of
/// keys alone is such a condition, too.
void HavingToWhere(Query* query);

/// Moves what can be moved from the block into the derived tables that it alone reads. To be called from the outermost
/// block inwards.
void PushDown(Query* query);

/// Relation `relation` of `block`, which reads a query that others read, too.
struct Reader {
  const Query* block = nullptr;
  size_t relation = 0;
};

/// Gives a query the conditions of its readers. REQUIRES: these are all.
void PushIntoShared(Query* shared, const std::vector<Reader>& readers);

}  // namespace tessera
