#include "compiler/rewrite/union_joins.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/query/expr_builder.h"
#include "compiler/query/partial_aggregate.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/selectivity.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

/// With fewer rows in the arms it takes longer to think about them than to store them.
constexpr double kFewestRows = 4096;
/// Each arm builds the join tables of the other relations again, which then may have at most this part of the arms' rows.
constexpr double kMostOthers = 0.5;
/// The arms are not grouped if fewer rows than this make a group ...
constexpr double kRowsOfGroup = 4;
/// ... and rows are joined without grouping them if filters of the others leave at most this part.
constexpr double kSelective = 0.5;
constexpr size_t kMostArms = 8;

/// Whether it gives rows of its joins as they are.
bool IsPlain(const Query& q) { return !q.distinct && q.order_by.empty() && HasRowsOfJoins(q); }

/// Rows of stored tables that the block reads, without what is in derived tables.
double StoredRows(const Query& q) {
  double rows = 0;
  for (const Relation& r : q.relations) {
    if (r.table != nullptr) rows = std::max(rows, static_cast<double>(r.table->rows));
  }
  return rows;
}

class Arms {
 public:
  Arms(Query* query, size_t r) : q_(*query), r_(r), union_(*query->relations[r].query) {}

  /// Whether it would pay.
  bool Choose() {
    const size_t arms = union_.union_all.size() + 1;
    if (arms > kMostArms || !IsPlain(union_) || StoredRows(union_) == 0) return false;
    rows_ = StoredRows(union_);
    for (const auto& more : union_.union_all) {
      if (!IsPlain(*more) || StoredRows(*more) == 0) return false;  // VALUES, or rows that are stored in any case
      rows_ += StoredRows(*more);
    }
    double others = 0, part = 1;
    for (size_t s = 0; s < q_.relations.size(); ++s) {
      if (s == r_) continue;
      const Relation& other = q_.relations[s];
      if (other.single) return false;
      if (other.table != nullptr) others += static_cast<double>(other.table->rows);
      const bool filters = other.join == JoinKind::kInner || other.join == JoinKind::kSemi;
      if (filters) part *= SelectivityOfAll(q_, FiltersOf(q_, s));
    }
    if (rows_ < kFewestRows || others * static_cast<double>(arms - 1) > rows_ * kMostOthers) return false;
    is_selective_ = q_.relations.size() > 1 && part <= kSelective;
    groups_ = q_.grouped && std::ranges::all_of(q_.aggregates, Merges);
    return groups_ || is_selective_;
  }

  /// Makes the new arms, and replaces the relations of the block by them if they do.
  void Join(const std::function<void(Query*)>& merge) {
    if (!groups_) FindColumns();
    std::vector<std::unique_ptr<Query>> arms;
    arms.push_back(ArmOf(union_));
    for (const auto& more : union_.union_all) arms.push_back(ArmOf(*more));
    for (const auto& arm : arms) merge(arm.get());
    if (groups_ && !std::ranges::all_of(arms, [&](const auto& arm) { return CanGroup(*arm); })) {
      groups_ = false;
      if (is_selective_) Join(merge);
      return;
    }
    std::shared_ptr<Query> first = std::move(arms[0]);
    for (size_t i = 1; i < arms.size(); ++i) first->union_all.push_back(std::move(arms[i]));
    Relation rows = DerivedTable(std::move(first));
    rows.alias = q_.relations[r_].alias;
    if (groups_) {
      ReadGroups();
    } else {
      ReadColumns();
    }
    q_.conjuncts.clear();
    q_.relations.clear();
    q_.relations.push_back(std::move(rows));
  }

 private:
  /// The columns that the block reads above its joins.
  void FindColumns() {
    ForEachAbove([&](const ExprPtr& root) {
      ForEachColumn(*root, [&](const Expr& c) {
        const auto same = [&](const ExprPtr& known) { return known->SameAs(c); };
        if (std::ranges::none_of(columns_, same)) columns_.push_back(c.Clone());
      });
    });
  }
  template <class F>
  void ForEachAbove(F f) {
    for (ExprPtr& e : q_.group_by) f(e);
    for (Aggregate& a : q_.aggregates) {
      if (a.argument != nullptr) f(a.argument);
      for (AggregateOrder& o : a.order) f(o.expr);
    }
    for (Output& o : q_.outputs) f(o.expr);
  }

