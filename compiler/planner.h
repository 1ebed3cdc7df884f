// From a bound query to a physical plan: which relation drives the pipeline, in what order the others are joined to it
// and by which keys, and where each predicate is applied. Private to compiler/.
//
// The driver is the largest relation of those joined by inner joins; every other relation is built into a join table
// from its own filtered scan and probed in turn, the most selective first. One that is joined in another way comes when
// all that its condition refers to is there. Where join_strategy asks for products, equalities are no keys but
// conditions on pairs. Start at: MakePlan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/bound_query.h"
#include "compiler/plan_options.h"
#include "vm/program.h"

namespace tessera {

/// One relation joined to those before it.
struct JoinStep {
  int relation = 0;
  JoinKind kind = JoinKind::kInner;
  std::vector<const Expr*> probe_keys;  ///< over relations joined earlier
  std::vector<const Expr*> build_keys;  ///< over `relation`; empty for a cross join
  std::vector<const Expr*> match;       ///< not kInner: what else makes two rows match
  std::vector<const Expr*> residuals;   ///< predicates that can be tested once `relation` is joined
  bool unique = false;                  ///< at most one row has the keys: the primary key of `relation` is among them
  vm::JoinStrategy strategy = vm::JoinStrategy::kHash;
  /// kGrid, kDp: columns of the driver and of `relation`, perhaps computed ones, that one condition relates and by
  /// which the two are sorted; nullptr: they stay as they come.
  const Expr* probe_order = nullptr;
  const Expr* build_order = nullptr;
  bool filtered = false;  ///< the build side is filtered, so that its keys may span less than the probing column
  double rows = 0;        ///< estimate after this join
};

struct Plan {
  int driver = -1;                                ///< -1: no relation that is joined by inner joins
  bool build_driver = false;                      ///< the driver's rows are stored, too, and then scanned
  std::vector<std::vector<const Expr*>> filters;  ///< per relation: predicates over it alone, most selective first
  std::vector<const Expr*> constants;             ///< predicates over no relation
  /// Per relation: what is computed once for each of its rows, and not for each pair of the product that it is a side
  /// of. None is wide or text, and none can fail. Those that conditions read come first.
  std::vector<std::vector<const Expr*>> computed;
  std::vector<double> rows;  ///< per relation: estimate after its filters
  std::vector<JoinStep> joins;
};

/// Errors: kUnsupported, options.join is not possible for the block.
Result<Plan> MakePlan(const Query& query, const PlanOptions& options);

/// Estimates: rows that a block joins; rows or groups that it makes of them, before LIMIT and what UNION ALL adds; rows
/// of its result.
double EstimateJoined(const Plan& plan);
double EstimateMade(const Query& query, double joined);
double EstimateRows(const Query& query);

/// The relations that `e` refers to, as bits. REQUIRES: at most 64 relations.
uint64_t RelationsOf(const Expr& e);

/// Calls f(const Expr&) for every kColumn in `e`.
template <class F>
void ForEachColumn(const Expr& e, F f) {
  if (e.kind == Expr::Kind::kColumn) f(e);
  for (const ExprPtr& a : e.args) ForEachColumn(*a, f);
}

/// Calls f(const Expr&, bool condition) for every expression that is evaluated where the relations are joined or
/// behind, keys of build sides aside.
template <class F>
void ForEachJoinedRoot(const Query& q, const Plan& plan, F f) {
  for (const JoinStep& j : plan.joins) {
    for (const Expr* e : j.probe_keys) f(*e, false);
    for (const Expr* e : j.match) f(*e, true);
    for (const Expr* e : j.residuals) f(*e, true);
  }
  for (const ExprPtr& e : q.group_by) f(*e, false);
  for (const Aggregate& a : q.aggregates) {
    if (a.argument != nullptr) f(*a.argument, false);
  }
  if (q.grouped) return;
  for (const Output& o : q.outputs) f(*o.expr, false);
}

/// The number in `list` of what has the value of `e`, or -1.
int FindSame(const std::vector<const Expr*>& list, const Expr& e);

/// The plan as EXPLAIN prints it: one operator a line, children indented. Errors: as MakePlan, of blocks inside.
Result<std::string> PlanText(const Query& query, const Plan& plan, const PlanOptions& options);

}  // namespace tessera
