// Predicate push-down, join order and estimates.

#include "compiler/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "compiler/hoist.h"
#include "tablet/ordered_float.h"

namespace tessera {
namespace {

const ColumnStatistics* StatisticsOf(const Query& q, const Expr& e) {
  if (e.kind != Expr::Kind::kColumn) return nullptr;
  const Relation& r = q.relations[static_cast<size_t>(e.relation)];
  if (r.table == nullptr || static_cast<size_t>(e.column) >= r.table->statistics.size()) return nullptr;
  return &r.table->statistics[static_cast<size_t>(e.column)];
}

double DistinctOf(const Query& q, const Expr& e) {
  const ColumnStatistics* s = StatisticsOf(q, e);
  return s == nullptr ? 100 : std::max<double>(1, static_cast<double>(s->distinct));
}

double NumberOf(const Value& v) {
  switch (v.type.storage()) {
    case StorageClass::kInt:
      return static_cast<double>(v.i64);
    case StorageClass::kWide:
      return static_cast<double>(v.wide);
    case StorageClass::kFloat:
      return v.f64;
    case StorageClass::kText:
      return 0;
  }
  return 0;
}
/// ColumnStatistics::min or max of a column as a number: floats are kept in their ordered form, whose steps are no
/// distances.
double NumberOf(int128_t bound, const SqlType& type) {
  if (!type.IsFloat()) return static_cast<double>(bound);
  if (type.id == TypeId::kReal) return static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(bound)));
  return FromOrderedFloat(static_cast<uint64_t>(bound));
}

/// The fraction of rows that pass. Textbook guesses where statistics say nothing.
double Selectivity(const Query& q, const Expr& e) {
  constexpr double kUnknown = 1.0 / 3, kRange = 1.0 / 4, kLike = 1.0 / 10;
  if (e.kind == Expr::Kind::kConstant) return !e.constant.null && e.constant.i64 != 0 ? 1 : 0;
  if (e.kind != Expr::Kind::kFunction) return kUnknown;
  switch (e.function) {
    case Function::kAnd: {
      double s = 1;
      for (const ExprPtr& a : e.args) s *= Selectivity(q, *a);
      return s;
    }
    case Function::kOr: {
      double miss = 1;
      for (const ExprPtr& a : e.args) miss *= 1 - Selectivity(q, *a);
      return 1 - miss;
    }
    case Function::kNot:
      return 1 - Selectivity(q, *e.args[0]);
    case Function::kIn:
      return std::min(1.0, static_cast<double>(e.args.size() - 1) / DistinctOf(q, *e.args[0]));
    case Function::kLike:
      return kLike;
    case Function::kEq:
      return 1 / std::max(DistinctOf(q, *e.args[0]),
                          e.args[1]->kind == Expr::Kind::kConstant ? 1 : DistinctOf(q, *e.args[1]));
    case Function::kNe:
      return 1 - 1 / DistinctOf(q, *e.args[0]);
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe: {
      const bool flipped = e.args[0]->kind == Expr::Kind::kConstant;
      const Expr& column = *e.args[flipped ? 1 : 0];
      const Expr& bound = *e.args[flipped ? 0 : 1];
      const ColumnStatistics* s = StatisticsOf(q, column);
      if (s == nullptr || !s->has_range || bound.kind != Expr::Kind::kConstant || bound.constant.null) return kRange;
      // Integers are as wide as they are many; floats have no neighbours.
      const double step = column.type.IsFloat() ? 0 : 1;
      const double low = NumberOf(s->min, column.type), width = NumberOf(s->max, column.type) - low + step;
      const double position = (NumberOf(bound.constant) - low + step / 2) / width;
      if (!(width > 0) || !std::isfinite(width) || !std::isfinite(position)) return kRange;
      const double below = std::clamp(position, 0.0, 1.0);
      const bool less = (e.function == Function::kLt || e.function == Function::kLe) != flipped;
      return less ? below : 1 - below;
    }
    default:
      return kUnknown;
  }
}

