#include "compiler/unnest.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "compiler/expr_builder.h"
#include "compiler/expression_binder.h"
#include "compiler/fold.h"
#include "compiler/query_walk.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

/// Calls f(Expr&, depth) for every column of a block around `q`, where depth is how many blocks lie between. Derived
/// tables have none: the binder refuses them.
template <class Q, class F>
void ForEachOuter(Q& q, int depth, const F& f) {
  const auto walk = [&](auto& self, auto& e) -> void {
    if (e.kind == Expr::Kind::kOuter && e.index > depth) f(e, depth);
    if (e.kind == Expr::Kind::kSubquery) ForEachOuter(*e.subquery->query, depth + 1, f);
    for (auto& a : e.args) self(self, *a);
  };
  ForEachRoot(q, [&](auto& e) { walk(walk, *e); });
  for (auto& more : q.union_all) ForEachOuter(*more, depth, f);
}

bool HasOuter(const Expr& e) {
  return e.kind == Expr::Kind::kOuter ||
         std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return HasOuter(*a); });
}
bool HasColumn(const Expr& e) {
  return e.kind == Expr::Kind::kColumn ||
         std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return HasColumn(*a); });
}

Relation CopyRelation(const Relation& from) {
  Relation r;
  r.alias = from.alias;
  r.table = from.table;
  r.query = from.query;
  r.column_names = from.column_names;
  r.column_types = from.column_types;
  r.join = from.join;
  for (const ExprPtr& e : from.on) r.on.push_back(e->Clone());
  r.unique = from.unique;
  r.single = from.single;
  return r;
}

/// A copy of the block; derived tables are shared, so that they run once.
std::unique_ptr<Query> CopyQuery(const Query& from) {
  auto q = std::make_unique<Query>();
  for (const Relation& r : from.relations) q->relations.push_back(CopyRelation(r));
  const auto copy = [](const std::vector<ExprPtr>& list) {
    std::vector<ExprPtr> out;
    for (const ExprPtr& e : list) out.push_back(e->Clone());
    return out;
  };
  q->conjuncts = copy(from.conjuncts);
  q->grouped = from.grouped;
  q->group_by = copy(from.group_by);
  for (const Aggregate& a : from.aggregates) {
    Aggregate b;
    b.function = a.function;
    if (a.argument != nullptr) b.argument = a.argument->Clone();
    b.distinct = a.distinct;
    b.type = a.type;
    b.position = a.position;
    q->aggregates.push_back(std::move(b));
  }
  q->having = copy(from.having);
  for (const Output& o : from.outputs) q->outputs.push_back({o.expr->Clone(), o.name});
  q->visible = from.visible;
  q->distinct = from.distinct;
  q->order_by = from.order_by;
  q->limit = from.limit;
  q->offset = from.offset;
  for (const auto& more : from.union_all) q->union_all.push_back(CopyQuery(*more));
  return q;
}

ExprPtr MakeLeaf(Expr::Kind kind, int index, const SqlType& type, bool nullable) {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->index = index;
  e->type = type;
  e->nullable = nullable;
  return e;
}
ExprPtr MakeTest(Function f, ExprPtr x) {
  const int position = x->position;
  return MakeFunction(f, kBoolean, position, ExprList(std::move(x)));
}
bool IsCount(const Aggregate& a) {
  return a.function == AggregateFunction::kCount || a.function == AggregateFunction::kCountStar;
}

Relation DerivedTable(std::shared_ptr<Query> query) {
  Relation r;
  for (int i = 0; i < query->visible; ++i) {
    r.column_names.push_back(query->outputs[static_cast<size_t>(i)].name);
    r.column_types.push_back(query->outputs[static_cast<size_t>(i)].expr->type);
  }
  r.query = std::move(query);
  return r;
}

Status CannotDecorrelate(const std::string& what, int position, const std::string& hint) {
  return Unsupported("a correlated subquery with " + what + " cannot be decorrelated", position, hint);
}

/// The value that stands for NULL in a key of a join by IS NOT DISTINCT FROM.
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

/// Appends a = b, or both NULL, as equalities that can be keys of a join.
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

/// A subquery made independent of the block around it.
struct Independent {
  std::shared_ptr<Query> query;
  /// What must hold between a row of the block and one of `query`: over columns of the block and columns
  /// (kSubqueryColumn, i), output i of `query`.
  std::vector<ExprPtr> on;
  /// What takes the place of the outputs that it was asked for, in the same terms.
  std::vector<ExprPtr> outputs;
};

class Unnester {
 public:
  explicit Unnester(Query* q) : q_(*q) {}

