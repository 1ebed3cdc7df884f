// Binding a SELECT: WITH, FROM, WHERE, select list, grouping, ordering.
#include "compiler/query_binder.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "compiler/expression_binder.h"
#include "compiler/fold.h"
#include "compiler/nearest_name.h"
#include "compiler/parser.h"
#include "compiler/sql_scanner.h"
#include "compiler/unnest.h"

namespace tessera {

/// The queries of a WITH, and those of the blocks around it.
struct CteScope {
  struct Cte {
    std::string name;
    std::shared_ptr<Query> query;
    std::vector<std::string> columns;
  };
  const CteScope* outer = nullptr;
  std::vector<Cte> list;
};

namespace {

/// The planner keeps sets of relations in 64 bits.
constexpr size_t kMaxRelations = 64;
/// A query block counts as so many levels of an expression: its stack frames are larger.
constexpr int kBlockNesting = 16;

class QueryBinder {
 public:
  QueryBinder(std::string_view sql, const Snapshot& snapshot) : snapshot_(snapshot), query_(std::make_unique<Query>()) {
    context_.sql = sql;
    context_.snapshot = &snapshot;
    context_.relations = &query_->relations;
    context_.aggregates = &query_->aggregates;
    context_.ctes = &ctes_;
  }
  /// A block inside of `outer`; `scope`: what names of `outer` mean in it.
  QueryBinder(const BindContext& outer, const NameScope* scope) : QueryBinder(outer.sql, *outer.snapshot) {
    context_.outer = &outer;
    context_.outer_scope = scope;
    context_.nesting = outer.nesting + kBlockNesting;
    ctes_.outer = outer.ctes;
  }

  Result<std::unique_ptr<Query>> Bind(const ParseNode& select);

 private:
  Status RefuseUnsupported(const ParseNode& select);
  Status BindWith(const ParseNode& with);
  Status BindFrom(const ParseNode& select);
  Status BindFromItem(const ParseNode& item, NameScope* scope);
  Status BindTable(const ParseNode& item, NameScope* scope);
  Status BindDerived(const ParseNode& item, NameScope* scope);
  /// Adds a relation under its alias and its columns' names; `alias` is an Alias node or nullptr.
  Status AddRelation(Relation relation, const std::string& table, const ParseNode* alias, int position,
                     NameScope* scope);
  Result<int> PushRelation(Relation relation, int position);
  Status BindJoin(const ParseNode& join, NameScope* scope);
  /// (a JOIN b ...) AS j: its columns are those of j, and the names inside are hidden.
  static Status RenameJoin(const ParseNode& alias, int position, NameScope* scope);
  /// One side of an outer join as one relation of this block: a join becomes a derived table.
  Status BindSide(const ParseNode& item, NameScope* scope);
  /// Everything that `scope` of another block names, as a relation of this one.
  Result<int> AddSide(std::shared_ptr<Query> query, NameScope* scope, int position);
  /// The condition of a join: ON, USING or NATURAL; and the names of both sides together. Columns of USING are the
  /// right side's if `from_right`.
  Status JoinCondition(const ParseNode& join, const NameScope& left, const NameScope& right, bool from_right,
                       std::vector<ExprPtr>* condition, NameScope* scope);
  Status BindFullJoin(const ParseNode& join, NameScope* scope);
  /// Conditions with subqueries over the filled side of an outer join alone are taken out of `condition` and become a
  /// filter of it. Errors: one over both sides.
  Status FilterBySubqueries(int filled, const char* join, std::vector<ExprPtr>* condition);
  /// What a derived table must not have.
  Status RefuseOuterColumns(const Query& query, const char* what, int position) const;
  Status BindTargets(const ParseNode& select);
  Status AddStar(const ParseNode& fields, int position);
  Status AddOutput(const ParseNode& target);
  Status BindGroupBy(const ParseNode& list);
  Status BindHaving(const ParseNode& having);
  Status BindOrderBy(const ParseNode& list);
  Status BindLimit(const ParseNode& select);
  Result<int64_t> BindCount(const ParseNode& node, Clause clause);
  /// A whole-number constant as the number of an output, from 0; -1 if the node is something else.
  Result<int> OutputByPosition(const ParseNode& node, const char* clause) const;
  /// A bare name that is the name of an output; -1 if it is none. Errors: it is the name of several different ones.
  Result<int> OutputByName(const ParseNode& node, const char* clause) const;
  Status ReplaceGrouped();
  Status ReplaceIn(ExprPtr* e) const;

