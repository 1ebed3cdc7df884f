// GROUPING SETS, ROLLUP and CUBE -> Query. Private to compiler/.
//
// The block is split in two: below, a UNION ALL of one grouping for each set, with NULL in place of the keys that the
// set leaves out; above, a block that reads its rows and does the rest. All groupings read one derived table, which runs
// once: the groups by all keys, where each aggregate can be merged from parts (count, sum, min, max, avg of INTEGER),
// else the rows.
//
// Start at: BindGroupingSets, ExpandGroupingSets. One thread.
#pragma once

#include "base/status.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

/// Whether GROUP BY has more than plain keys: sets, or keys in parentheses.
bool HasGroupingSets(const ParseNode& list);

/// Makes Query::group_by and the sets of `list`. `distinct`: GROUP BY DISTINCT, each set once.
Status BindGroupingSets(const ParseNode& list, bool distinct, QueryBlock* block);

/// Rewrites a query whose clauses are all bound, if it has sets or calls of GROUPING. Errors: an argument of GROUPING
/// that is no key.
Status ExpandGroupingSets(const GroupingSets& grouping, Query* query);

}  // namespace tessera
