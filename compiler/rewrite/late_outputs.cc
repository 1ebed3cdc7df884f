#include "compiler/rewrite/late_outputs.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

/// Of more rows the texts are made on the way.
constexpr int64_t kMostRows = 1 << 16;

/// Whether a text comes of it that no column has.
bool MakesText(const Expr& e, const ExprRanges& ranges) {
  if (e.kind != Expr::Kind::kFunction) return false;
  const bool chooses = e.function == Function::kCase || ranges.IsNoOp(e);
  return (e.type.storage() == StorageClass::kText && !chooses) ||
         std::ranges::any_of(e.args, [&](const ExprPtr& a) { return MakesText(*a, ranges); });
}

class LateOutputs {
 public:
  explicit LateOutputs(Query* query) : q_(*query), late_(q_.outputs.size()) {}

  /// False if there is none.
  bool Choose() {
    const StatisticsRanges statistics(q_);
    const ExprRanges ranges(statistics);
    for (size_t o = 0; o < late_.size(); ++o) {
      const Expr& e = *q_.outputs[o].expr;
      const auto is_it = [&](const OrderKey& k) { return k.output == static_cast<int>(o); };
      late_[o] = MakesText(e, ranges) && !IsVolatile(e) && std::ranges::none_of(q_.order_by, is_it);
    }
    return std::ranges::find(late_, true) != late_.end();
  }

  void Rewrite() {
    Query above;
    above.visible = q_.visible;
    above.order_by = q_.order_by;
    above.height = q_.height;
    std::vector<Output> outputs = std::move(q_.outputs);
    q_.outputs.clear();
    std::vector<int> column_of(outputs.size());  // of outputs that are made below
    for (size_t o = 0; o < outputs.size(); ++o) {
      Output& output = outputs[o];
      if (late_[o]) {
        Substitute(&output.expr, [&](const Expr& x) -> ExprPtr {
          return x.kind == Expr::Kind::kColumn ? Below(x.Clone()) : nullptr;
        });
      } else {
        output.expr = Below(std::move(output.expr));
        column_of[o] = output.expr->column;
      }
      above.outputs.push_back(std::move(output));
    }
    for (OrderKey& k : q_.order_by) k.output = column_of[static_cast<size_t>(k.output)];
    q_.visible = static_cast<int>(q_.outputs.size());
    Relation derived = DerivedTable(std::make_shared<Query>(std::move(q_)));
    derived.alias = "rows";
    above.relations.push_back(std::move(derived));
    q_ = std::move(above);
  }

 private:
  /// A value of the rows below: the column of the block above that has it.
  ExprPtr Below(ExprPtr e) {
    auto same = std::ranges::find_if(q_.outputs, [&](const Output& o) { return o.expr->SameAs(*e); });
    const auto column = static_cast<int>(same - q_.outputs.begin());
    ExprPtr leaf = MakeColumn(0, column, e->type, e->nullable, e->position);
    if (same == q_.outputs.end()) q_.outputs.push_back({std::move(e), "value"});
    return leaf;
  }

  Query& q_;
  std::vector<bool> late_;  ///< per output
};

}  // namespace

void MakeOutputsLate(Query* query) {
  const Query& q = *query;
  if (q.grouped || q.distinct || q.folds() || q.relations.empty() || q.order_by.empty() || q.limit < 0 ||
      q.limit > kMostRows || !q.windows.empty() || !q.union_all.empty() || q.working != nullptr || q.repeat >= 0 ||
      q.series >= 0)
    return;
  LateOutputs late(query);
  if (late.Choose()) late.Rewrite();
}

}  // namespace tessera
