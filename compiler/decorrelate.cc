#include "compiler/decorrelate.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/correlation.h"
#include "compiler/query_copy.h"
#include "compiler/query_walk.h"
#include "compiler/subquery_expr.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

/// The value that represents NULL in a key of a join by IS NOT DISTINCT FROM.
ExprPtr AnyValue(const SqlType& type) {
  switch (type.storage()) {
    case StorageClass::kInt:
      return MakeConstant(Value::Int(type, 0), -1);
    case StorageClass::kFloat:
      return MakeConstant(Value::Float(type, 0), -1);
    case StorageClass::kWide:
      return MakeConstant(Value::Wide(type, 0), -1);
    case StorageClass::kText:
      break;
  }
  Value text = Value::Text("");
  text.type = type;
  return MakeConstant(std::move(text), -1);
}

/// Appends "a = b, or both are NULL" as equalities that can be keys of a join.
void AppendSame(ExprPtr a, ExprPtr b, std::vector<ExprPtr>* on) {
  if (a->nullable) {
    const auto filled = [](const Expr& x) {
      ExprPtr e = MakeFunction(Function::kCase, x.type, -1,
                               ExprList(MakeTest(Function::kIsNotNull, x.Clone()), x.Clone(), AnyValue(x.type)));
      e->nullable = false;
      return e;
    };
    ExprPtr null_a = MakeTest(Function::kIsNull, a->Clone()), null_b = MakeTest(Function::kIsNull, b->Clone());
    on->push_back(MakeFunction(Function::kEq, kBoolean, -1, ExprList(std::move(null_a), std::move(null_b))));
    a = filled(*a);
    b = filled(*b);
  }
  on->push_back(MakeFunction(Function::kEq, kBoolean, -1, ExprList(std::move(a), std::move(b))));
}

/// The columns of the block around it that `s` refers to, as columns of that block, each once.
Result<std::vector<ExprPtr>> OuterColumns(const Query& s) {
  std::vector<ExprPtr> columns;  // of the block
  Status error;
  ForEachOuter(s, 0, [&](const Expr& e, int depth) {
    if (!error.ok()) return;
    if (depth > 0 || e.index > 1) {
      error = CannotDecorrelate("a column from two levels out", e.position,
                                "Join with that table in the subquery between.");
      return;
    }
    ExprPtr c = MakeColumn(e.relation, e.column, e.type, e.nullable, e.position);
    const auto same = [&](const ExprPtr& other) { return other->SameAs(*c); };
    if (std::none_of(columns.begin(), columns.end(), same)) columns.push_back(std::move(c));
  });
  TESSERA_TRY(error);
  return columns;
}

/// All values that `columns` of the block take: their relations, filtered by the conditions on these relations alone.
Result<std::shared_ptr<Query>> MakeDomain(const Query& block, const std::vector<ExprPtr>& columns, int position) {
  auto domain = std::make_shared<Query>();
  std::map<int, int> place;  // relation of the block -> of the domain
  // Their relations, and those that the conditions of their outer joins refer to.
  std::vector<int> relations;
  const auto add = [&](const Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kColumn && place.emplace(e.relation, static_cast<int>(relations.size())).second) {
      relations.push_back(e.relation);
    }
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  for (const ExprPtr& c : columns) add(*c, add);
  for (size_t i = 0; i < relations.size(); ++i) {
    const Relation& from = block.relations[static_cast<size_t>(relations[i])];
    for (const ExprPtr& e : from.on) {
      if (HasOuter(*e)) {
        return CannotDecorrelate("a column that an outer join fills by a condition on an enclosing query", position,
                                 "Put the outer join into a derived table.");
      }
      add(*e, add);
    }
    domain->relations.push_back(CopyRelation(from));
  }
  const auto renumber = [&](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kColumn) return nullptr;
    ExprPtr c = x.Clone();
    c->relation = place.at(x.relation);
    return c;
  };
  const auto inside = [&](const Expr& x, auto& self) -> bool {
    if (x.kind == Expr::Kind::kColumn) return place.contains(x.relation);
    if (x.kind == Expr::Kind::kOuter || x.kind == Expr::Kind::kSubquery) return false;
    return std::all_of(x.args.begin(), x.args.end(), [&](const ExprPtr& a) { return self(*a, self); });
  };
  for (Relation& r : domain->relations) {
    for (ExprPtr& e : r.on) Substitute(&e, renumber);
  }
  for (const ExprPtr& e : block.conjuncts) {
    if (!inside(*e, inside)) continue;
    domain->conjuncts.push_back(e->Clone());
    Substitute(&domain->conjuncts.back(), renumber);
  }
  for (const ExprPtr& c : columns) domain->outputs.push_back({renumber(*c), "outer"});
  domain->visible = static_cast<int>(domain->outputs.size());
  domain->distinct = true;
  return domain;
}

}  // namespace

Status CannotDecorrelate(const std::string& what, int position, const std::string& hint) {
  return Unsupported("a correlated subquery with " + what + " cannot be decorrelated", position, hint);
}

void MoveOutward(ExprPtr* e) {
  Expr& x = **e;
  if (x.kind == Expr::Kind::kOuter) {
    // A column that is still an outer one, in a condition of ON, is replaced when the block itself is unnested.
    if (--x.index == 0) x.kind = Expr::Kind::kColumn;
  }
  for (ExprPtr& a : x.args) MoveOutward(&a);
}

