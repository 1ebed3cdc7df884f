#include "compiler/join_order.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/join_reduction.h"
#include "compiler/join_search.h"
#include "compiler/selectivity.h"

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
  if (!KeysAreConditions(options) && SearchJoins(graph, &plan)) {
    RestrictSides(graph, &plan);
  } else {
    JoinChain(graph, options, &plan).Run();
  }
  return plan;
}

/// Pairs fewer than these are found soon in any way; and with more rows than these a grid's sides are costly to sort.
constexpr double kLeastMatches = 1e6, kMostGridRows = 1 << 24;

/// Whether the statistics know its different values.
bool IsStoredColumn(const Query& q, const Expr& e) {
  return e.kind == Expr::Kind::kColumn && q.relations[static_cast<size_t>(e.relation)].table != nullptr;
}

/// Whether the plan is one join of two stored tables, by numbers, whose rows have very many matches each.
bool HasManyMatches(const PlanOptions& options, const Plan& plan) {
  if (options.join != JoinChoice::kAuto || !options.grid_pruning || plan.joins.size() != 1) return false;
  const JoinStep& step = plan.joins[0];
  if (step.kind != JoinKind::kInner || step.build_keys.empty() || !step.joins.empty() || step.unique) return false;
  double values = 1, probing_values = 1;
  for (size_t k = 0; k < step.build_keys.size(); ++k) {
    const Expr &build = *step.build_keys[k], &probe = *step.probe_keys[k];
    const StorageClass storage = build.type.storage();
    const bool numbers = storage == StorageClass::kInt || storage == StorageClass::kFloat;
    if (!numbers || storage != probe.type.storage()) return false;
    if (!IsStoredColumn(*plan.query, build) || !IsStoredColumn(*plan.query, probe)) return false;
    values *= DistinctOf(*plan.query, build);
    probing_values *= DistinctOf(*plan.query, probe);
  }
  const double probing = plan.rows[static_cast<size_t>(plan.driver)], built = step.side_rows;
  return built / values >= options.grid_from_matches && built + probing <= kMostGridRows &&
         built / std::max(values, probing_values) * probing >= kLeastMatches;
}

}  // namespace

Plan OrderJoins(const Query& q, const PlanOptions& options, const DerivedPlans& derived) {
  Plan plan = Ordered(q, options, derived);
  if (!HasManyMatches(options, plan)) return plan;
  PlanOptions by_pairs = options;
  by_pairs.join = JoinChoice::kGrid;
  Plan grid = Ordered(q, by_pairs, derived);
  grid.joined_rows = plan.joined_rows;
  return grid;
}

}  // namespace tessera
