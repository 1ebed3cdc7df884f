#include "compiler/rewrite/key_grouping.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "compiler/query/equal_columns.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/partial_aggregate.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/selectivity.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

/// Rows are grouped by a key first if there is this number of them, and at least this number for each group.
constexpr double kLeastRows = 1 << 13, kRowsOfGroup = 2;
/// Of the table whose texts are keys, filters leave at least this part: rows that do not find theirs are grouped in vain.
constexpr double kFound = 0.5;
/// The table has at least this number of texts among the keys.
constexpr int kLeastTexts = 2;

class KeyGrouping {
 public:
  /// `r`: the table with the texts.
  KeyGrouping(const Query& q, size_t r) : q_(q), r_(r) {}

  bool Choose() {
    if (q_.relations[r_].table == nullptr || !HasTexts() || !FindLink()) return false;
    const auto is_inner = [](const Relation& relation) { return relation.join == JoinKind::kInner; };
    if (!std::ranges::all_of(q_.relations, is_inner) || !ReadsOnly() || !CanMerge()) return false;
    if (SelectivityOfAll(q_, FiltersOf(q_, r_)) < kFound) return false;
    const double rows = Rows();
    double groups = DistinctLeft(q_, *link_);
    for (const ExprPtr& key : q_.group_by) {
      if (!IsOver(*key, r_)) groups *= DistinctLeft(q_, *key);
    }
    return rows >= kLeastRows && rows >= kRowsOfGroup * groups;
  }

  void Rewrite(Query* q) {
    auto groups = std::make_shared<Query>();
    groups->grouped = true;
    AddKey(*link_, groups.get());
    for (const ExprPtr& key : q->group_by) {
      if (!IsOver(*key, r_)) AddKey(*key, groups.get());
    }
    const auto keys = groups->group_by.size();
    std::vector<Aggregate> merged;
    for (const Aggregate& a : q->aggregates) merged.push_back(Merged(a, groups.get()));
    groups->visible = static_cast<int>(groups->outputs.size());
    std::vector<ExprPtr> left;
    for (ExprPtr& e : q->conjuncts) {
      if ((RelationsOf(*e) >> r_ & 1) == 0) {
        groups->conjuncts.push_back(std::move(e));
        Move(&groups->conjuncts.back());
      } else {
        left.push_back(std::move(e));
      }
    }
    // Above: the groups are relation 0, the table is relation 1.
    for (ExprPtr& e : left) ToOutputs(*groups, keys, &e);
    for (ExprPtr& e : q->group_by) ToOutputs(*groups, keys, &e);
    q->conjuncts = std::move(left);
    q->aggregates = std::move(merged);
    Relation table = std::move(q->relations[r_]);
    for (size_t s = 0; s < q->relations.size(); ++s) {
      if (s != r_) groups->relations.push_back(std::move(q->relations[s]));
    }
    q->relations.clear();
    q->relations.push_back(DerivedTable(std::move(groups)));
    q->relations[0].alias = "groups";
    q->relations.push_back(std::move(table));
  }

 private:
  bool HasTexts() const {
    return std::ranges::count_if(q_.group_by, [&](const ExprPtr& key) {
             return key->kind == Expr::Kind::kColumn && key->relation == static_cast<int>(r_) &&
                    key->type.storage() == StorageClass::kText;
           }) >= kLeastTexts;
  }

  /// The only condition that relates the table to others is an equality of a number with one of their columns.
  bool FindLink() {
    for (const ExprPtr& e : q_.conjuncts) {
      if ((RelationsOf(*e) >> r_ & 1) == 0 || IsOver(*e, r_)) continue;
      if (link_ != nullptr || !IsFunction(*e, Function::kEq)) return false;
      for (size_t side = 0; side < 2; ++side) {
        const Expr &own = *e->args[side], &other = *e->args[1 - side];
        const bool columns = own.kind == Expr::Kind::kColumn && other.kind == Expr::Kind::kColumn &&
                             own.type == other.type && own.type.storage() == StorageClass::kInt;
        if (columns && own.relation == static_cast<int>(r_)) link_ = &other;
      }
      if (link_ == nullptr) return false;
    }
    return link_ != nullptr;
  }

  /// Keys are of the table or of the others, and so are aggregates of the others.
  bool ReadsOnly() const {
    const auto is_apart = [&](const Expr& e) { return IsOver(e, r_) || (RelationsOf(e) >> r_ & 1) == 0; };
    return std::ranges::all_of(q_.group_by, [&](const ExprPtr& key) { return is_apart(*key) && !IsConstant(*key); });
  }

  /// Aggregates are computed of rows that may not find their row of the table.
  bool CanMerge() const {
    const StatisticsRanges statistics(q_);
    const ExprRanges ranges(statistics);
    const auto can_fail = [&](const ExprPtr& e) { return e != nullptr && ranges.CanFailAnywhere(*e); };
    for (const ExprPtr& key : q_.group_by) {
      if (!IsOver(*key, r_) && (can_fail(key) || key->type.IsFloat())) return false;
    }
    return std::ranges::all_of(q_.aggregates, [&](const Aggregate& a) {
      const bool is_of_table = a.argument != nullptr && (RelationsOf(*a.argument) >> r_ & 1) != 0;
      return Merges(a) && !a.distinct && !is_of_table && !can_fail(a.argument);
    });
  }

