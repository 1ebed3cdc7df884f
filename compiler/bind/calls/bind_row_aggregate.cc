// Binding aggregates of rows, which are made of others: count(DISTINCT (x, y)), and the place that a row would have,
// rank(x) WITHIN GROUP (ORDER BY y) and its kin.
#include <string>

#include "compiler/bind/expression_binder.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);
const SqlType kText = SqlType::Text();

ExprPtr TextConstant(const char* text, int position) { return MakeConstant(Value::Text(text), position); }
ExprPtr Count(int64_t n, int position) { return MakeConstant(Value::Int(kBigint, n), position); }

}  // namespace

bool IsHypotheticalName(std::string_view name) {
  return name == "rank" || name == "dense_rank" || name == "percent_rank" || name == "cume_dist";
}

/// A text that is the same for equal rows only, and not NULL: the values one after the other, texts after their length.
Result<ExprPtr> ExpressionBinder::RowKey(std::vector<ExprPtr> items, int position) {
  std::vector<ExprPtr> pieces;
  for (ExprPtr& item : items) {
    TESSERA_ASSIGN(ExprPtr x, Resolve(std::move(item), kText));
    x = OrderedForm(std::move(x));
    if (x->type.IsFloat()) {  // -0.0 is 0.0
      TESSERA_ASSIGN(x, Infix("+", std::move(x), MakeConstant(Value::Float(kDouble, 0), position), position));
    }
    const bool is_text = x->type.id == TypeId::kText || x->type.id == TypeId::kBytea;
    TESSERA_ASSIGN(x, Coerce(std::move(x), kText, CastContext::kExplicit));
    if (is_text) {
      TESSERA_ASSIGN(ExprPtr length, Copy(*x));
      TESSERA_ASSIGN(length, Folded(MakeFunction(Function::kLength, kInteger, position, ExprList(std::move(length)))));
      TESSERA_ASSIGN(length, Infix("||", std::move(length), TextConstant(":", position), position));
      TESSERA_ASSIGN(x, Infix("||", std::move(length), std::move(x), position));
    }
    pieces.push_back(std::move(x));  // (of NULL nothing)
    pieces.push_back(TextConstant(";", position));
  }
  return BindConcat(std::move(pieces), position);
}

/// A row IS DISTINCT FROM NULL, so that count(DISTINCT (x, y)) counts those of NULLs, too.
Result<ExprPtr> ExpressionBinder::BindCountedRow(const ParseNode& row, bool distinct) {
  const int position = row.location();
  TESSERA_ASSIGN(std::vector<ExprPtr> items, BindRowItems(row));
  if (!distinct) return MakeConstant(Value::Int(kInteger, 1), position);
  return RowKey(std::move(items), position);
}

/// CASE WHEN condition THEN value END.
Result<ExprPtr> ExpressionBinder::Only(ExprPtr condition, ExprPtr value, int position) {
  const SqlType type = value->type;
  return Folded(MakeFunction(Function::kCase, type, position,
                             ExprList(std::move(condition), std::move(value), MakeNull(type, position))));
}

/// Whether the row's value of `key` comes before x in its order, or is a peer of x.
Result<ExprPtr> ExpressionBinder::PlaceBeside(const AggregateOrder& key, const Expr& x, bool peer, int position) {
  const auto null_test = [&](Function test, const Expr& e) -> Result<ExprPtr> {
    TESSERA_ASSIGN(ExprPtr copy, Copy(e));
    return Folded(MakeFunction(test, kBoolean, position, ExprList(std::move(copy))));
  };
  TESSERA_ASSIGN(ExprPtr a, Copy(*key.expr));
  TESSERA_ASSIGN(ExprPtr b, Copy(x));
  const Function function = peer ? Function::kEq : key.descending ? Function::kGt : Function::kLt;
  TESSERA_ASSIGN(ExprPtr result, Comparison(function, std::move(a), std::move(b), position));
  if (!key.expr->nullable && !x.nullable) return result;
  const bool key_is_null = peer || key.nulls_first, x_is_null = peer || !key.nulls_first;
  TESSERA_ASSIGN(ExprPtr of_key, null_test(key_is_null ? Function::kIsNull : Function::kIsNotNull, *key.expr));
  TESSERA_ASSIGN(ExprPtr of_x, null_test(x_is_null ? Function::kIsNull : Function::kIsNotNull, x));
  TESSERA_ASSIGN(ExprPtr nulls, Folded(MakeFunction(Function::kAnd, kBoolean, position,
                                                    ExprList(std::move(of_key), std::move(of_x)))));
  return Folded(MakeFunction(Function::kOr, kBoolean, position, ExprList(std::move(result), std::move(nulls))));
}

/// The values of the row whose place is asked for, in the forms of the expressions that it is ordered by.
Result<std::vector<ExprPtr>> ExpressionBinder::HypotheticalRow(const std::string& called, const ParseNode& node,
                                                               const std::vector<AggregateOrder>& order) {
  std::vector<ExprPtr> row;
  const ParseNode* list = node.Get(Field::k_args);
  for (const ParseNode* child = list == nullptr ? nullptr : list->first(); child != nullptr; child = child->next()) {
    TESSERA_ASSIGN(ExprPtr e, Bind(*child));
    row.push_back(std::move(e));
  }
  if (row.size() != order.size()) {
    return SqlError("function " + called + " with " + std::to_string(row.size()) + " values and " +
                        std::to_string(order.size()) + " expressions in WITHIN GROUP (ORDER BY ...) does not exist",
                    node.location(), "There is one value for each expression that ORDER BY has.");
  }
  for (size_t i = 0; i < row.size(); ++i) {
    const Expr& key = *order[i].expr;
    const SqlType type = IsFunction(key, Function::kIntervalLength) ? SqlType::Of(TypeId::kInterval) : key.type;
    TESSERA_ASSIGN(row[i], Resolve(std::move(row[i]), type));
    row[i] = OrderedForm(std::move(row[i]));
  }
  return row;
}

