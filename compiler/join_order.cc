#include "compiler/join_order.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/functions.h"
#include "compiler/query_walk.h"
#include "compiler/selectivity.h"

namespace tessera {
namespace {

/// Whether `e` compares a bare column with constants: a test of encoded values, which cannot fail. Other predicates
/// come after these, so that `x <> 0 AND f(x)` protects f as people expect.
bool IsColumnTest(const Expr& e) {
  if (e.kind != Expr::Kind::kFunction) return e.kind == Expr::Kind::kColumn;
  if (e.function == Function::kAnd || e.function == Function::kOr || e.function == Function::kNot) {
    return std::all_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return IsColumnTest(*a); });
  }
  const bool test = IsComparison(e.function) || e.function == Function::kIsNull || e.function == Function::kIsNotNull ||
                    e.function == Function::kIn || e.function == Function::kLike;
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

/// One block while its joins are ordered.
class JoinOrder {
 public:
  JoinOrder(const Query& q, const PlanOptions& options, const DerivedPlans& derived)
      : q_(q), options_(options), derived_(derived), n_(q.relations.size()) {}

  Plan Run() {
    plan_.query = &q_;
    PushDownPredicates();
    EstimateScans();
    joined_ = plan_.driver < 0 ? 0 : Bit(static_cast<size_t>(plan_.driver));
    rows_ = plan_.driver < 0 ? 1 : plan_.rows[static_cast<size_t>(plan_.driver)];
    const size_t steps = plan_.driver < 0 ? n_ : n_ - 1;
    while (plan_.joins.size() < steps) {
      JoinStep best = BestStep();
      joined_ |= Bit(static_cast<size_t>(best.relation));
      for (Pending& p : pending_) p.used |= (p.relations & ~joined_) == 0;
      rows_ = best.rows;
      plan_.joins.push_back(std::move(best));
    }
    plan_.joined_rows = rows_;
    return std::move(plan_);
  }

 private:
  /// A predicate over several relations, or over a relation that is not joined by an inner join.
  struct Pending {
    const Expr* expr;
    uint64_t relations;
    bool used = false;
  };

  static uint64_t Bit(size_t r) { return uint64_t{1} << r; }
  bool IsInner(size_t r) const { return q_.relations[r].join == JoinKind::kInner; }

  void PushDownPredicates() {
    plan_.filters.resize(n_);
    plan_.computed.resize(n_);
    for (const ExprPtr& c : q_.conjuncts) {
      const uint64_t set = RelationsOf(*c);
      const auto only = static_cast<size_t>(set == 0 ? 0 : __builtin_ctzll(set));
      if (set == 0) {
        plan_.constants.push_back(c.get());
      } else if ((set & (set - 1)) == 0 && IsInner(only)) {
        plan_.filters[only].push_back(c.get());
      } else {
        pending_.push_back({c.get(), set});
      }
    }
    for (size_t r = 0; r < n_; ++r) {  // a part of ON on this relation alone filters its scan
      for (const ExprPtr& e : q_.relations[r].on) {
        if ((RelationsOf(*e) & ~Bit(r)) == 0) plan_.filters[r].push_back(e.get());
      }
    }
  }

  /// Sorts the filters of each relation, estimates how many rows pass, and chooses the driver.
  void EstimateScans() {
    plan_.rows.resize(n_);
    selectivity_.assign(n_, 1.0);
    std::vector<double> size(n_);
    for (size_t r = 0; r < n_; ++r) {
      std::stable_sort(plan_.filters[r].begin(), plan_.filters[r].end(), [&](const Expr* a, const Expr* b) {
        if (IsColumnTest(*a) != IsColumnTest(*b)) return IsColumnTest(*a);
        return IsColumnTest(*a) && Selectivity(q_, *a) < Selectivity(q_, *b);
      });
      for (const Expr* f : plan_.filters[r]) selectivity_[r] *= Selectivity(q_, *f);
      const Relation& relation = q_.relations[r];
      size[r] = relation.table != nullptr ? static_cast<double>(relation.table->rows) : derived_[r]->result_rows;
      plan_.rows[r] = size[r] * selectivity_[r];
      // The largest table drives, filtered or not, because building it would cost most.
      if (IsInner(r) && (plan_.driver < 0 || size[r] > size[static_cast<size_t>(plan_.driver)]))
        plan_.driver = static_cast<int>(r);
    }
  }