/// Whether `e` compares a bare column with constants: a test of encoded values, which cannot fail. Other predicates
/// come after these, so that `x <> 0 AND f(x)` protects f as people expect.
bool IsColumnTest(const Expr& e) {
  if (e.kind != Expr::Kind::kFunction) return e.kind == Expr::Kind::kColumn;
  if (e.function == Function::kAnd || e.function == Function::kOr || e.function == Function::kNot) {
    return std::all_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return IsColumnTest(*a); });
  }
  const bool test = (e.function >= Function::kEq && e.function <= Function::kGe) || e.function == Function::kIsNull ||
                    e.function == Function::kIsNotNull || e.function == Function::kIn || e.function == Function::kLike;
  return test &&
         std::all_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return a->kind != Expr::Kind::kFunction; });
}

bool IsUnique(const Query& q, const JoinStep& step) {
  const Relation& r = q.relations[static_cast<size_t>(step.relation)];
  if (r.table == nullptr || r.table->schema.primary_key.empty()) return false;
  for (int key : r.table->schema.primary_key) {
    auto is_key = [&](const Expr* e) { return e->kind == Expr::Kind::kColumn && e->column == key; };
    if (std::none_of(step.build_keys.begin(), step.build_keys.end(), is_key)) return false;
  }
  return true;
}

/// One look at a table without keys is as good as a look-up: whether it has a row, or its only row.
bool NeedsPairs(const Query& q, const JoinStep& step) {
  if (step.kind == JoinKind::kInner || !step.match.empty()) return true;
  const Relation& r = q.relations[static_cast<size_t>(step.relation)];
  return step.kind == JoinKind::kLeft && !step.unique && !r.single;
}

const char* StrategyName(JoinChoice choice) {
  static constexpr const char* kNames[] = {"auto", "hash", "dp", "grid", "loop"};
  return kNames[static_cast<int>(choice)];
}

Status Refuse(const PlanOptions& options, const std::string& reason) {
  return Unsupported(
      std::string("join strategy \"") + StrategyName(options.join) + "\" cannot run this query: " + reason, -1,
      "Use SET join_strategy = auto.");
}

/// A relation as an error names it.
std::string NameOf(const Query& q, int relation) {
  const Relation& r = q.relations[static_cast<size_t>(relation)];
  if (!r.alias.empty()) return "\"" + r.alias + "\"";
  return r.join == JoinKind::kInner ? "a derived table" : "a subquery";
}

/// The first column of `relation` in `e` by which rows can be sorted, stored or computed, or nullptr.
const Expr* SortableColumn(const Plan& plan, const Expr& e, int relation) {
  if (e.kind == Expr::Kind::kFunction && FindSame(plan.computed[static_cast<size_t>(relation)], e) >= 0) return &e;
  if (e.kind == Expr::Kind::kColumn && e.relation == relation && e.column != kMarkColumn) {
    const StorageClass storage = e.type.storage();
    return storage == StorageClass::kInt || storage == StorageClass::kFloat ? &e : nullptr;
  }
  const Expr* found = nullptr;
  for (const ExprPtr& a : e.args) {  // what is true or false separates the rows less than numbers do
    const Expr* next = SortableColumn(plan, *a, relation);
    if (next != nullptr && (found == nullptr || found->type.id == TypeId::kBoolean)) found = next;
    if (found != nullptr && found->type.id != TypeId::kBoolean) break;
  }
  return found;
}

/// How much the ranges of its columns tell about a condition on two relations; the least is the best. Where each side
/// of a comparison is of one relation, most pairs of ranges that do not overlap decide it.
int PruningRank(const Expr& e) {
  if (e.kind != Expr::Kind::kFunction || e.function < Function::kEq || e.function > Function::kGe) return 4;
  if (e.function == Function::kNe) return 3;
  const uint64_t left = RelationsOf(*e.args[0]), right = RelationsOf(*e.args[1]);
  if ((left & right) != 0 || left == 0 || right == 0) return 2;
  return e.function == Function::kEq ? 0 : 1;
}

/// Below so many rows on the built side, sorting the driver costs more than pairs that are left out can save; above so
/// many of its own, storing it costs more memory than a query that only scans should take. Where grid is asked for, it
/// is done all the same.
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
  plan->build_driver = step.strategy == vm::JoinStrategy::kDp || step.probe_order != nullptr;
}