  /// The joins with the rows of one arm.
  std::unique_ptr<Query> ArmOf(const Query& rows) const {
    std::unique_ptr<Query> copy = CopyQuery(rows);
    copy->union_all.clear();
    auto arm = std::make_unique<Query>();
    for (size_t s = 0; s < q_.relations.size(); ++s) arm->relations.push_back(CopyRelation(q_.relations[s]));
    arm->relations[r_].query = std::move(copy);
    for (const ExprPtr& e : q_.conjuncts) arm->conjuncts.push_back(e->Clone());
    const auto add = [&](ExprPtr e, const char* name) { arm->outputs.push_back({std::move(e), name}); };
    if (groups_) {
      arm->grouped = true;
      for (size_t k = 0; k < q_.group_by.size(); ++k) {
        const Expr& key = *q_.group_by[k];
        arm->group_by.push_back(key.Clone());
        add(MakeLeaf(Expr::Kind::kGroup, static_cast<int>(k), key.type, key.nullable), "key");
      }
      for (size_t i = 0; i < q_.aggregates.size(); ++i) {
        const Aggregate& a = q_.aggregates[i];
        Aggregate part;
        part.function = a.function;
        if (a.argument != nullptr) part.argument = a.argument->Clone();
        part.type = a.type;
        part.position = a.position;
        arm->aggregates.push_back(std::move(part));
        add(MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(i), a.type, !IsCount(a)), Info(a.function).text);
      }
    } else {
      for (const ExprPtr& c : columns_) add(c->Clone(), "column");
      if (columns_.empty()) add(MakeBoolean(true, -1), "row");
    }
    arm->visible = static_cast<int>(arm->outputs.size());
    return arm;
  }

  /// Whether groups of the arm are few, and no sum of its rows is out of range where that of all rows might not be.
  bool CanGroup(const Query& arm) const {
    double groups = 1;
    for (const ExprPtr& key : arm.group_by) groups *= DistinctOf(arm, *key);
    if (groups * kRowsOfGroup > rows_) return false;
    const ValueRange rows = RowsOfJoins(arm);
    const StatisticsRanges statistics(arm);
    const ExprRanges ranges(statistics);
    return std::ranges::all_of(arm.aggregates, [&](const Aggregate& a) {
      if (a.function != AggregateFunction::kSum || a.type.IsFloat()) return true;
      const ValueRange all = RangeOfType(a.type);
      return Product(ranges.Range(*a.argument), rows).Within(all.low, all.high);
    });
  }

  void ReadGroups() {
    int column = 0;
    for (ExprPtr& key : q_.group_by) key = MakeColumn(0, column++, key->type, key->nullable, key->position);
    for (Aggregate& a : q_.aggregates) a = MergeOf(a, MakeColumn(0, column++, a.type, !IsCount(a), a.position));
  }

  void ReadColumns() {
    ForEachAbove([&](ExprPtr& root) {
      Substitute(&root, [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn) return nullptr;
        const auto same = [&](const ExprPtr& known) { return known->SameAs(x); };
        const auto place = std::ranges::find_if(columns_, same) - columns_.begin();
        return MakeColumn(0, static_cast<int>(place), x.type, x.nullable, x.position);
      });
    });
  }

  Query& q_;
  const size_t r_;
  const Query& union_;
  double rows_ = 0;  ///< of all arms
  bool is_selective_ = false, groups_ = false;
  std::vector<ExprPtr> columns_;
};

}  // namespace

void JoinArms(Query* query, const std::function<void(Query*)>& merge) {
  const Query& q = *query;
  const bool takes_first = q.limit >= 0 && q.order_by.empty();  // it ends as soon as it has enough
  if ((q.relations.size() < 2 && q.aggregates.empty()) || takes_first || q.repeat >= 0 || q.folds() ||
      q.working != nullptr)
    return;
  for (size_t r = 0; r < q.relations.size(); ++r) {
    const Relation& relation = q.relations[r];
    const bool is_union = relation.query != nullptr && !relation.query->union_all.empty();
    if (!is_union || relation.join != JoinKind::kInner || relation.query.use_count() > 1 || HasVolatile(q)) continue;
    Arms arms(query, r);
    if (!arms.Choose()) continue;
    arms.Join(merge);
    return;
  }
}

}  // namespace tessera
