// JOIN: its condition, the names that it defines, and the sides of outer joins.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "compiler/bind/from_binder.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/fold.h"
#include "compiler/query/query_copy.h"

namespace tessera {
namespace {

/// A condition of a block becomes one of a derived table in the place of relation `filled`, which has that relation alone:
/// columns of the others are now those of the block around it.
void MoveToFilter(int filled, Expr* condition) {
  std::set<Expr*> moved;  // copies of an expression share a subquery
  const auto move = [&](Expr& x, bool of_block) {
    if (!moved.insert(&x).second) return;
    if (of_block && x.relation == filled) {
      x.relation = 0;
      return;
    }
    x.kind = Expr::Kind::kOuter;
    ++x.index;
  };
  const auto walk = [&](Expr& e, auto& self) -> void {
    for (const ExprPtr& a : e.args) self(*a, self);
    if (e.kind == Expr::Kind::kColumn && e.relation != kSubqueryColumn) {
      e.index = 0;
      move(e, true);
    } else if (e.kind == Expr::Kind::kOuter) {
      move(e, false);
    } else if (e.kind == Expr::Kind::kSubquery) {
      ForEachOuter(*e.subquery->query, 0, [&](Expr& x, int depth) { move(x, x.index == depth + 1); });
    }
  };
  walk(*condition, walk);
}

}  // namespace

void OutputAll(Query* query, NameScope* scope, const ExpressionBinder& binder) {
  const auto place = [&](ScopeColumn* c) {
    ExprPtr e = binder.Column(c->relation, c->column, -1);
    size_t i = 0;
    while (i < query->outputs.size() && !query->outputs[i].expr->SameAs(*e)) ++i;
    if (i == query->outputs.size()) query->outputs.push_back({std::move(e), c->name});
    c->column = static_cast<int>(i);
  };
  for (ScopeColumn& c : scope->columns) place(&c);
  for (RangeVariable& v : scope->variables) {
    for (ScopeColumn& c : v.columns) place(&c);
  }
  query->visible = static_cast<int>(query->outputs.size());
}

void MoveTo(int r, NameScope* scope) {
  for (ScopeColumn& c : scope->columns) c.relation = r;
  for (RangeVariable& v : scope->variables) {
    for (ScopeColumn& c : v.columns) c.relation = r;
  }
}

Result<int> FromBinder::AddSide(std::shared_ptr<Query> query, NameScope* scope, int position) {
  const bool correlated = RefersOutward(*query);
  Relation relation = DerivedTable(std::move(query));
  relation.correlated = correlated;
  for (const RangeVariable& v : scope->variables) relation.alias += (relation.alias.empty() ? "" : "+") + v.alias;
  return PushRelation(std::move(relation), position);
}

Status FromBinder::BindSide(const ParseNode& item, NameScope* scope) {
  if (!item.Is(Tag::kJoinExpr) || item.Text(Field::k_jointype) == "JOIN_FULL") return BindItem(item, scope);
  QueryBlock side(context_, nullptr);
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(item.FirstLocation());
  TESSERA_TRY(FromBinder(&side).BindItem(item, scope));
  OutputAll(side.query.get(), scope, ExpressionBinder(&side.context, nullptr, Clause::kSelect));
  context_.deepest = std::max(context_.deepest, side.context.deepest);
  TESSERA_ASSIGN(const int r, AddSide(side.Take(), scope, PositionOf(item)));
  MoveTo(r, scope);
  return {};
}

Status FromBinder::RenameJoin(const ParseNode& alias, int position, NameScope* scope) {
  RangeVariable variable{std::string(alias.Text(Field::k_aliasname)), "", position, scope->columns};
  if (const ParseNode* names = alias.Get(Field::k_colnames)) {
    size_t i = 0;
    for (const ParseNode& n : *names) {
      if (i == variable.columns.size()) {
        return SqlError("join expression \"" + variable.alias + "\" has " + std::to_string(i) +
                            " columns available but " + std::to_string(names->size()) + " columns specified",
                        position);
      }
      variable.columns[i++].name = n.Text(Field::k_sval);
    }
  }
  scope->columns = variable.columns;
  scope->variables = {std::move(variable)};
  return {};
}

Status FromBinder::BindJoin(const ParseNode& join, NameScope* scope) {
  const std::string_view type = join.Text(Field::k_jointype);
  const ParseNode& left_item = *join.Get(Field::k_larg);
  const ParseNode& right_item = *join.Get(Field::k_rarg);
  if (IsAsOf(join)) return BindAsOf(join, scope);
  if (type == "JOIN_FULL") return BindFullJoin(join, scope);
  if (type != "JOIN_INNER" && type != "JOIN_LEFT" && type != "JOIN_RIGHT")
    return Unsupported("this join is not supported", PositionOf(right_item));
  // A RIGHT JOIN is a LEFT JOIN with the sides exchanged.
  const bool right_join = type == "JOIN_RIGHT";
  NameScope left, right;
  TESSERA_TRY(right_join ? BindSide(left_item, &left) : BindItem(left_item, &left));
  const int after_left = static_cast<int>(query_.relations.size());
  if (!right_join) before_.push_back(&left);
  TESSERA_TRY(type == "JOIN_LEFT" ? BindSide(right_item, &right) : BindItem(right_item, &right));
  if (!right_join) before_.pop_back();
  const int after_right = static_cast<int>(query_.relations.size());
  std::vector<ExprPtr> condition;
  TESSERA_TRY(JoinCondition(join, left, right, right_join, &condition, scope));
  if (type == "JOIN_INNER") {
    for (ExprPtr& e : condition) SplitConjuncts(std::move(e), &query_.conjuncts);
    return {};
  }
  const int filled = (right_join ? after_left : after_right) - 1;
  FilterBySubqueries(filled, &query_, &condition);
  Relation& relation = query_.relations[static_cast<size_t>(filled)];
  relation.join = JoinKind::kLeft;
  relation.on = std::move(condition);
  return {};
}

void FromBinder::FilterBySubqueries(int filled, Query* block, std::vector<ExprPtr>* condition) {
  auto filter = std::make_shared<Query>();
  std::vector<ExprPtr> rest;
  for (ExprPtr& e : *condition) {
    bool is_filled = false, is_other = false, inside = false;  // inside: a subquery needs a row of the filled side
    const Expr* subquery = FindSubquery(*e);
    if (subquery != nullptr) {
      ForEachColumnOfBlock(*e, [&](const Expr& c) { (c.relation == filled ? is_filled : is_other) = true; });
      const auto look = [&](Expr& x, auto& self) -> void {
        if (x.kind == Expr::Kind::kSubquery) {
          ForEachColumnOfBlock(x, [&](const Expr& c) { inside = inside || c.relation == filled; });
        }
        for (const ExprPtr& a : x.args) self(*a, self);
      };
      look(*e, look);
    }
    (inside || (is_filled && !is_other) ? filter->conjuncts : rest).push_back(std::move(e));
  }
  *condition = std::move(rest);
  if (filter->conjuncts.empty()) return;
  Relation& relation = block->relations[static_cast<size_t>(filled)];
  for (ExprPtr& e : filter->conjuncts) MoveToFilter(filled, e.get());
  const int position = filter->conjuncts[0]->position;
  Relation derived;
  derived.alias = relation.alias;
  derived.column_names = relation.column_names;
  derived.column_types = relation.column_types;
  filter->relations.push_back(std::move(relation));
  for (size_t c = 0; c < derived.column_names.size(); ++c) {
    const int column = static_cast<int>(c);
    const bool nullable = ExpressionBinder::IsNullable(filter->relations[0], column);
    filter->outputs.push_back(
        {MakeColumn(0, column, derived.column_types[c], nullable, position), derived.column_names[c]});
  }
  filter->visible = static_cast<int>(filter->outputs.size());
  if (filter->relations[0].correlated) MoveInward(filter->relations[0].query.get(), 1);
  derived.correlated = RefersOutward(*filter);
  derived.query = std::move(filter);
  block->relations[static_cast<size_t>(filled)] = std::move(derived);
}

Status FromBinder::JoinCondition(const ParseNode& join, const NameScope& left, const NameScope& right, bool from_right,
                                 std::vector<ExprPtr>* condition, NameScope* scope) {
  std::vector<std::string_view> merged;
  std::unordered_set<std::string_view> is_merged;
  const ParseNode* using_clause = join.Get(Field::k_usingClause);
  if (join.Get(Field::k_join_using_alias) != nullptr) {
    return Unsupported("an alias of USING is not supported", PositionOf(*join.Get(Field::k_rarg)));
  }
  if (join.Get(Field::k_isNatural) != nullptr) {
    std::unordered_set<std::string_view> shared;
    for (const ScopeColumn& r : right.columns) shared.insert(r.name);
    for (const ScopeColumn& l : left.columns) {
      if (!shared.contains(l.name)) continue;
      merged.push_back(l.name);
      is_merged.insert(l.name);
    }
  } else if (using_clause != nullptr) {
    for (const ParseNode& n : *using_clause) {
      const std::string_view name = n.Text(Field::k_sval);
      if (name == kAsOf) continue;
      if (!is_merged.insert(name).second) {
        return SqlError(ErrorKind::kDuplicateColumn,
                        "column name \"" + std::string(name) + "\" appears more than once in USING clause",
                        PositionOf(*join.Get(Field::k_rarg)));
      }
      merged.push_back(name);
    }
  }
  const int position = PositionOf(*join.Get(Field::k_rarg));
  ExpressionBinder binder(&context_, scope, Clause::kOn);
  for (std::string_view name : merged) {
    const auto find = [&](const NameScope& side, const char* which, const ScopeColumn** out) -> Status {
      for (const ScopeColumn& c : side.columns) {
        if (c.name != name) continue;
        if (*out != nullptr) {
          return SqlError(
              ErrorKind::kDuplicateColumn,
              "common column name \"" + std::string(name) + "\" appears more than once in " + which + " table",
              position);
        }
        *out = &c;
      }
      if (*out != nullptr) return {};
      return SqlError(
          ErrorKind::kUndefinedColumn,
          "column \"" + std::string(name) + "\" specified in USING clause does not exist in " + which + " table",
          position);
    };
    const ScopeColumn* l = nullptr;
    const ScopeColumn* r = nullptr;
    TESSERA_TRY(find(left, "left", &l));
    TESSERA_TRY(find(right, "right", &r));
    TESSERA_ASSIGN(ExprPtr equal, binder.Comparison(Function::kEq, binder.Column(l->relation, l->column, position),
                                                    binder.Column(r->relation, r->column, position), position));
    SplitConjuncts(std::move(equal), condition);
    scope->columns.push_back(from_right ? *r : *l);
  }
  for (const NameScope* side : {&left, &right}) {
    for (const ScopeColumn& c : side->columns) {
      if (!is_merged.contains(c.name)) scope->columns.push_back(c);
    }
    TESSERA_TRY(AddVariables(*side, scope));
  }
  if (const ParseNode* quals = join.Get(Field::k_quals)) {
    if (IsAsOf(join)) quals = quals->Get(Field::k_args)->first()->next();
    ExpressionBinder on(&context_, scope, Clause::kOn);
    TESSERA_ASSIGN(ExprPtr e, on.BindBoolean(*quals, "argument of JOIN/ON"));
    SplitConjuncts(std::move(e), condition);
  }
  return {};
}

/// l FULL JOIN r: the rows of l LEFT JOIN r, then the rows of r that match no row of l, with NULLs for l. Threads and
/// ranks share both halves like any other scan. (Flags for matched rows would have to be gathered from all of them.)
Status FromBinder::BindFullJoin(const ParseNode& join, NameScope* scope) {
  QueryBlock full(context_, nullptr);
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(join.FirstLocation());
  FromBinder inside(&full);
  NameScope left, right, both;
  TESSERA_TRY(inside.BindSide(*join.Get(Field::k_larg), &left));
  TESSERA_TRY(inside.BindSide(*join.Get(Field::k_rarg), &right));
  std::vector<ExprPtr> condition;
  TESSERA_TRY(inside.JoinCondition(join, left, right, false, &condition, &both));
  Query& first = *full.query;
  // The left side is relation 0, the right side relation 1, in both halves.
  auto second = std::make_unique<Query>();
  second->relations.push_back(CopySource(first.relations[0]));
  second->relations.push_back(CopySource(first.relations[1]));
  for (Relation& r : second->relations) {
    if (r.correlated) r.query = CopyWithSubqueries(*r.query);
  }
  std::vector<ExprPtr> matches;
  for (const ExprPtr& e : condition) matches.push_back(CopyWithSubqueries(*e));
  FilterBySubqueries(0, second.get(), &matches);
  second->relations[0].join = JoinKind::kAnti;
  second->relations[0].on = std::move(matches);
  FilterBySubqueries(1, &first, &condition);
  first.relations[1].join = JoinKind::kLeft;
  first.relations[1].on = std::move(condition);

  const ExpressionBinder columns(&full.context, nullptr, Clause::kSelect);
  // A column of USING has the value of whichever side has one. These columns come first in `both`. The sides together
  // have more columns than `both`; the difference is the number of columns of USING.
  const size_t shared = left.columns.size() + right.columns.size() - both.columns.size();
  std::vector<std::pair<ScopeColumn, ScopeColumn>> pairs;
  for (size_t i = 0; i < shared; ++i) {
    const auto same = [&](const ScopeColumn& c) { return c.name == both.columns[i].name; };
    pairs.emplace_back(*std::find_if(left.columns.begin(), left.columns.end(), same),
                       *std::find_if(right.columns.begin(), right.columns.end(), same));
  }
  NameScope plain;
  plain.columns.assign(both.columns.begin() + static_cast<ptrdiff_t>(shared), both.columns.end());
  plain.variables = both.variables;
  OutputAll(&first, &plain, columns);
  for (const Output& o : first.outputs) {
    const Expr& e = *o.expr;
    ExprPtr half = e.relation == 0 ? MakeNull(e.type, -1) : e.Clone();
    second->outputs.push_back({std::move(half), o.name});
  }
  std::vector<ScopeColumn> coalesced;
  for (const auto& [l, r] : pairs) {
    ExprPtr a = columns.Column(l.relation, l.column, -1);
    ExprPtr b = columns.Column(r.relation, r.column, -1);
    const std::optional<SqlType> type = UnifyTypes(a->type, b->type);
    if (!type)
      return SqlError(ErrorKind::kDatatypeMismatch, "the types of column \"" + l.name + "\" in USING cannot be matched",
                      PositionOf(*join.Get(Field::k_rarg)));
    TESSERA_ASSIGN(b, columns.Cast(std::move(b), *type));
    second->outputs.push_back({b->Clone(), l.name});
    ExprPtr test = MakeFunction(Function::kIsNotNull, SqlType::Of(TypeId::kBoolean), -1, ExprList(a->Clone()));
    TESSERA_ASSIGN(a, columns.Cast(std::move(a), *type));
    TESSERA_ASSIGN(test, Fold(std::move(test), false));
    TESSERA_ASSIGN(
        ExprPtr either,
        Fold(MakeFunction(Function::kCase, *type, -1, ExprList(std::move(test), std::move(a), std::move(b))), false));
    coalesced.push_back({l.name, 0, static_cast<int>(first.outputs.size())});
    first.outputs.push_back({std::move(either), l.name});
  }
  first.visible = second->visible = static_cast<int>(first.outputs.size());
  scope->columns = std::move(coalesced);
  scope->columns.insert(scope->columns.end(), plain.columns.begin(), plain.columns.end());
  scope->variables = std::move(plain.variables);
  first.union_all.push_back(std::move(second));
  context_.deepest = std::max(context_.deepest, full.context.deepest);
  TESSERA_ASSIGN(const int r, AddSide(full.Take(), scope, PositionOf(join)));
  MoveTo(r, scope);
  return {};
}

}  // namespace tessera