/// Gives each step its strategy, or says why the one that is asked for cannot be.
Status ChooseStrategies(const Query& q, const PlanOptions& options, Plan* plan) {
  static constexpr const char* kKinds[] = {"an inner join", "a left join", "a semi join", "an anti join",
                                           "a mark join"};
  for (size_t i = 0; i < plan->joins.size(); ++i) {
    JoinStep& step = plan->joins[i];
    const bool pairs = step.build_keys.empty() && NeedsPairs(q, step);
    const bool grid = i == 0 && step.kind == JoinKind::kInner;
    switch (options.join) {
      case JoinChoice::kAuto:
        if (grid && pairs) step.strategy = vm::JoinStrategy::kGrid;
        break;
      case JoinChoice::kHash: {
        if (!pairs) break;
        // The relation that a condition on the two names, or the one that drives.
        uint64_t others = 0;
        for (const auto* list : {&step.match, &step.residuals}) {
          for (const Expr* e : *list) others |= RelationsOf(*e);
        }
        others &= ~(uint64_t{1} << step.relation);
        const int other = others != 0 ? __builtin_ctzll(others) : plan->driver;
        const std::string of_what = other < 0 ? "one row" : NameOf(q, other);
        return Refuse(options, of_what + " and " + NameOf(q, step.relation) + " are joined without an equality");
      }
      case JoinChoice::kDp:
      case JoinChoice::kGrid:
        if (step.kind != JoinKind::kInner && (!step.build_keys.empty() || pairs)) {
          // All but left joins come from those, and what Unnest makes of a scalar one has this name. (The anti join of
          // a FULL JOIN comes behind its left join.)
          const bool subquery =
              step.kind != JoinKind::kLeft || q.relations[static_cast<size_t>(step.relation)].alias == "subquery";
          return Refuse(options, NameOf(q, step.relation) + " is joined by " + kKinds[static_cast<int>(step.kind)] +
                                     (subquery ? ", as subqueries in expressions are," : "") +
                                     " and only inner joins can be products");
        }
        if (grid) step.strategy = options.join == JoinChoice::kDp ? vm::JoinStrategy::kDp : vm::JoinStrategy::kGrid;
        break;
      case JoinChoice::kLoop:
        step.strategy = vm::JoinStrategy::kLoop;
        break;
    }
  }
  if (!plan->joins.empty() && vm::IsCutBothWays(plan->joins[0].strategy)) {
    HoistFromProduct(q, options, plan);
    ChooseOrder(options, plan);
  }
  return Status::Ok();
}

/// The plan but for the strategies: what drives, in what order the others follow, where predicates are tested.
Plan OrderJoins(const Query& q, const PlanOptions& options);

}  // namespace

uint64_t RelationsOf(const Expr& e) {
  uint64_t set = 0;
  ForEachColumn(e, [&](const Expr& c) { set |= uint64_t{1} << c.relation; });
  return set;
}

int FindSame(const std::vector<const Expr*>& list, const Expr& e) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i]->SameAs(e)) return static_cast<int>(i);
  }
  return -1;
}

Result<Plan> MakePlan(const Query& q, const PlanOptions& options) {
  Plan plan = OrderJoins(q, options);
  TESSERA_TRY(ChooseStrategies(q, options, &plan));
  return plan;
}

