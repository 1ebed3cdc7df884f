// Which expressions move out of a grid's loop.

#include "compiler/plan/hoist.h"

#include <algorithm>
#include <map>

#include "compiler/query/entry_functions.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

class Hoister {
 public:
  explicit Hoister(Plan* plan)
      : plan_(plan),
        driver_(Bit(plan->driver)),
        inner_(Bit(plan->joins[0].relation)),
        statistics_(*plan->query),
        ranges_(statistics_) {}

  /// `condition`: `e` only narrows the mask; its value is not needed.
  void Visit(const Expr& e, bool condition) {
    if (e.kind != Expr::Kind::kFunction) return;
    const Known& known = About(e);
    const bool one_side = known.relations == driver_ || known.relations == inner_;
    if (one_side && known.movable && IsWorthIt(e, condition)) {
      auto& list = plan_->computed[static_cast<size_t>(__builtin_ctzll(known.relations))];
      if (FindSame(list, e) >= 0) return;
      if (list.size() < kMaxComputed) {
        list.push_back(&e);
        return;
      }
    }
    const bool logic = e.function == Function::kAnd || e.function == Function::kOr || e.function == Function::kNot;
    for (size_t i = 0; i < e.args.size(); ++i) {
      const bool when = e.function == Function::kCase && i % 2 == 0 && i + 1 < e.args.size();
      Visit(*e.args[i], logic || when);
    }
  }

 private:
  struct Known {
    uint64_t relations = 0;
    bool movable = true;
  };
  static uint64_t Bit(int relation) { return uint64_t{1} << relation; }

  /// Cached, so that a chain of n operators is not walked n times.
  const Known& About(const Expr& e) {
    auto [it, added] = known_.try_emplace(&e);
    Known& known = it->second;
    if (!added) return known;
    if (e.kind == Expr::Kind::kColumn) known.relations = Bit(e.relation);
    for (const ExprPtr& a : e.args) {
      const Known& of_argument = About(*a);
      known.relations |= of_argument.relations;
      known.movable &= of_argument.movable;
    }
    known.movable = known.movable && e.type.storage() != StorageClass::kText && e.column != kMarkColumn &&
                    Info(e.function).translation != Translation::kRandom && !ranges_.CanFail(e);
    return known;
  }

  /// Whether an expression of one side costs more than loading a column instead.
  bool IsWorthIt(const Expr& e, bool condition) const {
    if (IsWide(e.type) || e.type.id == TypeId::kNull || ranges_.IsNoOp(e)) return false;
    if (!condition) return true;
    switch (e.function) {
      case Function::kAnd:
      case Function::kOr:
      case Function::kIn:
      case Function::kCase:
      case Function::kCast:
        return true;
      default:
        return false;  // it is one filter on its arguments
    }
  }

  Plan* plan_;
  const uint64_t driver_, inner_;
  const StatisticsRanges statistics_;
  const ExprRanges ranges_;
  std::map<const Expr*, Known> known_;
};

/// Finds functions of texts of relations that are joined by keys.
class TextHoister {
 public:
  /// `relations`: a bit for each whose texts may be computed where its rows are stored.
  TextHoister(Plan* plan, uint64_t relations) : plan_(plan), relations_(relations) {}

  void Visit(const Expr& e) {
    if (e.kind != Expr::Kind::kFunction) return;
    const Expr* const column = ColumnOfEntries(e);
    const bool is_theirs = column != nullptr && (relations_ >> column->relation & 1) != 0;
    if (is_theirs && ReadsCharacters(e) && !IsWide(e.type) && e.type.id != TypeId::kNull) {
      auto& list = plan_->computed[static_cast<size_t>(column->relation)];
      if (FindSame(list, e) >= 0) return;
      if (list.size() < kMaxComputed) {
        list.push_back(&e);
        return;
      }
    }
    for (const ExprPtr& a : e.args) Visit(*a);
  }

 private:
  /// Whether identifiers of texts do not tell the value.
  static bool ReadsCharacters(const Expr& e) {
    if (e.kind != Expr::Kind::kFunction) return false;
    const Translation t = Info(e.function).translation;
    const bool tells = e.function == Function::kEq || e.function == Function::kNe || t == Translation::kInList ||
                       t == Translation::kNullTest || t == Translation::kJunction || t == Translation::kNegation;
    return !tells || std::ranges::any_of(e.args, [](const ExprPtr& a) { return ReadsCharacters(*a); });
  }

  Plan* plan_;
  const uint64_t relations_;
};

/// Adds the relations, also of sides inside of sides, that have no more rows than those that look into them.
void NoteSides(const Plan& plan, const std::vector<JoinStep>& joins, double rows, uint64_t* relations) {
  for (const JoinStep& j : joins) {
    const auto r = static_cast<size_t>(j.relation);
    const bool by_key = j.kind == JoinKind::kInner && vm::Info(j.strategy).by_key && !j.build_keys.empty();
    const bool whole = by_key && !j.of_stored && j.stored == 0;
    if (whole && plan.query->relations[r].table != nullptr && rows >= j.side_rows) *relations |= uint64_t{1} << r;
    if (whole) NoteSides(plan, j.joins, std::min(rows, plan.rows[r]), relations);
    rows = j.rows;
  }
}

}  // namespace

void HoistTexts(Plan* plan) {
  if (plan->build_driver || plan->stored > 0 || plan->driver < 0) return;
  uint64_t relations = 0;
  NoteSides(*plan, plan->joins, plan->rows[static_cast<size_t>(plan->driver)], &relations);
  if (relations == 0) return;
  TextHoister hoister(plan, relations);
  ForEachJoinedRoot(*plan, [&](const Expr& e, bool) { hoister.Visit(e); });
}

void HoistFromGrid(const PlanOptions& options, Plan* plan) {
  // With a single row on the built side there is no loop to move an expression out of.
  if (options.join == JoinChoice::kAuto && plan->rows[static_cast<size_t>(plan->joins[0].relation)] < 2) return;
  Hoister hoister(plan);
  ForEachJoinedRoot(*plan, [&](const Expr& e, bool condition) { hoister.Visit(e, condition); });
}

}  // namespace tessera