Result<IndependentQuery> Decorrelate(const Query& block, std::unique_ptr<Query> s, int position) {
  if (s->limit >= 0 || s->offset > 0) {
    return CannotDecorrelate("LIMIT or OFFSET", position, "Use min or max where one of several rows is wanted.");
  }
  s->outputs.resize(static_cast<size_t>(s->visible));
  IndependentQuery out;
  std::vector<ExprPtr> local, correlated;
  for (ExprPtr& e : s->conjuncts) (HasOuter(*e) ? correlated : local).push_back(std::move(e));
  s->conjuncts = std::move(local);
  std::vector<ExprPtr> outputs;
  for (Output& o : s->outputs) outputs.push_back(std::move(o.expr));
  std::vector<std::string> names;
  for (Output& o : s->outputs) names.push_back(std::move(o.name));
  s->outputs.clear();
  const bool simple = !s->grouped && !s->distinct && s->union_all.empty() && !RefersOutward(*s);
  if (simple) {
    // Conditions with outer columns move to the join; the columns that they need become outputs.
    const auto column = [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kColumn) return nullptr;
      size_t i = 0;
      while (i < s->outputs.size() && !s->outputs[i].expr->SameAs(x)) ++i;
      if (i == s->outputs.size()) s->outputs.push_back({x.Clone(), "c" + std::to_string(i)});
      ExprPtr y = SubqueryOutput(static_cast<int>(i), x.type, x.position);
      y->nullable = x.nullable;
      return y;
    };
    for (size_t i = 0; i < outputs.size(); ++i) {
      ExprPtr e = std::move(outputs[i]);
      if (!HasOuter(*e)) {
        out.outputs.push_back(SubqueryOutput(static_cast<int>(s->outputs.size()), e->type, position));
        out.outputs.back()->nullable = e->nullable;
        s->outputs.push_back({std::move(e), names[i]});
        continue;
      }
      Substitute(&e, column);
      MoveOutward(&e);
      out.outputs.push_back(std::move(e));
    }
    for (ExprPtr& e : correlated) {
      Substitute(&e, column);
      MoveOutward(&e);
      out.on.push_back(std::move(e));
    }
  } else {
    for (ExprPtr& e : correlated) s->conjuncts.push_back(std::move(e));
    for (size_t i = 0; i < outputs.size(); ++i) {
      out.outputs.push_back(SubqueryOutput(static_cast<int>(i), outputs[i]->type, position));
      s->outputs.push_back({std::move(outputs[i]), names[i]});
    }
    TESSERA_TRY(AddDomain(block, s.get(), position, &out.on));
  }
  if (s->outputs.empty()) s->outputs.push_back({MakeConstant(Value::Int(SqlType::Of(TypeId::kInteger), 1), -1), "one"});
  s->visible = static_cast<int>(s->outputs.size());
  out.query = std::move(s);
  return out;
}

Status AddDomain(const Query& block, Query* s, int position, std::vector<ExprPtr>* on) {
  TESSERA_ASSIGN(const std::vector<ExprPtr> columns, OuterColumns(*s));
  if (!s->union_all.empty()) return CannotDecorrelate("a FULL JOIN", position, "");
  TESSERA_ASSIGN(std::shared_ptr<Query> domain, MakeDomain(block, columns, position));
  const int d = static_cast<int>(s->relations.size());
  Relation relation = DerivedTable(std::move(domain));
  relation.alias = "domain";
  s->relations.push_back(std::move(relation));

  const size_t before = s->group_by.size();
  for (size_t i = 0; i < columns.size(); ++i) {
    ExprPtr own = MakeColumn(d, static_cast<int>(i), columns[i]->type, columns[i]->nullable, columns[i]->position);
    if (s->grouped) s->group_by.push_back(own->Clone());
    ExprPtr output = s->grouped ? MakeLeaf(Expr::Kind::kGroup, static_cast<int>(before + i), own->type, own->nullable)
                                : std::move(own);
    ExprPtr there = SubqueryOutput(static_cast<int>(s->outputs.size()), columns[i]->type, position);
    there->nullable = columns[i]->nullable;
    s->outputs.push_back({std::move(output), "outer"});
    AppendSame(columns[i]->Clone(), std::move(there), on);
  }
  const auto number = [&](const Expr& x) {
    size_t i = 0;
    while (columns[i]->relation != x.relation || columns[i]->column != x.column) ++i;
    return i;
  };
  const auto below = [&](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kOuter) return nullptr;
    return MakeColumn(d, static_cast<int>(number(x)), x.type, x.nullable, x.position);
  };
  const auto above = [&](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kOuter) return nullptr;
    return MakeLeaf(Expr::Kind::kGroup, static_cast<int>(before + number(x)), x.type, x.nullable);
  };
  for (Relation& r : s->relations) {
    for (ExprPtr& e : r.on) Substitute(&e, below);
  }
  for (ExprPtr& e : s->conjuncts) Substitute(&e, below);
  for (ExprPtr& e : s->group_by) Substitute(&e, below);
  for (Aggregate& a : s->aggregates) {
    if (a.argument != nullptr) Substitute(&a.argument, below);
    for (AggregateOrder& o : a.order) Substitute(&o.expr, below);
  }
  for (ExprPtr& e : s->having) Substitute(&e, above);
  for (Output& o : s->outputs) s->grouped ? Substitute(&o.expr, above) : Substitute(&o.expr, below);
  return Status::Ok();
}

}  // namespace tessera
