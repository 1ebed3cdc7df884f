// ASOF JOIN: each row of the left side with the one row of the right side that is nearest before it, or after it. Both
// sides are sorted together by the keys and the moment, and a window takes the last row of the right side on:
//
//   numbered    the right side's rows that may match, each with a number
//   both        the left side's rows, with their keys and moment, and those of `numbered`, which have numbers
//   nearest     last_value(number IGNORE NULLS) OVER (PARTITION BY keys ORDER BY moment, side)
//   the join    the left side's rows of `nearest`, and by its number the row of `numbered`
//
// So it takes the time of a sort of both sides, however many rows have equal keys.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "compiler/bind/from_binder.h"
#include "compiler/bind/ranked_rows.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);

/// Levels of nesting that its blocks count as, as QueryBlock's.
constexpr int kAsOfLevels = 12;

constexpr const char* kHint = "Write a ASOF JOIN b ON a.key = b.key AND a.moment >= b.moment.";

/// A comparison of the left side's value with the right side's; both have one type.
struct Pair {
  ExprPtr left, right;
};

struct AsOfCondition {
  std::vector<Pair> keys;
  Pair moment;
  Function function = Function::kGe;  ///< left moment `function` right moment
  std::vector<ExprPtr> filters;       ///< of the right side
};

/// Takes a conjunct of the condition apart.
Status Take(ExprPtr e, const ExpressionBinder& binder, AsOfCondition* out) {
  const auto wrong = [&](const char* what) { return SqlError(std::string("ASOF JOIN ") + what, e->position, kHint); };
  if (FindSubquery(*e) != nullptr || HasOuter(*e))
    return Unsupported("ASOF JOIN by a subquery or by a column of an enclosing query is not supported", e->position);
  if (IsOver(*e, 1)) {
    out->filters.push_back(std::move(e));
    return {};
  }
  const bool comparison = e->kind == Expr::Kind::kFunction && IsComparison(e->function) && e->args.size() == 2;
  if (!comparison || e->function == Function::kNe)
    return wrong("takes comparisons of both sides: = and one of >= > <= <");
  if (IsOver(*e->args[0], 1) && IsOver(*e->args[1], 0)) {
    std::swap(e->args[0], e->args[1]);
    e->function = Mirrored(e->function);
  }
  if (!IsOver(*e->args[0], 0) || !IsOver(*e->args[1], 1)) return wrong("takes comparisons of a value of each side");
  Pair pair{std::move(e->args[0]), std::move(e->args[1])};
  const std::optional<SqlType> type = UnifyTypes(pair.left->type, pair.right->type);
  if (!type) return wrong("takes values of one type");
  for (ExprPtr* x : {&pair.left, &pair.right}) {
    if ((*x)->type == *type) continue;
    TESSERA_ASSIGN(*x, binder.Cast(std::move(*x), *type));
  }
  if (e->function == Function::kEq) {
    out->keys.push_back(std::move(pair));
    return {};
  }
  if (out->moment.left != nullptr) return wrong("takes one inequality");
  out->function = e->function;
  out->moment = std::move(pair);
  return {};
}

/// Columns of the right side are those of the only relation of another block.
ExprPtr OfOnly(const Expr& e) {
  ExprPtr moved = e.Clone();
  Substitute(&moved, [](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kColumn) return nullptr;
    ExprPtr c = x.Clone();
    c->relation = 0;
    return c;
  });
  return moved;
}

void OutputColumns(Query* query, const Relation& of) {
  for (size_t c = 0; c < of.column_names.size(); ++c) {
    const int column = static_cast<int>(c);
    query->outputs.push_back(
        {MakeColumn(0, column, of.column_types[c], ExpressionBinder::IsNullable(of, column), -1), of.column_names[c]});
  }
}

ExprPtr WindowLeaf(bool nullable) { return MakeLeaf(Expr::Kind::kWindow, 0, kBigint, nullable); }

