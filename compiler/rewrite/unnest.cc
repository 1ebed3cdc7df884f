#include "compiler/rewrite/unnest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/split_grouping.h"
#include "compiler/query/correlation.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/rewrite/decorrelate.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

class Unnester {
 public:
  explicit Unnester(Query* q) : q_(*q) {}

  Status Run() {
    const size_t given = q_.relations.size();
    // The relations come first: the values of outer columns are made of them, with their conditions of ON. Subqueries in
    // such a condition do not refer to the relation itself: the binder makes them a filter of it.
    for (size_t r = 0; r < given; ++r) {
      if (q_.relations[r].correlated) TESSERA_TRY(Lateral(r));
      std::vector<ExprPtr> on = std::move(q_.relations[r].on);
      for (ExprPtr& e : on) TESSERA_TRY(Replace(&e));
      q_.relations[r].on = std::move(on);
    }
    std::vector<ExprPtr> conjuncts = std::move(q_.conjuncts);
    q_.conjuncts.clear();
    // Conditions without subqueries first: they bound the values for which subqueries are run.
    std::stable_partition(conjuncts.begin(), conjuncts.end(),
                          [](const ExprPtr& e) { return FindSubquery(*e) == nullptr; });
    for (ExprPtr& e : conjuncts) TESSERA_TRY(Conjunct(std::move(e)));
    for (ExprPtr& e : q_.group_by) TESSERA_TRY(Replace(&e));
    for (Aggregate& a : q_.aggregates) {
      if (a.argument != nullptr) TESSERA_TRY(Replace(&a.argument));
      for (AggregateOrder& o : a.order) TESSERA_TRY(Replace(&o.expr));
    }
    for (Output& o : q_.outputs) TESSERA_TRY(Replace(&o.expr));
    return Status::Ok();
  }

