// Binding comparisons of rows: (a, b) < (c, d), (a, b) IN ((1, 2), (3, 4)), (a, b) = (SELECT ...). A row beside ANY, ALL
// or IN of a subquery is in bind_subquery.cc.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/inner_block.h"
#include "compiler/query/fold.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

/// The comparison of `symbol`; `strict`: that of columns before the last, < for <=.
struct RowOperator {
  std::string_view symbol;
  Function function, strict;
};
constexpr RowOperator kRowOperators[] = {
    {"=", Function::kEq, Function::kEq},  {"<>", Function::kNe, Function::kNe}, {"<", Function::kLt, Function::kLt},
    {"<=", Function::kLe, Function::kLt}, {">", Function::kGt, Function::kGt},  {">=", Function::kGe, Function::kGt},
};

/// Leaves only output `i` of the visible ones.
Status KeepOutput(int i, int position, Query* query) {
  if (query->distinct && query->visible > 1) {
    return Unsupported("a row beside a subquery with DISTINCT is not supported", position,
                       "Compare each column with a subquery of its own.");
  }
  std::vector<int> kept = {i};
  for (const OrderKey& k : query->order_by) {
    if (std::find(kept.begin(), kept.end(), k.output) == kept.end()) kept.push_back(k.output);
  }
  std::vector<Output> outputs;
  for (int k : kept) outputs.push_back(std::move(query->outputs[static_cast<size_t>(k)]));
  for (OrderKey& k : query->order_by)
    k.output = static_cast<int>(std::find(kept.begin(), kept.end(), k.output) - kept.begin());
  query->outputs = std::move(outputs);
  query->visible = 1;
  return {};
}

}  // namespace

Result<std::vector<ExprPtr>> ExpressionBinder::BindRowItems(const ParseNode& row) {
  std::vector<ExprPtr> items;
  const ParseNode* list = row.Get(Field::k_args);
  if (list == nullptr) return Unsupported("a row without values is not supported", row.location());
  for (const ParseNode& child : *list) {
    TESSERA_ASSIGN(ExprPtr e, Bind(child));
    items.push_back(std::move(e));
  }
  return items;
}

/// A row IS NULL if all of its values are, and IS NOT NULL if none is.
Result<ExprPtr> ExpressionBinder::BindRowNullTest(const ParseNode& row, Function test, int position) {
  TESSERA_ASSIGN(std::vector<ExprPtr> items, BindRowItems(row));
  for (ExprPtr& e : items) {
    TESSERA_ASSIGN(e, Resolve(std::move(e), SqlType::Text()));
    TESSERA_ASSIGN(e, Folded(MakeFunction(test, kBoolean, position, ExprList(std::move(e)))));
  }
  if (items.size() == 1) return std::move(items[0]);
  return Folded(MakeFunction(Function::kAnd, kBoolean, position, std::move(items)));
}

/// (a, b) BETWEEN (c, d) AND (e, f).
Result<ExprPtr> ExpressionBinder::BindRowBetween(const ParseNode& row, const ParseNode& low, const ParseNode& high,
                                                 int position) {
  TESSERA_ASSIGN(ExprPtr from, BindRowComparison(row, ">=", low, position));
  TESSERA_ASSIGN(ExprPtr to, BindRowComparison(row, "<=", high, position));
  return Folded(MakeFunction(Function::kAnd, kBoolean, position, ExprList(std::move(from), std::move(to))));
}

/// Rows are compared column by column, up to the first that differs or is NULL: (a, b) < (c, d) is
/// a < c OR (a = c AND b < d).
Result<ExprPtr> ExpressionBinder::CompareRows(std::string_view symbol, std::vector<ExprPtr> left,
                                              std::vector<ExprPtr> right, int position) {
  const auto* op = std::find_if(std::begin(kRowOperators), std::end(kRowOperators),
                                [&](const RowOperator& o) { return o.symbol == symbol; });
  if (op == std::end(kRowOperators))
    return Unsupported("operator " + std::string(symbol) + " between rows is not supported", position);
  if (left.size() != right.size())
    return SqlError(ErrorKind::kSyntax, "unequal number of entries in row expressions", position);
  if (op->function == Function::kEq || op->function == Function::kNe) {
    std::vector<ExprPtr> all;
    for (size_t i = 0; i < left.size(); ++i) {
      TESSERA_ASSIGN(ExprPtr c, Comparison(op->function, std::move(left[i]), std::move(right[i]), position));
      all.push_back(std::move(c));
    }
    if (all.size() == 1) return std::move(all[0]);
    return Folded(MakeFunction(op->function == Function::kEq ? Function::kAnd : Function::kOr, kBoolean, position,
                               std::move(all)));
  }
  const size_t last = left.size() - 1;
  TESSERA_ASSIGN(ExprPtr result, Comparison(op->function, std::move(left[last]), std::move(right[last]), position));
  for (size_t i = last; i-- > 0;) {
    TESSERA_ASSIGN(ExprPtr a, Copy(*left[i]));
    TESSERA_ASSIGN(ExprPtr b, Copy(*right[i]));
    TESSERA_ASSIGN(ExprPtr less, Comparison(op->strict, std::move(a), std::move(b), position));
    TESSERA_ASSIGN(ExprPtr equal, Comparison(Function::kEq, std::move(left[i]), std::move(right[i]), position));
    TESSERA_ASSIGN(ExprPtr both, Folded(MakeFunction(Function::kAnd, kBoolean, position,
                                                     ExprList(std::move(equal), std::move(result)))));
    TESSERA_ASSIGN(result,
                   Folded(MakeFunction(Function::kOr, kBoolean, position, ExprList(std::move(less), std::move(both)))));
  }
  return result;
}

