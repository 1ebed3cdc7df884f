// A subquery that refers to columns of the block around it (is correlated) is made independent of it. Private to
// compiler/.
//
// There are two ways. Where those columns are only in its WHERE, the conditions that have them become the condition of
// the join; under an aggregate they must be equalities, whose inner sides become keys of a grouping (W. Kim, "On
// Optimizing an SQL-like Nested Query", TODS 1982, with the outer join of later corrections). Everywhere else the
// subquery is run for all values that the outer columns take: it gets the relation of those values (its "domain") as
// one more of its own, and their columns as outputs to join by (T. Neumann, A. Kemper, "Unnesting Arbitrary Queries",
// BTW 2015).
//
// Start at: Decorrelate. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/bound_query.h"

namespace tessera {

/// A subquery made independent of the block around it.
struct IndependentQuery {
  std::shared_ptr<Query> query;
  /// What must hold between a row of the block and one of `query`: over columns of the block and columns
  /// (kSubqueryColumn, i), output i of `query`.
  std::vector<ExprPtr> on;
  /// What takes the place of the outputs that it was asked for, in the same terms.
  std::vector<ExprPtr> outputs;
};

/// Makes `subquery` of `block` independent, with all of its visible outputs in IndependentQuery::outputs. Errors:
/// kUnsupported, what in it cannot be decorrelated.
Result<IndependentQuery> Decorrelate(const Query& block, std::unique_ptr<Query> subquery, int position);

/// Adds to `subquery` the relation of all values that its outer columns take in `block`, and replaces them by its
/// columns. Those become outputs and keys of the grouping, too, and `on` gets the conditions that they equal a row of
/// the block. Errors as above.
Status AddDomain(const Query& block, Query* subquery, int position, std::vector<ExprPtr>* on);

/// An expression of the subquery as one of the block: outer columns become columns of it, or outer columns one block
/// nearer.
void MoveOutward(ExprPtr* e);

Status CannotDecorrelate(const std::string& what, int position, const std::string& hint);

}  // namespace tessera
