// Binding a SELECT: FROM, WHERE, select list, grouping, ordering.
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

namespace tessera {
namespace {

class QueryBinder {
 public:
  QueryBinder(std::string_view sql, const Snapshot& snapshot) : snapshot_(snapshot), query_(std::make_unique<Query>()) {
    context_.sql = sql;
    context_.relations = &query_->relations;
    context_.aggregates = &query_->aggregates;
  }

  Result<std::unique_ptr<Query>> Bind(const ParseNode& select);

 private:
  Status RefuseUnsupported(const ParseNode& select);
  Status BindFrom(const ParseNode& select);
  Status BindFromItem(const ParseNode& item, NameScope* scope);
  Status BindTable(const ParseNode& item, NameScope* scope);
  Status BindJoin(const ParseNode& join, NameScope* scope);
  Status MergeColumns(const ParseNode& join, const NameScope& left, const NameScope& right, NameScope* scope);
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
  if (select.Get(Field::k_withClause) != nullptr) return Unsupported("WITH is not supported", keyword("with"));
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

// ---- FROM

Status QueryBinder::BindFrom(const ParseNode& select) {
  const ParseNode* from = select.Get(Field::k_fromClause);
  if (from == nullptr) return {};
  for (const ParseNode& item : *from) {
    NameScope one;
    TESSERA_TRY(BindFromItem(item, &one));
    scope_.columns.insert(scope_.columns.end(), one.columns.begin(), one.columns.end());
  }
  scope_.end_relation = static_cast<int>(query_->relations.size());
  return {};
}

Status QueryBinder::BindFromItem(const ParseNode& item, NameScope* scope) {
  if (item.Is(Tag::kRangeVar)) return BindTable(item, scope);
  if (item.Is(Tag::kJoinExpr)) {
    // A chain of joins nests to the left.
    if (++context_.nesting > kMaxNesting) return NestedTooDeeply(item.FirstLocation());
    const Status status = BindJoin(item, scope);
    --context_.nesting;
    return status;
  }
  const int position = item.FirstLocation();
  if (item.Is(Tag::kRangeSubselect)) return Unsupported("a subquery in FROM is not supported", position);
  if (item.Is(Tag::kRangeFunction)) return Unsupported("a function in FROM is not supported", position);
  if (item.text() == "RangeTableSample") return Unsupported("TABLESAMPLE is not supported", position);
  return Unsupported("this form of FROM (" + std::string(item.text()) + ") is not supported", position);
}

Status QueryBinder::BindTable(const ParseNode& item, NameScope* scope) {
  TESSERA_ASSIGN(std::shared_ptr<const TableInfo> table, FindTable(item, snapshot_));
  Relation relation;
  relation.alias = table->schema.name;
  const ParseNode* alias = item.Get(Field::k_alias);
  if (alias != nullptr) relation.alias = alias->Text(Field::k_aliasname);
  const size_t count = table->schema.columns.size();
  relation.column_names.reserve(count);
  relation.column_types.reserve(count);
  for (const ColumnSchema& c : table->schema.columns) {
    relation.column_names.push_back(c.name);
    relation.column_types.push_back(c.type);
  }
  if (const ParseNode* names = alias != nullptr ? alias->Get(Field::k_colnames) : nullptr) {
    size_t i = 0;
    for (const ParseNode& n : *names) {
      if (i == count) {
        return SqlError("table \"" + relation.alias + "\" has " + std::to_string(count) + " columns available but " +
                            std::to_string(names->size()) + " columns specified",
                        item.location());
      }
      relation.column_names[i++] = n.Text(Field::k_sval);
    }
  }
  for (const Relation& other : query_->relations) {
    if (other.alias == relation.alias) {
      return SqlError("table name \"" + relation.alias + "\" specified more than once", item.location(),
                      "Give one of them an alias.");
    }
  }
  const int r = static_cast<int>(query_->relations.size());
  relation.table = std::move(table);
  query_->relations.push_back(std::move(relation));
  scope->first_relation = r;
  scope->end_relation = r + 1;
  // Views of the names stay good: the vector moves relations, which does not move the characters of names, except short
  // ones (kept inside the string). So the views are of the catalog's names unless there is an alias list.
  const Relation& kept = query_->relations.back();
  for (size_t c = 0; c < count; ++c) {
    const std::string& own = kept.column_names[c];
    const std::string& stored = kept.table->schema.columns[c].name;
    std::string_view name = stored;
    if (own != stored) {
      size_t i = 0;
      for (const ParseNode& n : *alias->Get(Field::k_colnames)) {
        if (i++ == c) name = n.Text(Field::k_sval);
      }
    }
    scope->columns.push_back({name, r, static_cast<int>(c)});
  }
  return {};
}

Status QueryBinder::BindJoin(const ParseNode& join, NameScope* scope) {
  NameScope left, right;
  const int first = static_cast<int>(query_->relations.size());
  TESSERA_TRY(BindFromItem(*join.Get(Field::k_larg), &left));
  const ParseNode& right_item = *join.Get(Field::k_rarg);
  const std::string_view type = join.Text(Field::k_jointype);
  if (type != "JOIN_INNER") {
    // The keyword stands behind the last table on the left.
    const ParseNode* last = join.Get(Field::k_larg);
    while (last->Is(Tag::kJoinExpr)) last = last->Get(Field::k_rarg);
    for (const auto& [kind, name, word] : {std::tuple{"JOIN_LEFT", "LEFT JOIN", "left"},
                                           {"JOIN_RIGHT", "RIGHT JOIN", "right"},
                                           {"JOIN_FULL", "FULL JOIN", "full"}}) {
      if (type == kind)
        return Unsupported(std::string(name) + " is not supported", FindKeyword(context_.sql, last->location(), word));
    }
    return Unsupported("this join is not supported", right_item.location());
  }
  TESSERA_TRY(BindFromItem(right_item, &right));
  if (const ParseNode* alias = join.Get(Field::k_alias))
    return Unsupported("an alias of a join is not supported", alias->location());
  scope->first_relation = first;
  scope->end_relation = static_cast<int>(query_->relations.size());
  TESSERA_TRY(MergeColumns(join, left, right, scope));
  if (const ParseNode* quals = join.Get(Field::k_quals)) {
    ExpressionBinder binder(&context_, scope, Clause::kOn);
    TESSERA_ASSIGN(ExprPtr condition, binder.BindBoolean(*quals, "argument of JOIN/ON"));
    SplitConjuncts(std::move(condition), &query_->conjuncts);
  }
  return {};
}

/// The columns of a join; those of USING and NATURAL come first and once, and become equalities.
Status QueryBinder::MergeColumns(const ParseNode& join, const NameScope& left, const NameScope& right,
                                 NameScope* scope) {
  std::vector<std::string_view> merged;
  const ParseNode* using_clause = join.Get(Field::k_usingClause);
  if (join.Get(Field::k_isNatural) != nullptr) {
    for (const ScopeColumn& l : left.columns) {
      const auto same = [&](const ScopeColumn& r) { return r.name == l.name; };
      if (std::any_of(right.columns.begin(), right.columns.end(), same)) merged.push_back(l.name);
    }
  } else if (using_clause != nullptr) {
    for (const ParseNode& n : *using_clause) merged.push_back(n.Text(Field::k_sval));
  }
  const auto is_merged = [&](std::string_view name) {
    return std::find(merged.begin(), merged.end(), name) != merged.end();
  };
  const int position = join.Get(Field::k_rarg)->location();
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
    SplitConjuncts(std::move(equal), &query_->conjuncts);
    scope->columns.push_back(*l);
  }
  for (const NameScope* side : {&left, &right}) {
    for (const ScopeColumn& c : side->columns) {
      if (!is_merged(c.name)) scope->columns.push_back(c);
    }
  }
  return {};
}

// ---- The select list

Status QueryBinder::AddStar(const ParseNode& fields, int position) {
  std::vector<Output>& outputs = query_->outputs;
  ExpressionBinder binder(&context_, &scope_, Clause::kSelect);
  if (fields.size() == 1) {
    if (query_->relations.empty()) return SqlError("SELECT * with no tables specified is not valid", position);
    for (const ScopeColumn& c : scope_.columns)
      outputs.push_back({binder.Column(c.relation, c.column, position), std::string(c.name)});
    return {};
  }
  if (fields.size() > 2) return Unsupported("a name with more than two parts is not supported", position);
  const std::string_view alias = fields.first()->Text(Field::k_sval);
  std::vector<std::string_view> aliases;
  for (size_t r = 0; r < query_->relations.size(); ++r) {
    const Relation& relation = query_->relations[r];
    aliases.push_back(relation.alias);
    if (relation.alias != alias) continue;
    for (size_t c = 0; c < relation.column_names.size(); ++c) {
      outputs.push_back({binder.Column(static_cast<int>(r), static_cast<int>(c), position), relation.column_names[c]});
    }
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
  if (x.kind == Expr::Kind::kConstant || x.kind == Expr::Kind::kAggregate || x.kind == Expr::Kind::kGroup) return {};
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
