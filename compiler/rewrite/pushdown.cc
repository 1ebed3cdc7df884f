#include "compiler/rewrite/pushdown.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "compiler/parse/parser.h"
#include "compiler/query/conditions.h"
#include "compiler/query/equal_columns.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/fold.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/selectivity.h"

namespace tessera {
namespace {

/// A relation restricts the groups of a derived table if its filters leave less than this of its rows.
constexpr double kRestricts = 0.25;

/// Whether no leaf of `e` is of that kind.
bool HasNone(const Expr& e, Expr::Kind kind) {
  return e.kind != kind &&
         std::all_of(e.args.begin(), e.args.end(), [&](const ExprPtr& a) { return HasNone(*a, kind); });
}

/// Replaces keys of the grouping by what they are made of.
void BelowGrouping(const Query& q, ExprPtr* e) {
  Substitute(e, [&](const Expr& x) -> ExprPtr {
    return x.kind == Expr::Kind::kGroup ? q.group_by[static_cast<size_t>(x.index)]->Clone() : nullptr;
  });
}

/// Whether conditions on the rows of the block may be tested before they are made: no LIMIT has chosen among them, and no
/// window has seen them.
bool TakesConditions(const Query& q) {
  if (!q.windows.empty() || q.limit >= 0 || q.offset > 0 || q.working != nullptr || q.is_working) return false;
  return std::all_of(q.union_all.begin(), q.union_all.end(), [](const auto& more) { return TakesConditions(*more); });
}

/// Whether all windows of the block see the same rows of those that are left if the condition, over its outputs, is tested
/// before: it is on columns of PARTITION BY alone.
bool KeepsPartitions(const Query& q, const Expr& e) {
  int keys = static_cast<int>(q.order_by.size());
  for (const Window& w : q.windows) keys = std::min(keys, w.partition_keys);
  bool keeps = true;
  ForEachColumn(e, [&](const Expr& c) {
    bool is_key = false;
    for (int k = 0; k < keys; ++k) is_key |= q.order_by[static_cast<size_t>(k)].output == c.column;
    keeps &= is_key;
  });
  return keeps;
}

bool IsTooHigh(const Query& q, const Expr& e) {
  const auto too_high = [&](const auto& more) { return IsTooHigh(*more, e); };
  if (std::any_of(q.union_all.begin(), q.union_all.end(), too_high)) return true;
  int height = 0;
  for (const Output& o : q.outputs) height = std::max(height, HeightOf(*o.expr));
  for (const ExprPtr& g : q.group_by) height = std::max(height, HeightOf(*g));
  return 2 * height + HeightOf(e) > kMaxNesting;
}

/// What is known without a row: constants as the arms of UNION ALL have them, 's' = 'w'.
ExprPtr WithoutConstants(ExprPtr e) {
  for (ExprPtr& a : e->args) a = WithoutConstants(std::move(a));
  if (e->kind != Expr::Kind::kFunction) return e;
  const bool constant = std::ranges::all_of(e->args, [](const ExprPtr& a) { return IsConstant(*a); });
  if (!constant && e->function != Function::kAnd && e->function != Function::kOr) return e;
  ExprPtr known = e->Clone();
  Result<ExprPtr> folded = Fold(std::move(e), true);
  return folded.ok() ? std::move(*folded) : std::move(known);
}

/// A condition over the outputs of the block, columns of a relation of the block around it, as one of the block itself.
ExprPtr Inside(const Query& q, const Expr& condition) {
  ExprPtr e = condition.Clone();
  Substitute(&e, [&](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kColumn) return nullptr;
    ExprPtr output = q.outputs[static_cast<size_t>(x.column)].expr->Clone();
    if (output->position < 0) output->position = x.position;
    return output;
  });
  return WithoutConstants(std::move(e));
}

/// Adds a condition over what the block's outputs are made of.
void Require(Query* q, ExprPtr e) {
  if (IsBoolean(*e, true)) return;
  const bool of_groups = q->grouped && (!IsConstant(*e) || q->group_by.empty());
  (of_groups ? q->having : q->conjuncts).push_back(std::move(e));
}

/// Adds a condition over the outputs of the block.
void AddCondition(Query* q, const Expr& condition) {
  Require(q, Inside(*q, condition));
  for (const auto& more : q->union_all) AddCondition(more.get(), condition);
}

/// Moves the conditions on relation `r` alone into its derived table.
void MoveConditions(Query* q, size_t r) {
  Relation& relation = q->relations[r];
  Query* const inner = relation.query.get();
  const bool has_windows = !inner->windows.empty();  // then there is no limit, nor a block after it
  if (!has_windows && !TakesConditions(*inner)) return;
  if (HasVolatile(*inner)) return;
  std::vector<ExprPtr>* const from = relation.join == JoinKind::kInner ? &q->conjuncts : &relation.on;
  const auto moves = [&](const Expr& e) {
    bool mark = false;
    ForEachColumn(e, [&](const Expr& c) { mark |= c.column == kMarkColumn; });
    return IsOver(e, r) && !mark && !IsVolatile(e) && !IsTooHigh(*inner, e) &&
           (!has_windows || KeepsPartitions(*inner, e));
  };
  std::vector<ExprPtr> left;
  for (ExprPtr& e : *from) {
    if (moves(*e)) {
      AddCondition(inner, *e);
    } else {
      left.push_back(std::move(e));
    }
  }
  *from = std::move(left);
}

/// A relation of a block, filtered, and its column by which it restricts another one.
struct Restriction {
  const Expr* column = nullptr;
  double fraction = kRestricts;  ///< of its rows that pass its filters
};

/// The restrictions of a block that can be given to its derived tables.
class Restrictions {
 public:
  explicit Restrictions(const Query& q) : q_(q), equal_(q) {}

