#include "compiler/plan/join_reduction.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/plan/join_cost.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/selectivity.h"

namespace tessera {
namespace {

/// A semi join must save more than this share of what the side costs: estimates are rough.
constexpr double kWorthIt = 0.5;
/// To look up several keys costs this times one.
constexpr double kManyKeys = 1.5;
/// To store a row and to scan it twice.
constexpr double kStoreCost = 8;

/// Pipelines that give keys have at most this number of joins, and a block at most that number of restricted sides: what is run
/// once more should be small, and the machine has room for a few hundred sections.
constexpr size_t kMostJoins = 4, kMostSides = 8;

/// The joins of a pipeline and of the sides in it.
size_t Count(const std::vector<JoinStep>& joins) {
  size_t n = joins.size();
  for (const JoinStep& j : joins) n += Count(j.joins);
  return n;
}

/// The first joins of a pipeline, as a source of keys.
struct Keys {
  const Expr* key = nullptr;  ///< the expression that is looked up by
  int driver = -1;
  std::vector<JoinStep> joins;
  double rows = 0;
  double cost = 0;  ///< to run it once more
};

class SideRestriction {
 public:
  SideRestriction(const JoinGraph& graph, Plan* plan) : graph_(graph), plan_(*plan) {}

  /// The sides of a pipeline, and what is inside them. Keys come from the pipeline as it was, so that what is copied does
  /// not hold copies itself.
  void Restrict(int driver, std::vector<JoinStep>* joins, size_t* stored) {
    const std::vector<JoinStep> original = *joins;
    for (size_t i = 0; i < joins->size(); ++i) {
      JoinStep& step = (*joins)[i];
      Restrict(step.relation, &step.joins, &step.stored);
      if (!RestrictSide(driver, original, i, &step, stored)) RestrictByEarlier(original, *joins, i, &step);
    }
    for (size_t i = joins->size(); i-- > 0;) {
      const double rows = i == 0 ? graph_.filtered_rows(static_cast<size_t>(driver)) : (*joins)[i - 1].rows;
      std::optional<JoinStep> semi = FilterBefore(original[i], rows);
      if (!semi) continue;
      joins->insert(joins->begin() + static_cast<std::ptrdiff_t>(i), std::move(*semi));
      *stored += i < *stored ? 1 : 0;
    }
  }

 private:
  /// A semi join that leaves few of the `rows` rows that would look into a side by several keys.
  std::optional<JoinStep> FilterBefore(const JoinStep& side, double rows) const {
    std::optional<JoinStep> best;
    if ((side.kind != JoinKind::kInner && side.kind != JoinKind::kSemi) || side.build_keys.size() < 2) return best;
    double best_cost = kWorthIt * kManyKeys * rows * CostOfTable(side.side_rows).probe;
    const auto consider = [&](const JoinStep& keys, const Expr* build_key, size_t k) {
      const double left = std::min(1.0, keys.side_rows / DistinctOf(*plan_.query, *side.probe_keys[k]));
      const double cost = rows * (kBitsCost * CostOfTable(keys.side_rows).probe +
                                  left * kManyKeys * CostOfTable(side.side_rows).probe) +
                          CostOfSide(keys);
      if (cost >= best_cost) return;
      best_cost = cost;
      best = keys;
      best->kind = JoinKind::kSemi;
      best->probe_keys = {side.probe_keys[k]};
      best->build_keys = {build_key};
      best->match.clear();
      best->residuals.clear();
      best->rows = rows * left;
    };
    for (size_t k = 0; k < side.build_keys.size(); ++k) {
      const Expr &probe = *side.probe_keys[k], &build = *side.build_keys[k];
      if (probe.type != build.type) continue;
      for (const JoinStep& inner : side.joins) {
        const bool has_key = inner.kind == JoinKind::kInner && inner.unique && inner.filtered &&
                             inner.build_keys.size() == 1 && inner.probe_keys[0]->SameAs(build);
        if (has_key) consider(inner, inner.build_keys[0], k);
      }
      // One key of the side itself, made once more.
      if (side.filtered && probe.type.storage() == StorageClass::kInt && Count(side.joins) < kMostJoins)
        consider(side, &build, k);
    }
    return best;
  }