  Status Run() {
    const size_t given = q_.relations.size();
    std::vector<ExprPtr> conjuncts = std::move(q_.conjuncts);
    q_.conjuncts.clear();
    // Plain conditions first: they bound the values for which subqueries have to be run.
    std::stable_partition(conjuncts.begin(), conjuncts.end(),
                          [](const ExprPtr& e) { return FindSubquery(*e) == nullptr; });
    for (ExprPtr& e : conjuncts) TESSERA_TRY(Conjunct(std::move(e)));
    // Those in a condition of ON are over what is there without the relation: the binder has seen to that.
    for (size_t r = 0; r < given; ++r) {
      std::vector<ExprPtr> on = std::move(q_.relations[r].on);
      for (ExprPtr& e : on) TESSERA_TRY(Replace(&e));
      q_.relations[r].on = std::move(on);
    }
    for (ExprPtr& e : q_.group_by) TESSERA_TRY(Replace(&e));
    for (Aggregate& a : q_.aggregates) {
      if (a.argument != nullptr) TESSERA_TRY(Replace(&a.argument));
    }
    for (Output& o : q_.outputs) TESSERA_TRY(Replace(&o.expr));
    return Status::Ok();
  }

 private:
  static ExprPtr FromSubquery(int i, const SqlType& type, int position) {
    return MakeColumn(kSubqueryColumn, i, type, true, position);
  }

  Status Conjunct(ExprPtr e) {
    bool truth = true;
    while (IsFunction(*e, Function::kNot)) {
      ExprPtr inner = std::move(e->args[0]);
      e = std::move(inner);
      truth = !truth;
    }
    if (e->kind != Expr::Kind::kSubquery || e->subquery->kind == Subquery::Kind::kScalar) {
      if (!truth) e = MakeTest(Function::kNot, std::move(e));
      TESSERA_TRY(Replace(&e));
      SplitConjuncts(std::move(e), &q_.conjuncts);
      return Status::Ok();
    }
    for (ExprPtr& a : e->args) TESSERA_TRY(Replace(&a));
    const Subquery& s = *e->subquery;
    const JoinKind kind = truth ? JoinKind::kSemi : JoinKind::kAnti;
    if (s.kind == Subquery::Kind::kExists) {
      TESSERA_ASSIGN(const int always, AlwaysExists(*s.query));
      if (always >= 0) {
        if ((always != 0) != truth) SplitConjuncts(MakeBoolean(false, e->position), &q_.conjuncts);
        return Status::Ok();
      }
      return AddMatch(kind, s, {}, e->position).status();
    }
    TESSERA_ASSIGN(ExprPtr only, CompareWithOnlyRow(*e));
    if (only != nullptr) {
      SplitConjuncts(truth ? std::move(only) : MakeTest(Function::kNot, std::move(only)), &q_.conjuncts);
      return Status::Ok();
    }
    TESSERA_ASSIGN(ExprPtr extreme, CompareWithExtreme(*e));
    if (extreme != nullptr) {
      // Without a value to compare with it is NULL.
      if (!truth) {
        extreme =
            MakeFunction(Function::kCase, kBoolean, e->position,
                         ExprList(std::move(extreme), MakeBoolean(false, e->position), MakeBoolean(true, e->position)));
      }
      SplitConjuncts(std::move(extreme), &q_.conjuncts);
    } else {
      TESSERA_TRY(AddMatch(kind, s, ExprList(e->args[0]->Clone()), e->position).status());
    }
    if (truth || !e->nullable) return Status::Ok();
    // Neither must the comparison be unknown for any row.
    if (e->args.size() < 2) {
      return AddMatch(kind, s, ExprList(MakeTest(Function::kIsNull, e->args[0]->Clone())), e->position).status();
    }
    const Output& y = s.query->outputs[0];
    if (y.expr->nullable) {
      ExprPtr test = MakeTest(Function::kIsNull, FromSubquery(0, y.expr->type, e->position));
      TESSERA_TRY(AddMatch(kind, s, ExprList(std::move(test)), e->position).status());
    }
    if (e->args[1]->nullable) {
      TESSERA_ASSIGN(ExprPtr some, Mark(s, {}, e->position));
      ExprPtr either = MakeFunction(
          Function::kOr, kBoolean, e->position,
          ExprList(MakeTest(Function::kIsNotNull, e->args[1]->Clone()), MakeTest(Function::kNot, std::move(some))));
      SplitConjuncts(std::move(either), &q_.conjuncts);
    }
    return Status::Ok();
  }

