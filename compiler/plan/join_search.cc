#include "compiler/plan/join_search.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "compiler/plan/join_cost.h"

namespace tessera {
namespace {

/// All splits of n relations are 3^n; of 12, most sets of which are not connected, they take a millisecond.
constexpr size_t kMostRelations = 12;

/// The cheapest pipeline for a set of relations.
struct Pipeline {
  RelationSet relations = 0;
  double cost = -1;      ///< -1: there is none
  double rows = 0;       ///< that leave it
  RelationSet side = 0;  ///< of its last join; 0: it only scans a relation
  size_t driver = 0;
  vm::JoinStrategy strategy = vm::JoinStrategy::kHash;  ///< of its last join
};

class JoinSearch {
 public:
  JoinSearch(const JoinGraph& graph, const PlanOptions& options)
      : graph_(graph), options_(options), n_(graph.relations()) {}

  bool Run(Plan* plan) {
    const RelationSet all = n_ == 64 ? ~RelationSet{0} : SetOf(n_) - 1;
    bool any_inner = false;
    for (size_t r = 0; r < n_; ++r) any_inner |= graph_.IsInner(r);
    if (!any_inner || n_ < 2) return false;
    if (!(n_ <= kMostRelations ? TryAll(all) : Greedily(all))) return false;
    plan->driver = DriverOf(all);
    plan->joins = StepsOf(all);
    plan->joined_rows = Find(all)->rows;
    return true;
  }

 private:
  // ---- All splits
  bool TryAll(RelationSet all) {
    table_.resize(all + 1);
    for (size_t r = 0; r < n_; ++r) neighbours_.push_back(graph_.Neighbours(r));
    for (RelationSet s = 1; s <= all; ++s) {
      Pipeline& p = table_[s];
      p.relations = s;
      if ((s & (s - 1)) == 0) {
        Scan(&p);
        continue;
      }
      if (!IsConnected(s)) continue;
      for (RelationSet side = (s - 1) & s; side != 0; side = (side - 1) & s) {
        const Pipeline& probing = table_[s & ~side];
        if (!CanJoin(probing, table_[side])) continue;
        if (p.cost < 0) p.rows = RowsOf(s);
        vm::JoinStrategy strategy;
        double cost = CostOfJoin(probing, table_[side], p.rows, &strategy);
        if (s == all) cost += Matched(probing.driver, p.rows) * graph_.texts(probing.driver);
        if (p.cost >= 0 && cost >= p.cost) continue;
        p.cost = cost;
        p.side = side;
        p.driver = probing.driver;
        p.strategy = strategy;
      }
    }
    return table_[all].cost >= 0;
  }

  /// Whether conditions lead from any relation of the set to any other. If not, it cannot be joined.
  bool IsConnected(RelationSet s) const {
    RelationSet reached = s & ~(s - 1);
    for (RelationSet left = reached; left != 0;) {
      const size_t r = First(left);
      left = (left & ~SetOf(r)) | (neighbours_[r] & s & ~reached);
      reached |= neighbours_[r] & s;
    }
    return reached == s;
  }

  /// One estimate for a set, whatever order makes it: that of its last relation by a fixed rule. A relation that is
  /// found by a unique key comes last if there is one, because such joins are estimated best.
  double RowsOf(RelationSet s) const {
    double best = -1;
    for (size_t r = 0; r < n_; ++r) {
      const RelationSet others = s & ~SetOf(r);
      if (others == s || table_[others].cost < 0) continue;
      if (!IsSubset(graph_.needed(r), others) || !IsPipeline(others)) continue;
      if (graph_.IsInner(r) && !graph_.HasKey(others, SetOf(r))) continue;
      bool unique = false;
      const double rows = graph_.RowsWith(others, table_[others].rows, r, &unique);
      if (unique || !graph_.IsInner(r)) return rows;
      if (best < 0 || rows < best) best = rows;
    }
    return std::max(best, 0.0);
  }

  /// How many rows of a relation are in `rows` rows of its joins.
  double Matched(size_t r, double rows) const {
    const double all = std::max(graph_.filtered_rows(r), 1.0);
    return all * (1 - std::exp(-rows / all));
  }

