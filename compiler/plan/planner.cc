#include "compiler/plan/planner.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/plan/join_order.h"
#include "compiler/plan/join_strategy.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/selectivity.h"

namespace tessera {
namespace {

/// How many turns a recursion is expected to take.
constexpr double kTurns = 10;

/// A join leaves less than this of the rows that look into its side, if these are worth a Bloom filter.
constexpr double kSelective = 0.4;

/// Sets JoinStep::selective of joins to a driver of `rows` rows, and of those of their sides.
void MarkSelective(const std::vector<double>& relation_rows, double rows, std::vector<JoinStep>* joins) {
  for (JoinStep& j : *joins) {
    j.selective = (j.kind == JoinKind::kInner || j.kind == JoinKind::kSemi) && j.rows < rows * kSelective;
    rows = j.rows;
    MarkSelective(relation_rows, relation_rows[static_cast<size_t>(j.relation)], &j.joins);
  }
}

class Planner {
 public:
  explicit Planner(const PlanOptions& options) : options_(options) {}

  /// The plan of a block, without its strategies. The blocks inside come first, because their sizes decide what drives.
  Plan Order(const Query& q) {
    DerivedPlans derived(q.relations.size());
    for (size_t r = 0; r < q.relations.size(); ++r) {
      if (q.relations[r].query != nullptr) derived[r] = OrderShared(*q.relations[r].query);
    }
    Plan plan = OrderJoins(q, options_, derived);
    if (plan.driver >= 0) MarkSelective(plan.rows, plan.rows[static_cast<size_t>(plan.driver)], &plan.joins);
    plan.made_rows = EstimateMade(q, plan.joined_rows);
    plan.result_rows = plan.made_rows;
    if (KeysAreConditions(options_)) {  // a block's rows do not depend on how its joins find pairs
      plan.result_rows = EstimateMade(q, OrderJoins(q, PlanOptions{}, derived).joined_rows);
    }
    if (q.repeat >= 0 && IsConstant(*q.outputs[static_cast<size_t>(q.repeat)].expr))  // a series
      plan.result_rows *= static_cast<double>(q.outputs[static_cast<size_t>(q.repeat)].expr->constant.i64);
    for (const auto& more : q.union_all) {
      plan.union_all.push_back(std::make_unique<Plan>(Order(*more)));
      plan.result_rows += plan.union_all.back()->result_rows;
    }
    if (q.working != nullptr) plan.result_rows *= kTurns;
    if (q.limit >= 0) plan.result_rows = std::min(plan.result_rows, static_cast<double>(q.limit));
    plan.derived = std::move(derived);
    return plan;
  }

  /// Gives every block of the tree its strategies. The outermost block comes first, so that an error names what comes
  /// first in the query.
  Status ChooseAll(Plan* plan) {
    TESSERA_TRY(ChooseStrategies(options_, plan));
    for (const auto& inside : plan->derived) {
      if (inside != nullptr && chosen_.insert(inside.get()).second) TESSERA_TRY(ChooseAll(inside.get()));
    }
    for (const auto& more : plan->union_all) TESSERA_TRY(ChooseAll(more.get()));
    return Status::Ok();
  }

 private:
  std::shared_ptr<Plan> OrderShared(const Query& q) {
    const auto known = ordered_.find(&q);
    if (known != ordered_.end()) return known->second;
    auto plan = std::make_shared<Plan>(Order(q));
    ordered_[&q] = plan;
    return plan;
  }

  const PlanOptions options_;
  std::map<const Query*, std::shared_ptr<Plan>> ordered_;
  std::set<const Plan*> chosen_;
};

}  // namespace

Result<Plan> MakePlan(const Query& query, const PlanOptions& options) {
  Planner planner(options);
  Plan plan = planner.Order(query);
  TESSERA_TRY(planner.ChooseAll(&plan));
  return plan;
}

}  // namespace tessera