  /// The strongest restriction of the values that `column` has in the rows of the block.
  Restriction Of(const Expr& column) const {
    Restriction best;
    Try(column, &best);
    if (const std::vector<const Expr*>* others = equal_.Of(column)) {
      for (const Expr* e : *others) Try(*e, &best);
    }
    return best;
  }

 private:
  /// Its own relation, or one in which it must be found.
  void Try(const Expr& column, Restriction* best) const {
    Relation const& own = q_.relations[static_cast<size_t>(column.relation)];
    if (own.join == JoinKind::kInner) TryRelation(column, best);
    for (size_t s = 0; s < q_.relations.size(); ++s) {
      const Relation& semi = q_.relations[s];
      if (semi.join != JoinKind::kSemi) continue;
      const Expr* key = nullptr;
      bool simple = true;  // besides its filters it asks for nothing but the key
      for (const ExprPtr& e : semi.on) {
        if (IsOver(*e, s)) continue;
        simple = simple && key == nullptr && IsFunction(*e, Function::kEq);
        for (size_t side = 0; simple && side < 2; ++side) {
          const Expr &here = *e->args[side], &there = *e->args[1 - side];
          if (here.SameAs(column) && there.kind == Expr::Kind::kColumn && there.relation == static_cast<int>(s))
            key = &there;
        }
      }
      if (simple && key != nullptr) TryRelation(*key, best);
    }
  }

  void TryRelation(const Expr& column, Restriction* best) const {
    const auto r = static_cast<size_t>(column.relation);
    if (q_.relations[r].table == nullptr) return;
    const double fraction = SelectivityOfAll(q_, FiltersOf(q_, r));
    if (fraction < best->fraction) *best = {&column, fraction};
  }

  const Query& q_;
  const EqualColumns equal_;
};

/// The column of the block that equals output `i` of relation `r`, which is not joined by an inner join; or nullptr.
const Expr* LookedUpBy(const Query& q, size_t r, int i) {
  for (const ExprPtr& e : q.relations[r].on) {
    if (!IsFunction(*e, Function::kEq)) continue;
    for (size_t side = 0; side < 2; ++side) {
      const Expr &own = *e->args[side], &other = *e->args[1 - side];
      if (own.kind == Expr::Kind::kColumn && own.relation == static_cast<int>(r) && own.column == i &&
          other.kind == Expr::Kind::kColumn && other.column != kMarkColumn && other.relation != static_cast<int>(r))
        return &other;
    }
  }
  return nullptr;
}

/// Makes only those groups of derived table `r` whose keys the rows of the block can have.
void RestrictGroups(Query* q, size_t r) {
  Query& inner = *q->relations[r].query;
  if (!inner.grouped || inner.group_by.empty() || !inner.union_all.empty() || !TakesConditions(inner)) return;
  if (HasVolatile(*q) || HasVolatile(inner)) return;
  const Restrictions restrictions(*q);
  Restriction best;
  const Expr* key = nullptr;  // of the groups
  for (int i = 0; i < inner.visible; ++i) {
    const Expr& output = *inner.outputs[static_cast<size_t>(i)].expr;
    if (output.kind != Expr::Kind::kGroup) continue;
    const ExprPtr own = MakeColumn(static_cast<int>(r), i, output.type, output.nullable, -1);
    const bool is_inner = q->relations[r].join == JoinKind::kInner;
    const Expr* const by = is_inner ? own.get() : LookedUpBy(*q, r, i);
    if (by == nullptr) continue;
    const Restriction found = restrictions.Of(*by);
    if (found.column == nullptr || found.fraction >= best.fraction || !(found.column->type == output.type)) continue;
    best = found;
    key = inner.group_by[static_cast<size_t>(output.index)].get();
  }
  if (key == nullptr || inner.relations.size() >= 64) return;
  const auto from = static_cast<size_t>(best.column->relation);
  const auto place = static_cast<int>(inner.relations.size());
  Relation semi = CopySource(q->relations[from]);
  semi.join = JoinKind::kSemi;
  const auto moved = [&](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kColumn) return nullptr;
    ExprPtr column = x.Clone();
    column->relation = place;
    return column;
  };
  semi.on.push_back(
      MakeFunction(Function::kEq, SqlType::Of(TypeId::kBoolean), -1, ExprList(key->Clone(), moved(*best.column))));
  for (const Expr* filter : FiltersOf(*q, from)) {
    semi.on.push_back(filter->Clone());
    Substitute(&semi.on.back(), moved);
  }
  inner.relations.push_back(std::move(semi));
}