/// The rows of the right side that may match, numbered after their columns.
std::shared_ptr<Query> Numbered(Relation right, const AsOfCondition& condition) {
  auto rows = std::make_shared<Query>();
  OutputColumns(rows.get(), right);
  for (const ExprPtr& e : condition.filters) rows->conjuncts.push_back(OfOnly(*e));
  const auto present = [&](const Pair& pair) {
    if (pair.right->nullable) rows->conjuncts.push_back(MakeTest(Function::kIsNotNull, OfOnly(*pair.right)));
  };
  for (const Pair& pair : condition.keys) present(pair);
  present(condition.moment);
  right.join = JoinKind::kInner;
  rows->relations.push_back(std::move(right));
  // Windows are over the rows of a block below, whose conditions have been met.
  auto numbered = ReaderOf(std::move(rows));
  numbered->relations[0].alias = "rows";
  Window window;
  window.function = vm::WindowFunction::kRowNumber;
  window.type = kBigint;
  numbered->windows.push_back(window);
  numbered->outputs.push_back({WindowLeaf(false), "number"});
  numbered->visible = static_cast<int>(numbered->outputs.size());
  return numbered;
}

/// The left side's columns, and after them for each row the number of the nearest row of the right side.
std::shared_ptr<Query> Nearest(Relation left, std::shared_ptr<Query> numbered, AsOfCondition condition) {
  const auto columns = left.column_names.size();
  const int number = static_cast<int>(numbered->outputs.size()) - 1;
  auto both = std::make_shared<Query>();
  OutputColumns(both.get(), left);
  auto right = std::make_unique<Query>();
  for (const SqlType& type : left.column_types) right->outputs.push_back({MakeNull(type, -1), "none"});
  const auto add = [&](ExprPtr of_left, ExprPtr of_right, const char* name) {
    both->outputs.push_back({std::move(of_left), name});
    right->outputs.push_back({std::move(of_right), name});
  };
  for (Pair& pair : condition.keys) add(std::move(pair.left), OfOnly(*pair.right), "key");
  add(std::move(condition.moment.left), OfOnly(*condition.moment.right), "moment");
  const bool equal = condition.function == Function::kGe || condition.function == Function::kLe;
  const auto constant = [](int v) { return MakeConstant(Value::Int(kInteger, v), -1); };
  // Where equal moments match, the right side's rows come first.
  add(constant(1), constant(equal ? 0 : 2), "side");
  add(MakeNull(kBigint, -1), MakeColumn(0, number, kBigint, false, -1), "number");
  left.join = JoinKind::kInner;
  both->relations.push_back(std::move(left));
  right->relations.push_back(DerivedTable(std::move(numbered)));
  right->relations[0].alias = "numbered";
  right->visible = both->visible = static_cast<int>(both->outputs.size());
  const SqlType key_type = kBigint;
  both->union_all.push_back(std::move(right));

  std::shared_ptr<Query> nearest = ReaderOf(std::move(both));
  nearest->relations[0].alias = "both sides";
  for (Output& o : nearest->outputs) o.expr->nullable = true;
  const auto keys = condition.keys.size();
  const bool descending = condition.function == Function::kLe || condition.function == Function::kLt;
  for (size_t k = 0; k < keys; ++k) nearest->order_by.push_back({static_cast<int>(columns + k), false, false});
  // The right side has no NULLs, and none of its rows comes before those of the left side.
  nearest->order_by.push_back({static_cast<int>(columns + keys), descending, true});
  nearest->order_by.push_back({static_cast<int>(columns + keys) + 1, false, false});
  Window window;
  window.function = vm::WindowFunction::kLastValue;
  window.value = static_cast<int>(columns + keys) + 2;
  window.ignore_nulls = true;
  window.partition_keys = static_cast<int>(keys);
  window.order_keys = 2;
  window.frame.mode = vm::WindowFrame::Mode::kRows;
  window.type = key_type;
  nearest->windows.push_back(window);
  nearest->outputs.push_back({WindowLeaf(true), "nearest"});
  return nearest;
}

}  // namespace

bool IsAsOf(const ParseNode& join) {
  if (const ParseNode* names = join.Get(Field::k_usingClause)) return names->first()->Text(Field::k_sval) == kAsOf;
  const ParseNode* const quals = join.Get(Field::k_quals);
  if (quals == nullptr || !quals->Is(Tag::kBoolExpr)) return false;
  const ParseNode& first = *quals->Get(Field::k_args)->first();
  const ParseNode* const text = first.Is(Tag::kA_Const) ? first.Get(Field::k_sval) : nullptr;
  return text != nullptr && text->Text(Field::k_sval) == kAsOf;
}