  /// Adds a semi join with the keys of the pipeline. false: none is worth it.
  bool RestrictSide(int driver, const std::vector<JoinStep>& joins, size_t number, JoinStep* restricted,
                    size_t* stored) {
    JoinStep& side = *restricted;
    double best_cost = kWorthIt * SideCost(side, side.side_rows);
    Keys best;
    const Expr* best_key = nullptr;
    double best_left = 0;
    const double scanned = graph_.filtered_rows(static_cast<size_t>(side.relation));
    for (size_t k = 0; k < side.build_keys.size(); ++k) {
      const Expr& key = *side.build_keys[k];
      const Expr& probe = *side.probe_keys[k];
      if (RelationsOf(key) != SetOf(static_cast<size_t>(side.relation)) || probe.type != key.type) continue;
      ForEachSource(probe, driver, joins, number, [&](const Keys& found) {
        const double left = side.side_rows * std::min(1.0, found.rows / DistinctOf(*plan_.query, key));
        const TableCost& table = CostOfTable(found.rows);
        const bool is_made = IsMade(found, probe, IsStored(found, driver, *stored));
        const double made = is_made ? 0 : found.cost + kBitsCost * table.build * found.rows;
        const double cost = made + kBitsCost * table.probe * scanned + SideCost(side, left);
        if (cost >= best_cost) return;
        best_cost = cost;
        best = found;
        best.key = &probe;
        best_key = &key;
        best_left = left;
      });
    }
    if (best_key == nullptr || restricted_ == kMostSides) return false;
    ++restricted_;
    JoinStep semi;
    semi.of_stored = IsStored(best, driver, *stored);
    if (semi.of_stored) *stored = best.joins.size();
    made_.push_back({best.driver, best.joins.size(), best.key, semi.of_stored});
    semi.relation = best.driver;
    semi.joins = std::move(best.joins);
    semi.kind = JoinKind::kSemi;
    semi.probe_keys = {best_key};
    semi.build_keys = {best.key};
    semi.filtered = true;
    semi.side_rows = best.rows;
    semi.rows = best_left;
    AddFirst(std::move(semi), &side);
    return true;
  }

  /// Whether the rows of these keys are stored, in a pipeline of that driver that stores those of `stored` joins, or none.
  bool IsStored(const Keys& keys, int driver, size_t stored) const {
    return keys.driver == driver && (stored == 0 || stored == keys.joins.size()) && IsWorthStoring(keys);
  }
  /// Whether an earlier side has a semi join with the same keys, of stored rows or not: their table is made once.
  bool IsMade(const Keys& keys, const Expr& key, bool of_stored) const {
    return std::ranges::any_of(made_, [&](const MadeKeys& m) {
      return m.driver == keys.driver && m.joins == keys.joins.size() && m.of_stored == of_stored && m.key->SameAs(key);
    });
  }

  static void AddFirst(JoinStep semi, JoinStep* side) {
    side->side_rows = semi.rows;
    side->filtered = true;
    side->stored += side->stored > 0 ? 1 : 0;
    side->joins.insert(side->joins.begin(), std::move(semi));
  }

