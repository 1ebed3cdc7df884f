#include "compiler/rewrite/shared_sums.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/parse/parser.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

const SqlType kBigint = SqlType::Of(TypeId::kBigint);

/// sum(x + constant).
struct ShiftedSum {
  size_t aggregate = 0;
  const Expr* x = nullptr;
  int64_t constant = 0;
};

bool IsNumber(const Expr& e) {
  return IsConstant(e) && !e.constant.null && e.type.IsInteger() && e.constant.i64 != INT64_MIN;
}

/// What the aggregate is a sum of. False if it is another one.
bool Shifted(const Aggregate& a, ShiftedSum* sum) {
  if (a.function != AggregateFunction::kSum || a.distinct || !(a.type == kBigint) || !a.argument->type.IsInteger())
    return false;
  const Expr& e = *a.argument;
  sum->x = &e;
  if (IsFunction(e, Function::kAdd) && IsNumber(*e.args[0])) {
    *sum = {sum->aggregate, e.args[1].get(), e.args[0]->constant.i64};
  } else if (IsFunction(e, Function::kAdd) && IsNumber(*e.args[1])) {
    *sum = {sum->aggregate, e.args[0].get(), e.args[1]->constant.i64};
  } else if (IsFunction(e, Function::kSub) && IsNumber(*e.args[1])) {
    *sum = {sum->aggregate, e.args[0].get(), -e.args[1]->constant.i64};
  }
  return sum->x->type.IsInteger();
}

class SharedSums {
 public:
  explicit SharedSums(Query* query) : q_(*query), values_(query->aggregates.size()) {}

  void Share() {
    for (size_t i = 0; i < q_.aggregates.size(); ++i) {
      ShiftedSum sum{i};
      if (!Shifted(q_.aggregates[i], &sum)) continue;
      const auto same = [&](const auto& others) { return others[0].x->SameAs(*sum.x); };
      auto known = std::ranges::find_if(sums_, same);
      if (known == sums_.end()) known = sums_.insert(known, std::vector<ShiftedSum>());
      known->push_back(sum);
    }
    std::erase_if(sums_, [&](const auto& of_x) { return of_x.size() < 3 || !InRange(of_x); });
    if (sums_.empty() || HeightAboveGroups(q_) + 2 > kMaxNesting) return;
    Replace();
  }

 private:
  bool InRange(const std::vector<ShiftedSum>& of_x) const {
    const ValueRange rows = RowsOfJoins(q_);
    const StatisticsRanges statistics(q_);
    const ExprRanges ranges(statistics);
    if (!Product(ranges.Range(*of_x[0].x), rows).Fits64()) return false;
    return std::ranges::all_of(of_x, [&](const ShiftedSum& sum) {
      const Expr& argument = *q_.aggregates[sum.aggregate].argument;
      return !ranges.CanFailAnywhere(argument) && Product(ranges.Range(argument), rows).Fits64() &&
             Product({sum.constant, sum.constant}, rows).Fits64();
    });
  }

  void Replace() {
    std::vector<Aggregate> kept;
    for (const std::vector<ShiftedSum>& of_x : sums_) {
      const int position = q_.aggregates[of_x[0].aggregate].position;
      const Expr& x = *of_x[0].x;
      Aggregate all, rows;
      all.function = AggregateFunction::kSum;
      all.argument = x.Clone();
      if (x.nullable) {
        rows.function = AggregateFunction::kCount;
        rows.argument = x.Clone();
      }
      all.type = rows.type = kBigint;
      all.position = rows.position = position;
      const int n = static_cast<int>(kept.size());
      kept.push_back(std::move(all));
      const auto same = [&](const Aggregate& a) { return IsCount(a) && rows.argument == nullptr && !a.argument; };
      const auto counted = static_cast<int>(std::ranges::find_if(kept, same) - kept.begin());
      if (counted == static_cast<int>(kept.size())) kept.push_back(std::move(rows));
      for (const ShiftedSum& sum : of_x) {
        ExprPtr shift = MakeFunction(Function::kMul, kBigint, position,
                                     ExprList(MakeLeaf(Expr::Kind::kAggregate, counted, kBigint, false),
                                              MakeConstant(Value::Int(kBigint, sum.constant), position)));
        values_[sum.aggregate] =
            MakeFunction(Function::kAdd, kBigint, position,
                         ExprList(MakeLeaf(Expr::Kind::kAggregate, n, kBigint, true), std::move(shift)));
      }
    }
    Keep(&kept);
    q_.aggregates = std::move(kept);
    for (Output& o : q_.outputs) Read(&o.expr);
    for (ExprPtr& e : q_.having) Read(&e);
  }

  /// The other aggregates, and counts that are there already.
  void Keep(std::vector<Aggregate>* kept) {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] != nullptr) continue;
      Aggregate& a = q_.aggregates[i];
      const auto same = [&](const Aggregate& b) {
        return b.function == a.function && b.distinct == a.distinct && IsCount(a) &&
               (a.argument == nullptr || a.argument->SameAs(*b.argument));
      };
      const auto place = std::ranges::find_if(*kept, same) - kept->begin();
      values_[i] = MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(place), a.type, !IsCount(a));
      if (place == static_cast<ptrdiff_t>(kept->size())) kept->push_back(std::move(a));
    }
  }

  void Read(ExprPtr* e) const {
    Substitute(e, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kAggregate) return nullptr;
      ExprPtr value = values_[static_cast<size_t>(x.index)]->Clone();
      value->position = x.position;
      if (value->kind == Expr::Kind::kAggregate) value->nullable = x.nullable;
      return value;
    });
  }

  Query& q_;
  std::vector<std::vector<ShiftedSum>> sums_;  ///< by x
  std::vector<ExprPtr> values_;                ///< by aggregate, of the new ones
};

}  // namespace

void ShareSums(Query* query) {
  if (query->grouped && query->aggregates.size() > 2 && !HasVolatile(*query)) SharedSums(query).Share();
}

}  // namespace tessera
