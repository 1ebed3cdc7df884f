#include "compiler/rewrite/range_joins.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/query/expr_builder.h"
#include "compiler/query/functions.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

/// With fewer pairs of rows they are compared faster than the values are found.
constexpr double kFewPairs = 1 << 16;
/// Values that a row is compared with.
constexpr size_t kMostValues = 4;

/// A comparison of a value of the rows before with one of the relation.
struct Comparison {
  const Expr* condition = nullptr;
  size_t side = 0;  ///< of the value of the rows before
  const Expr& value() const { return *condition->args[side]; }
};

double RowsOf(const Relation& r) { return r.table != nullptr ? static_cast<double>(r.table->rows) : kFewPairs; }

/// The join of one relation.
class RangeJoin {
 public:
  RangeJoin(const Query& q, size_t r) : q_(q), r_(r) {}

  /// False if the join is of another kind.
  bool Find() {
    const Relation& relation = q_.relations[r_];
    if (relation.join == JoinKind::kInner || relation.single || relation.unique || relation.correlated) return false;
    bool above = false, below = false;
    for (const ExprPtr& e : relation.on) {
      if ((RelationsOf(*e) >> r_ & 1) == 0 || IsOver(*e, r_)) {
        if (IsVolatile(*e)) return false;
        continue;
      }
      if (!Add(*e)) return false;
      const Comparison& added = comparisons_.back();
      const Function f = added.side == 0 ? e->function : Mirrored(e->function);
      above = above || f == Function::kGt || f == Function::kGe;
      below = below || f == Function::kLt || f == Function::kLe;
    }
    // (A range without an end has about as many pairs as there are rows on both sides, which are not worth storing.)
    if (!above || !below || values_.size() > kMostValues) return false;
    const Relation& left = q_.relations[left_];
    return left.join == JoinKind::kInner && !left.correlated && RowsOf(left) * RowsOf(relation) >= kFewPairs;
  }

  void Rewrite(Query* q) const {
    Relation& relation = q->relations[r_];
    auto pairs = std::make_shared<Query>();
    pairs->relations.push_back(DerivedTable(Values()));
    pairs->relations[0].alias = q_.relations[left_].alias;
    pairs->relations.push_back(CopySource(relation));
    std::vector<ExprPtr> on;
    for (ExprPtr& e : relation.on) {
      if ((RelationsOf(*e) >> r_ & 1) == 0) {
        on.push_back(std::move(e));
      } else {
        pairs->conjuncts.push_back(Inside(*e));
      }
    }
    const bool has_columns = relation.join == JoinKind::kLeft;
    for (size_t c = 0; has_columns && c < relation.column_types.size(); ++c) {
      pairs->outputs.push_back(
          {MakeColumn(1, static_cast<int>(c), relation.column_types[c], true, -1), relation.column_names[c]});
    }
    for (size_t v = 0; v < values_.size(); ++v) {
      const Expr& value = *values_[v];
      ExprPtr own = MakeColumn(static_cast<int>(r_), static_cast<int>(pairs->outputs.size()), value.type, false, -1);
      on.push_back(MakeFunction(Function::kEq, SqlType::Of(TypeId::kBoolean), value.position,
                                ExprList(value.Clone(), std::move(own))));
      pairs->outputs.push_back({MakeColumn(0, static_cast<int>(v), value.type, value.nullable, -1), "value"});
    }
    pairs->visible = static_cast<int>(pairs->outputs.size());
    pairs->distinct = !has_columns;
    Relation derived = DerivedTable(std::move(pairs));
    derived.alias = relation.alias;
    derived.join = relation.join;
    derived.on = std::move(on);
    relation = std::move(derived);
  }

 private:
  bool Add(const Expr& e) {
    if (e.kind != Expr::Kind::kFunction || !IsComparison(e.function) || e.function == Function::kEq || IsVolatile(e))
      return false;
    const StatisticsRanges statistics(q_);
    if (ExprRanges(statistics).CanFailAnywhere(e)) return false;
    for (size_t side = 0; side < 2; ++side) {
      const uint64_t left = RelationsOf(*e.args[side]);
      if (!IsOver(*e.args[1 - side], r_) || left == 0 || (left & (left - 1)) != 0) continue;
      const auto relation = static_cast<size_t>(__builtin_ctzll(left));
      const SqlType& type = e.args[side]->type;
      const bool is_key = !type.IsFloat() && type.id != TypeId::kInterval;
      if (relation == r_ || !is_key || (!comparisons_.empty() && relation != left_)) return false;
      left_ = relation;
      comparisons_.push_back({&e, side});
      const auto same = [&](const Expr* v) { return v->SameAs(*e.args[side]); };
      if (std::ranges::none_of(values_, same)) values_.push_back(e.args[side].get());
      return true;
    }
    return false;
  }

  /// The different values of the rows before.
  std::shared_ptr<Query> Values() const {
    auto values = std::make_shared<Query>();
    values->relations.push_back(CopySource(q_.relations[left_]));
    const auto inside = [&](const Expr& e) {
      ExprPtr copy = e.Clone();
      Substitute(&copy, [](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn) return nullptr;
        ExprPtr column = x.Clone();
        column->relation = 0;
        return column;
      });
      return copy;
    };
    for (const Expr* e : FiltersOf(q_, left_)) {
      if (!IsVolatile(*e)) values->conjuncts.push_back(inside(*e));
    }
    for (const Expr* v : values_) values->outputs.push_back({inside(*v), "value"});
    values->visible = static_cast<int>(values->outputs.size());
    values->distinct = true;
    return values;
  }

  /// A condition of the join over the values, relation 0, and the relation itself, which is 1.
  ExprPtr Inside(const Expr& e) const {
    ExprPtr copy = e.Clone();
    Substitute(&copy, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kColumn || x.relation != static_cast<int>(r_)) return nullptr;
      ExprPtr column = x.Clone();
      column->relation = 1;
      return column;
    });
    const auto found = std::ranges::find_if(comparisons_, [&](const Comparison& c) { return c.condition->SameAs(e); });
    if (found != comparisons_.end()) {
      const Expr& value = found->value();
      const auto same = [&](const Expr* v) { return v->SameAs(value); };
      const auto at = std::ranges::find_if(values_, same) - values_.begin();
      copy->args[found->side] = MakeColumn(0, static_cast<int>(at), value.type, value.nullable, value.position);
    }
    return copy;
  }

  const Query& q_;
  const size_t r_;
  size_t left_ = 0;  ///< the relation whose values are compared
  std::vector<Comparison> comparisons_;
  std::vector<const Expr*> values_;  ///< the sides of the comparisons, each once
};

}  // namespace

void JoinRangesFirst(Query* query) {
  for (size_t r = 0; r < query->relations.size(); ++r) {
    RangeJoin join(*query, r);
    if (join.Find()) join.Rewrite(query);
  }
}

}  // namespace tessera