  /// Replaces the subqueries in `e` by their values.
  Status Replace(ExprPtr* e) {
    for (ExprPtr& a : (*e)->args) TESSERA_TRY(Replace(&a));
    if ((*e)->kind != Expr::Kind::kSubquery) return Status::Ok();
    const auto known = values_.find((*e)->subquery.get());
    if (known != values_.end()) {
      *e = known->second->Clone();
      return Status::Ok();
    }
    const std::shared_ptr<Subquery> s = (*e)->subquery;
    ExprPtr value;
    switch (s->kind) {
      case Subquery::Kind::kScalar: {
        TESSERA_ASSIGN(value, Scalar(*s, (*e)->position));
        break;
      }
      case Subquery::Kind::kExists: {
        TESSERA_ASSIGN(const int always, AlwaysExists(*s->query));
        if (always >= 0) {
          value = MakeBoolean(always != 0, (*e)->position);
          break;
        }
        TESSERA_ASSIGN(value, Mark(*s, {}, (*e)->position));
        break;
      }
      case Subquery::Kind::kAny: {
        TESSERA_ASSIGN(value, AnyValueOf(**e));
        break;
      }
    }
    kept_.push_back(s);  // its address stays taken
    values_[s.get()] = value->Clone();
    *e = std::move(value);
    return Status::Ok();
  }

  /// x op ANY (...) with all three values: true where a row compares as true, else NULL where one compares as unknown.
  Result<ExprPtr> AnyValueOf(const Expr& e) {
    const Subquery& s = *e.subquery;
    const int position = e.position;
    TESSERA_ASSIGN(ExprPtr only, CompareWithOnlyRow(e));
    if (only != nullptr) return only;
    TESSERA_ASSIGN(ExprPtr found, CompareWithExtreme(e));
    if (found == nullptr) {
      TESSERA_ASSIGN(found, Mark(s, ExprList(e.args[0]->Clone()), position));
    } else if (!e.nullable) {
      return MakeFunction(Function::kCase, kBoolean, position,
                          ExprList(std::move(found), MakeBoolean(true, position), MakeBoolean(false, position)));
    }
    if (!e.nullable) return found;
    std::vector<ExprPtr> unknown;
    if (e.args.size() < 2) {
      TESSERA_ASSIGN(ExprPtr m, Mark(s, ExprList(MakeTest(Function::kIsNull, e.args[0]->Clone())), position));
      unknown.push_back(std::move(m));
    } else {
      const Expr& y = *s.query->outputs[0].expr;
      if (y.nullable) {
        TESSERA_ASSIGN(ExprPtr m,
                       Mark(s, ExprList(MakeTest(Function::kIsNull, FromSubquery(0, y.type, position))), position));
        unknown.push_back(std::move(m));
      }
      if (e.args[1]->nullable) {
        TESSERA_ASSIGN(ExprPtr some, Mark(s, {}, position));
        unknown.push_back(MakeFunction(Function::kAnd, kBoolean, position,
                                       ExprList(MakeTest(Function::kIsNull, e.args[1]->Clone()), std::move(some))));
      }
    }
    std::vector<ExprPtr> args = ExprList(std::move(found), MakeBoolean(true, position));
    for (ExprPtr& u : unknown) {
      args.push_back(std::move(u));
      args.push_back(MakeNull(kBoolean, position));
    }
    args.push_back(MakeBoolean(false, position));
    return MakeFunction(Function::kCase, kBoolean, position, std::move(args));
  }

  /// x op ANY (SELECT max(y) ...) is x op (SELECT max(y) ...): an aggregate without GROUP BY has one row. nullptr if
  /// the subquery is not of that kind.
  Result<ExprPtr> CompareWithOnlyRow(const Expr& e) {
    const Query& query = *e.subquery->query;
    const bool one_row = query.grouped && query.group_by.empty() && query.having.empty() && query.visible == 1;
    if (!one_row || query.limit >= 0 || query.offset > 0) return ExprPtr();
    TESSERA_ASSIGN(const ExprPtr value, Scalar(*e.subquery, e.position));
    ExprPtr out = e.args[0]->Clone();
    Substitute(&out, [&](const Expr& x) -> ExprPtr {
      return x.kind == Expr::Kind::kColumn && x.relation == kSubqueryColumn ? value->Clone() : nullptr;
    });
    return out;
  }