Result<ExprPtr> ExpressionBinder::BindRowComparison(const ParseNode& left, std::string_view symbol,
                                                    const ParseNode& right, int position) {
  TESSERA_ASSIGN(std::vector<ExprPtr> l, BindRowItems(left));
  TESSERA_ASSIGN(std::vector<ExprPtr> r, BindRowItems(right));
  return CompareRows(symbol, std::move(l), std::move(r), position);
}

/// (a, b) IS DISTINCT FROM (c, d): one of the columns is.
Result<ExprPtr> ExpressionBinder::BindRowDistinct(const ParseNode& left, const ParseNode& right, bool negated,
                                                  int position) {
  TESSERA_ASSIGN(std::vector<ExprPtr> l, BindRowItems(left));
  TESSERA_ASSIGN(std::vector<ExprPtr> r, BindRowItems(right));
  if (l.size() != r.size())
    return SqlError(ErrorKind::kSyntax, "unequal number of entries in row expressions", position);
  std::vector<ExprPtr> all;
  for (size_t i = 0; i < l.size(); ++i) {
    TESSERA_ASSIGN(ExprPtr e, Distinct(std::move(l[i]), std::move(r[i]), negated, position));
    all.push_back(std::move(e));
  }
  if (all.size() == 1) return std::move(all[0]);
  return Folded(MakeFunction(negated ? Function::kAnd : Function::kOr, kBoolean, position, std::move(all)));
}

/// x IN (y, z) of rows: x = y OR x = z.
Result<ExprPtr> ExpressionBinder::BindRowIn(const ParseNode& row, const ParseNode& items, int position) {
  TESSERA_ASSIGN(std::vector<ExprPtr> x, BindRowItems(row));
  std::vector<std::vector<ExprPtr>> rows;
  for (const ParseNode& item : items) {
    if (!item.Is(Tag::kRowExpr))
      return SqlError("a row is compared with a value that is none", item.location() >= 0 ? item.location() : position);
    TESSERA_ASSIGN(std::vector<ExprPtr> right, BindRowItems(item));
    rows.push_back(std::move(right));
  }
  std::vector<const Expr*> tested;
  for (const ExprPtr& e : x) tested.push_back(e.get());
  if (IsJoinedList(tested, rows.size())) {
    TESSERA_ASSIGN(const bool aligned, AlignRows(x, &rows));
    if (aligned) return InRows(std::move(x), std::move(rows), position);
  }
  std::vector<ExprPtr> any;
  for (std::vector<ExprPtr>& right : rows) {
    std::vector<ExprPtr> left;
    for (const ExprPtr& e : x) {
      TESSERA_ASSIGN(ExprPtr copy, Copy(*e));
      left.push_back(std::move(copy));
    }
    TESSERA_ASSIGN(ExprPtr equal, CompareRows("=", std::move(left), std::move(right), position));
    any.push_back(std::move(equal));
  }
  if (any.size() == 1) return std::move(any[0]);
  return Folded(MakeFunction(Function::kOr, kBoolean, position, std::move(any)));
}

/// Each column is compared with a scalar subquery of its own: NULL if there is no row, an error if there are several.
Result<ExprPtr> ExpressionBinder::BindRowSubquery(const ParseNode& row, std::string_view symbol,
                                                  const ParseNode& subquery, int position) {
  TESSERA_ASSIGN(std::vector<ExprPtr> left, BindRowItems(row));
  std::vector<ExprPtr> right;
  for (size_t i = 0; i < left.size(); ++i) {
    TESSERA_ASSIGN(std::shared_ptr<Query> query, BindQueryBlock(*subquery.Get(Field::k_subselect), context_, scope_));
    const auto columns = static_cast<size_t>(query->visible);
    if (columns != left.size()) {
      return SqlError(ErrorKind::kSyntax,
                      columns > left.size() ? "subquery has too many columns" : "subquery has too few columns",
                      position);
    }
    TESSERA_TRY(KeepOutput(static_cast<int>(i), position, query.get()));
    const SqlType type = query->outputs[0].expr->type;
    right.push_back(MakeSubquery(Subquery::Kind::kScalar, std::move(query), type, true, subquery.location(), {}));
  }
  return CompareRows(symbol, std::move(left), std::move(right), position);
}

}  // namespace tessera