/// Whether a row comes before `row` in the order, or is a peer of it if those count, too.
Result<ExprPtr> ExpressionBinder::RanksBefore(const std::vector<AggregateOrder>& order, const std::vector<ExprPtr>& row,
                                              bool with_peers, int position) {
  const auto both = [&](Function f, ExprPtr a, ExprPtr b) {
    return Folded(MakeFunction(f, kBoolean, position, ExprList(std::move(a), std::move(b))));
  };
  // From the last key: before here, or a peer here and before at the next one.
  ExprPtr before;
  for (size_t i = row.size(); i-- > 0;) {
    TESSERA_ASSIGN(ExprPtr here, PlaceBeside(order[i], *row[i], false, position));
    if (before != nullptr || with_peers) {
      TESSERA_ASSIGN(ExprPtr peer, PlaceBeside(order[i], *row[i], true, position));
      if (before != nullptr) {
        TESSERA_ASSIGN(peer, both(Function::kAnd, std::move(peer), std::move(before)));
      }
      TESSERA_ASSIGN(here, both(Function::kOr, std::move(here), std::move(peer)));
    }
    before = std::move(here);
  }
  return before;
}

Result<ExprPtr> ExpressionBinder::BindHypothetical(std::string_view name, const ParseNode& node) {
  const int position = node.location();
  const std::string called(name);
  if (node.Get(Field::k_over) != nullptr)
    return SqlError("OVER is not supported for ordered-set aggregate " + called, position);
  if (node.Get(Field::k_agg_distinct) != nullptr) return SqlError("cannot use DISTINCT with WITHIN GROUP", position);
  ++in_aggregate_;
  TESSERA_ASSIGN(const std::vector<AggregateOrder> order, BindAggregateOrder(*node.Get(Field::k_agg_order)));
  TESSERA_ASSIGN(const std::vector<ExprPtr> row, HypotheticalRow(called, node, order));
  ExprPtr filter;
  if (const ParseNode* condition = node.Get(Field::k_agg_filter)) {
    TESSERA_ASSIGN(filter, BindBoolean(*condition, "argument of FILTER"));
  }
  TESSERA_ASSIGN(ExprPtr before, RanksBefore(order, row, name == "cume_dist", position));
  ExprPtr counted = MakeConstant(Value::Int(kInteger, 1), position);
  const bool dense = name == "dense_rank";
  if (dense) {
    std::vector<ExprPtr> keys;
    for (const AggregateOrder& k : order) {
      TESSERA_ASSIGN(ExprPtr e, Copy(*k.expr));
      keys.push_back(std::move(e));
    }
    counted = std::move(keys[0]);
    if (keys.size() > 1 || counted->nullable) {
      keys[0] = std::move(counted);
      TESSERA_ASSIGN(counted, RowKey(std::move(keys), position));
    }
  }
  ExprPtr all;  // the condition of all rows
  if (filter != nullptr) {
    TESSERA_ASSIGN(all, Copy(*filter));
    TESSERA_ASSIGN(before, Folded(MakeFunction(Function::kAnd, kBoolean, position,
                                               ExprList(std::move(filter), std::move(before)))));
  }
  TESSERA_ASSIGN(counted, Only(std::move(before), std::move(counted), position));
  TESSERA_ASSIGN(ExprPtr rows, AddAggregate(AggregateFunction::kCount, std::move(counted), dense, kBigint, position));
  ExprPtr total;
  if (name == "percent_rank" || name == "cume_dist") {
    if (all == nullptr) {
      TESSERA_ASSIGN(total, AddAggregate(AggregateFunction::kCountStar, nullptr, false, kBigint, position));
    } else {
      TESSERA_ASSIGN(all, Only(std::move(all), MakeConstant(Value::Int(kInteger, 1), position), position));
      TESSERA_ASSIGN(total, AddAggregate(AggregateFunction::kCount, std::move(all), false, kBigint, position));
    }
  }
  --in_aggregate_;
  const bool percent = name == "percent_rank";
  if (!percent) {
    TESSERA_ASSIGN(rows, Infix("+", std::move(rows), Count(1, position), position));
  }
  if (total == nullptr) return rows;
  // (rank - 1) / rows, 0 without any; (rows up to it and its peers) / (rows with it).
  TESSERA_ASSIGN(total, Infix("+", std::move(total), Count(percent ? 0 : 1, position), position));
  TESSERA_ASSIGN(ExprPtr none, Copy(*total));
  TESSERA_ASSIGN(rows, Coerce(std::move(rows), kDouble, CastContext::kExplicit));
  TESSERA_ASSIGN(ExprPtr part, Infix("/", std::move(rows), std::move(total), position));
  if (!percent) return part;
  TESSERA_ASSIGN(none, Comparison(Function::kEq, std::move(none), Count(0, position), position));
  return Folded(
      MakeFunction(Function::kCase, kDouble, position,
                   ExprList(std::move(none), MakeConstant(Value::Float(kDouble, 0), position), std::move(part))));
}

}  // namespace tessera
