// Bounds of an expression's values, known without running it. They decide between 64 bits unchecked, 64 bits checked
// and 128 bits, and whether an expression can raise an error. Private to compiler/.
//
// Start at: ExprRanges::Range. Pure functions; any thread.
#pragma once

#include "base/int128.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// Bounds of an expression's values in integer form. Unknown means the full range of 128 bits.
struct ValueRange {
  int128_t low = kInt128Min, high = kInt128Max;
  bool Within(int128_t a, int128_t b) const { return a <= low && high <= b; }
  bool Fits64() const { return Within(INT64_MIN, INT64_MAX); }
};
/// All values of a type: what holds for any column of it.
ValueRange RangeOfType(const SqlType& type);
/// The range of a column of one of the query's relations, from its statistics.
ValueRange RangeByStatistics(const Query& q, const Expr& column);

/// How many rows the joins of the query's relations may give, from their numbers.
ValueRange RowsOfJoins(const Query& q);

/// For values a and b in these ranges: the range of a + b, -a, a * b, and the least range that has both. Bounds beyond
/// 128 bits become those of 128 bits.
ValueRange Sum(ValueRange a, ValueRange b);
ValueRange Minus(ValueRange a);
ValueRange Product(ValueRange a, ValueRange b);
ValueRange Hull(ValueRange a, ValueRange b);

/// What is known of the leaves of expressions: columns, groups and aggregates.
class LeafRanges {
 public:
  virtual ~LeafRanges() = default;
  virtual ValueRange Range(const Expr& leaf) const { return RangeOfType(leaf.type); }
};

/// The columns of a block, whose ranges statistics know.
class StatisticsRanges final : public LeafRanges {
 public:
  explicit StatisticsRanges(const Query& q) : q_(q) {}
  ValueRange Range(const Expr& leaf) const override { return RangeByStatistics(q_, leaf); }

 private:
  const Query& q_;
};

/// The ranges of expressions by those of their leaves.
class ExprRanges {
 public:
  explicit ExprRanges(const LeafRanges& leaves) : leaves_(leaves) {}

  ValueRange Range(const Expr& e) const;
  /// The range of a function's result before it is checked against its type, by its RangeRule. REQUIRES: an exact
  /// result.
  ValueRange ExactRange(const Expr& e) const;
  /// Whether the instructions of `e`, without those of its arguments, may raise an error. True if nothing is known.
  bool CanFail(const Expr& e) const;
  /// The same of `e` with its arguments.
  bool CanFailAnywhere(const Expr& e) const;
  /// Whether `e` is a cast between types that the machine holds in the same way, so that it needs no instructions.
  bool IsNoOp(const Expr& e) const;

 private:
  const LeafRanges& leaves_;
};

}  // namespace tessera
