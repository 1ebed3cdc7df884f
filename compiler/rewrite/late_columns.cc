#include "compiler/rewrite/late_columns.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "compiler/query/equal_columns.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

/// A column of the block above the grouping: of the groups (relation -1), or of a table that is read again.
struct Source {
  int relation = -1;
  int column = 0;
};

class LateColumns {
 public:
  explicit LateColumns(const Query& q) : q_(q), equal_(q), kept_(q.group_by.size(), true) {}

  /// Decides which keys are left out. False if there is none.
  bool Choose() {
    std::set<int> needed;  // by what stays with the grouping
    for (const ExprPtr& e : q_.having) NoteKeys(*e, &needed);
    for (const OrderKey& k : q_.order_by) NoteKeys(*q_.outputs[static_cast<size_t>(k.output)].expr, &needed);
    for (size_t k = 0; k < kept_.size(); ++k) {
      kept_[k] = !IsStored(*q_.group_by[k]) || q_.group_by[k]->type.storage() != StorageClass::kText ||
                 needed.contains(static_cast<int>(k));
    }
    // Those that the others do not determine come back, and may determine more.
    for (bool changed = true; changed;) {
      changed = false;
      FindSources();
      for (size_t k = 0; k < kept_.size() && !changed; ++k) {
        if (kept_[k] || sources_.contains(NumberOf(*q_.group_by[k]))) continue;
        kept_[k] = changed = true;
      }
    }
    for (size_t k = 0; k < kept_.size(); ++k) {
      if (!kept_[k]) NoteRead(SourceOf(k).relation);
    }
    if (read_.empty()) return false;
    // A table that is read again gives its other columns, too.
    for (size_t k = 0; k < kept_.size(); ++k) {
      const Expr& key = *q_.group_by[k];
      if (!kept_[k] || !IsStored(key) || !read_.contains(key.relation) || needed.contains(static_cast<int>(k)))
        continue;
      const std::vector<const Expr*>* const same = equal_.Of(key);
      if (!IsKey(key) && same == nullptr) kept_[k] = false;
    }
    FindSources();
    return true;
  }