  /// x < ANY (SELECT y ...) is x < (SELECT max(y) ...), and so on: true where a row compares as true, else false or
  /// NULL. Neither a loop over all pairs nor a sort is needed then. nullptr if the comparison or the subquery is not of
  /// that kind.
  Result<ExprPtr> CompareWithExtreme(const Expr& e) {
    const Expr& comparison = *e.args[0];
    const bool ordered = comparison.kind == Expr::Kind::kFunction && comparison.function >= Function::kLt &&
                         comparison.function <= Function::kGe;
    const Query& query = *e.subquery->query;
    const bool plain =
        !query.grouped && !query.distinct && query.limit < 0 && query.offset == 0 && query.union_all.empty();
    if (!ordered || e.args.size() < 2 || (!plain && RefersOutward(query))) return ExprPtr();
    const auto has_y = [](const Expr& x, auto& self) -> bool {
      if (x.kind == Expr::Kind::kColumn && x.relation == kSubqueryColumn) return true;
      return std::any_of(x.args.begin(), x.args.end(), [&](const ExprPtr& a) { return self(*a, self); });
    };
    const bool y_right = has_y(*comparison.args[1], has_y);
    if (y_right == has_y(*comparison.args[0], has_y)) return ExprPtr();
    const bool less = comparison.function == Function::kLt || comparison.function == Function::kLe;
    Aggregate extreme;
    extreme.function = less == y_right ? AggregateFunction::kMax : AggregateFunction::kMin;
    extreme.type = query.outputs[0].expr->type;
    extreme.position = e.position;
    Subquery scalar;
    std::shared_ptr<Query> of;
    if (plain) {
      of = CopyQuery(query);
      of->order_by.clear();
      extreme.argument = std::move(of->outputs[0].expr);
    } else {
      of = std::make_shared<Query>();
      of->relations.push_back(DerivedTable(e.subquery->query));
      of->relations.back().alias = "subquery";
      extreme.argument = MakeColumn(0, 0, extreme.type, true, e.position);
    }
    of->grouped = true;
    of->outputs.clear();
    of->outputs.push_back({MakeLeaf(Expr::Kind::kAggregate, 0, extreme.type, true), "extreme"});
    of->visible = 1;
    of->aggregates.push_back(std::move(extreme));
    scalar.query = std::move(of);
    TESSERA_ASSIGN(const ExprPtr value, Scalar(scalar, e.position));
    ExprPtr out = comparison.Clone();
    Substitute(&out, [&](const Expr& x) -> ExprPtr {
      return x.kind == Expr::Kind::kColumn && x.relation == kSubqueryColumn ? value->Clone() : nullptr;
    });
    out->nullable = true;
    return out;
  }

  /// Whether EXISTS is decided without running it: 1 it has a row, 0 it has none, -1 it must be run.
  Result<int> AlwaysExists(const Query& s) {
    if (s.limit == 0) return 0;
    const bool one_row = s.grouped && s.group_by.empty() && s.having.empty();
    if (one_row) return s.offset == 0 ? 1 : 0;
    return -1;
  }

  Result<ExprPtr> Mark(const Subquery& s, std::vector<ExprPtr> match, int position) {
    TESSERA_ASSIGN(const int r, AddMatch(JoinKind::kMark, s, std::move(match), position));
    return MakeColumn(r, kMarkColumn, kBoolean, false, position);
  }

