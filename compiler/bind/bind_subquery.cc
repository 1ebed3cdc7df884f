// Subqueries in expressions: scalar, EXISTS, IN and ANY / ALL. unnest.cc says what becomes of them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/array_binder.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/inner_block.h"
#include "compiler/query/fold.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

struct ComparisonName {
  std::string_view symbol;
  Function function, negated;
};
constexpr ComparisonName kComparisons[] = {
    {"=", Function::kEq, Function::kNe},  {"<>", Function::kNe, Function::kEq}, {"!=", Function::kNe, Function::kEq},
    {"<", Function::kLt, Function::kGe},  {"<=", Function::kLe, Function::kGt}, {">", Function::kGt, Function::kLe},
    {">=", Function::kGe, Function::kLt},
};

/// Whether the block is a row of one constant.
bool IsConstantRow(const Query& q) {
  return q.relations.empty() && q.conjuncts.empty() && !q.grouped && !q.distinct && q.limit < 0 && q.offset == 0 &&
         q.windows.empty() && q.visible == 1 && q.repeat < 0 && IsConstant(*q.outputs[0].expr);
}

/// The constants of VALUES with one column; none if the subquery is anything else.
std::vector<ExprPtr> ConstantsOf(const Query& q) {
  const bool is_plain = q.relations.size() == 1 && q.relations[0].query != nullptr && q.conjuncts.empty() &&
                        !q.grouped && !q.distinct && q.limit < 0 && q.offset == 0 && q.windows.empty() &&
                        q.union_all.empty() && q.visible == 1;
  if (!is_plain || q.outputs[0].expr->kind != Expr::Kind::kColumn) return {};
  const Query& rows = *q.relations[0].query;
  const auto is_row = [](const auto& row) { return IsConstantRow(*row); };
  if (!IsConstantRow(rows) || rows.working != nullptr || !std::ranges::all_of(rows.union_all, is_row)) return {};
  std::vector<ExprPtr> constants = ExprList(rows.outputs[0].expr->Clone());
  for (const auto& row : rows.union_all) constants.push_back(row->outputs[0].expr->Clone());
  return constants;
}

}  // namespace

Result<ExprPtr> ExpressionBinder::BindSubquery(const ParseNode& node) {
  const int position = node.location();
  const std::string_view type = node.Text(Field::k_subLinkType);
  if (context_->snapshot == nullptr) {
    const char* place = clause_ == Clause::kConstraint ? "CHECK and GENERATED"
                        : clause_ == Clause::kDefault  ? "DEFAULT"
                                                       : "VALUES";
    return Unsupported("a subquery in " + std::string(place) + " is not supported", position,
                       clause_ == Clause::kValues ? "Write INSERT INTO ... SELECT." : "");
  }
  const char* const around = std::exchange(context_->no_aggregates, in_aggregate_ > 0            ? kInAggregate
                                                                    : clause_ == Clause::kHaving ? nullptr
                                                                                                 : ClauseName(clause_));
  Result<std::unique_ptr<Query>> bound = BindQueryBlock(*node.Get(Field::k_subselect), context_, scope_);
  context_->no_aggregates = around;
  TESSERA_ASSIGN(std::shared_ptr<Query> query, std::move(bound));
  if (type == "ARRAY_SUBLINK") return ArrayBinder(context_, clause_).OfQuery(std::move(query), position);
  if (type == "EXISTS_SUBLINK") {
    return MakeSubquery(Subquery::Kind::kExists, std::move(query), kBoolean, false, position, {});
  }
  if (type == "EXPR_SUBLINK") {
    if (query->visible != 1) return SqlError(ErrorKind::kSyntax, "subquery must return only one column", position);
    const SqlType of = query->outputs[0].expr->type;
    return MakeSubquery(Subquery::Kind::kScalar, std::move(query), of, true, position, {});
  }
  if (type == "ANY_SUBLINK" || type == "ALL_SUBLINK") return BindAny(node, std::move(query));
  return Unsupported("this form of subquery is not supported", position);
}