Status FromBinder::BindAsOf(const ParseNode& join, NameScope* scope) {
  const int position = PositionOf(*join.Get(Field::k_rarg));
  const bool is_left = join.Text(Field::k_jointype) == "JOIN_LEFT";
  if (!is_left && join.Text(Field::k_jointype) != "JOIN_INNER")
    return Unsupported("ASOF RIGHT and FULL JOIN are not supported", position, "ASOF JOIN and ASOF LEFT JOIN are.");
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
  const ParseNode* const quals = join.Get(Field::k_quals);
  if (quals != nullptr && quals->Get(Field::k_args)->size() > 2)
    return SqlError("ASOF JOIN takes no OR", quals->location(), kHint);
  QueryBlock block(context_, nullptr);
  FromBinder inside(&block);
  NameScope left, right, both;
  TESSERA_TRY(inside.BindSide(*join.Get(Field::k_larg), &left));
  TESSERA_TRY(inside.BindSide(*join.Get(Field::k_rarg), &right));
  std::vector<ExprPtr> conjuncts;
  TESSERA_TRY(inside.JoinCondition(join, left, right, false, &conjuncts, &both));
  // The last column of USING is the moment.
  if (quals == nullptr && !conjuncts.empty() && IsFunction(*conjuncts.back(), Function::kEq))
    conjuncts.back()->function = Function::kGe;
  Query& query = *block.query;
  for (const Relation& r : query.relations) {
    if (r.correlated)
      return Unsupported("ASOF JOIN of a side with columns of an enclosing query is not supported", position);
  }
  const ExpressionBinder binder(&block.context, nullptr, Clause::kOn);
  AsOfCondition condition;
  for (ExprPtr& e : conjuncts) TESSERA_TRY(Take(std::move(e), binder, &condition));
  if (condition.moment.left == nullptr) return SqlError("ASOF JOIN has no inequality", position, kHint);

  const std::string left_alias = query.relations[0].alias, right_alias = query.relations[1].alias;
  const auto keys = condition.keys.size(), columns = query.relations[0].column_names.size();
  std::shared_ptr<Query> numbered = Numbered(std::move(query.relations[1]), condition);
  const int number = static_cast<int>(numbered->outputs.size()) - 1;
  std::shared_ptr<Query> nearest = Nearest(std::move(query.relations[0]), numbered, std::move(condition));
  const int side = static_cast<int>(columns + keys) + 1, found = static_cast<int>(nearest->outputs.size()) - 1;
  query.relations.clear();
  query.relations.push_back(WindowedTable(std::move(nearest)));
  query.relations[0].alias = left_alias;
  query.relations.push_back(DerivedTable(std::move(numbered)));
  query.relations[1].alias = right_alias;
  const auto equal = [&](ExprPtr a, ExprPtr b) {
    return MakeFunction(Function::kEq, kBoolean, -1, ExprList(std::move(a), std::move(b)));
  };
  query.conjuncts.push_back(equal(MakeColumn(0, side, kInteger, true, -1), MakeConstant(Value::Int(kInteger, 1), -1)));
  ExprPtr matches = equal(MakeColumn(0, found, kBigint, true, -1), MakeColumn(1, number, kBigint, false, -1));
  if (is_left) {
    query.relations[1].join = JoinKind::kLeft;
    query.relations[1].unique = true;
    query.relations[1].on.push_back(std::move(matches));
  } else {
    query.conjuncts.push_back(std::move(matches));
  }
  OutputAll(&query, &both, binder);
  context_.deepest = std::max(context_.deepest, block.context.deepest + kAsOfLevels);
  if (context_.deepest > kMaxNesting) return NestedTooDeeply(position);
  *scope = std::move(both);
  TESSERA_ASSIGN(const int r, AddSide(block.Take(), scope, position));
  MoveTo(r, scope);
  return {};
}

}  // namespace tessera