 private:
  /// A derived table that refers to columns of its own block is joined by the conditions that make it independent.
  Status Lateral(size_t r) {
    const Query& query = *q_.relations[r].query;
    if (!RefersToNext(query)) return Status::Ok();
    int position = -1;
    ForEachOuter(query, 0, [&](const Expr& e, int) { position = position < 0 ? e.position : position; });
    TESSERA_ASSIGN(IndependentQuery i, Decorrelate(q_, CopyQuery(query), position, true));
    Relation& relation = q_.relations[r];
    for (size_t c = relation.column_names.size(); c < static_cast<size_t>(i.query->visible); ++c) {
      relation.column_names.push_back(i.query->outputs[c].name);
      relation.column_types.push_back(i.query->outputs[c].expr->type);
    }
    relation.correlated = RefersOutward(*i.query);
    relation.query = std::move(i.query);
    std::vector<ExprPtr>& on = relation.join == JoinKind::kInner ? q_.conjuncts : relation.on;
    for (ExprPtr& e : i.on) {
      Substitute(&e, [&](const Expr& x) -> ExprPtr {
        if (!IsSubqueryOutput(x)) return nullptr;
        return MakeColumn(static_cast<int>(r), x.column, x.type, x.nullable, x.position);
      });
      SplitConjuncts(std::move(e), &on);
    }
    return Status::Ok();
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
      // Without a value to compare with, the result is NULL.
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
    // Nor may the comparison be unknown for any row.
    if (e->args.size() < 2) {
      return AddMatch(kind, s, ExprList(MakeTest(Function::kIsNull, e->args[0]->Clone())), e->position).status();
    }
    const Output& y = s.query->outputs[0];
    if (y.expr->nullable) {
      ExprPtr test = MakeTest(Function::kIsNull, SubqueryOutput(0, y.expr->type, e->position));
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

  /// Replaces each subquery in `e` by its value.
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
    kept_.push_back(s);  // no other subquery may get its address
    values_[s.get()] = value->Clone();
    *e = std::move(value);
    return Status::Ok();
  }

  /// x op ANY (...) with three values: true if a row compares as true; otherwise NULL if a row compares as unknown;
  /// otherwise false.
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
                       Mark(s, ExprList(MakeTest(Function::kIsNull, SubqueryOutput(0, y.type, position))), position));
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
    Substitute(&out, [&](const Expr& x) -> ExprPtr { return IsSubqueryOutput(x) ? value->Clone() : nullptr; });
    return out;
  }

  /// x < ANY (SELECT y ...) is x < (SELECT max(y) ...), and so on: true if a row compares as true, otherwise false or
  /// NULL. Then neither a loop over all pairs nor a sort is needed. nullptr if the comparison or the subquery is not of
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
      if (IsSubqueryOutput(x)) return true;
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
    Substitute(&out, [&](const Expr& x) -> ExprPtr { return IsSubqueryOutput(x) ? value->Clone() : nullptr; });
    out->nullable = true;
    return out;
  }

  /// Whether EXISTS is known without running the subquery: 1 if it has a row, 0 if it has none, -1 if it must be run.
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

  /// The select list of EXISTS does not matter, nor does DISTINCT.
  static void CountRowsOnly(Query* query) {
    const bool plain = query->union_all.empty() && !query->folds() && query->windows.empty() && query->repeat < 0;
    if (!plain || (query->grouped && query->group_by.empty())) return;
    query->distinct = false;
    query->order_by.clear();
    query->outputs.clear();
    query->outputs.push_back(OneOutput());
    query->visible = 1;
  }

  /// Adds the relation of a subquery, joined by `match`, which is over columns of the block and (kSubqueryColumn, i).
  Result<int> AddMatch(JoinKind kind, const Subquery& s, std::vector<ExprPtr> match, int position) {
    const Query& query = *s.query;
    IndependentQuery i;
    if (!RefersOutward(query)) {
      i.query = s.query;
      if (match.empty() && query.limit < 0 && query.offset == 0) {  // one row is enough
        i.query = CopyQuery(query);
        i.query->order_by.clear();
        if (s.kind == Subquery::Kind::kExists) CountRowsOnly(i.query.get());
        if (!i.query->grouped && !i.query->distinct && i.query->union_all.empty()) i.query->limit = 1;
      }
      const Query& rows = *i.query;
      for (int k = 0; k < rows.visible; ++k)
        i.outputs.push_back(SubqueryOutput(k, rows.outputs[static_cast<size_t>(k)].expr->type, position));
    } else {
      auto copy = CopyQuery(query);
      if (s.kind == Subquery::Kind::kExists && copy->limit > 0 && copy->offset == 0) copy->limit = -1;
      if (copy->limit < 0 && copy->offset == 0) {
        copy->order_by.clear();
        copy->distinct = false;
        // The select list of EXISTS does not matter. Without it a plain scan can be joined as a stored table.
        if (s.kind == Subquery::Kind::kExists && !copy->grouped && copy->union_all.empty()) copy->visible = 0;
        if (s.kind == Subquery::Kind::kExists && !copy->group_by.empty()) CountRowsOnly(copy.get());
      }
      TESSERA_ASSIGN(i, Decorrelate(q_, std::move(copy), position));
    }
    for (ExprPtr& e : match) {
      Substitute(&e, [&](const Expr& x) -> ExprPtr {
        if (!IsSubqueryOutput(x)) return nullptr;
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
    auto copy = CopyQuery(query);
    if (aggregate && query.limit > 0 && query.offset == 0) copy->limit = -1;
    const bool bounded = copy->limit >= 0 || copy->offset > 0;
    if (!bounded) {
      copy->order_by.clear();
      copy->outputs.resize(static_cast<size_t>(copy->visible));
    }
    if (aggregate && !bounded) return ScalarAggregate(std::move(copy), position);
    // The value must come from a row of the subquery: a constant would have a value even without a row.
    const bool bare = copy->outputs[0].expr->kind == Expr::Kind::kColumn;
    const bool outward = HasOuter(*copy->outputs[0].expr);
    if (!bare && outward && !copy->grouped && !bounded) {
      copy->outputs.push_back({MakeBoolean(true, position), ""});
      copy->visible = 2;
    }
    const bool marked = copy->visible == 2;
    TESSERA_ASSIGN(IndependentQuery i, Decorrelate(q_, std::move(copy), position));
    TESSERA_ASSIGN(const Placed placed, Place(JoinKind::kLeft, std::move(i.query), std::move(i.on), position));
    const bool one = query.limit == 0 || query.limit == 1;
    (one ? q_.relations[static_cast<size_t>(placed.relation)].unique
         : q_.relations[static_cast<size_t>(placed.relation)].single) = true;
    ExprPtr value = placed.Resolve(std::move(i.outputs[0]));
    if (!marked) return value;
    ExprPtr there = MakeTest(Function::kIsNotNull, placed.Resolve(std::move(i.outputs[1])));
    const SqlType type = value->type;
    return MakeFunction(Function::kCase, type, position,
                        ExprList(std::move(there), std::move(value), MakeNull(type, position)));
  }

  /// (SELECT f(agg(x), ...) FROM ... WHERE correlated): the aggregates are grouped by key and joined. f is computed
  /// where they are used, because it may have a value even if there is no row to aggregate.
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
        ExprPtr column = SubqueryOutput(static_cast<int>(k), key->type, e->position);
        if (k == s->group_by.size()) {
          s->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, static_cast<int>(k), key->type, key->nullable), "key"});
          s->group_by.push_back(std::move(key));
        }
        MoveOutward(&outer);
        on.push_back(MakeFunction(Function::kEq, kBoolean, e->position, ExprList(std::move(outer), std::move(column))));
      }
    } else {
      for (ExprPtr& e : correlated) s->conjuncts.push_back(std::move(e));
      TESSERA_TRY(AddDomain(q_, s.get(), position, &on, false));
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
    MoveOutward(&value);
    value->nullable = true;
    if (having.empty()) return value;
    for (ExprPtr& h : having) {
      Substitute(&h, aggregates);
      MoveOutward(&h);
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

  /// The columns of the block that hold a subquery's outputs.
  struct Placed {
    int relation = 0;
    bool nullable = false;
    std::vector<int> columns;  ///< not empty: the columns of a stored table that the outputs are

    ExprPtr Column(int output, const SqlType& type, int position) const {
      return MakeColumn(relation, columns.empty() ? output : columns[static_cast<size_t>(output)], type, nullable,
                        position);
    }
    /// (kSubqueryColumn, i) as a column of the block.
    ExprPtr Resolve(ExprPtr e) const {
      Substitute(&e, [&](const Expr& x) -> ExprPtr {
        if (!IsSubqueryOutput(x)) return nullptr;
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
                       query->union_all.empty() && query->relations.size() == 1 && !RefersOutward(*query) &&
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
      const bool correlated = RefersOutward(*query);
      relation = DerivedTable(std::move(query));
      relation.alias = "subquery";
      relation.correlated = correlated;
    }
    relation.join = kind;
    const bool nullable = placed.nullable;
    placed.nullable = false;  // inside the condition there is a row
    for (ExprPtr& e : on) SplitConjuncts(placed.Resolve(std::move(e)), &relation.on);
    placed.nullable = nullable;
    q_.relations.push_back(std::move(relation));
    return placed;
  }

  Query& q_;
  std::map<const Subquery*, ExprPtr> values_;
  std::vector<std::shared_ptr<Subquery>> kept_;
};

/// Replaces the subqueries of one block. REQUIRES: those of the blocks inside of it have been replaced.
Status UnnestBlock(Query* query) {
  bool any = false;
  ForEachRoot(*query, [&](const ExprPtr& e) { any = any || FindSubquery(*e) != nullptr; });
  for (const Relation& r : query->relations) any = any || (r.correlated && RefersToNext(*r.query));
  if (!any) return Status::Ok();
  bool above = false;
  for (const ExprPtr& e : query->having) above = above || FindSubquery(*e) != nullptr;
  for (const Output& o : query->outputs) above = above || FindSubquery(*o.expr) != nullptr;
  if (query->grouped && above) {
    TESSERA_ASSIGN(const std::shared_ptr<Query> groups, SplitGrouping(query));
    TESSERA_TRY(UnnestBlock(groups.get()));
  }
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

Status Unnest(Query* query) {
  std::set<const Query*> done;
  return UnnestTree(query, &done);
}

}  // namespace tessera