namespace {

Plan OrderJoins(const Query& q, const PlanOptions& options) {
  const bool products =
      options.join == JoinChoice::kDp || options.join == JoinChoice::kGrid || options.join == JoinChoice::kLoop;
  Plan plan;
  const size_t n = q.relations.size();
  plan.filters.resize(n);
  plan.computed.resize(n);
  plan.rows.resize(n);
  struct Pending {
    const Expr* expr;
    uint64_t relations;
    bool used = false;
  };
  const auto inner = [&](size_t r) { return q.relations[r].join == JoinKind::kInner; };
  std::vector<Pending> pending;
  for (const ExprPtr& c : q.conjuncts) {
    const uint64_t set = RelationsOf(*c);
    const auto only = static_cast<size_t>(set == 0 ? 0 : __builtin_ctzll(set));
    if (set == 0) {
      plan.constants.push_back(c.get());
    } else if ((set & (set - 1)) == 0 && inner(only)) {
      plan.filters[only].push_back(c.get());
    } else {
      pending.push_back({c.get(), set});
    }
  }
  for (size_t r = 0; r < n; ++r) {  // what a condition of ON says of the relation alone is a filter of its scan
    for (const ExprPtr& e : q.relations[r].on) {
      if ((RelationsOf(*e) & ~(uint64_t{1} << r)) == 0) plan.filters[r].push_back(e.get());
    }
  }
  std::vector<double> selectivity(n, 1.0);
  std::vector<double> size(n);
  for (size_t r = 0; r < n; ++r) {
    std::stable_sort(plan.filters[r].begin(), plan.filters[r].end(), [&](const Expr* a, const Expr* b) {
      if (IsColumnTest(*a) != IsColumnTest(*b)) return IsColumnTest(*a);
      return IsColumnTest(*a) && Selectivity(q, *a) < Selectivity(q, *b);
    });
    for (const Expr* f : plan.filters[r]) selectivity[r] *= Selectivity(q, *f);
    const Relation& relation = q.relations[r];
    size[r] = relation.table != nullptr ? static_cast<double>(relation.table->rows) : EstimateRows(*relation.query);
    plan.rows[r] = size[r] * selectivity[r];
    // The largest table drives, filtered or not: it is the one that should not be built.
    if (inner(r) && (plan.driver < 0 || size[r] > size[static_cast<size_t>(plan.driver)]))
      plan.driver = static_cast<int>(r);
  }
  uint64_t joined = plan.driver < 0 ? 0 : uint64_t{1} << plan.driver;
  double rows = plan.driver < 0 ? 1 : plan.rows[static_cast<size_t>(plan.driver)];
  const size_t steps = plan.driver < 0 ? n : n - 1;
  while (plan.joins.size() < steps) {
    JoinStep best;
    double best_rows = 0;
    int best_rank = 0;
    bool found = false;
    for (size_t r = 0; r < n; ++r) {
      const uint64_t bit = uint64_t{1} << r;
      if ((joined & bit) != 0) continue;
      const Relation& relation = q.relations[r];
      JoinStep step;
      step.relation = static_cast<int>(r);
      step.kind = relation.join;
      double fraction = 1;  // of the pairs that match
      bool found_by_key = relation.unique;
      const auto add_key = [&](const Expr& e) {
        if (e.kind != Expr::Kind::kFunction || e.function != Function::kEq) return false;
        for (int side = 0; side < 2; ++side) {
          const Expr& build = *e.args[static_cast<size_t>(side)];
          const Expr& probe = *e.args[static_cast<size_t>(1 - side)];
          const uint64_t of_probe = RelationsOf(probe);
          if (RelationsOf(build) != bit || (of_probe & bit) != 0 || of_probe == 0 || (of_probe & ~joined) != 0)
            continue;
          // Without keys nothing says any more that one row at most is found.
          found_by_key = found_by_key && !products;
          if (products && (step.kind == JoinKind::kInner || options.join == JoinChoice::kLoop)) return false;
          step.build_keys.push_back(&build);
          step.probe_keys.push_back(&probe);
          fraction /= std::max(DistinctOf(q, build), DistinctOf(q, probe));
          return true;
        }
        return false;
      };
      if (step.kind != JoinKind::kInner) {
        uint64_t needed = 0;
        for (const ExprPtr& e : relation.on) needed |= RelationsOf(*e);
        if ((needed & ~(joined | bit)) != 0) continue;
        for (const ExprPtr& e : relation.on) {
          if ((RelationsOf(*e) & ~bit) == 0 || add_key(*e)) continue;
          step.match.push_back(e.get());
          fraction *= Selectivity(q, *e);
        }
      }
      for (const Pending& p : pending) {
        if (p.used || (p.relations & ~(joined | bit)) != 0 || (p.relations & bit) == 0) continue;
        if (step.kind == JoinKind::kInner && add_key(*p.expr)) continue;
        step.residuals.push_back(p.expr);
        if (step.kind == JoinKind::kInner) fraction *= Selectivity(q, *p.expr);
      }
      step.unique = found_by_key || IsUnique(q, step);
      step.filtered = !plan.filters[r].empty() || relation.table == nullptr;
      const bool keyed = !step.build_keys.empty();
      step.rows = step.unique ? rows * selectivity[r] : rows * plan.rows[r] * fraction;
      switch (step.kind) {
        case JoinKind::kInner:
          break;
        case JoinKind::kLeft:
          step.rows = std::max(rows, step.rows);
          break;
        case JoinKind::kSemi:
          step.rows = std::min(rows * 0.5, step.rows);
          break;
        case JoinKind::kAnti:
          step.rows = rows * 0.5;
          break;
        case JoinKind::kMark:
          step.rows = rows;
          break;
      }
      // Keyed joins before products; among them the one that leaves the fewest rows. One look at a table without a key
      // is as good as a look-up.
      const bool cheap = keyed || (step.kind != JoinKind::kInner && step.match.empty() &&
                                   (step.kind != JoinKind::kLeft || step.unique));
      // A grid is the first that is probed.
      const bool first = step.kind == JoinKind::kInner && products && options.join != JoinChoice::kLoop;
      const int rank = first ? 2 : cheap ? 1 : 0;
      if (!found || rank > best_rank || (rank == best_rank && step.rows < best_rows)) {
        found = true;
        best_rank = rank;
        best_rows = step.rows;
        best = std::move(step);
      }
    }
    assert(found);  // what a condition of ON refers to does not wait for the relation itself
    joined |= uint64_t{1} << best.relation;
    for (Pending& p : pending) p.used |= (p.relations & ~joined) == 0;
    rows = best.rows;
    plan.joins.push_back(std::move(best));
  }
  return plan;
}

}  // namespace

