// The physical plan of a query: for each block which relation drives the pipeline, in what order the others are joined
// to it and by which keys, and where each predicate is applied; and the plans of the blocks inside. Private to
// compiler/.
//
// The tree is made once, by MakePlan. Code generation and EXPLAIN read it and decide nothing themselves. It points into
// its Query, which must outlive it.
//
// Start at: Plan. Plain data, owned by one thread.
#pragma once

#include <memory>
#include <vector>

#include "compiler/query/bound_query.h"
#include "vm/program/program.h"

namespace tessera {

/// One relation joined to those before it, or the rows of several that are joined to each other first.
struct JoinStep {
  int relation = 0;             ///< its rows are scanned to make the join table
  std::vector<JoinStep> joins;  ///< joined to them before they are stored: the side is a pipeline itself
  JoinKind kind = JoinKind::kInner;
  std::vector<const Expr*> probe_keys;  ///< over relations joined earlier
  std::vector<const Expr*> build_keys;  ///< over the relations of the side; empty for a join without keys
  std::vector<const Expr*> match;       ///< not kInner: the conditions besides the keys
  std::vector<const Expr*> residuals;   ///< predicates that can be tested once `relation` is joined
  bool unique = false;                  ///< proved that at most one row of the side has the keys
  vm::JoinStrategy strategy = vm::JoinStrategy::kHash;
  /// Where both sides are cut: columns of the driver and of `relation`, stored or computed, that one condition relates
  /// and by which the two sides are sorted; nullptr: neither side is sorted.
  const Expr* probe_order = nullptr;
  const Expr* build_order = nullptr;
  /// The first joins whose rows are stored, because other sides need their keys; the rest scan them. 0: none.
  size_t stored = 0;
  /// The side is what the pipeline of its relation stores, so that `joins` are not made again.
  bool of_stored = false;
  bool selective = false;  ///< most rows that look into the side are expected to find nothing
  bool filtered = false;   ///< the build side is filtered, so that its keys may span less than the probing column
  double reached = 1;      ///< estimate of the part of the side's keys, before its filters, that probing rows can have
  double side_rows = 0;    ///< estimate of the rows of the join table
  double rows = 0;         ///< estimate after this join
};

/// Whether rows only go on or not, so that the side gives them no columns.
inline bool OnlyFilters(JoinKind kind) { return kind == JoinKind::kSemi || kind == JoinKind::kAnti; }

/// Calls f(int) for every relation whose columns the rows of the side have.
template <class F>
void ForEachRelation(const JoinStep& step, F f) {
  f(step.relation);
  for (const JoinStep& j : step.joins) {
    if (!OnlyFilters(j.kind)) ForEachRelation(j, f);
  }
}

/// How one query block runs, with all blocks inside it.
struct Plan {
  const Query* query = nullptr;                   ///< the block
  int driver = -1;                                ///< -1: no relation is joined by an inner join
  bool build_driver = false;                      ///< the driver's rows are stored, too, and then scanned
  std::vector<std::vector<const Expr*>> filters;  ///< per relation: predicates over it alone, most selective first
  std::vector<const Expr*> constants;             ///< predicates over no relation
  /// Per relation that is a side of a grid: expressions that are computed once for each of its rows instead of once for
  /// each pair. None is wide or text, and none can fail. Those that conditions read come first. Per relation that is
  /// joined by keys: functions of its texts, see HoistTexts.
  std::vector<std::vector<const Expr*>> computed;
  std::vector<double> rows;  ///< per relation: estimate after its filters
  std::vector<JoinStep> joins;
  size_t stored = 0;       ///< as JoinStep::stored
  double joined_rows = 1;  ///< estimate of the rows after all joins
  double made_rows = 1;    ///< estimate of the rows or groups made from them, before LIMIT and UNION ALL
  /// Estimate of the rows of the result, UNION ALL and LIMIT included; the same under each join strategy.
  double result_rows = 1;

  /// Per relation: the plan of the derived table; nullptr for a stored one. Relations that share a block share its
  /// plan, and it runs once.
  std::vector<std::shared_ptr<Plan>> derived;
  std::vector<std::unique_ptr<Plan>> union_all;  ///< of query->union_all
};

/// Whether the block is one row that needs no relation: a row of VALUES, SELECT without FROM. Several of them that
/// follow one another are made in one section.
bool IsRowOfValues(const Plan& plan);

/// Calls f(const Expr&, bool condition) for every expression of the joins of one pipeline, except keys of their sides.
template <class F>
void ForEachJoinRoot(const std::vector<JoinStep>& joins, F f) {
  for (const JoinStep& j : joins) {
    for (const Expr* e : j.probe_keys) f(*e, false);
    for (const Expr* e : j.match) f(*e, true);
    for (const Expr* e : j.residuals) f(*e, true);
  }
}

/// Calls f(const Expr&, bool condition) for every expression that is evaluated during the joins of the driver's
/// pipeline or after them, except keys of their sides.
template <class F>
void ForEachJoinedRoot(const Plan& plan, F f) {
  ForEachJoinRoot(plan.joins, f);
  const Query& q = *plan.query;
  for (const ExprPtr& e : q.group_by) f(*e, false);
  for (const Aggregate& a : q.aggregates) {
    if (a.argument != nullptr) f(*a.argument, false);
  }
  if (q.grouped) return;
  for (const Output& o : q.outputs) f(*o.expr, false);
}

/// The index in `list` of an expression that is the same as `e`, or -1.
int FindSame(const std::vector<const Expr*>& list, const Expr& e);

}  // namespace tessera
