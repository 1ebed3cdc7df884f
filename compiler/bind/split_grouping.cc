#include "compiler/bind/split_grouping.h"

#include <set>
#include <utility>

#include "compiler/query/correlation.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {

Result<std::shared_ptr<Query>> SplitGrouping(Query* q) {
  auto core = std::make_shared<Query>();
  core->relations = std::move(q->relations);
  core->conjuncts = std::move(q->conjuncts);
  core->grouped = true;
  core->group_by = std::move(q->group_by);
  core->aggregates = std::move(q->aggregates);
  if (core->group_by.empty() && core->aggregates.empty()) {
    Aggregate count;
    count.type = SqlType::Of(TypeId::kBigint);
    core->aggregates.push_back(std::move(count));
  }
  const int keys = static_cast<int>(core->group_by.size());
  for (int i = 0; i < keys; ++i) {
    const Expr& key = *core->group_by[static_cast<size_t>(i)];
    core->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, i, key.type, key.nullable), "key"});
  }
  for (size_t i = 0; i < core->aggregates.size(); ++i) {
    const Aggregate& a = core->aggregates[i];
    core->outputs.push_back({MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(i), a.type, !IsCount(a)), "aggregate"});
  }
  core->visible = static_cast<int>(core->outputs.size());
  q->relations.clear();
  q->group_by.clear();
  q->aggregates.clear();
  q->grouped = false;
  q->conjuncts = std::move(q->having);
  q->having.clear();

  Status error;
  std::set<Expr*> moved;  // copies of an expression share a subquery
  const auto move = [&](ExprPtr* root) {
    Substitute(root, [&](const Expr& x) -> ExprPtr {
      if (x.kind == Expr::Kind::kGroup) return MakeColumn(0, x.index, x.type, x.nullable, x.position);
      if (x.kind == Expr::Kind::kAggregate) return MakeColumn(0, keys + x.index, x.type, x.nullable, x.position);
      return nullptr;
    });
    const auto walk = [&](const Expr& e, auto& self) -> void {
      for (const ExprPtr& a : e.args) self(*a, self);
      if (e.kind != Expr::Kind::kSubquery) return;
      ForEachOuter(*e.subquery->query, 0, [&](Expr& outer, int depth) {
        if (outer.index != depth + 1 || !error.ok() || !moved.insert(&outer).second) return;
        if (outer.relation == kOuterAggregate) {
          outer.relation = 0;
          outer.column += keys;
          return;
        }
        for (int i = 0; i < keys; ++i) {
          const Expr& key = *core->group_by[static_cast<size_t>(i)];
          if (key.kind != Expr::Kind::kColumn || key.relation != outer.relation || key.column != outer.column) continue;
          outer.relation = 0;
          outer.column = i;
          return;
        }
        const Relation& r = core->relations[static_cast<size_t>(outer.relation)];
        error =
            SqlError(ErrorKind::kGrouping,
                     "subquery uses ungrouped column \"" + r.alias + "." +
                         r.column_names[static_cast<size_t>(outer.column)] + "\" from outer query",
                     outer.position, "Add it to GROUP BY, or use it in an aggregate function outside of the subquery.");
      });
    };
    walk(**root, walk);
  };
  for (ExprPtr& e : q->conjuncts) move(&e);
  for (Output& o : q->outputs) move(&o.expr);
  TESSERA_TRY(error);
  MoveInward(core.get(), 1);
  const bool correlated = RefersOutward(*core);
  Relation relation = DerivedTable(core);
  relation.alias = "groups";
  relation.correlated = correlated;
  q->relations.push_back(std::move(relation));
  return core;
}

}  // namespace tessera