  /// The block above the grouping, which takes the place of `q`, and of which the grouping becomes a derived table.
  Query Rewrite(Query* q) const {
    Query above;
    auto groups = std::make_unique<Query>();
    std::vector<int> place(kept_.size(), -1);  // of a kept key among the outputs of the groups
    std::vector<ExprPtr> keys;
    for (size_t k = 0; k < kept_.size(); ++k) {
      if (!kept_[k]) continue;
      place[k] = static_cast<int>(keys.size());
      const Expr& key = *q->group_by[k];
      groups->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, place[k], key.type, key.nullable), "key"});
      keys.push_back(q->group_by[k]->Clone());
    }
    const int first_aggregate = static_cast<int>(keys.size());
    for (size_t a = 0; a < q->aggregates.size(); ++a) {
      groups->outputs.push_back(
          {MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(a), q->aggregates[a].type, !IsCount(q->aggregates[a])),
           "aggregate"});
    }
    groups->visible = static_cast<int>(groups->outputs.size());
    const auto below = [&](const Expr& x) -> ExprPtr {  // in the block of the groups
      if (x.kind != Expr::Kind::kGroup) return nullptr;
      ExprPtr e = x.Clone();
      e->index = place[static_cast<size_t>(x.index)];
      return e;
    };
    for (const OrderKey& k : q->order_by) {
      ExprPtr by = q->outputs[static_cast<size_t>(k.output)].expr->Clone();
      Substitute(&by, below);
      groups->order_by.push_back({static_cast<int>(groups->outputs.size()), k.descending, k.nulls_first});
      groups->outputs.push_back({std::move(by), "order"});
    }
    for (ExprPtr& e : q->having) Substitute(&e, below);

    // Above: the groups are relation 0, then come the tables that are read again.
    std::map<int, int> relation_of;  // of the block -> above
    for (const int r : read_) relation_of.emplace(r, static_cast<int>(relation_of.size()) + 1);
    const auto column = [&](const Source& s, const SqlType& type, bool nullable, int position) {
      return MakeColumn(s.relation < 0 ? 0 : relation_of.at(s.relation),
                        s.relation < 0 ? place[static_cast<size_t>(s.column)] : s.column, type, nullable, position);
    };
    std::vector<Relation> again;
    for (const int r : read_) {
      const Relation& relation = q->relations[static_cast<size_t>(r)];
      again.push_back(CopySource(relation));
      for (const int key : relation.table->schema.primary_key) {
        const SqlType& type = relation.column_types[static_cast<size_t>(key)];
        above.conjuncts.push_back(
            MakeFunction(Function::kEq, kBoolean, -1,
                         ExprList(column(found_by_.at({r, key}), type, false, -1), column({r, key}, type, false, -1))));
      }
    }
    const auto up = [&](const Expr& x) -> ExprPtr {
      if (x.kind == Expr::Kind::kAggregate)
        return MakeColumn(0, first_aggregate + x.index, x.type, x.nullable, x.position);
      if (x.kind != Expr::Kind::kGroup) return nullptr;
      const auto k = static_cast<size_t>(x.index);
      return column(kept_[k] ? Source{-1, x.index} : SourceOf(k), x.type, x.nullable, x.position);
    };
    for (Output& o : q->outputs) {
      Substitute(&o.expr, up);
      above.outputs.push_back(std::move(o));
    }
    above.visible = q->visible;
    above.order_by = std::move(q->order_by);
    above.height = q->height;

    groups->relations = std::move(q->relations);
    groups->conjuncts = std::move(q->conjuncts);
    groups->grouped = true;
    groups->group_by = std::move(keys);
    groups->aggregates = std::move(q->aggregates);
    groups->having = std::move(q->having);
    groups->limit = q->limit;
    groups->offset = q->offset;
    Relation derived = DerivedTable(std::move(groups));
    derived.alias = "groups";
    above.relations.push_back(std::move(derived));
    std::move(again.begin(), again.end(), std::back_inserter(above.relations));
    return above;
  }

 private:
  static void NoteKeys(const Expr& e, std::set<int>* keys) {
    if (e.kind == Expr::Kind::kGroup) keys->insert(e.index);
    for (const ExprPtr& a : e.args) NoteKeys(*a, keys);
  }

  bool CanReadAgain(int r) const {
    const Relation& relation = q_.relations[static_cast<size_t>(r)];
    return relation.join == JoinKind::kInner && relation.table != nullptr &&
           !relation.table->schema.primary_key.empty();
  }
  /// Whether `e` is a column of a table that can be read again.
  bool IsStored(const Expr& e) const {
    return e.kind == Expr::Kind::kColumn && e.column != kMarkColumn && CanReadAgain(e.relation);
  }
  bool IsKey(const Expr& e) const {
    const std::vector<int>& key = q_.relations[static_cast<size_t>(e.relation)].table->schema.primary_key;
    return std::find(key.begin(), key.end(), e.column) != key.end();
  }

  /// Finds the columns that are known above the grouping: kept keys, and the columns of tables whose primary keys are.
  void FindSources() {
    sources_.clear();
    found_by_.clear();
    for (size_t k = 0; k < kept_.size(); ++k) {
      if (kept_[k] && q_.group_by[k]->kind == Expr::Kind::kColumn)
        AddSource(*q_.group_by[k], {-1, static_cast<int>(k)});
    }
    std::set<int> known;
    for (bool changed = true; changed;) {
      changed = false;
      for (int r = 0; r < static_cast<int>(q_.relations.size()); ++r) {
        if (known.contains(r) || !CanReadAgain(r)) continue;
        const Relation& relation = q_.relations[static_cast<size_t>(r)];
        const std::vector<int>& key = relation.table->schema.primary_key;
        if (!std::all_of(key.begin(), key.end(), [&](int c) { return sources_.contains({r, c}); })) continue;
        changed = true;
        known.insert(r);
        for (const int c : key) found_by_[{r, c}] = sources_.at({r, c});
        for (int c = 0; c < static_cast<int>(relation.column_types.size()); ++c)
          AddSource(*MakeColumn(r, c, relation.column_types[static_cast<size_t>(c)], false, -1), {r, c});
      }
    }
  }

  void AddSource(const Expr& column, Source source) {
    sources_.emplace(NumberOf(column), source);
    if (const std::vector<const Expr*>* same = equal_.Of(column)) {
      for (const Expr* e : *same) sources_.emplace(NumberOf(*e), source);
    }
  }

  Source SourceOf(size_t key) const { return sources_.at(NumberOf(*q_.group_by[key])); }

  /// The table is read again, and before it those that its primary key comes from.
  void NoteRead(int r) {
    if (r < 0 || !read_.insert(r).second) return;
    for (const int c : q_.relations[static_cast<size_t>(r)].table->schema.primary_key)
      NoteRead(found_by_.at({r, c}).relation);
  }

  const Query& q_;
  const EqualColumns equal_;
  std::vector<bool> kept_;                   ///< per key
  std::map<ColumnNumber, Source> sources_;   ///< of columns of the block
  std::map<ColumnNumber, Source> found_by_;  ///< of primary keys: where their values come from
  std::set<int> read_;                       ///< relations that are read again
};

}  // namespace

Query* ReadLate(Query* query) {
  Query& q = *query;
  if (!q.grouped || q.group_by.size() < 2 || q.limit < 0 || q.order_by.empty() || q.distinct || !q.union_all.empty())
    return query;
  LateColumns late(q);
  if (!late.Choose()) return query;
  Query above = late.Rewrite(query);
  q = std::move(above);
  return q.relations[0].query.get();
}

}  // namespace tessera