  /// Adds the relation of a subquery, joined by `match`, which is over columns of the block and (kSubqueryColumn, i).
  Result<int> AddMatch(JoinKind kind, const Subquery& s, std::vector<ExprPtr> match, int position) {
    const Query& query = *s.query;
    Independent i;
    if (!RefersOutward(query)) {
      i.query = s.query;
      if (match.empty() && query.limit < 0 && query.offset == 0) {  // one row is as good as many
        i.query = CopyQuery(query);
        i.query->order_by.clear();
        if (!i.query->grouped && !i.query->distinct && i.query->union_all.empty()) i.query->limit = 1;
      }
      for (int k = 0; k < query.visible; ++k)
        i.outputs.push_back(FromSubquery(k, query.outputs[static_cast<size_t>(k)].expr->type, position));
    } else {
      auto copy = CopyQuery(query);
      if (s.kind == Subquery::Kind::kExists && copy->limit > 0 && copy->offset == 0) copy->limit = -1;
      if (copy->limit < 0 && copy->offset == 0) {
        copy->order_by.clear();
        copy->distinct = false;
        // What EXISTS selects nobody looks at: without it a scan can be joined as the table that it is.
        if (s.kind == Subquery::Kind::kExists && !copy->grouped && copy->union_all.empty()) copy->visible = 0;
      }
      if (copy->grouped && copy->group_by.empty()) {
        return CannotDecorrelate("HAVING, or a row of aggregates, and no GROUP BY", position,
                                 "Compare with the subquery itself: x = (SELECT ...).");
      }
      TESSERA_ASSIGN(i, Decorrelate(std::move(copy), position));
    }
    for (ExprPtr& e : match) {
      Substitute(&e, [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn || x.relation != kSubqueryColumn) return nullptr;
        ExprPtr y = i.outputs[static_cast<size_t>(x.column)]->Clone();
        y->nullable = x.nullable;
        return y;
      });
      i.on.push_back(std::move(e));
    }
    TESSERA_ASSIGN(const Placed placed, Place(kind, std::move(i.query), std::move(i.on), position));
    return placed.relation;
  }

  /// The value of a scalar subquery.
  Result<ExprPtr> Scalar(const Subquery& s, int position) {
    const Query& query = *s.query;
    const bool aggregate = query.grouped && query.group_by.empty();
    if (!RefersOutward(query)) {
      TESSERA_ASSIGN(const Placed placed, Place(JoinKind::kLeft, s.query, {}, position));
      Relation& r = q_.relations[static_cast<size_t>(placed.relation)];
      r.unique = (aggregate || query.limit == 0 || query.limit == 1) && query.union_all.empty();
      r.single = !r.unique;
      return placed.Column(0, query.outputs[0].expr->type, position);
    }
    if (query.limit >= 0 || query.offset > 0) {
      if (!(aggregate && query.limit > 0 && query.offset == 0)) {
        return CannotDecorrelate("LIMIT or OFFSET", position, "Use min or max where one of several rows is wanted.");
      }
    }
    auto copy = CopyQuery(query);
    copy->order_by.clear();
    copy->outputs.resize(static_cast<size_t>(copy->visible));
    copy->limit = -1;
    if (aggregate) return ScalarAggregate(std::move(copy), position);
    // What its value is must be known from a row: a constant would be there where there is none.
    const bool bare = copy->outputs[0].expr->kind == Expr::Kind::kColumn;
    const bool outward = HasOuter(*copy->outputs[0].expr);
    if (!bare && outward && !copy->grouped) {
      copy->outputs.push_back({MakeBoolean(true, position), ""});
      copy->visible = 2;
    }
    const bool marked = copy->visible == 2;
    TESSERA_ASSIGN(Independent i, Decorrelate(std::move(copy), position));
    TESSERA_ASSIGN(const Placed placed, Place(JoinKind::kLeft, std::move(i.query), std::move(i.on), position));
    q_.relations[static_cast<size_t>(placed.relation)].single = true;
    ExprPtr value = placed.Resolve(std::move(i.outputs[0]));
    if (!marked) return value;
    ExprPtr there = MakeTest(Function::kIsNotNull, placed.Resolve(std::move(i.outputs[1])));
    const SqlType type = value->type;
    return MakeFunction(Function::kCase, type, position,
                        ExprList(std::move(there), std::move(value), MakeNull(type, position)));
  }

  /// (SELECT f(agg(x), ...) FROM ... WHERE correlated): the aggregates by key, joined; f where they are used, because
  /// it has a value where there is no row to aggregate, too.
  Result<ExprPtr> ScalarAggregate(std::unique_ptr<Query> s, int position) {
    ExprPtr value = std::move(s->outputs[0].expr);
    std::vector<ExprPtr> having = std::move(s->having);
    s->having.clear();
    s->outputs.clear();
    s->visible = 0;
    s->distinct = false;
    std::vector<ExprPtr> on;
    std::vector<ExprPtr> local, correlated;
    for (ExprPtr& e : s->conjuncts) (HasOuter(*e) ? correlated : local).push_back(std::move(e));
    s->conjuncts = std::move(local);
    // Equalities between an expression of the subquery and one of the block.
    bool equalities = true;
    for (const ExprPtr& e : correlated) {
      const auto is_key = [&](size_t inner) {
        return HasColumn(*e->args[inner]) && !HasOuter(*e->args[inner]) && !HasColumn(*e->args[1 - inner]);
      };
      equalities = equalities && IsFunction(*e, Function::kEq) && (is_key(0) || is_key(1));
    }
    if (equalities && !RefersOutward(*s)) {
      for (ExprPtr& e : correlated) {
        const size_t inner = HasOuter(*e->args[0]) ? 1 : 0;
        ExprPtr key = std::move(e->args[inner]), outer = std::move(e->args[1 - inner]);
        size_t k = 0;
        while (k < s->group_by.size() && !s->group_by[k]->SameAs(*key)) ++k;
        ExprPtr column = FromSubquery(static_cast<int>(k), key->type, e->position);
        if (k == s->group_by.size()) {
          s->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, static_cast<int>(k), key->type, key->nullable), "key"});
          s->group_by.push_back(std::move(key));
        }
        Outward(&outer);
        on.push_back(MakeFunction(Function::kEq, kBoolean, e->position, ExprList(std::move(outer), std::move(column))));
      }
    } else {
      for (ExprPtr& e : correlated) s->conjuncts.push_back(std::move(e));
      TESSERA_TRY(AddDomain(s.get(), position, &on));
    }
    const int keys = static_cast<int>(s->outputs.size());
    for (size_t a = 0; a < s->aggregates.size(); ++a) {
      const bool nullable = !IsCount(s->aggregates[a]);
      s->outputs.push_back(
          {MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(a), s->aggregates[a].type, nullable), "aggregate"});
    }
    s->visible = static_cast<int>(s->outputs.size());
    std::vector<bool> counts;
    for (const Aggregate& a : s->aggregates) counts.push_back(IsCount(a));
    TESSERA_ASSIGN(const Placed placed, Place(JoinKind::kLeft, std::move(s), std::move(on), position));
    q_.relations[static_cast<size_t>(placed.relation)].unique = true;
    const auto aggregates = [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kAggregate) return nullptr;
      ExprPtr column = placed.Column(keys + x.index, x.type, x.position);
      if (!counts[static_cast<size_t>(x.index)]) return column;
      ExprPtr there = MakeTest(Function::kIsNotNull, column->Clone());
      ExprPtr count =
          MakeFunction(Function::kCase, x.type, x.position,
                       ExprList(std::move(there), std::move(column), MakeConstant(Value::Int(x.type, 0), x.position)));
      count->nullable = false;
      return count;
    };
    Substitute(&value, aggregates);
    Outward(&value);
    value->nullable = true;
    if (having.empty()) return value;
    for (ExprPtr& h : having) {
      Substitute(&h, aggregates);
      Outward(&h);
    }
    ExprPtr all = std::move(having[0]);
    if (having.size() > 1) {
      having[0] = std::move(all);
      all = MakeFunction(Function::kAnd, kBoolean, position, std::move(having));
    }
    const SqlType type = value->type;
    return MakeFunction(Function::kCase, type, position,
                        ExprList(std::move(all), std::move(value), MakeNull(type, position)));
  }

  /// Makes `s` independent, with all of its visible outputs in Independent::outputs.
  Result<Independent> Decorrelate(std::unique_ptr<Query> s, int position) {
    if (s->limit >= 0 || s->offset > 0) {
      return CannotDecorrelate("LIMIT or OFFSET", position, "Use min or max where one of several rows is wanted.");
    }
    s->outputs.resize(static_cast<size_t>(s->visible));
    Independent out;
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
        ExprPtr y = FromSubquery(static_cast<int>(i), x.type, x.position);
        y->nullable = x.nullable;
        return y;
      };
      for (size_t i = 0; i < outputs.size(); ++i) {
        ExprPtr e = std::move(outputs[i]);
        if (!HasOuter(*e)) {
          out.outputs.push_back(FromSubquery(static_cast<int>(s->outputs.size()), e->type, position));
          out.outputs.back()->nullable = e->nullable;
          s->outputs.push_back({std::move(e), names[i]});
          continue;
        }
        Substitute(&e, column);
        Outward(&e);
        out.outputs.push_back(std::move(e));
      }
      for (ExprPtr& e : correlated) {
        Substitute(&e, column);
        Outward(&e);
        out.on.push_back(std::move(e));
      }
    } else {
      for (ExprPtr& e : correlated) s->conjuncts.push_back(std::move(e));
      for (size_t i = 0; i < outputs.size(); ++i) {
        out.outputs.push_back(FromSubquery(static_cast<int>(i), outputs[i]->type, position));
        s->outputs.push_back({std::move(outputs[i]), names[i]});
      }
      TESSERA_TRY(AddDomain(s.get(), position, &out.on));
    }
    if (s->outputs.empty())
      s->outputs.push_back({MakeConstant(Value::Int(SqlType::Of(TypeId::kInteger), 1), -1), "one"});
    s->visible = static_cast<int>(s->outputs.size());
    out.query = std::move(s);
    return out;
  }

  /// Outer columns of a subquery are columns of the block, or outer columns of it.
  static void Outward(ExprPtr* e) {
    Expr& x = **e;
    if (x.kind == Expr::Kind::kOuter) {
      // In a condition of ON it is removed when the block itself is unnested.
      if (--x.index == 0) x.kind = Expr::Kind::kColumn;
    }
    for (ExprPtr& a : x.args) Outward(&a);
  }

  /// Adds to `s` the relation of all values that its outer columns take in the block, which replaces them; adds their
  /// columns behind its outputs and to its grouping, and to `on` that they are those of a row of the block.
  Status AddDomain(Query* s, int position, std::vector<ExprPtr>* on) {
    std::vector<ExprPtr> columns;  // of the block
    Status error;
    ForEachOuter(*s, 0, [&](const Expr& e, int depth) {
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
    if (!s->union_all.empty()) return CannotDecorrelate("a FULL JOIN", position, "");
    auto domain = std::make_shared<Query>();
    std::map<int, int> place;  // relation of the block -> of the domain
    // Their relations, and what those are joined by, if that is not an inner join.
    std::vector<int> relations;
    const auto add = [&](const Expr& e, auto& self) -> void {
      if (e.kind == Expr::Kind::kColumn && place.emplace(e.relation, static_cast<int>(relations.size())).second) {
        relations.push_back(e.relation);
      }
      for (const ExprPtr& a : e.args) self(*a, self);
    };
    for (const ExprPtr& c : columns) add(*c, add);
    for (size_t i = 0; i < relations.size(); ++i) {
      const Relation& from = q_.relations[static_cast<size_t>(relations[i])];
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
    for (const ExprPtr& e : q_.conjuncts) {
      if (!inside(*e, inside)) continue;
      domain->conjuncts.push_back(e->Clone());
      Substitute(&domain->conjuncts.back(), renumber);
    }
    for (const ExprPtr& c : columns) domain->outputs.push_back({renumber(*c), "outer"});
    domain->visible = static_cast<int>(domain->outputs.size());
    domain->distinct = true;
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
      ExprPtr there = FromSubquery(static_cast<int>(s->outputs.size()), columns[i]->type, position);
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
    }
    for (ExprPtr& e : s->having) Substitute(&e, above);
    for (Output& o : s->outputs) s->grouped ? Substitute(&o.expr, above) : Substitute(&o.expr, below);
    return Status::Ok();
  }

  /// Where a subquery's outputs are in the block.
  struct Placed {
    int relation = 0;
    bool nullable = false;
    std::vector<int> columns;  ///< not empty: of which columns of a stored table the outputs are

    ExprPtr Column(int output, const SqlType& type, int position) const {
      return MakeColumn(relation, columns.empty() ? output : columns[static_cast<size_t>(output)], type, nullable,
                        position);
    }
    /// (kSubqueryColumn, i) as a column of the block.
    ExprPtr Resolve(ExprPtr e) const {
      Substitute(&e, [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn || x.relation != kSubqueryColumn) return nullptr;
        ExprPtr c = Column(x.column, x.type, x.position);
        c->nullable = x.nullable || nullable;
        return c;
      });
      return e;
    }
  };

  /// Adds the relation of an independent subquery. One that only filters a stored table is that table: its scan is the
  /// build side, without an intermediate result.
  Result<Placed> Place(JoinKind kind, std::shared_ptr<Query> query, std::vector<ExprPtr> on, int position) {
    Placed placed;
    placed.relation = static_cast<int>(q_.relations.size());
    placed.nullable = kind == JoinKind::kLeft;
    if (q_.relations.size() >= 64)
      return Unsupported("a query of more than 64 tables and subqueries is not supported", position);
    const bool plain = !query->grouped && !query->distinct && query->limit < 0 && query->offset == 0 &&
                       query->union_all.empty() && query->relations.size() == 1 &&
                       query->relations[0].join == JoinKind::kInner && query->relations[0].table != nullptr &&
                       std::all_of(query->outputs.begin(), query->outputs.end(),
                                   [](const Output& o) { return o.expr->kind == Expr::Kind::kColumn; });
    Relation relation;
    if (plain) {
      relation = CopyRelation(query->relations[0]);
      for (const Output& o : query->outputs) placed.columns.push_back(o.expr->column);
      for (const ExprPtr& e : query->conjuncts) {
        relation.on.push_back(e->Clone());
        Substitute(&relation.on.back(), [&](const Expr& x) -> ExprPtr {
          if (x.kind != Expr::Kind::kColumn) return nullptr;
          ExprPtr c = x.Clone();
          c->relation = placed.relation;
          return c;
        });
      }
    } else {
      relation = DerivedTable(std::move(query));
      relation.alias = "subquery";
    }
    relation.join = kind;
    const bool nullable = placed.nullable;
    placed.nullable = false;  // within the condition a row is there
    for (ExprPtr& e : on) SplitConjuncts(placed.Resolve(std::move(e)), &relation.on);
    placed.nullable = nullable;
    q_.relations.push_back(std::move(relation));
    return placed;
  }

  Query& q_;
  std::map<const Subquery*, ExprPtr> values_;
  std::vector<std::shared_ptr<Subquery>> kept_;
};

