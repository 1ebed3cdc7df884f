#include "compiler/rewrite/fold_aggregates.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

bool IsOrdered(const Aggregate& a) { return Info(a.function).state == StateRule::kValues; }

Relation Rows(std::shared_ptr<Query> query, const char* alias) {
  Relation relation = DerivedTable(std::move(query));
  relation.alias = alias;
  return relation;
}

class Folding {
 public:
  explicit Folding(Query* query) : q_(*query) {}

  void Run() {
    keys_ = static_cast<int>(q_.group_by.size());
    auto rows = std::make_unique<Query>();
    rows->relations = std::move(q_.relations);
    rows->conjuncts = std::move(q_.conjuncts);
    rows_ = std::move(rows);
    for (const ExprPtr& key : q_.group_by) (void)ColumnOfRows(*key);
    for (const Aggregate& a : q_.aggregates) {
      if (a.argument != nullptr) (void)ColumnOfRows(*a.argument);
      for (const AggregateOrder& o : a.order) (void)ColumnOfRows(*o.expr);
    }
    rows_->visible = static_cast<int>(rows_->outputs.size());

    std::vector<std::unique_ptr<Query>> arms;
    if (!std::all_of(q_.aggregates.begin(), q_.aggregates.end(), IsOrdered)) arms.push_back(PlainArm());
    for (size_t i = 0; i < q_.aggregates.size(); ++i) {
      if (IsOrdered(q_.aggregates[i])) arms.push_back(OrderedArm(i));
    }
    std::shared_ptr<Query> all = std::move(arms[0]);
    for (size_t i = 1; i < arms.size(); ++i) all->union_all.push_back(std::move(arms[i]));

    q_.relations.clear();
    q_.conjuncts.clear();
    for (int k = 0; k < keys_; ++k) {
      ExprPtr& key = q_.group_by[static_cast<size_t>(k)];
      key = MakeColumn(0, k, key->type, key->nullable, key->position);
    }
    for (size_t i = 0; i < q_.aggregates.size(); ++i) {
      Aggregate& a = q_.aggregates[i];
      a.function = AggregateFunction::kMax;
      a.argument = MakeColumn(0, keys_ + static_cast<int>(i), a.type, true, a.position);
      a.distinct = false;
      a.order.clear();
    }
    q_.relations.push_back(Rows(std::move(all), "groups"));
  }

 private:
  /// The column of the rows of FROM that holds the expression.
  int ColumnOfRows(const Expr& e) {
    for (size_t i = 0; i < rows_->outputs.size(); ++i) {
      if (rows_->outputs[i].expr->SameAs(e)) return static_cast<int>(i);
    }
    rows_->outputs.push_back({e.Clone(), "value"});
    return static_cast<int>(rows_->outputs.size()) - 1;
  }
  ExprPtr FromRows(const Expr& e) { return MakeColumn(0, ColumnOfRows(e), e.type, e.nullable, e.position); }

  /// A block over the rows of FROM.
  std::unique_ptr<Query> OverRows() const {
    auto block = std::make_unique<Query>();
    block->relations.push_back(Rows(rows_, "rows"));
    return block;
  }

  /// Adds outputs for all aggregates, NULL for those that `value` gives nothing for.
  template <class F>
  void AddAggregates(Query* arm, F value) const {
    for (size_t i = 0; i < q_.aggregates.size(); ++i) {
      ExprPtr e = value(i);
      if (e == nullptr) e = MakeNull(q_.aggregates[i].type, -1);
      arm->outputs.push_back({std::move(e), "aggregate"});
    }
    arm->visible = static_cast<int>(arm->outputs.size());
  }

  std::unique_ptr<Query> PlainArm() {
    std::unique_ptr<Query> arm = OverRows();
    arm->grouped = true;
    for (int k = 0; k < keys_; ++k) {
      const Expr& key = *q_.group_by[static_cast<size_t>(k)];
      arm->group_by.push_back(FromRows(key));
      arm->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, k, key.type, key.nullable), "key"});
    }
    AddAggregates(arm.get(), [&](size_t i) -> ExprPtr {
      const Aggregate& a = q_.aggregates[i];
      if (IsOrdered(a)) return nullptr;
      Aggregate plain;
      plain.function = a.function;
      if (a.argument != nullptr) plain.argument = FromRows(*a.argument);
      plain.distinct = a.distinct;
      plain.type = a.type;
      plain.position = a.position;
      arm->aggregates.push_back(std::move(plain));
      return MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(arm->aggregates.size()) - 1, a.type, !IsCount(a));
    });
    return arm;
  }

  std::unique_ptr<Query> OrderedArm(size_t number) {
    const Aggregate& a = q_.aggregates[number];
    std::shared_ptr<Query> sorted = OverRows();
    const auto output = [&](const Expr& e, const char* name) {
      sorted->outputs.push_back({FromRows(e), name});
      return static_cast<int>(sorted->outputs.size()) - 1;
    };
    for (const ExprPtr& key : q_.group_by) sorted->order_by.push_back({output(*key, "key"), false, false});
    const int value = output(*a.argument, "value");
    for (const AggregateOrder& o : a.order) {
      const bool same = o.expr->SameAs(*a.argument);
      sorted->order_by.push_back({same ? value : output(*o.expr, "order"), o.descending, o.nulls_first});
    }
    sorted->visible = static_cast<int>(sorted->outputs.size());
    sorted->fold = a.function;
    sorted->fold_keys = keys_;
    sorted->fold_distinct = a.distinct;
    sorted->fold_parameter = a.parameter;

    auto arm = std::make_unique<Query>();
    arm->relations.push_back(Rows(std::move(sorted), "folded"));
    for (int k = 0; k < keys_; ++k) {
      const Expr& key = *q_.group_by[static_cast<size_t>(k)];
      arm->outputs.push_back({MakeColumn(0, k, key.type, key.nullable, -1), "key"});
    }
    AddAggregates(arm.get(),
                  [&](size_t i) -> ExprPtr { return i == number ? MakeColumn(0, keys_, a.type, true, -1) : nullptr; });
    return arm;
  }

  Query& q_;
  int keys_ = 0;
  std::shared_ptr<Query> rows_;  ///< the rows of FROM: keys, arguments, what they are ordered by
};

/// `done`: the blocks that have been rewritten; relations may share one.
void Rewrite(Query* query, std::set<const Query*>* done) {
  if (!done->insert(query).second) return;
  for (const Relation& r : query->relations) {
    if (r.query != nullptr) Rewrite(r.query.get(), done);
  }
  for (const auto& more : query->union_all) Rewrite(more.get(), done);
  if (std::any_of(query->aggregates.begin(), query->aggregates.end(), IsOrdered)) Folding(query).Run();
}

}  // namespace

void FoldAggregates(Query* query) {
  std::set<const Query*> done;
  Rewrite(query, &done);
}

vm::Section::Fold FoldOf(AggregateFunction function) {
  switch (function) {
    case AggregateFunction::kFirstValue:
      return vm::Section::Fold::kFirst;
    case AggregateFunction::kMode:
      return vm::Section::Fold::kMode;
    case AggregateFunction::kQuantile:
      return vm::Section::Fold::kQuantile;
    case AggregateFunction::kMedian:
    case AggregateFunction::kQuantileBetween:
      return vm::Section::Fold::kBetween;
    case AggregateFunction::kStringAgg:
      return vm::Section::Fold::kJoin;
    case AggregateFunction::kHistogram:
      return vm::Section::Fold::kCounts;
    default:
      return vm::Section::Fold::kNone;
  }
}

}  // namespace tessera
