#include "compiler/bind/ranked_rows.h"

#include <cstddef>
#include <string>
#include <utility>

#include "compiler/query/correlation.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/subquery_expr.h"
#include "vm/program/window_spec.h"

namespace tessera {

Relation WindowedTable(std::shared_ptr<Query> rows) {
  rows->visible = static_cast<int>(rows->outputs.size());
  const bool correlated = RefersOutward(*rows);
  Relation relation = DerivedTable(std::move(rows));
  relation.alias = "window";
  relation.correlated = correlated;
  return relation;
}

std::shared_ptr<Query> ReaderOf(std::shared_ptr<Query> rows) {
  auto reader = std::make_shared<Query>();
  for (size_t i = 0; i < rows->outputs.size(); ++i) {
    const Output& o = rows->outputs[i];
    reader->outputs.push_back(
        {MakeColumn(0, static_cast<int>(i), o.expr->type, o.expr->nullable, o.expr->position), o.name});
  }
  reader->relations.push_back(WindowedTable(std::move(rows)));
  return reader;
}

namespace {

/// The conditions of RowRanking::skipped and taken.
void KeepCounted(const Expr& number, RowRanking ranking, std::vector<ExprPtr>* conjuncts) {
  const SqlType bigint = SqlType::Of(TypeId::kBigint), boolean = SqlType::Of(TypeId::kBoolean);
  const auto unless_null = [](ExprPtr x, ExprPtr value, ExprPtr other) {
    const SqlType type = value->type;
    return MakeFunction(Function::kCase, type, -1,
                        ExprList(MakeTest(Function::kIsNotNull, std::move(x)), std::move(value), std::move(other)));
  };
  ExprPtr place = number.Clone();  // among the rows that are not skipped
  if (ranking.skipped != nullptr) {
    ExprPtr skipped =
        unless_null(ranking.skipped->Clone(), ranking.skipped->Clone(), MakeConstant(Value::Int(bigint, 0), -1));
    place = MakeFunction(Function::kSub, bigint, -1, ExprList(std::move(place), std::move(skipped)));
    conjuncts->push_back(
        MakeFunction(Function::kGt, boolean, -1, ExprList(place->Clone(), MakeConstant(Value::Int(bigint, 0), -1))));
  }
  if (ranking.taken == nullptr) return;
  ExprPtr few = MakeFunction(Function::kLe, boolean, -1, ExprList(std::move(place), ranking.taken->Clone()));
  conjuncts->push_back(unless_null(std::move(ranking.taken), std::move(few), MakeBoolean(true, -1)));
}

}  // namespace

void KeepRanked(RowRanking ranking, Query* q) {
  const int visible = q->visible;
  std::vector<OrderKey> order = std::exchange(q->order_by, {});
  const int64_t limit = std::exchange(q->limit, -1), offset = std::exchange(q->offset, 0);
  const auto outputs = static_cast<std::ptrdiff_t>(q->outputs.size());
  MoveInward(q, 2);

  std::shared_ptr<Query> rows = ReaderOf(std::make_shared<Query>(std::move(*q)));
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  Window w;
  w.function = ranking.function;
  w.partition_keys = ranking.partition_keys;
  w.order_keys = static_cast<int>(ranking.order.size()) - ranking.partition_keys;
  w.type = bigint;
  rows->order_by = std::move(ranking.order);
  rows->windows.push_back(w);
  rows->outputs.push_back(
      {MakeLeaf(Expr::Kind::kWindow, 0, bigint, false), vm::NameOf(w.function) + std::string("()")});
  const bool counts = ranking.percent >= 0;
  if (counts) {
    Window all;
    all.function = vm::WindowFunction::kAggregate;
    all.type = bigint;
    rows->windows.push_back(all);
    rows->outputs.push_back({MakeLeaf(Expr::Kind::kWindow, 1, bigint, false), "count(*)"});
  }

  *q = std::move(*ReaderOf(std::move(rows)));
  const ExprPtr number = std::move(q->outputs[static_cast<size_t>(outputs)].expr);
  ExprPtr count = counts ? std::move(q->outputs.back().expr) : nullptr;
  q->outputs.erase(q->outputs.begin() + outputs, q->outputs.end());
  const auto compare = [&](Function function, int64_t bound) {
    q->conjuncts.push_back(MakeFunction(function, SqlType::Of(TypeId::kBoolean), -1,
                                        ExprList(number->Clone(), MakeConstant(Value::Int(bigint, bound), -1))));
  };
  if (counts) {
    // (number - most) * 100 <= count * percent, in doubles, which hold whole percentages exactly.
    const SqlType real = SqlType::Of(TypeId::kDouble);
    const auto term = [&](Function f, ExprPtr x, double y) {
      return MakeFunction(f, real, -1, ExprList(std::move(x), MakeConstant(Value::Float(real, y), -1)));
    };
    ExprPtr before = term(Function::kSub, MakeCast(number->Clone(), real), static_cast<double>(ranking.most));
    q->conjuncts.push_back(
        MakeFunction(Function::kLe, SqlType::Of(TypeId::kBoolean), -1,
                     ExprList(term(Function::kMul, std::move(before), 100),
                              term(Function::kMul, MakeCast(std::move(count), real), ranking.percent))));
  } else if (ranking.skipped != nullptr || ranking.taken != nullptr) {
    KeepCounted(*number, std::move(ranking), &q->conjuncts);
  } else {
    compare(Function::kLe, ranking.most);
  }
  if (ranking.least > 1) compare(Function::kGe, ranking.least);
  q->visible = visible;
  q->order_by = std::move(order);
  q->limit = limit;
  q->offset = offset;
}

}  // namespace tessera