Status UnnestBlock(Query* query);

/// Subqueries above a grouping: the grouping becomes a derived table, and what is above it a block of its own.
Status SplitGrouping(Query* q) {
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
        if (outer.index != depth + 1 || !error.ok()) return;
        for (int i = 0; i < keys; ++i) {
          const Expr& key = *core->group_by[static_cast<size_t>(i)];
          if (key.kind != Expr::Kind::kColumn || key.relation != outer.relation || key.column != outer.column) continue;
          outer.relation = 0;
          outer.column = i;
          return;
        }
        const Relation& r = core->relations[static_cast<size_t>(outer.relation)];
        error =
            SqlError("subquery uses ungrouped column \"" + r.alias + "." +
                         r.column_names[static_cast<size_t>(outer.column)] + "\" from outer query",
                     outer.position, "Add it to GROUP BY, or use it in an aggregate function outside of the subquery.");
      });
    };
    walk(**root, walk);
  };
  for (ExprPtr& e : q->conjuncts) move(&e);
  for (Output& o : q->outputs) move(&o.expr);
  TESSERA_TRY(error);
  TESSERA_TRY(UnnestBlock(core.get()));
  Relation relation = DerivedTable(std::move(core));
  relation.alias = "groups";
  q->relations.push_back(std::move(relation));
  return Status::Ok();
}