  /// The rows that look into side `number` by a column have looked into an earlier side by the same one: they have its keys.
  /// `joins` are those of the pipeline, `now` what has become of them.
  void RestrictByEarlier(const std::vector<JoinStep>& joins, const std::vector<JoinStep>& now, size_t number,
                         JoinStep* restricted) {
    JoinStep& side = *restricted;
    double best_cost = kWorthIt * SideCost(side, side.side_rows);
    std::optional<JoinStep> best;
    const double scanned = graph_.filtered_rows(static_cast<size_t>(side.relation));
    for (size_t e = 0; e < number; ++e) {
      const JoinStep& earlier = joins[e];
      const bool gives_keys = (earlier.kind == JoinKind::kInner || earlier.kind == JoinKind::kSemi) &&
                              earlier.filtered && earlier.match.empty() && earlier.build_keys.size() == 1 &&
                              vm::Info(earlier.strategy).by_key && Count(earlier.joins) < kMostJoins;
      const bool is_as_it_was = now[e].joins.size() == earlier.joins.size() && now[e].stored == earlier.stored;
      if (!gives_keys || !is_as_it_was) continue;
      for (size_t k = 0; k < side.build_keys.size(); ++k) {
        const Expr& key = *side.build_keys[k];
        if (RelationsOf(key) != SetOf(static_cast<size_t>(side.relation)) || earlier.build_keys[0]->type != key.type ||
            !earlier.probe_keys[0]->SameAs(*side.probe_keys[k]))
          continue;
        const double left = side.side_rows * std::min(1.0, earlier.side_rows / DistinctOf(*plan_.query, key));
        // (It may have to be made once more, for its keys alone.)
        const double cost =
            CostOfSide(earlier) + kBitsCost * CostOfTable(earlier.side_rows).probe * scanned + SideCost(side, left);
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = earlier;
        best->kind = JoinKind::kSemi;
        best->probe_keys = {&key};
        best->residuals.clear();
        best->rows = left;
      }
    }
    if (!best || restricted_ == kMostSides) return;
    ++restricted_;
    AddFirst(std::move(*best), &side);
  }

  /// Whether the rows of a start of the pipeline are better stored than made twice.
  bool IsWorthStoring(const Keys& keys) const {
    const bool plain = std::ranges::all_of(
        keys.joins, [](const JoinStep& j) { return j.kind == JoinKind::kInner || OnlyFilters(j.kind); });
    return plain && !keys.joins.empty() && kStoreCost * keys.rows < keys.cost;
  }

  static double SideCost(const JoinStep& side, double rows) {
    // A table of keys alone that are numbers is a set of bits.
    const bool bits = (side.kind == JoinKind::kSemi || side.kind == JoinKind::kAnti || side.kind == JoinKind::kMark) &&
                      side.match.empty() && side.build_keys.size() == 1;
    return rows * CostOfTable(rows).build * (bits ? kBitsCost : 1);
  }

  /// Calls f(const Keys&) for every start of the pipeline, before join `end`, or of a side in it, that has `key`.
  template <class F>
  void ForEachSource(const Expr& key, int driver, const std::vector<JoinStep>& joins, size_t end, F f) const {
    Keys keys;
    keys.driver = driver;
    RelationSet has = SetOf(static_cast<size_t>(driver));
    keys.cost = graph_.size(static_cast<size_t>(driver));
    keys.rows = graph_.filtered_rows(static_cast<size_t>(driver));
    for (size_t i = 0;; ++i) {
      if (IsSubset(RelationsOf(key), has)) f(keys);
      if (i == end) return;
      const JoinStep& step = joins[i];
      RelationSet of_step = 0;
      ForEachRelation(step, [&](int r) { of_step |= SetOf(static_cast<size_t>(r)); });
      if (IsSubset(RelationsOf(key), of_step) && step.kind == JoinKind::kInner)
        ForEachSource(key, step.relation, step.joins, step.joins.size(), f);
      has |= of_step;
      keys.joins.push_back(step);
      if (Count(keys.joins) > kMostJoins) return;
      keys.cost += keys.rows * CostOfTable(step.side_rows).probe + CostOfSide(step);
      keys.rows = step.rows;
    }
  }

  double CostOfSide(const JoinStep& step) const {
    double cost = graph_.size(static_cast<size_t>(step.relation)) + step.side_rows * CostOfTable(step.side_rows).build;
    for (const JoinStep& j : step.joins) cost += CostOfSide(j);
    return cost;
  }

  const JoinGraph& graph_;
  const Plan& plan_;
  size_t restricted_ = 0;
  /// Keys that sides are restricted by. A relation drives one pipeline, so the driver and the number of joins name a start.
  struct MadeKeys {
    int driver;
    size_t joins;
    const Expr* key;
    bool of_stored;
  };
  std::vector<MadeKeys> made_;
};

}  // namespace

void RestrictSides(const JoinGraph& graph, Plan* plan) {
  if (HasVolatile(*plan->query)) return;
  SideRestriction(graph, plan).Restrict(plan->driver, &plan->joins, &plan->stored);
}

}  // namespace tessera
