// How many rows pass a predicate, and how many groups there are: estimates from column statistics, or textbook guesses
// where there are none. Private to compiler/.
//
// Start at: Selectivity. Pure functions; any thread.
#pragma once

#include <vector>

#include "compiler/query/bound_query.h"
#include "compiler/query/value_range.h"

namespace tessera {

/// The fraction of rows for which `e` is true, from 0 to 1.
double Selectivity(const Query& q, const Expr& e);

/// The fraction of rows for which all of them are true. A lower and an upper bound of one column are an interval, of
/// lists of its values the shortest counts, and other conditions are taken as independent of each other.
double SelectivityOfAll(const Query& q, const std::vector<const Expr*>& conditions);

/// Distinct values of `e`, at least 1; 100 if it is not a column of a stored table.
double DistinctOf(const Query& q, const Expr& e);

/// Distinct values of `e` in the rows that the filters of its relation leave, at least 1.
double DistinctLeft(const Query& q, const Expr& e);

/// The part of the different values of column `of`, from 0 to 1, that are where column `other` has values, too.
double PartWithin(const Query& q, const Expr& of, const Expr& other);

/// The values of a column of integers, of a stored table or of a derived one that has it from there. False: not known.
bool StoredRange(const Query& q, const Expr& e, ValueRange* range);

/// Rows or groups that the block makes from `joined` rows after its joins, before LIMIT and UNION ALL.
double EstimateMade(const Query& q, double joined);

}  // namespace tessera