  /// The next join: the best of those whose conditions refer only to relations that are joined already.
  JoinStep BestStep() {
    JoinStep best;
    int best_rank = 0;
    bool found = false;
    for (size_t r = 0; r < n_; ++r) {
      if ((joined_ & Bit(r)) != 0 || !CanFollow(r)) continue;
      JoinStep step = MakeStep(r);
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

  bool CanFollow(size_t r) const {
    if (IsInner(r)) return true;
    uint64_t needed = 0;
    for (const ExprPtr& e : q_.relations[r].on) needed |= RelationsOf(*e);
    return (needed & ~(joined_ | Bit(r))) == 0;
  }

  JoinStep MakeStep(size_t r) {
    const Relation& relation = q_.relations[r];
    JoinStep step;
    step.relation = static_cast<int>(r);
    step.kind = relation.join;
    double fraction = 1;  // of the pairs that match
    bool found_by_key = relation.unique;
    const auto add_key = [&](const Expr& e) { return AddKey(e, &step, &fraction, &found_by_key); };
    if (step.kind != JoinKind::kInner) {
      for (const ExprPtr& e : relation.on) {
        if ((RelationsOf(*e) & ~Bit(r)) == 0 || add_key(*e)) continue;
        step.match.push_back(e.get());
        fraction *= Selectivity(q_, *e);
      }
    }
    for (const Pending& p : pending_) {
      if (p.used || (p.relations & ~(joined_ | Bit(r))) != 0 || (p.relations & Bit(r)) == 0) continue;
      if (step.kind == JoinKind::kInner && add_key(*p.expr)) continue;
      step.residuals.push_back(p.expr);
      if (step.kind == JoinKind::kInner) fraction *= Selectivity(q_, *p.expr);
    }
    step.unique = found_by_key || IsUnique(q_, step);
    step.filtered = !plan_.filters[r].empty() || relation.table == nullptr;
    step.rows = step.unique ? rows_ * selectivity_[r] : rows_ * plan_.rows[r] * fraction;
    switch (step.kind) {
      case JoinKind::kInner:
        break;
      case JoinKind::kLeft:
        step.rows = std::max(rows_, step.rows);
        break;
      case JoinKind::kSemi:
        step.rows = std::min(rows_ * 0.5, step.rows);
        break;
      case JoinKind::kAnti:
        step.rows = rows_ * 0.5;
        break;
      case JoinKind::kMark:
        step.rows = rows_;
        break;
    }
    return step;
  }

  /// Makes `e` a key of the step if it is an equality between its relation and relations that are joined already.
  bool AddKey(const Expr& e, JoinStep* step, double* fraction, bool* found_by_key) const {
    if (e.kind != Expr::Kind::kFunction || e.function != Function::kEq) return false;
    const uint64_t bit = Bit(static_cast<size_t>(step->relation));
    for (size_t side = 0; side < 2; ++side) {
      const Expr& build = *e.args[side];
      const Expr& probe = *e.args[1 - side];
      const uint64_t of_probe = RelationsOf(probe);
      if (RelationsOf(build) != bit || (of_probe & bit) != 0 || of_probe == 0 || (of_probe & ~joined_) != 0) continue;
      if (KeysAreConditions(options_)) {
        // Without keys more than one row may be found.
        *found_by_key = false;
        if (step->kind == JoinKind::kInner || options_.join == JoinChoice::kLoop) return false;
      }
      step->build_keys.push_back(&build);
      step->probe_keys.push_back(&probe);
      *fraction /= std::max(DistinctOf(q_, build), DistinctOf(q_, probe));
      return true;
    }
    return false;
  }

  /// Joins with keys come before nested-loop joins; among them, the one that leaves the fewest rows. A join without
  /// keys that needs only one look at the join table is as good as one with keys.
  int Rank(const JoinStep& step) const {
    // A grid comes first.
    if (step.kind == JoinKind::kInner && KeysAreConditions(options_) && options_.join != JoinChoice::kLoop) return 2;
    const bool one_look =
        step.kind != JoinKind::kInner && step.match.empty() && (step.kind != JoinKind::kLeft || step.unique);
    return !step.build_keys.empty() || one_look ? 1 : 0;
  }

  const Query& q_;
  const PlanOptions& options_;
  const DerivedPlans& derived_;
  const size_t n_;
  Plan plan_;
  std::vector<Pending> pending_;
  std::vector<double> selectivity_;  ///< per relation: of its filters
  uint64_t joined_ = 0;              ///< the relations that are joined already, as bits
  double rows_ = 1;                  ///< estimate after the joins so far
};

}  // namespace

bool KeysAreConditions(const PlanOptions& options) {
  return options.join == JoinChoice::kDp || options.join == JoinChoice::kGrid || options.join == JoinChoice::kLoop;
}

Plan OrderJoins(const Query& q, const PlanOptions& options, const DerivedPlans& derived) {
  return JoinOrder(q, options, derived).Run();
}

}  // namespace tessera