  const Snapshot& snapshot_;
  std::unique_ptr<Query> query_;
  BindContext context_;
  NameScope scope_;
  CteScope ctes_;
};

bool IsBareName(const ParseNode& node, std::string_view* name) {
  if (!node.Is(Tag::kColumnRef)) return false;
  const ParseNode* fields = node.Get(Field::k_fields);
  if (fields->size() != 1 || !fields->first()->Is(Tag::kString)) return false;
  *name = fields->first()->Text(Field::k_sval);
  return true;
}

Status QueryBinder::RefuseUnsupported(const ParseNode& select) {
  // Clauses have no place in the tree, but a keyword.
  const auto keyword = [&](std::string_view word) { return FindKeyword(context_.sql, 0, word); };
  const std::string_view op = select.Text(Field::k_op);
  if (!op.empty() && op != "SETOP_NONE") {
    for (const auto& [name, word] : {std::pair{"UNION", "union"}, {"INTERSECT", "intersect"}, {"EXCEPT", "except"}}) {
      if (op.substr(6) == name) return Unsupported(std::string(name) + " is not supported", keyword(word));
    }
  }
  if (select.Get(Field::k_valuesLists) != nullptr) {
    return Unsupported("VALUES as a query is not supported", keyword("values"), "Write SELECT.");
  }
  if (select.Get(Field::k_intoClause) != nullptr) return Unsupported("SELECT INTO is not supported", keyword("into"));
  if (select.Get(Field::k_windowClause) != nullptr) return Unsupported("WINDOW is not supported", keyword("window"));
  if (select.Get(Field::k_lockingClause) != nullptr) {
    return Unsupported("FOR UPDATE and FOR SHARE are not supported", keyword("for"));
  }
  if (const ParseNode* distinct = select.Get(Field::k_distinctClause)) {
    const ParseNode* first = distinct->first();
    if (first != nullptr && first->tag() != Tag::kNone)
      return Unsupported("DISTINCT ON is not supported", keyword("distinct"));
  }
  if (select.Text(Field::k_limitOption) == "LIMIT_OPTION_WITH_TIES")
    return Unsupported("WITH TIES is not supported", keyword("fetch"));
  if (select.Get(Field::k_groupDistinct) != nullptr)
    return Unsupported("GROUP BY DISTINCT is not supported", keyword("group"));
  return {};
}

// ---- WITH

Status QueryBinder::BindWith(const ParseNode& with) {
  if (with.Get(Field::k_recursive) != nullptr) {
    return Unsupported("WITH RECURSIVE is not supported", FindKeyword(context_.sql, 0, "recursive"));
  }
  for (const ParseNode& node : *with.Get(Field::k_ctes)) {
    const int position = node.location();
    CteScope::Cte cte;
    cte.name = node.Text(Field::k_ctename);
    for (const CteScope::Cte& other : ctes_.list) {
      if (other.name == cte.name) {
        return SqlError("WITH query name \"" + cte.name + "\" specified more than once", position);
      }
    }
    const ParseNode& body = *node.Get(Field::k_ctequery);
    if (!body.Is(Tag::kSelectStmt))
      return Unsupported("WITH of a statement other than SELECT is not supported", position);
    QueryBinder binder(context_, nullptr);
    if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
    TESSERA_ASSIGN(cte.query, binder.Bind(body));
    TESSERA_TRY(RefuseOuterColumns(*cte.query, "a query of WITH", position));
    for (int i = 0; i < cte.query->visible; ++i) cte.columns.push_back(cte.query->outputs[static_cast<size_t>(i)].name);
    if (const ParseNode* names = node.Get(Field::k_aliascolnames)) {
      if (names->size() > cte.columns.size()) {
        return SqlError("WITH query \"" + cte.name + "\" has " + std::to_string(cte.columns.size()) +
                            " columns available but " + std::to_string(names->size()) + " columns specified",
                        position);
      }
      size_t i = 0;
      for (const ParseNode& n : *names) cte.columns[i++] = n.Text(Field::k_sval);
    }
    ctes_.list.push_back(std::move(cte));
  }
  return {};
}

Status QueryBinder::RefuseOuterColumns(const Query& query, const char* what, int position) const {
  if (!RefersOutward(query)) return {};
  return Unsupported(std::string(what) + " that refers to a column of an enclosing query is not supported", position,
                     "It cannot be decorrelated: join with the table in the subquery itself.");
}

// ---- FROM

/// The names of two parts of FROM together. Errors: one name twice.
Status AddVariables(const NameScope& part, NameScope* scope) {
  for (const RangeVariable& v : part.variables) {
    const auto same = [&](const RangeVariable& other) { return !v.alias.empty() && other.alias == v.alias; };
    if (std::any_of(scope->variables.begin(), scope->variables.end(), same)) {
      return SqlError("table name \"" + v.alias + "\" specified more than once", v.position,
                      "Give one of them an alias.");
    }
    scope->variables.push_back(v);
  }
  return {};
}

/// Where a FROM item stands, or starts to.
int PositionOf(const ParseNode& item) {
  const int position = item.Is(Tag::kRangeVar) ? item.location() : item.FirstLocation();
  return position;
}

Status QueryBinder::BindFrom(const ParseNode& select) {
  const ParseNode* from = select.Get(Field::k_fromClause);
  if (from == nullptr) return {};
  for (const ParseNode& item : *from) {
    NameScope one;
    TESSERA_TRY(BindFromItem(item, &one));
    scope_.columns.insert(scope_.columns.end(), one.columns.begin(), one.columns.end());
    TESSERA_TRY(AddVariables(one, &scope_));
  }
  return {};
}

Status QueryBinder::BindFromItem(const ParseNode& item, NameScope* scope) {
  if (item.Is(Tag::kRangeVar)) return BindTable(item, scope);
  if (item.Is(Tag::kRangeSubselect)) return BindDerived(item, scope);
  if (item.Is(Tag::kJoinExpr)) {
    // A chain of joins nests to the left.
    if (++context_.nesting > kMaxNesting) return NestedTooDeeply(item.FirstLocation());
    const Status status = BindJoin(item, scope);
    --context_.nesting;
    const ParseNode* alias = item.Get(Field::k_alias);
    return status.ok() && alias != nullptr ? RenameJoin(*alias, PositionOf(item), scope) : status;
  }
  const int position = item.FirstLocation();
  if (item.Is(Tag::kRangeFunction)) return Unsupported("a function in FROM is not supported", position);
  if (item.text() == "RangeTableSample") return Unsupported("TABLESAMPLE is not supported", position);
  return Unsupported("this form of FROM (" + std::string(item.text()) + ") is not supported", position);
}

Result<int> QueryBinder::PushRelation(Relation relation, int position) {
  if (query_->relations.size() == kMaxRelations) {
    return Unsupported("a query of more than " + std::to_string(kMaxRelations) + " tables is not supported", position);
  }
  query_->relations.push_back(std::move(relation));
  return static_cast<int>(query_->relations.size()) - 1;
}

Status QueryBinder::AddRelation(Relation relation, const std::string& table, const ParseNode* alias, int position,
                                NameScope* scope) {
  if (alias != nullptr) relation.alias = alias->Text(Field::k_aliasname);
  const size_t count = relation.column_names.size();
  if (const ParseNode* names = alias != nullptr ? alias->Get(Field::k_colnames) : nullptr) {
    size_t i = 0;
    for (const ParseNode& n : *names) {
      if (i == count) {
        return SqlError("table \"" + relation.alias + "\" has " + std::to_string(count) + " columns available but " +
                            std::to_string(names->size()) + " columns specified",
                        position);
      }
      relation.column_names[i++] = n.Text(Field::k_sval);
    }
  }
  RangeVariable variable{relation.alias, table, position, {}};
  TESSERA_ASSIGN(const int r, PushRelation(std::move(relation), position));
  const Relation& kept = query_->relations.back();
  for (size_t c = 0; c < count; ++c) variable.columns.push_back({kept.column_names[c], r, static_cast<int>(c)});
  scope->columns = variable.columns;
  scope->variables.push_back(std::move(variable));
  return {};
}

/// A relation over the visible outputs of a query.
Relation DerivedTable(std::shared_ptr<Query> query) {
  Relation relation;
  for (int i = 0; i < query->visible; ++i) {
    const Output& o = query->outputs[static_cast<size_t>(i)];
    relation.column_names.push_back(o.name);
    relation.column_types.push_back(o.expr->type);
  }
  relation.query = std::move(query);
  return relation;
}

Status QueryBinder::BindTable(const ParseNode& item, NameScope* scope) {
  const std::string_view name = item.Text(Field::k_relname);
  if (item.Get(Field::k_schemaname) == nullptr) {
    for (const CteScope* level = &ctes_; level != nullptr; level = level->outer) {
      const auto same = [&](const CteScope::Cte& c) { return c.name == name; };
      const auto cte = std::find_if(level->list.begin(), level->list.end(), same);
      if (cte == level->list.end()) continue;
      Relation relation = DerivedTable(cte->query);
      relation.alias = cte->name;
      relation.column_names = cte->columns;
      return AddRelation(std::move(relation), cte->name, item.Get(Field::k_alias), item.location(), scope);
    }
  }
  TESSERA_ASSIGN(std::shared_ptr<const TableInfo> table, FindTable(item, snapshot_));
  Relation relation;
  relation.alias = table->schema.name;
  const size_t count = table->schema.columns.size();
  relation.column_names.reserve(count);
  relation.column_types.reserve(count);
  for (const ColumnSchema& c : table->schema.columns) {
    relation.column_names.push_back(c.name);
    relation.column_types.push_back(c.type);
  }
  const std::string stored = table->schema.name;
  relation.table = std::move(table);
  return AddRelation(std::move(relation), stored, item.Get(Field::k_alias), item.location(), scope);
}

Status QueryBinder::BindDerived(const ParseNode& item, NameScope* scope) {
  const int position = item.FirstLocation();
  if (item.Get(Field::k_lateral) != nullptr) {
    return Unsupported("a LATERAL subquery is not supported", FindKeyword(context_.sql, 0, "lateral"));
  }
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
  // Tables beside it in FROM are not seen from inside, those around this block are only to be refused by name.
  QueryBinder binder(context_, nullptr);
  TESSERA_ASSIGN(std::shared_ptr<Query> query, binder.Bind(*item.Get(Field::k_subquery)));
  TESSERA_TRY(RefuseOuterColumns(*query, "a derived table", position));
  return AddRelation(DerivedTable(std::move(query)), "", item.Get(Field::k_alias), position, scope);
}

Result<int> QueryBinder::AddSide(std::shared_ptr<Query> query, NameScope* scope, int position) {
  TESSERA_TRY(RefuseOuterColumns(*query, "a side of an outer join", position));
  Relation relation = DerivedTable(std::move(query));
  for (const RangeVariable& v : scope->variables) relation.alias += (relation.alias.empty() ? "" : "+") + v.alias;
  return PushRelation(std::move(relation), position);
}

/// Makes every column that `scope` names an output of `query`, and `scope` say which.
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

/// The columns of `scope` are those of relation `r`, numbered as they are.
void MoveTo(int r, NameScope* scope) {
  for (ScopeColumn& c : scope->columns) c.relation = r;
  for (RangeVariable& v : scope->variables) {
    for (ScopeColumn& c : v.columns) c.relation = r;
  }
}

Status QueryBinder::BindSide(const ParseNode& item, NameScope* scope) {
  if (!item.Is(Tag::kJoinExpr) || item.Text(Field::k_jointype) == "JOIN_FULL") return BindFromItem(item, scope);
  QueryBinder side(context_, nullptr);
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(item.FirstLocation());
  TESSERA_TRY(side.BindFromItem(item, scope));
  OutputAll(side.query_.get(), scope, ExpressionBinder(&side.context_, nullptr, Clause::kSelect));
  TESSERA_ASSIGN(const int r, AddSide(std::move(side.query_), scope, PositionOf(item)));
  MoveTo(r, scope);
  return {};
}

Status QueryBinder::RenameJoin(const ParseNode& alias, int position, NameScope* scope) {
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

/// What the condition of an outer join must not have: a relation that the join would have to come before it.
Status RefuseSubqueries(const std::vector<ExprPtr>& condition, const char* join) {
  for (const ExprPtr& e : condition) {
    if (const Expr* subquery = FindSubquery(*e)) {
      return Unsupported("a subquery in the condition of a " + std::string(join) + " is not supported",
                         subquery->position, "Join with a derived table that has the result of the subquery.");
    }
  }
  return {};
}

Status QueryBinder::BindJoin(const ParseNode& join, NameScope* scope) {
  const std::string_view type = join.Text(Field::k_jointype);
  const ParseNode& left_item = *join.Get(Field::k_larg);
  const ParseNode& right_item = *join.Get(Field::k_rarg);
  if (type == "JOIN_FULL") return BindFullJoin(join, scope);
  if (type != "JOIN_INNER" && type != "JOIN_LEFT" && type != "JOIN_RIGHT")
    return Unsupported("this join is not supported", PositionOf(right_item));
  // A RIGHT JOIN is a LEFT JOIN of the other side.
  const bool right_join = type == "JOIN_RIGHT";
  NameScope left, right;
  TESSERA_TRY(right_join ? BindSide(left_item, &left) : BindFromItem(left_item, &left));
  const int after_left = static_cast<int>(query_->relations.size());
  TESSERA_TRY(type == "JOIN_LEFT" ? BindSide(right_item, &right) : BindFromItem(right_item, &right));
  const int after_right = static_cast<int>(query_->relations.size());
  std::vector<ExprPtr> condition;
  TESSERA_TRY(JoinCondition(join, left, right, right_join, &condition, scope));
  if (type == "JOIN_INNER") {
    for (ExprPtr& e : condition) SplitConjuncts(std::move(e), &query_->conjuncts);
    return {};
  }
  const int filled = (right_join ? after_left : after_right) - 1;
  TESSERA_TRY(FilterBySubqueries(filled, right_join ? "RIGHT JOIN" : "LEFT JOIN", &condition));
  Relation& relation = query_->relations[static_cast<size_t>(filled)];
  relation.join = JoinKind::kLeft;
  relation.on = std::move(condition);
  return {};
}

Status QueryBinder::FilterBySubqueries(int filled, const char* join, std::vector<ExprPtr>* condition) {
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
    if (inside && is_other) {
      return Unsupported(
          "a subquery in a condition of a " + std::string(join) + " on both of its sides is not supported",
          subquery->position, "Join with a derived table that has the result of the subquery.");
    }
    is_filled = is_filled && !is_other;
    (is_filled ? filter->conjuncts : rest).push_back(std::move(e));
  }
  *condition = std::move(rest);
  if (filter->conjuncts.empty()) return {};
  // What is said of the filled side alone is a filter of it.
  Relation& relation = query_->relations[static_cast<size_t>(filled)];
  for (ExprPtr& e : filter->conjuncts) ForEachColumnOfBlock(*e, [](Expr& c) { c.relation = 0; });
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
  TESSERA_TRY(RefuseOuterColumns(*filter, "a filter of a side of an outer join", position));
  derived.query = std::move(filter);
  query_->relations[static_cast<size_t>(filled)] = std::move(derived);
  return {};
}

Status QueryBinder::JoinCondition(const ParseNode& join, const NameScope& left, const NameScope& right, bool from_right,
                                  std::vector<ExprPtr>* condition, NameScope* scope) {
  std::vector<std::string_view> merged;
  const ParseNode* using_clause = join.Get(Field::k_usingClause);
  if (join.Get(Field::k_join_using_alias) != nullptr) {
    return Unsupported("an alias of USING is not supported", PositionOf(*join.Get(Field::k_rarg)));
  }
  if (join.Get(Field::k_isNatural) != nullptr) {
    for (const ScopeColumn& l : left.columns) {
      const auto same = [&](const ScopeColumn& r) { return r.name == l.name; };
      if (std::any_of(right.columns.begin(), right.columns.end(), same)) merged.push_back(l.name);
    }
  } else if (using_clause != nullptr) {
    for (const ParseNode& n : *using_clause) {
      const std::string_view name = n.Text(Field::k_sval);
      if (std::find(merged.begin(), merged.end(), name) != merged.end()) {
        return SqlError("column name \"" + std::string(name) + "\" appears more than once in USING clause",
                        PositionOf(*join.Get(Field::k_rarg)));
      }
      merged.push_back(name);
    }
  }
  const auto is_merged = [&](std::string_view name) {
    return std::find(merged.begin(), merged.end(), name) != merged.end();
  };
  const int position = PositionOf(*join.Get(Field::k_rarg));
  ExpressionBinder binder(&context_, scope, Clause::kOn);
  for (std::string_view name : merged) {
    const auto find = [&](const NameScope& side, const char* which, const ScopeColumn** out) -> Status {
      for (const ScopeColumn& c : side.columns) {
        if (c.name != name) continue;
        if (*out != nullptr) {
          return SqlError(
              "common column name \"" + std::string(name) + "\" appears more than once in " + which + " table",
              position);
        }
        *out = &c;
      }
      if (*out != nullptr) return {};
      return SqlError(
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
      if (!is_merged(c.name)) scope->columns.push_back(c);
    }
    TESSERA_TRY(AddVariables(*side, scope));
  }
  if (const ParseNode* quals = join.Get(Field::k_quals)) {
    ExpressionBinder on(&context_, scope, Clause::kOn);
    TESSERA_ASSIGN(ExprPtr e, on.BindBoolean(*quals, "argument of JOIN/ON"));
    SplitConjuncts(std::move(e), condition);
  }
  return {};
}

/// l FULL JOIN r: the rows of l LEFT JOIN r, then the rows of r that match no row of l, with NULLs for l. Both halves
/// are shared by the threads and ranks like any other scan, where flags for matched rows would have to be gathered from
/// all of them.
Status QueryBinder::BindFullJoin(const ParseNode& join, NameScope* scope) {
  QueryBinder full(context_, nullptr);
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(join.FirstLocation());
  NameScope left, right, both;
  TESSERA_TRY(full.BindSide(*join.Get(Field::k_larg), &left));
  TESSERA_TRY(full.BindSide(*join.Get(Field::k_rarg), &right));
  std::vector<ExprPtr> condition;
  TESSERA_TRY(full.JoinCondition(join, left, right, false, &condition, &both));
  TESSERA_TRY(RefuseSubqueries(condition, "FULL JOIN"));
  Query& first = *full.query_;
  const auto relation = [&](size_t r) {
    const Relation& from = first.relations[r];
    Relation copy;
    copy.alias = from.alias;
    copy.table = from.table;
    copy.query = from.query;
    copy.column_names = from.column_names;
    copy.column_types = from.column_types;
    return copy;
  };
  // The left side is relation 0, the right side relation 1, in both halves.
  auto second = std::make_unique<Query>();
  second->relations.push_back(relation(0));
  second->relations.push_back(relation(1));
  second->relations[0].join = JoinKind::kAnti;
  for (const ExprPtr& e : condition) second->relations[0].on.push_back(e->Clone());
  first.relations[1].join = JoinKind::kLeft;
  first.relations[1].on = std::move(condition);

  const ExpressionBinder columns(&full.context_, nullptr, Clause::kSelect);
  // Columns of USING are the value of whichever side has one. They are the first of `both`, as many as the sides have
  // more columns than it.
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
      return SqlError("the types of column \"" + l.name + "\" in USING cannot be matched",
                      PositionOf(*join.Get(Field::k_rarg)));
    TESSERA_ASSIGN(b, Fold(MakeCast(std::move(b), *type), false));
    second->outputs.push_back({b->Clone(), l.name});
    ExprPtr test = MakeFunction(Function::kIsNotNull, SqlType::Of(TypeId::kBoolean), -1, ExprList(a->Clone()));
    TESSERA_ASSIGN(a, Fold(MakeCast(std::move(a), *type), false));
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
  TESSERA_ASSIGN(const int r, AddSide(std::move(full.query_), scope, PositionOf(join)));
  MoveTo(r, scope);
  return {};
}

// ---- The select list

Status QueryBinder::AddStar(const ParseNode& fields, int position) {
  std::vector<Output>& outputs = query_->outputs;
  ExpressionBinder binder(&context_, &scope_, Clause::kSelect);
  if (fields.size() == 1) {
    if (scope_.variables.empty()) return SqlError("SELECT * with no tables specified is not valid", position);
    for (const ScopeColumn& c : scope_.columns)
      outputs.push_back({binder.Column(c.relation, c.column, position), c.name});
    return {};
  }
  if (fields.size() > 2) return Unsupported("a name with more than two parts is not supported", position);
  const std::string_view alias = fields.first()->Text(Field::k_sval);
  std::vector<std::string_view> aliases;
  for (const RangeVariable& v : scope_.variables) {
    aliases.push_back(v.alias);
    if (v.alias != alias) continue;
    for (const ScopeColumn& c : v.columns) outputs.push_back({binder.Column(c.relation, c.column, position), c.name});
    return {};
  }
  const std::string nearest = NearestName(alias, aliases);
  return SqlError("missing FROM-clause entry for table \"" + std::string(alias) + "\"", position,
                  nearest.empty() ? "" : "Perhaps you meant table \"" + nearest + "\".");
}

Status QueryBinder::AddOutput(const ParseNode& target) {
  const ParseNode& value = *target.Get(Field::k_val);
  if (value.Is(Tag::kColumnRef)) {
    const ParseNode* fields = value.Get(Field::k_fields);
    const ParseNode* last = fields->first();
    while (last->next() != nullptr) last = last->next();
    if (last->Is(Tag::kA_Star)) return AddStar(*fields, value.location());
  }
  ExpressionBinder binder(&context_, &scope_, Clause::kSelect);
  TESSERA_ASSIGN(ExprPtr e, binder.BindTyped(value));
  if (e->type.id == TypeId::kInterval) return Unsupported("a column of type INTERVAL is not supported", e->position);
  std::string name(target.Text(Field::k_name));
  if (target.Get(Field::k_name) == nullptr) {
    if (value.Is(Tag::kColumnRef)) {
      const ParseNode* last = value.Get(Field::k_fields)->first();
      while (last->next() != nullptr) last = last->next();
      name = last->Text(Field::k_sval);
    } else if (target.location() >= 0) {
      name = ExpressionText(context_.sql, static_cast<size_t>(target.location()));
    }
  }
  query_->outputs.push_back({std::move(e), std::move(name)});
  return {};
}

Status QueryBinder::BindTargets(const ParseNode& select) {
  const ParseNode* targets = select.Get(Field::k_targetList);
  if (targets == nullptr)
    return SqlError("SELECT without columns is not valid", FindKeyword(context_.sql, 0, "select"));
  for (const ParseNode& target : *targets) {
    TESSERA_TRY(AddOutput(target));
    if (query_->outputs.size() > kMaxItems) {
      return Unsupported("a result of more than 4096 columns is not supported", target.location());
    }
  }
  query_->visible = static_cast<int>(query_->outputs.size());
  return {};
}

Result<int> QueryBinder::OutputByPosition(const ParseNode& node, const char* clause) const {
  if (!node.Is(Tag::kA_Const)) return -1;
  if (node.Get(Field::k_ival) == nullptr) {
    return SqlError("non-integer constant in " + std::string(clause), node.location());
  }
  const int64_t n = ExpressionBinder::IntegerOfConstant(context_.sql, node);
  if (n < 1 || n > query_->visible) {
    return SqlError(std::string(clause) + " position " + std::to_string(n) + " is not in select list", node.location());
  }
  return static_cast<int>(n - 1);
}

Result<int> QueryBinder::OutputByName(const ParseNode& node, const char* clause) const {
  std::string_view name;
  if (!IsBareName(node, &name)) return -1;
  int found = -1;
  for (int i = 0; i < query_->visible; ++i) {
    const Output& o = query_->outputs[static_cast<size_t>(i)];
    if (o.name != name) continue;
    if (found >= 0 && !query_->outputs[static_cast<size_t>(found)].expr->SameAs(*o.expr)) {
      return SqlError(std::string(clause) + " \"" + std::string(name) + "\" is ambiguous", node.location());
    }
    if (found < 0) found = i;
  }
  return found;
}

// ---- Grouping

bool HasAggregate(const Expr& e) {
  return e.kind == Expr::Kind::kAggregate ||
         std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return HasAggregate(*a); });
}

Status QueryBinder::BindGroupBy(const ParseNode& list) {
  std::vector<ExprPtr> constants;
  for (const ParseNode& node : list) {
    if (node.Is(Tag::kGroupingSet)) {
      if (node.Text(Field::k_kind) == "GROUPING_SET_EMPTY") {
        return Unsupported("GROUP BY () is not supported", node.location(), "Leave out GROUP BY.");
      }
      return Unsupported("GROUPING SETS, ROLLUP and CUBE are not supported", node.location());
    }
    TESSERA_ASSIGN(int output, OutputByPosition(node, "GROUP BY"));
    std::string_view name;
    if (output < 0 && IsBareName(node, &name)) {
      // As in PostgreSQL a column of FROM comes before an output of that name.
      const auto same = [&](const ScopeColumn& c) { return c.name == name; };
      if (std::none_of(scope_.columns.begin(), scope_.columns.end(), same)) {
        TESSERA_ASSIGN(output, OutputByName(node, "GROUP BY"));
      }
    }
    if (query_->group_by.size() >= kMaxItems) {
      return Unsupported("GROUP BY of more than 4096 expressions is not supported", node.location());
    }
    ExprPtr key;
    if (output >= 0) {
      const Expr& e = *query_->outputs[static_cast<size_t>(output)].expr;
      if (HasAggregate(e)) return SqlError("aggregate functions are not allowed in GROUP BY", node.location());
      key = e.Clone();
    } else {
      ExpressionBinder binder(&context_, &scope_, Clause::kGroupBy);
      TESSERA_ASSIGN(key, binder.BindTyped(node));
    }
    if (key->type.id == TypeId::kInterval)
      return Unsupported("GROUP BY of an INTERVAL is not supported", key->position);
    if (IsConstant(*key)) {
      constants.push_back(std::move(key));
      continue;
    }
    const auto same = [&](const ExprPtr& k) { return k->SameAs(*key); };
    if (std::none_of(query_->group_by.begin(), query_->group_by.end(), same))
      query_->group_by.push_back(std::move(key));
  }
  // A constant makes no more groups; but alone it makes one only if there is a row.
  if (query_->group_by.empty() && !constants.empty()) query_->group_by.push_back(std::move(constants[0]));
  return {};
}

Status QueryBinder::BindHaving(const ParseNode& having) {
  ExpressionBinder binder(&context_, &scope_, Clause::kHaving);
  binder.SetOutputs(&query_->outputs);
  TESSERA_ASSIGN(ExprPtr condition, binder.BindBoolean(having, "argument of HAVING"));
  SplitConjuncts(std::move(condition), &query_->having);
  return {};
}

Status QueryBinder::ReplaceIn(ExprPtr* e) const {
  Expr& x = **e;
  if (x.kind == Expr::Kind::kConstant || x.kind == Expr::Kind::kAggregate || x.kind == Expr::Kind::kGroup ||
      x.kind == Expr::Kind::kOuter) {
    return {};
  }
  for (size_t i = 0; i < query_->group_by.size(); ++i) {
    const Expr& key = *query_->group_by[i];
    if (key.SameAs(x)) {
      auto group = std::make_unique<Expr>();
      group->kind = Expr::Kind::kGroup;
      group->type = key.type;
      group->nullable = key.nullable;
      group->position = x.position;
      group->index = static_cast<int>(i);
      *e = std::move(group);
      return {};
    }
  }
  if (x.kind == Expr::Kind::kColumn) {
    if (x.relation == kSubqueryColumn) return {};
    const Relation& relation = query_->relations[static_cast<size_t>(x.relation)];
    return SqlError("column \"" + relation.alias + "." + relation.column_names[static_cast<size_t>(x.column)] +
                        "\" must appear in the GROUP BY clause or be used in an aggregate function",
                    x.position);
  }
  for (ExprPtr& a : x.args) TESSERA_TRY(ReplaceIn(&a));
  return {};
}

Status QueryBinder::ReplaceGrouped() {
  if (!query_->grouped) return {};
  for (Output& o : query_->outputs) TESSERA_TRY(ReplaceIn(&o.expr));
  for (ExprPtr& h : query_->having) TESSERA_TRY(ReplaceIn(&h));
  return {};
}

// ---- ORDER BY, LIMIT

Status QueryBinder::BindOrderBy(const ParseNode& list) {
  for (const ParseNode& sort : list) {
    const ParseNode& node = *sort.Get(Field::k_node);
    if (query_->outputs.size() > 2 * kMaxItems) {
      return Unsupported("ORDER BY of more than 4096 expressions is not supported", node.location());
    }
    if (sort.Get(Field::k_useOp) != nullptr) return Unsupported("ORDER BY ... USING is not supported", node.location());
    OrderKey key;
    key.descending = sort.Text(Field::k_sortby_dir) == "SORTBY_DESC";
    const std::string_view nulls = sort.Text(Field::k_sortby_nulls);
    key.nulls_first = nulls == "SORTBY_NULLS_FIRST" || (key.descending && nulls != "SORTBY_NULLS_LAST");
    // As in PostgreSQL an output of that name comes before a column of FROM.
    TESSERA_ASSIGN(int output, OutputByPosition(node, "ORDER BY"));
    if (output < 0) {
      TESSERA_ASSIGN(output, OutputByName(node, "ORDER BY"));
    }
    if (output < 0) {
      ExpressionBinder binder(&context_, &scope_, Clause::kOrderBy);
      binder.SetOutputs(&query_->outputs);
      TESSERA_ASSIGN(ExprPtr e, binder.BindTyped(node));
      if (IsConstant(*e)) continue;  // orders nothing
      for (size_t i = 0; i < query_->outputs.size() && output < 0; ++i) {
        if (query_->outputs[i].expr->SameAs(*e)) output = static_cast<int>(i);
      }
      if (output < 0) {
        if (query_->distinct) {
          return SqlError("for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                          node.location() >= 0 ? node.location() : e->position);
        }
        output = static_cast<int>(query_->outputs.size());
        query_->outputs.push_back({std::move(e), ""});
      }
    }
    if (IsConstant(*query_->outputs[static_cast<size_t>(output)].expr)) continue;
    key.output = output;
    const auto same = [&](const OrderKey& k) { return k.output == output; };
    if (std::none_of(query_->order_by.begin(), query_->order_by.end(), same)) query_->order_by.push_back(key);
  }
  return {};
}

Result<int64_t> QueryBinder::BindCount(const ParseNode& node, Clause clause) {
  const std::string name = clause == Clause::kLimit ? "LIMIT" : "OFFSET";
  ExpressionBinder binder(&context_, query_->relations.empty() ? nullptr : &scope_, clause);
  TESSERA_ASSIGN(ExprPtr e, binder.Bind(node));
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  TESSERA_ASSIGN(e, ExpressionBinder::Resolve(std::move(e), bigint));
  if (!IsConstant(*e)) return SqlError("argument of " + name + " must be a constant", e->position);
  if (e->constant.null) return -1;
  if (!e->type.IsNumeric())
    return SqlError("argument of " + name + " must be type BIGINT, not type " + e->type.ToString(), e->position);
  Result<Value> v = EvaluateCast(e->constant, bigint);
  if (!v.ok()) return v.status().At(e->position);
  if (v->i64 < 0) return SqlError(name + " must not be negative", e->position);
  return v->i64;
}

Status QueryBinder::BindLimit(const ParseNode& select) {
  if (const ParseNode* limit = select.Get(Field::k_limitCount)) {
    TESSERA_ASSIGN(query_->limit, BindCount(*limit, Clause::kLimit));
  }
  if (const ParseNode* offset = select.Get(Field::k_limitOffset)) {
    TESSERA_ASSIGN(const int64_t n, BindCount(*offset, Clause::kOffset));
    query_->offset = std::max<int64_t>(n, 0);
  }
  return {};
}

Result<std::unique_ptr<Query>> QueryBinder::Bind(const ParseNode& select) {
  TESSERA_TRY(RefuseUnsupported(select));
  if (const ParseNode* with = select.Get(Field::k_withClause)) TESSERA_TRY(BindWith(*with));
  TESSERA_TRY(BindFrom(select));
  if (const ParseNode* where = select.Get(Field::k_whereClause)) {
    ExpressionBinder binder(&context_, &scope_, Clause::kWhere);
    TESSERA_ASSIGN(ExprPtr condition, binder.BindBoolean(*where, "argument of WHERE"));
    SplitConjuncts(std::move(condition), &query_->conjuncts);
  }
  const ParseNode* group = select.Get(Field::k_groupClause);
  const ParseNode* having = select.Get(Field::k_havingClause);
  context_.has_group_by = group != nullptr;
  TESSERA_TRY(BindTargets(select));
  query_->distinct = select.Get(Field::k_distinctClause) != nullptr;
  if (group != nullptr) TESSERA_TRY(BindGroupBy(*group));
  if (having != nullptr) TESSERA_TRY(BindHaving(*having));
  if (const ParseNode* sort = select.Get(Field::k_sortClause)) TESSERA_TRY(BindOrderBy(*sort));
  TESSERA_TRY(BindLimit(select));
  query_->grouped = group != nullptr || having != nullptr || !query_->aggregates.empty();
  TESSERA_TRY(ReplaceGrouped());
  return std::move(query_);
}

}  // namespace

Result<std::unique_ptr<Query>> BindQuery(const ParseNode& select, std::string_view sql, const Snapshot& snapshot) {
  return QueryBinder(sql, snapshot).Bind(select);
}

Result<std::unique_ptr<Query>> BindQueryBlock(const ParseNode& select, const BindContext& outer,
                                              const NameScope* scope) {
  return QueryBinder(outer, scope).Bind(select);
}

std::unique_ptr<Query> ScanQuery(std::shared_ptr<const TableInfo> table, const std::vector<int>& columns) {
  auto query = std::make_unique<Query>();
  Relation relation;
  relation.alias = table->schema.name;
  for (const ColumnSchema& c : table->schema.columns) {
    relation.column_names.push_back(c.name);
    relation.column_types.push_back(c.type);
  }
  relation.table = std::move(table);
  query->relations.push_back(std::move(relation));
  BindContext context;
  context.relations = &query->relations;
  ExpressionBinder binder(&context, nullptr, Clause::kSelect);
  for (int c : columns)
    query->outputs.push_back({binder.Column(0, c, -1), query->relations[0].column_names[static_cast<size_t>(c)]});
  query->visible = static_cast<int>(columns.size());
  return query;
}

Status TableNotFound(std::string_view name, int position, const Snapshot& snapshot) {
  std::vector<std::string_view> names;
  for (const auto& t : snapshot.tables) names.push_back(t->schema.name);
  const std::string nearest = NearestName(name, names);
  return SqlError("table \"" + std::string(name) + "\" does not exist", position,
                  nearest.empty() ? "" : "Perhaps you meant table \"" + nearest + "\".");
}

Result<std::shared_ptr<const TableInfo>> FindTable(const ParseNode& range_var, const Snapshot& snapshot) {
  const std::string_view name = range_var.Text(Field::k_relname);
  if (range_var.Get(Field::k_schemaname) != nullptr || range_var.Get(Field::k_catalogname) != nullptr) {
    return Unsupported("a table name with a schema is not supported", range_var.location());
  }
  std::shared_ptr<const TableInfo> table = snapshot.Find(name);
  if (table == nullptr) return TableNotFound(name, range_var.location(), snapshot);
  return table;
}

Result<int> FindTableColumn(const TableInfo& table, std::string_view name, int position) {
  const int column = table.schema.Find(name);
  if (column >= 0) return column;
  std::vector<std::string_view> names;
  for (const ColumnSchema& c : table.schema.columns) names.push_back(c.name);
  const std::string nearest = NearestName(name, names);
  return SqlError("column \"" + std::string(name) + "\" of table \"" + table.schema.name + "\" does not exist",
                  position, nearest.empty() ? "" : "Perhaps you meant column \"" + nearest + "\".");
}

Status FitToTable(Query* query, const TableInfo& target, const std::vector<int>& columns) {
  BindContext context;
  context.relations = &query->relations;
  ExpressionBinder binder(&context, nullptr, Clause::kSelect);
  const size_t count = target.schema.columns.size();
  std::vector<Output> fitted(count);
  // Where an old output is now, for ORDER BY. What is sorted by must be the value before its cast.
  std::vector<int> place(query->outputs.size(), -1);
  std::vector<Output> hidden;
  for (size_t i = 0; i < query->outputs.size(); ++i) {
    Output& old = query->outputs[i];
    const auto sorted = [&](const OrderKey& k) { return k.output == static_cast<int>(i); };
    const bool is_sorted = std::any_of(query->order_by.begin(), query->order_by.end(), sorted);
    if (static_cast<int>(i) >= query->visible) {
      place[i] = static_cast<int>(count + hidden.size());
      hidden.push_back(std::move(old));
      continue;
    }
    const auto to = static_cast<size_t>(columns[i]);
    const ColumnSchema& column = target.schema.columns[to];
    const int position = old.expr->position;
    const SqlType from = old.expr->type;
    SqlType type = column.type;
    // A text that is too long is an error of the load, not cut by a cast.
    if (type.id == TypeId::kText) type.length = 0;
    const bool same = from == type || (from.id == TypeId::kText && type.id == TypeId::kText);
    if (!same && FindCast(from, type) > CastContext::kAssignment) {
      return SqlError("column \"" + column.name + "\" is of type " + column.type.ToString() +
                          " but expression is of type " + from.ToString(),
                      position, "You will need to rewrite or cast the expression.");
    }
    place[i] = static_cast<int>(to);
    if (!same && is_sorted) {
      place[i] = static_cast<int>(count + hidden.size());
      hidden.push_back({old.expr->Clone(), ""});
    }
    // Values that were distinct may be equal after a cast; DISTINCT is over what is selected, not over what is stored.
    if (!same && query->distinct && FindCast(from, type) != CastContext::kImplicit) {
      return Unsupported("INSERT of SELECT DISTINCT with a narrowing cast is not supported", position,
                         "Cast in the select list.");
    }
    if (!same) {
      TESSERA_ASSIGN(old.expr, Fold(MakeCast(std::move(old.expr), type), false));
    }
    fitted[to] = {std::move(old.expr), column.name};
  }
  if (query->distinct && !hidden.empty()) {
    return Unsupported("INSERT of SELECT DISTINCT with a cast and ORDER BY is not supported", -1,
                       "Cast in the select list.");
  }
  for (size_t c = 0; c < count; ++c) {
    if (fitted[c].expr == nullptr)
      fitted[c] = {MakeNull(target.schema.columns[c].type, -1), target.schema.columns[c].name};
  }
  for (OrderKey& k : query->order_by) k.output = place[static_cast<size_t>(k.output)];
  for (Output& h : hidden) fitted.push_back(std::move(h));
  query->outputs = std::move(fitted);
  query->visible = static_cast<int>(count);
  return {};
}

}  // namespace tessera
