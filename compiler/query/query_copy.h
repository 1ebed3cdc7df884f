// Relations over query blocks, and copies of blocks. Private to compiler/.
//
// Start at: DerivedTable, CopyQuery. Pure functions; any thread.
#pragma once

#include <memory>

#include "compiler/query/bound_query.h"

namespace tessera {

/// Names and types of the columns of a relation over a query: its visible outputs.
void TakeColumns(Relation* relation);

/// A relation over the visible outputs of a query. It has no alias.
Relation DerivedTable(std::shared_ptr<Query> query);

/// A query of all visible outputs of another, under the same names.
std::unique_ptr<Query> SelectAll(std::shared_ptr<Query> rows);

/// A second relation with the same rows and the same alias, joined by an inner join.
Relation CopySource(const Relation& from);

/// The same, joined in the same way as `from`.
Relation CopyRelation(const Relation& from);

Aggregate CopyAggregate(const Aggregate& from);

/// A copy of the block; derived tables are shared, so that they run once, but for correlated ones.
std::unique_ptr<Query> CopyQuery(const Query& from);

/// The same, where subqueries in expressions are copied, too, so that what the copy refers to outward is its own.
std::unique_ptr<Query> CopyWithSubqueries(const Query& from);
/// A copy of an expression, with its subqueries.
ExprPtr CopyWithSubqueries(const Expr& from);

}  // namespace tessera
