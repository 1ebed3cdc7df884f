#include "compiler/plan/join_order.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/plan/join_reduction.h"
#include "compiler/plan/join_search.h"
#include "compiler/query/selectivity.h"

namespace tessera {
namespace {

/// The joins of one block as a chain.
class JoinChain {
 public:
  JoinChain(const JoinGraph& graph, const PlanOptions& options, Plan* plan)
      : graph_(graph), options_(options), plan_(plan) {}

  void Run() {
    const size_t n = graph_.relations();
    for (size_t r = 0; r < n; ++r) {
      // The largest table drives, filtered or not, because building it would cost most.
      if (graph_.IsInner(r) && (plan_->driver < 0 || graph_.size(r) > graph_.size(static_cast<size_t>(plan_->driver))))
        plan_->driver = static_cast<int>(r);
    }
    if (plan_->driver >= 0) {
      joined_ = SetOf(static_cast<size_t>(plan_->driver));
      rows_ = graph_.filtered_rows(static_cast<size_t>(plan_->driver));
    }
    const size_t steps = plan_->driver < 0 ? n : n - 1;
    while (plan_->joins.size() < steps) {
      JoinStep best = BestStep();
      joined_ |= SetOf(static_cast<size_t>(best.relation));
      rows_ = best.rows;
      plan_->joins.push_back(std::move(best));
    }
    plan_->joined_rows = rows_;
  }

 private:
  /// The next join: the best of those whose conditions refer only to relations that are joined already.
  JoinStep BestStep() const {
    JoinStep best;
    int best_rank = 0;
    bool found = false;
    for (size_t r = 0; r < graph_.relations(); ++r) {
      if ((joined_ & SetOf(r)) != 0 || !IsSubset(graph_.needed(r), joined_)) continue;
      double fraction = 1;
      JoinStep step = graph_.Step(joined_, plan_->driver, SetOf(r), static_cast<int>(r), &fraction);
      step.rows = graph_.RowsAfter(step, rows_, fraction);
      step.side_rows = graph_.filtered_rows(r);
      const int rank = Rank(step);
      if (!found || rank > best_rank || (rank == best_rank && step.rows < best.rows)) {
        found = true;
        best_rank = rank;
        best = std::move(step);
      }
    }
    assert(found);  // the relations of an ON condition never wait for this one
    return best;
  }

  /// Joins with keys come before nested-loop joins; among them, the one that leaves the fewest rows. A join without
  /// keys that needs only one look at the join table is as good as one with keys.
  int Rank(const JoinStep& step) const {
    // A grid comes first.
    const vm::JoinStrategyInfo* const asked = AskedFor(options_.join);
    if (step.kind == JoinKind::kInner && asked != nullptr && asked->cuts) return 2;
    const bool one_look =
        step.kind != JoinKind::kInner && step.match.empty() && (step.kind != JoinKind::kLeft || step.unique);
    return !step.build_keys.empty() || one_look ? 1 : 0;
  }

  const JoinGraph& graph_;
  const PlanOptions& options_;
  Plan* plan_;
  RelationSet joined_ = 0;
  double rows_ = 1;  ///< estimate after the joins so far
};

Plan Ordered(const Query& q, const PlanOptions& options, const DerivedPlans& derived) {
  Plan plan;
  plan.query = &q;
  plan.computed.resize(q.relations.size());
  JoinGraph graph(q, options, derived);
  graph.TakeFilters(&plan);
  if (!KeysAreConditions(options) && SearchJoins(graph, options, &plan)) {
    RestrictSides(graph, &plan);
  } else {
    JoinChain(graph, options, &plan).Run();
  }
  return plan;
}

}  // namespace

Plan OrderJoins(const Query& q, const PlanOptions& options, const DerivedPlans& derived) {
  Plan plan = Ordered(q, options, derived);
  // Only the one join of a block is done without its keys: see JoinSides::matches.
  if (plan.joins.empty() || vm::Info(plan.joins[0].strategy).by_key) return plan;
  PlanOptions by_pairs = options;
  by_pairs.join = ChoiceOf(plan.joins[0].strategy);
  Plan pairs = Ordered(q, by_pairs, derived);
  pairs.joined_rows = plan.joined_rows;
  pairs.joins[0].strategy = plan.joins[0].strategy;
  return pairs;
}

}  // namespace tessera