double EstimateJoined(const Plan& plan) {
  if (!plan.joins.empty()) return plan.joins.back().rows;
  return plan.driver < 0 ? 1 : plan.rows[static_cast<size_t>(plan.driver)];
}

double EstimateMade(const Query& q, double joined) {
  if (!q.grouped && !q.distinct) return joined;
  double groups = 1;
  if (q.grouped) {
    for (const ExprPtr& e : q.group_by) groups *= DistinctOf(q, *e);
  } else {
    for (int i = 0; i < q.visible; ++i) groups *= DistinctOf(q, *q.outputs[static_cast<size_t>(i)].expr);
  }
  return std::min(joined, groups);
}

double EstimateRows(const Query& q) {
  if (q.estimate >= 0) return q.estimate;
  double rows = EstimateMade(q, EstimateJoined(OrderJoins(q, PlanOptions{})));
  for (const auto& more : q.union_all) rows += EstimateRows(*more);
  if (q.limit >= 0) rows = std::min(rows, static_cast<double>(q.limit));
  return q.estimate = rows;
}

namespace {

/// "Hash left join"; one look at a table without keys has no strategy.
std::string JoinText(const Query& q, const JoinStep& j) {
  static constexpr const char* kStrategies[] = {"Hash ", "Loop ", "Grid ", "Dp "};
  static constexpr const char* kKinds[] = {"join", "left join", "semi join", "anti join", "mark join"};
  const char* strategy = kStrategies[static_cast<int>(j.strategy)];
  if (j.strategy == vm::JoinStrategy::kHash && j.build_keys.empty()) strategy = NeedsPairs(q, j) ? "Loop " : "";
  std::string text = std::string(strategy) + kKinds[static_cast<int>(j.kind)];
  if (strategy[0] == 0) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

/// `shown`: the blocks that have been printed; one that several relations share is printed once.
Status PlanLines(const Query& q, const Plan& plan, const PlanOptions& options, int depth, std::set<const Query*>* shown,
                 std::string* out) {
  std::vector<std::vector<std::string>> names;
  for (const Relation& r : q.relations) {
    names.emplace_back();
    for (const std::string& c : r.column_names) names.back().push_back(r.alias + "." + c);
  }
  auto line = [&](int indent, const std::string& text) {
    *out += std::string(static_cast<size_t>(2 * indent), ' ') + text + "\n";
  };
  auto list = [&](const auto& exprs, const char* separator) {
    std::string s;
    for (const auto& e : exprs) s += (s.empty() ? "" : separator) + e->ToString(names);
    return s;
  };
  auto rows_text = [](double rows) { return fmt::format("  (~{:.0f} rows)", rows); };
  if (q.limit >= 0 || q.offset > 0) {
    line(depth++, "Limit" + (q.limit >= 0 ? fmt::format(" {}", q.limit) : "") +
                      (q.offset > 0 ? fmt::format(" offset {}", q.offset) : ""));
  }
  if (!q.order_by.empty()) {
    std::string keys;
    for (const OrderKey& k : q.order_by) {
      keys +=
          (keys.empty() ? "" : ", ") + q.outputs[static_cast<size_t>(k.output)].name + (k.descending ? " desc" : "");
    }
    line(depth++, "Sort by " + keys);
  }
  if (q.distinct) line(depth++, "Distinct");
  if (q.grouped) {
    if (!q.having.empty())
      line(depth++,
           fmt::format("Filter groups ({} {})", q.having.size(), q.having.size() == 1 ? "condition" : "conditions"));
    std::string aggregates;
    for (const Aggregate& a : q.aggregates) {
      aggregates +=
          fmt::format("{}{}({}{})", aggregates.empty() ? "" : ", ", Info(a.function).text,
                      a.distinct ? "distinct " : "", a.argument == nullptr ? "*" : a.argument->ToString(names));
    }
    line(depth++, q.group_by.empty()
                      ? "Aggregate " + aggregates
                      : "Group by " + list(q.group_by, ", ") + (aggregates.empty() ? "" : ": " + aggregates));
  }
  for (size_t i = plan.joins.size(); i-- > 0;) {
    const JoinStep& j = plan.joins[i];
    std::string keys;
    for (size_t k = 0; k < j.build_keys.size(); ++k) {
      keys += (k == 0 ? "" : " and ") + j.probe_keys[k]->ToString(names) + " = " + j.build_keys[k]->ToString(names);
    }
    std::string text = JoinText(q, j);
    if (!keys.empty()) text += std::string(j.unique ? " (unique key)" : "") + " on " + keys;
    if (j.probe_order != nullptr)
      text += " sorted by " + j.probe_order->ToString(names) + " and " + j.build_order->ToString(names);
    if (!j.match.empty()) text += (keys.empty() ? " on " : " and ") + list(j.match, " and ");
    if (!j.residuals.empty()) text += " where " + list(j.residuals, " and ");
    line(depth++, text + rows_text(j.rows));
  }
  auto scan = [&](int indent, const std::string& prefix, int r) -> Status {
    const Relation& relation = q.relations[static_cast<size_t>(r)];
    const std::string& table = relation.table == nullptr ? relation.alias : relation.table->schema.name;
    std::string text =
        "Scan " + (table.empty() ? "derived table" : table) + (table == relation.alias ? "" : " " + relation.alias);
    const auto& filters = plan.filters[static_cast<size_t>(r)];
    if (!filters.empty()) text += " where " + list(filters, " and ");
    line(indent, prefix + text + rows_text(plan.rows[static_cast<size_t>(r)]));
    if (relation.query == nullptr || !shown->insert(relation.query.get()).second) return Status::Ok();
    TESSERA_ASSIGN(const Plan inside, MakePlan(*relation.query, options));
    TESSERA_TRY(PlanLines(*relation.query, inside, options, indent + 1, shown, out));
    for (const auto& more : relation.query->union_all) {
      line(indent + 1, "Union all");
      TESSERA_ASSIGN(const Plan next, MakePlan(*more, options));
      TESSERA_TRY(PlanLines(*more, next, options, indent + 2, shown, out));
    }
    return Status::Ok();
  };
  if (plan.driver < 0) {
    line(depth, plan.constants.empty() ? "One row" : "One row where " + list(plan.constants, " and "));
  } else {
    TESSERA_TRY(scan(depth, plan.build_driver ? "Store: " : "", plan.driver));
  }
  for (const JoinStep& j : plan.joins) TESSERA_TRY(scan(depth--, "Build: ", j.relation));
  return Status::Ok();
}

}  // namespace

Result<std::string> PlanText(const Query& query, const Plan& plan, const PlanOptions& options) {
  std::string out;
  std::set<const Query*> shown;
  TESSERA_TRY(PlanLines(query, plan, options, 0, &shown, &out));
  return out;
}

}  // namespace tessera