  // ---- The join that leaves the fewest rows
  bool Greedily(RelationSet all) {
    std::vector<RelationSet> parts;
    for (size_t r = 0; r < n_; ++r) {
      Pipeline p;
      p.relations = SetOf(r);
      Scan(&p);
      chosen_.push_back(p);
      parts.push_back(p.relations);
    }
    while (parts.size() > 1) {
      Pipeline best;
      for (const RelationSet a : parts) {
        for (const RelationSet b : parts) {
          const Pipeline &probing = *Find(a), &side = *Find(b);
          if (a == b || !CanJoin(probing, side)) continue;
          Pipeline p;
          p.relations = a | b;
          p.side = b;
          p.driver = probing.driver;
          p.rows = RowsOfJoin(probing, side);
          p.cost = CostOfJoin(probing, side, p.rows, &p.strategy);
          if (best.cost >= 0 && (best.rows < p.rows || (best.rows == p.rows && best.cost <= p.cost))) continue;
          best = p;
        }
      }
      if (best.cost < 0) return false;
      std::erase_if(parts, [&](RelationSet part) { return IsSubset(part, best.relations); });
      parts.push_back(best.relations);
      chosen_.push_back(best);
    }
    return parts[0] == all;
  }

  double RowsOfJoin(const Pipeline& probing, const Pipeline& side) {
    bool unique = false;
    if (side.side == 0) return graph_.RowsWith(probing.relations, probing.rows, First(side.relations), &unique);
    double fraction = 1;
    (void)graph_.Step(probing.relations, -1, side.relations, DriverOf(side.relations), &fraction);
    return probing.rows * side.rows * fraction;
  }

  // ---- Both
  static size_t First(RelationSet s) { return static_cast<size_t>(__builtin_ctzll(s)); }

  void Scan(Pipeline* p) const {
    const size_t r = First(p->relations);
    p->driver = r;
    p->cost = 0;  // every relation is scanned once, whatever the order
    p->rows = graph_.filtered_rows(r);
  }

  /// Whether the set drives itself: it is not just a relation that something is joined to by another kind of join.
  bool IsPipeline(RelationSet s) const { return (s & (s - 1)) != 0 || graph_.IsInner(First(s)); }

  bool CanJoin(const Pipeline& probing, const Pipeline& side) const {
    if (probing.cost < 0 || side.cost < 0 || !IsPipeline(probing.relations)) return false;
    if (IsPipeline(side.relations)) return graph_.HasKey(probing.relations, side.relations);
    return IsSubset(graph_.needed(First(side.relations)), probing.relations);
  }

  /// Of the cheapest strategy.
  double CostOfJoin(const Pipeline& probing, const Pipeline& side, double rows, vm::JoinStrategy* strategy) const {
    JoinSides sides{.probing = probing.rows,
                    .side = side.rows,
                    .made = rows,
                    .cost = probing.cost + side.cost,
                    .texts = graph_.texts(side.driver),
                    .is_joined = side.side != 0};
    if (!IsPipeline(side.relations)) {
      const auto r = First(side.relations);
      double fraction = 1;
      const JoinStep step = graph_.Step(probing.relations, -1, side.relations, static_cast<int>(r), &fraction);
      sides.tests_pairs = step.build_keys.empty() && !step.match.empty();
    }
    if (n_ == 2) graph_.FindMatches(First(probing.relations), First(side.relations), &sides);
    return CostOfCheapest(sides, options_, strategy);
  }

  const Pipeline* Find(RelationSet s) const {
    if (!table_.empty()) return &table_[s];
    return &*std::find_if(chosen_.begin(), chosen_.end(), [&](const Pipeline& p) { return p.relations == s; });
  }

  int DriverOf(RelationSet s) const {
    while (Find(s)->side != 0) s &= ~Find(s)->side;
    return static_cast<int>(First(s));
  }

  /// The joins of a pipeline, in their order.
  std::vector<JoinStep> StepsOf(RelationSet s) const {
    const Pipeline& p = *Find(s);
    if (p.side == 0) return {};
    std::vector<JoinStep> steps = StepsOf(s & ~p.side);
    double fraction = 1;
    JoinStep step = graph_.Step(s & ~p.side, DriverOf(s), p.side, DriverOf(p.side), &fraction);
    step.joins = StepsOf(p.side);
    step.side_rows = Find(p.side)->rows;
    step.rows = p.rows;
    step.strategy = p.strategy;
    for (const JoinStep& j : step.joins) {  // a row of the driver may be there several times
      const bool once = j.unique || j.kind == JoinKind::kSemi || j.kind == JoinKind::kAnti || j.kind == JoinKind::kMark;
      step.unique = step.unique && once;
    }
    steps.push_back(std::move(step));
    return steps;
  }

  const JoinGraph& graph_;
  const PlanOptions& options_;
  const size_t n_;
  std::vector<RelationSet> neighbours_;  ///< by relation
  std::vector<Pipeline> table_;          ///< by set, if all splits are tried
  std::vector<Pipeline> chosen_;         ///< otherwise
};

}  // namespace

bool SearchJoins(const JoinGraph& graph, const PlanOptions& options, Plan* plan) {
  return JoinSearch(graph, options).Run(plan);
}

}  // namespace tessera
