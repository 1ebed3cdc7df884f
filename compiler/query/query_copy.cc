#include "compiler/query/query_copy.h"

#include <utility>
#include <vector>

#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"

namespace tessera {

void TakeColumns(Relation* relation) {
  relation->column_names.clear();
  relation->column_types.clear();
  for (int i = 0; i < relation->query->visible; ++i) {
    const Output& o = relation->query->outputs[static_cast<size_t>(i)];
    relation->column_names.push_back(o.name);
    relation->column_types.push_back(o.expr->type);
  }
}

Relation DerivedTable(std::shared_ptr<Query> query) {
  Relation r;
  r.query = std::move(query);
  TakeColumns(&r);
  return r;
}

std::unique_ptr<Query> SelectAll(std::shared_ptr<Query> rows) {
  auto query = std::make_unique<Query>();
  query->relations.push_back(DerivedTable(std::move(rows)));
  query->relations[0].alias = "rows";
  const Relation& relation = query->relations[0];
  for (size_t c = 0; c < relation.column_types.size(); ++c) {
    query->outputs.push_back(
        {MakeColumn(0, static_cast<int>(c), relation.column_types[c], true, -1), relation.column_names[c]});
  }
  query->visible = static_cast<int>(query->outputs.size());
  return query;
}

Relation CopySource(const Relation& from) {
  Relation r;
  r.alias = from.alias;
  r.table = from.table;
  r.query = from.query;
  r.column_names = from.column_names;
  r.column_types = from.column_types;
  r.correlated = from.correlated;
  return r;
}

Relation CopyRelation(const Relation& from) {
  Relation r = CopySource(from);
  r.join = from.join;
  for (const ExprPtr& e : from.on) r.on.push_back(e->Clone());
  r.unique = from.unique;
  r.single = from.single;
  return r;
}

Aggregate CopyAggregate(const Aggregate& from) {
  Aggregate a;
  a.function = from.function;
  if (from.argument != nullptr) a.argument = from.argument->Clone();
  a.distinct = from.distinct;
  for (const AggregateOrder& o : from.order) a.order.push_back({o.expr->Clone(), o.descending, o.nulls_first});
  a.parameter = from.parameter;
  a.type = from.type;
  a.position = from.position;
  return a;
}

std::unique_ptr<Query> CopyQuery(const Query& from) {
  auto q = std::make_unique<Query>();
  for (const Relation& r : from.relations) {
    q->relations.push_back(CopyRelation(r));
    if (r.correlated) q->relations.back().query = CopyQuery(*r.query);
  }
  const auto copy = [](const std::vector<ExprPtr>& list) {
    std::vector<ExprPtr> out;
    for (const ExprPtr& e : list) out.push_back(e->Clone());
    return out;
  };
  q->conjuncts = copy(from.conjuncts);
  q->grouped = from.grouped;
  q->group_by = copy(from.group_by);
  for (const Aggregate& a : from.aggregates) q->aggregates.push_back(CopyAggregate(a));
  q->having = copy(from.having);
  for (const Output& o : from.outputs) q->outputs.push_back({o.expr->Clone(), o.name});
  q->visible = from.visible;
  q->distinct = from.distinct;
  q->order_by = from.order_by;
  q->limit = from.limit;
  q->offset = from.offset;
  q->working = from.working;
  q->is_working = from.is_working;
  q->turn_limit = from.turn_limit;
  q->repeat = from.repeat;
  q->fold = from.fold;
  q->fold_keys = from.fold_keys;
  q->fold_distinct = from.fold_distinct;
  q->fold_parameter = from.fold_parameter;
  q->windows = from.windows;
  q->series = from.series;
  for (const auto& more : from.union_all) q->union_all.push_back(CopyQuery(*more));
  return q;
}

namespace {

void OwnSubqueries(Expr* e);

/// Gives the block, a copy, subqueries of its own.
void OwnSubqueries(Query* q) {
  ForEachRoot(*q, [](ExprPtr& e) { OwnSubqueries(e.get()); });
  for (Relation& r : q->relations) {
    if (r.correlated) OwnSubqueries(r.query.get());
  }
  for (const auto& more : q->union_all) OwnSubqueries(more.get());
}

void OwnSubqueries(Expr* e) {
  for (const ExprPtr& a : e->args) OwnSubqueries(a.get());
  if (e->kind != Expr::Kind::kSubquery) return;
  auto own = std::make_shared<Subquery>();
  own->kind = e->subquery->kind;
  own->query = CopyWithSubqueries(*e->subquery->query);
  e->subquery = std::move(own);
}

}  // namespace

std::unique_ptr<Query> CopyWithSubqueries(const Query& from) {
  std::unique_ptr<Query> q = CopyQuery(from);
  OwnSubqueries(q.get());
  return q;
}

ExprPtr CopyWithSubqueries(const Expr& from) {
  ExprPtr e = from.Clone();
  OwnSubqueries(e.get());
  return e;
}

}  // namespace tessera
