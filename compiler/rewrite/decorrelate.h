// Makes a correlated subquery, which refers to columns of the block around it, independent of that block. Private to
// compiler/.
//
// There are two ways. If the outer columns are only in its WHERE, the conditions with them become the condition of the
// join. Under an aggregate these conditions must be equalities, and their inner sides become keys of a grouping (W.
// Kim, "On Optimizing an SQL-like Nested Query", TODS 1982, with the outer join of later corrections). Otherwise the
// subquery is run for all values that the outer columns take. It gets one more relation with those values (its
// "domain"), and its columns become outputs to join by (T. Neumann, A. Kemper, "Unnesting Arbitrary Queries", BTW
// 2015). So do those of derived tables inside. Windows are then partitioned by these columns, too, and LIMIT becomes a
// filter by the number of a row among those of one value.
//
// Start at: Decorrelate. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// A subquery made independent of the block around it.
struct IndependentQuery {
  std::shared_ptr<Query> query;
  /// The join condition between a row of the block and a row of `query`, over columns of the block and columns
  /// (kSubqueryColumn, i), output i of `query`.
  std::vector<ExprPtr> on;
  /// Expressions that replace the requested outputs, over the same columns.
  std::vector<ExprPtr> outputs;
};

/// Makes `subquery` of `block` independent, with all of its visible outputs in IndependentQuery::outputs. Errors:
/// kUnsupported, naming what cannot be decorrelated. `own_outputs`: output i is output i of the query.
Result<IndependentQuery> Decorrelate(const Query& block, std::unique_ptr<Query> subquery, int position,
                                     bool own_outputs = false);

/// Adds to `subquery` the relation of all values that its outer columns take in `block`, and replaces them by its
/// columns. These columns also become outputs and keys of the grouping, and `on` gets the conditions that they equal
/// the columns of a row of the block. They come after the visible outputs, which keep their numbers. `one_row`: a
/// grouping without keys has a row for each of the values, even if it has no rows. Errors as above.
Status AddDomain(const Query& block, Query* subquery, int position, std::vector<ExprPtr>* on, bool one_row);

/// A column for a subquery that is left without one: a constant.
Output OneOutput();

/// Turns an expression of the subquery into one of the block: outer columns become columns of the block, or outer
/// columns that are one block nearer.
void MoveOutward(ExprPtr* e);

Status CannotDecorrelate(const std::string& what, int position, const std::string& hint);

}  // namespace tessera
