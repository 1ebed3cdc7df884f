#include "compiler/plan/join_strategy.h"

#include <string>

#include "compiler/plan/hoist.h"
#include "compiler/query/query_walk.h"

namespace tessera {
namespace {

Status Refuse(const PlanOptions& options, const std::string& reason) {
  return Unsupported(
      std::string("join strategy \"") + AskedFor(options.join)->word + "\" cannot run this query: " + reason, -1,
      "Use SET join_strategy = auto.");
}

/// The relation's name in errors.
std::string NameOf(const Query& q, int relation) {
  const Relation& r = q.relations[static_cast<size_t>(relation)];
  if (!r.alias.empty()) return "\"" + r.alias + "\"";
  return r.join == JoinKind::kInner ? "a derived table" : "a subquery";
}

/// The first column of `relation` in `e`, stored or computed, by which rows can be sorted; or nullptr.
const Expr* SortableColumn(const Plan& plan, const Expr& e, int relation) {
  if (e.kind == Expr::Kind::kFunction && FindSame(plan.computed[static_cast<size_t>(relation)], e) >= 0) return &e;
  if (e.kind == Expr::Kind::kColumn && e.relation == relation && e.column != kMarkColumn) {
    const StorageClass storage = e.type.storage();
    return storage == StorageClass::kInt || storage == StorageClass::kFloat ? &e : nullptr;
  }
  const Expr* found = nullptr;
  for (const ExprPtr& a : e.args) {  // truth values separate rows less than numbers do
    const Expr* next = SortableColumn(plan, *a, relation);
    if (next != nullptr && (found == nullptr || found->type.id == TypeId::kBoolean)) found = next;
    if (found != nullptr && found->type.id != TypeId::kBoolean) break;
  }
  return found;
}

/// How well the ranges of its columns decide a condition on two relations; the least is the best. If each side of a
/// comparison is of one relation, ranges that do not overlap mostly decide it.
int PruningRank(const Expr& e) {
  if (e.kind != Expr::Kind::kFunction || e.function < Function::kEq || e.function > Function::kGe) return 4;
  if (e.function == Function::kNe) return 3;
  const uint64_t left = RelationsOf(*e.args[0]), right = RelationsOf(*e.args[1]);
  if ((left & right) != 0 || left == 0 || right == 0) return 2;
  return e.function == Function::kEq ? 0 : 1;
}

/// With fewer rows than kSortFromRows on the build side, sorting the driver costs more than left-out pairs can save.
/// With more than kSortToRows rows, storing the driver costs more memory than a query that only scans should take. With
/// join_strategy = grid it is sorted in any case.
constexpr double kSortFromRows = 256, kSortToRows = 1 << 26;

/// The columns by which the sides of the grid are sorted.
void ChooseOrder(const PlanOptions& options, Plan* plan) {
  JoinStep& step = plan->joins[0];
  const bool asked = options.join != JoinChoice::kAuto;
  const bool worth = plan->rows[static_cast<size_t>(step.relation)] >= kSortFromRows &&
                     plan->rows[static_cast<size_t>(plan->driver)] <= kSortToRows;
  if (options.grid_pruning && (asked || worth)) {
    int best = 5;
    for (const Expr* e : step.residuals) {
      const Expr* outer = SortableColumn(*plan, *e, plan->driver);
      const Expr* inner = SortableColumn(*plan, *e, step.relation);
      if (outer == nullptr || inner == nullptr || PruningRank(*e) >= best) continue;
      best = PruningRank(*e);
      step.probe_order = outer;
      step.build_order = inner;
    }
  }
  // (A device that finds the units itself has both sides.)
  plan->build_driver = vm::Info(step.strategy).place == vm::JoinPlace::kDevice || step.probe_order != nullptr;
}

}  // namespace

bool NeedsPairs(const Query& q, const JoinStep& step) {
  if (step.kind == JoinKind::kInner || !step.match.empty()) return true;
  const Relation& r = q.relations[static_cast<size_t>(step.relation)];
  return step.kind == JoinKind::kLeft && !step.unique && !r.single;
}

namespace {

/// Refuses the step, or one of its side, if it has to look at all pairs.
Status RefusePairs(const PlanOptions& options, const Query& q, const JoinStep& step, int driver) {
  for (const JoinStep& j : step.joins) TESSERA_TRY(RefusePairs(options, q, j, step.relation));
  if (!step.build_keys.empty() || !NeedsPairs(q, step)) return Status::Ok();
  // The relation that a condition of the join refers to, or the driver.
  uint64_t others = 0;
  for (const auto* list : {&step.match, &step.residuals}) {
    for (const Expr* e : *list) others |= RelationsOf(*e);
  }
  others &= ~(uint64_t{1} << step.relation);
  const int other = others != 0 ? __builtin_ctzll(others) : driver;
  const std::string of_what = other < 0 ? "one row" : NameOf(q, other);
  return Refuse(options, of_what + " and " + NameOf(q, step.relation) + " are joined without an equality");
}

}  // namespace

Status ChooseStrategies(const PlanOptions& options, Plan* plan) {
  const Query& q = *plan->query;
  const vm::JoinStrategyInfo* const asked = AskedFor(options.join);
  static constexpr const char* kKinds[] = {"an inner join", "a left join", "a semi join", "an anti join",
                                           "a mark join"};
  for (size_t i = 0; i < plan->joins.size(); ++i) {
    JoinStep& step = plan->joins[i];
    const bool pairs = step.build_keys.empty() && NeedsPairs(q, step);
    const bool grid = i == 0 && step.kind == JoinKind::kInner;
    if (asked == nullptr) {
      // The order has chosen for joins by key and for what takes their place.
      if (grid && pairs && vm::Info(step.strategy).by_key) step.strategy = vm::JoinStrategy::kGrid;
    } else if (asked->by_key) {
      TESSERA_TRY(RefusePairs(options, q, step, plan->driver));
    } else if (!asked->cuts) {
      step.strategy = *StrategyOf(options.join);
    } else {
      if (step.kind != JoinKind::kInner && (!step.build_keys.empty() || pairs)) {
        // All joins but left joins come from subqueries, and so do left joins with this alias, which Unnest gives to
        // scalar subqueries. (The anti join of a FULL JOIN comes after its left join.)
        const bool subquery =
            step.kind != JoinKind::kLeft || q.relations[static_cast<size_t>(step.relation)].alias == "subquery";
        return Refuse(options, NameOf(q, step.relation) + " is joined by " + kKinds[static_cast<int>(step.kind)] +
                                   (subquery ? ", as subqueries in expressions are," : "") +
                                   " and only inner joins can run as a grid");
      }
      if (grid) step.strategy = *StrategyOf(options.join);
    }
  }
  if (!plan->joins.empty() && vm::Info(plan->joins[0].strategy).cuts) {
    HoistFromGrid(options, plan);
    ChooseOrder(options, plan);
  } else {
    HoistTexts(plan);
  }
  return Status::Ok();
}

}  // namespace tessera