/// x IN (...), x op ANY (...), x op ALL (...); x may be a row for = and <>.
Result<ExprPtr> ExpressionBinder::BindAny(const ParseNode& node, std::shared_ptr<Query> query) {
  const int position = node.location();
  const bool all = node.Text(Field::k_subLinkType) == "ALL_SUBLINK";
  std::string_view symbol = "=";
  if (const ParseNode* name = node.Get(Field::k_operName)) symbol = name->first()->Text(Field::k_sval);
  const ComparisonName* comparison = nullptr;
  for (const ComparisonName& c : kComparisons) {
    if (c.symbol == symbol) comparison = &c;
  }
  if (comparison == nullptr) {
    return Unsupported("operator " + std::string(symbol) + " with ANY or ALL is not supported", position);
  }
  // All compare as true if none compares as false: x < ALL (...) is NOT x >= ANY (...), also where NULLs make it
  // unknown.
  const Function function = all ? comparison->negated : comparison->function;
  const ParseNode& test = *node.Get(Field::k_testexpr);
  const bool row = test.Is(Tag::kRowExpr);
  std::vector<ExprPtr> left;
  if (row) {
    if (function != Function::kEq) {
      return Unsupported("a row value with this operator is not supported", test.location(),
                         "Rows are compared by = ANY, IN, NOT IN and <> ALL.");
    }
    for (const ParseNode& child : *test.Get(Field::k_args)) {
      TESSERA_ASSIGN(ExprPtr x, Bind(child));
      left.push_back(std::move(x));
    }
  } else {
    TESSERA_ASSIGN(ExprPtr x, Bind(test));
    left.push_back(std::move(x));
  }
  const auto columns = static_cast<size_t>(query->visible);
  if (columns != left.size()) {
    return SqlError(ErrorKind::kSyntax,
                    columns > left.size() ? "subquery has too many columns" : "subquery has too few columns", position);
  }
  std::vector<ExprPtr> compared;
  ExprPtr x;
  for (size_t i = 0; i < columns; ++i) {
    const Expr& output = *query->outputs[i].expr;
    ExprPtr y = MakeColumn(kSubqueryColumn, static_cast<int>(i), output.type, output.nullable, position);
    if (!row) {
      TESSERA_ASSIGN(left[i], Resolve(std::move(left[i]), output.type));
      // A stored column is tested by its codes, or once for each text.
      const Expr& tested = *left[i];
      const bool same = tested.kind == Expr::Kind::kColumn && tested.type.id == output.type.id &&
                        tested.type.scale == output.type.scale && function == Function::kEq;
      std::vector<ExprPtr> constants = same ? ConstantsOf(*query) : std::vector<ExprPtr>();
      if (!constants.empty() && !IsJoinedList({&tested}, constants.size())) {
        TESSERA_ASSIGN(ExprPtr in, InList(std::move(left[i]), std::move(constants), position));
        if (!all) return in;
        return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(in))));
      }
      TESSERA_ASSIGN(x, Copy(*left[i]));
    }
    TESSERA_ASSIGN(ExprPtr c, Comparison(function, std::move(left[i]), std::move(y), position));
    compared.push_back(std::move(c));
  }
  ExprPtr condition = std::move(compared[0]);
  if (compared.size() > 1) {
    compared[0] = std::move(condition);
    condition = MakeFunction(Function::kAnd, kBoolean, position, std::move(compared));
  }
  const bool nullable = condition->nullable;
  std::vector<ExprPtr> args;
  args.push_back(std::move(condition));
  if (x != nullptr) args.push_back(std::move(x));
  ExprPtr any = MakeSubquery(Subquery::Kind::kAny, std::move(query), kBoolean, nullable, position, std::move(args));
  if (!all) return any;
  return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(any))));
}

}  // namespace tessera
