// Subqueries in expressions become relations of the block that they stand in, joined by JoinKind::kLeft, kSemi, kAnti
// or kMark. Private to compiler/.
//
// A subquery that refers to columns of the block around it (is correlated) is first made independent of it, in one of
// two ways. Where those columns are only in its WHERE, the conditions that have them become the condition of the join;
// under an aggregate they must be equalities, whose inner sides become keys of a grouping (W. Kim, "On Optimizing an
// SQL-like Nested Query", TODS 1982, with the outer join of later corrections). Everywhere else the subquery is run for
// all values that the outer columns take: it gets the relation of those values ("domain") as one more of its own, and
// their columns as outputs to join by (T. Neumann, A. Kemper, "Unnesting Arbitrary Queries", BTW 2015).
//
// Start at: Unnest. Pure functions; any thread.
#pragma once

#include <functional>

#include "base/status.h"
#include "compiler/bound_query.h"

namespace tessera {

/// Replaces the subqueries in all expressions of the tree of blocks under `query`, of the innermost blocks first. To be
/// called once, for the outermost block. Errors: kUnsupported, one that cannot be decorrelated, by name.
Status Unnest(Query* query);

/// Whether the block, or one in it, refers to a column of a block around it.
bool RefersOutward(const Query& query);

/// Calls f for every column of this block in `e`: those that subqueries in it refer to, too.
void ForEachColumnOfBlock(Expr& e, const std::function<void(Expr&)>& f);

/// The first subquery in an expression, or nullptr.
const Expr* FindSubquery(const Expr& e);

}  // namespace tessera