/// Replaces the subqueries of one block. REQUIRES: those of the blocks inside of it have been replaced.
Status UnnestBlock(Query* query) {
  bool any = false;
  ForEachRoot(*query, [&](const ExprPtr& e) { any = any || FindSubquery(*e) != nullptr; });
  if (!any) return Status::Ok();
  bool above = false;
  for (const ExprPtr& e : query->having) above = above || FindSubquery(*e) != nullptr;
  for (const Output& o : query->outputs) above = above || FindSubquery(*o.expr) != nullptr;
  if (query->grouped && above) TESSERA_TRY(SplitGrouping(query));
  return Unnester(query).Run();
}

Status UnnestTree(Query* query, std::set<const Query*>* done);

/// The blocks of the subqueries in `e`.
Status UnnestInside(const Expr& e, std::set<const Query*>* done) {
  if (e.kind == Expr::Kind::kSubquery) TESSERA_TRY(UnnestTree(e.subquery->query.get(), done));
  for (const ExprPtr& a : e.args) TESSERA_TRY(UnnestInside(*a, done));
  return Status::Ok();
}

/// `done`: relations may share a block, and copies of an expression share a subquery.
Status UnnestTree(Query* query, std::set<const Query*>* done) {
  if (!done->insert(query).second) return Status::Ok();
  for (const Relation& r : query->relations) {
    if (r.query != nullptr) TESSERA_TRY(UnnestTree(r.query.get(), done));
  }
  Status status;
  ForEachRoot(*query, [&](const ExprPtr& e) {
    if (status.ok()) status = UnnestInside(*e, done);
  });
  TESSERA_TRY(status);
  for (const auto& more : query->union_all) TESSERA_TRY(UnnestTree(more.get(), done));
  return UnnestBlock(query);
}

}  // namespace

void ForEachColumnOfBlock(Expr& e, const std::function<void(Expr&)>& f) {
  if (e.kind == Expr::Kind::kColumn && e.relation != kSubqueryColumn) f(e);
  for (const ExprPtr& a : e.args) ForEachColumnOfBlock(*a, f);
  if (e.kind != Expr::Kind::kSubquery) return;
  ForEachOuter(*e.subquery->query, 0, [&](Expr& outer, int depth) {
    if (outer.index == depth + 1) f(outer);
  });
}

const Expr* FindSubquery(const Expr& e) {
  if (e.kind == Expr::Kind::kSubquery) return &e;
  for (const ExprPtr& a : e.args) {
    if (const Expr* found = FindSubquery(*a)) return found;
  }
  return nullptr;
}

bool RefersOutward(const Query& query) {
  bool found = false;
  ForEachOuter(query, 0, [&](const Expr&, int) { found = true; });
  return found;
}

Status Unnest(Query* query) {
  std::set<const Query*> done;
  return UnnestTree(query, &done);
}

}  // namespace tessera
