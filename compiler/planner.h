// From a bound query to a physical plan: which relation drives the pipeline, in what order the others are joined to it and
// by which keys, and where each predicate is applied. Private to compiler/.
//
// The driver is the largest relation of those joined by inner joins; every other relation is built into a join table from
// its own filtered scan and probed in turn, the most selective first. One that is joined in another way comes when all
// that its condition refers to is there. Start at: MakePlan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/plan.h"

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
  bool filtered = false;                ///< the build side is filtered, so that its keys may span less than the probing column
  double rows = 0;                      ///< estimate after this join
};

struct Plan {
  int driver = -1;                                    ///< -1: no relation that is joined by inner joins
  std::vector<std::vector<const Expr*>> filters;      ///< per relation: predicates over it alone, most selective first
  std::vector<const Expr*> constants;                 ///< predicates over no relation
  std::vector<double> rows;                           ///< per relation: estimate after its filters
  std::vector<JoinStep> joins;
};

Plan MakePlan(const Query& query);

/// Estimate of the rows of a block's result.
double EstimateRows(const Query& query);

/// The relations that `e` refers to, as bits. REQUIRES: at most 64 relations.
uint64_t RelationsOf(const Expr& e);

/// Calls f(const Expr&) for every kColumn in `e`.
template <class F>
void ForEachColumn(const Expr& e, F f) {
  if (e.kind == Expr::Kind::kColumn) f(e);
  for (const ExprPtr& a : e.args) ForEachColumn(*a, f);
}

/// The plan as EXPLAIN prints it: one operator a line, children indented.
std::string PlanText(const Query& query, const Plan& plan);

}  // namespace tessera