// ---- Queries with several readers

/// A reader with more nodes in its conditions than this asks for too much to be asked of every row.
constexpr int kMostNodes = 64;

int NodesOf(const Expr& e) {
  int nodes = 1;
  for (const ExprPtr& a : e.args) nodes += NodesOf(*a);
  return nodes;
}

/// What a reader asks of the rows of a query, over its outputs.
using Tests = std::vector<const Expr*>;

/// Of its conditions those that cannot fail, because they are asked of rows for which it would not have come so far.
Tests TestsOf(const Query& inner, const Reader& reader) {
  const bool has_windows = !inner.windows.empty();
  Tests tests;
  int nodes = 0;
  for (const Expr* e : FiltersOf(*reader.block, reader.relation)) {
    bool mark = false;
    ForEachColumn(*e, [&](const Expr& c) { mark |= c.column == kMarkColumn; });
    if (mark || !IsColumnTest(*e) || IsTooHigh(inner, *e) || (has_windows && !KeepsPartitions(inner, *e))) continue;
    nodes += NodesOf(*e);
    if (nodes <= kMostNodes) tests.push_back(e);
  }
  return tests;
}

/// Adds to the block, and to those after it, that a reader asks for the row.
void AddOfReaders(Query* q, const std::vector<Tests>& readers) {
  std::vector<ExprPtr> asked;
  bool all = false;
  for (const Tests& tests : readers) {
    std::vector<ExprPtr> own;
    for (const Expr* test : tests) own.push_back(Inside(*q, *test));
    ExprPtr e = WithoutConstants(Chain(std::move(own), Function::kAnd, tests[0]->position));
    all = all || IsBoolean(*e, true);
    const auto same = [&](const ExprPtr& known) { return known->SameAs(*e); };
    const bool never = IsBoolean(*e, false) || IsNullConstant(*e);
    if (!never && std::ranges::none_of(asked, same)) asked.push_back(std::move(e));
  }
  const int position = readers[0][0]->position;
  if (!all) Require(q, asked.empty() ? MakeBoolean(false, position) : Chain(std::move(asked), Function::kOr, position));
  for (const auto& more : q->union_all) AddOfReaders(more.get(), readers);
}

}  // namespace

void HavingToWhere(Query* q) {
  if (!q->grouped || q->group_by.empty()) return;
  std::vector<ExprPtr> having;
  for (ExprPtr& e : q->having) {
    if (!HasNone(*e, Expr::Kind::kAggregate) || HasNone(*e, Expr::Kind::kGroup) || IsVolatile(*e)) {
      const auto is_of_keys = [](const Expr& test) {
        return HasNone(test, Expr::Kind::kAggregate) && !HasNone(test, Expr::Kind::kGroup) && IsColumnTest(test);
      };
      ExprPtr of_keys = IsFunction(*e, Function::kOr) ? ImpliedOr(*e, is_of_keys) : nullptr;
      if (of_keys != nullptr) {
        BelowGrouping(*q, &of_keys);
        q->conjuncts.push_back(std::move(of_keys));
      }
      having.push_back(std::move(e));
      continue;
    }
    BelowGrouping(*q, &e);
    q->conjuncts.push_back(std::move(e));
  }
  q->having = std::move(having);
}

void PushIntoShared(Query* shared, const std::vector<Reader>& readers) {
  Query& q = *shared;
  if (q.folds() || q.repeat >= 0 || q.series >= 0 || (q.windows.empty() && !TakesConditions(q))) return;
  const auto has_volatile = [](const auto& more) { return HasVolatile(*more); };
  if (HasVolatile(q) || std::ranges::any_of(q.union_all, has_volatile)) return;
  std::vector<Tests> tests;
  for (const Reader& reader : readers) {
    tests.push_back(TestsOf(q, reader));
    if (tests.back().empty()) return;  // it reads all rows
  }
  AddOfReaders(shared, tests);
}

void PushDown(Query* query) {
  for (size_t r = 0; r < query->relations.size(); ++r) {
    const std::shared_ptr<Query>& inner = query->relations[r].query;
    if (inner == nullptr || inner.use_count() > 1) continue;
    MoveConditions(query, r);
    RestrictGroups(query, r);
  }
}

}  // namespace tessera