  /// Of the joins: the largest table has a row for each, of which others' filters leave a part.
  double Rows() const {
    size_t largest = q_.relations.size();
    for (size_t s = 0; s < q_.relations.size(); ++s) {
      const TableInfo* const table = q_.relations[s].table.get();
      if (table == nullptr) return 0;
      if (largest == q_.relations.size() || table->rows > q_.relations[largest].table->rows) largest = s;
    }
    if (largest == r_) return 0;
    auto rows = static_cast<double>(q_.relations[largest].table->rows) * SelectivityOfAll(q_, FiltersOf(q_, largest));
    for (const ExprPtr& e : q_.conjuncts) {
      if (!IsFunction(*e, Function::kEq)) continue;
      for (size_t side = 0; side < 2; ++side) {
        const Expr &of_largest = *e->args[side], &other = *e->args[1 - side];
        if (!IsOver(of_largest, largest) || other.kind != Expr::Kind::kColumn || IsOver(other, largest)) continue;
        const double kept = SelectivityOfAll(q_, FiltersOf(q_, static_cast<size_t>(other.relation)));
        rows *= std::min(1.0, kept / PartWithin(q_, other, of_largest));
      }
    }
    return rows;
  }

  /// Relations of the block keep their order among those of the groups.
  void Move(ExprPtr* e) const {
    Substitute(e, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kColumn) return nullptr;
      ExprPtr column = x.Clone();
      column->relation -= x.relation > static_cast<int>(r_) ? 1 : 0;
      return column;
    });
  }
  void AddKey(const Expr& key, Query* groups) const {
    ExprPtr inside = key.Clone();
    Move(&inside);
    const auto same = [&](const ExprPtr& known) { return known->SameAs(*inside); };
    if (std::ranges::any_of(groups->group_by, same)) return;
    const auto index = static_cast<int>(groups->group_by.size());
    groups->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, index, key.type, key.nullable), "key"});
    groups->group_by.push_back(std::move(inside));
  }
  /// Adds what the groups give for an aggregate. Returns the aggregate of it.
  Aggregate Merged(const Aggregate& a, Query* groups) const {
    Aggregate part = CopyAggregate(a);
    if (part.argument != nullptr) Move(&part.argument);
    const auto index = static_cast<int>(groups->aggregates.size());
    ExprPtr value = MakeColumn(0, static_cast<int>(groups->outputs.size()), a.type, !IsCount(a), a.position);
    groups->outputs.push_back({MakeLeaf(Expr::Kind::kAggregate, index, a.type, !IsCount(a)), Info(a.function).text});
    groups->aggregates.push_back(std::move(part));
    return MergeOf(a, std::move(value));
  }
  /// An expression of the block as one over the groups and the table: the first `keys` outputs are the groups' keys.
  void ToOutputs(const Query& groups, size_t keys, ExprPtr* e) const {
    if (IsOver(**e, r_)) {
      Substitute(e, [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn) return nullptr;
        ExprPtr column = x.Clone();
        column->relation = 1;
        return column;
      });
      return;
    }
    if ((RelationsOf(**e) >> r_ & 1) != 0) {  // the equality
      for (ExprPtr& side : (*e)->args) ToOutputs(groups, keys, &side);
      return;
    }
    ExprPtr inside = (*e)->Clone();
    Move(&inside);
    for (size_t k = 0; k < keys; ++k) {
      if (!groups.group_by[k]->SameAs(*inside)) continue;
      *e = MakeColumn(0, static_cast<int>(k), inside->type, inside->nullable, (*e)->position);
      return;
    }
  }

  const Query& q_;
  const size_t r_;
  const Expr* link_ = nullptr;  ///< the column of another relation that equals the table's key
};

void Group(Query* query, std::set<const Query*>* done) {
  if (!done->insert(query).second) return;
  for (const Relation& r : query->relations) {
    if (r.query != nullptr) Group(r.query.get(), done);
  }
  for (const auto& more : query->union_all) Group(more.get(), done);
  const Query& q = *query;
  const bool is_plain = q.grouped && q.group_by.size() > 1 && q.relations.size() > 1 && q.relations.size() < 64 &&
                        q.repeat < 0 && !q.folds() && q.working == nullptr && !q.is_working && !HasVolatile(q);
  for (size_t r = 0; is_plain && r < q.relations.size(); ++r) {
    KeyGrouping grouping(q, r);
    if (!grouping.Choose()) continue;
    grouping.Rewrite(query);
    return;
  }
}

}  // namespace

void GroupByKeys(Query* query) {
  std::set<const Query*> done;
  Group(query, &done);
}

}  // namespace tessera
