#include "compiler/rewrite/early_grouping.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "compiler/parse/parser.h"
#include "compiler/query/equal_columns.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/partial_aggregate.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/selectivity.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/unique_key.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

const SqlType kBigint = SqlType::Of(TypeId::kBigint);

/// A relation is grouped early if this number of its rows make a group ...
constexpr double kRowsOfGroup = 4;
/// ... and the filters of the others leave at least this part of the groups to be joined.
constexpr double kJoined = 0.5;
/// An inner relation whose rows meet several of another one is grouped early if there are at least this number of pairs for each of both.
constexpr double kPairsOfRow = 8;
/// Keys of a relation that is grouped early. With more of them there are seldom few groups.
constexpr size_t kMostKeys = 4;

/// Whether nothing but its grouping makes the block's rows others than those of its joins.
bool IsPlainGrouping(const Query& q) {
  return q.grouped && !q.group_by.empty() && q.repeat < 0 && !q.folds() && q.working == nullptr && !q.is_working &&
         q.relations.size() < 64 && !HasVolatile(q);
}

/// Whether `e` is NULL where all columns in it are.
bool IsStrict(const Expr& e) {
  if (e.kind != Expr::Kind::kFunction) return e.kind == Expr::Kind::kColumn;
  return Info(e.function).IsStrict() &&
         std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return IsStrict(*a); });
}

/// The bare columns among the keys of a grouping.
std::set<ColumnNumber> ColumnsOf(const std::vector<ExprPtr>& keys) {
  std::set<ColumnNumber> columns;
  for (const ExprPtr& key : keys) {
    if (key->kind == Expr::Kind::kColumn) columns.insert(NumberOf(*key));
  }
  return columns;
}

// ---- Grouping a relation before it is joined

/// A relation and how it is grouped.
class EarlyGroups {
 public:
  EarlyGroups(const Query& q, size_t r) : q_(q), r_(r) {}

  /// Finds keys and aggregates. False if the relation cannot be grouped, or should not be.
  bool Choose() {
    const Relation& relation = q_.relations[r_];
    if (relation.table == nullptr || !GivesRows(relation.join) || relation.single) return false;
    const bool is_weighed = std::ranges::any_of(q_.aggregates, [&](const Aggregate& a) { return IsWeighed(a); });
    if (is_weighed && !MeetsSeveral()) return false;
    if (!FindParts() || !FindKeys() || keys_.empty() || keys_.size() > kMostKeys) return false;
    double rows = SelectivityOfAll(q_, FiltersOf(q_, r_)) * static_cast<double>(relation.table->rows), groups = 1;
    for (const int c : keys_) groups *= DistinctOf(q_, *ColumnOf(c));
    if (groups * kRowsOfGroup > rows) return false;
    double joined = 1;
    for (size_t r = 0; r < q_.relations.size(); ++r) {
      if (r == r_) continue;
      if (q_.relations[r].join == JoinKind::kSemi || q_.relations[r].join == JoinKind::kAnti) return false;
      if (q_.relations[r].join == JoinKind::kInner) joined *= SelectivityOfAll(q_, FiltersOf(q_, r));
    }
    if (joined < kJoined) return false;
    if (relation.join == JoinKind::kInner && PairsOfRow(rows) >= kPairsOfRow) return true;
    if (is_weighed) return false;
    // An inner relation can drive the pipeline, so that its rows are grouped once in any case.
    return relation.join == JoinKind::kLeft || DetermineRows(q_, ColumnsOf(q_.group_by), {static_cast<int>(r_), keys_});
  }

  void Rewrite(Query* q) {
    Relation& relation = q->relations[r_];
    auto groups = std::make_shared<Query>();
    groups->relations.push_back(CopySource(relation));
    groups->grouped = true;
    for (size_t k = 0; k < keys_.size(); ++k) {
      ExprPtr key = ColumnOf(keys_[k]);
      groups->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, static_cast<int>(k), key->type, key->nullable),
                                 relation.column_names[static_cast<size_t>(keys_[k])]});
      groups->group_by.push_back(Inside(*key));
    }
    for (Aggregate& a : q->aggregates) {
      if (IsWeighed(a)) {
        a = Weighed(a, PartOf(Aggregate(), groups.get()));
      } else if (IsPart(a)) {
        a = MergeOf(a, PartOf(a, groups.get()));
        a.argument->position = a.position;
      }
    }
    groups->visible = static_cast<int>(groups->outputs.size());
    std::vector<ExprPtr>* const from = relation.join == JoinKind::kInner ? &q->conjuncts : &relation.on;
    std::vector<ExprPtr> left;
    for (ExprPtr& e : *from) {
      if (IsOver(*e, r_)) {
        groups->conjuncts.push_back(Inside(*e));
      } else {
        left.push_back(std::move(e));
      }
    }
    *from = std::move(left);
    Relation derived = DerivedTable(std::move(groups));
    derived.alias = relation.alias;
    derived.join = relation.join;
    derived.on = std::move(relation.on);
    derived.unique = relation.unique;
    relation = std::move(derived);
    Renumber(q);
  }

 private:
  ExprPtr ColumnOf(int c) const {
    const Relation& relation = q_.relations[r_];
    const bool nullable =
        relation.join == JoinKind::kLeft || !relation.table->schema.columns[static_cast<size_t>(c)].not_null;
    return MakeColumn(static_cast<int>(r_), c, relation.column_types[static_cast<size_t>(c)], nullable, -1);
  }
  /// Adds what the groups give for an aggregate, once. Returns its column, of a row of the joins.
  ExprPtr PartOf(const Aggregate& a, Query* groups) const {
    const bool is_left = q_.relations[r_].join == JoinKind::kLeft;
    Aggregate part;
    part.function = a.function;
    if (a.argument != nullptr) part.argument = Inside(*a.argument);
    part.type = a.argument == nullptr ? kBigint : a.type;
    part.position = a.position;
    const auto same = [&](const Aggregate& b) { return a.argument == nullptr && b.argument == nullptr; };
    const auto index = std::ranges::find_if(groups->aggregates, same) - groups->aggregates.begin();
    ExprPtr value = MakeColumn(static_cast<int>(r_), static_cast<int>(keys_.size()) + static_cast<int>(index),
                               part.type, !IsCount(a) || is_left, a.position);
    if (index == static_cast<ptrdiff_t>(groups->aggregates.size())) {
      groups->outputs.push_back(
          {MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(index), part.type, !IsCount(a)), Info(a.function).text});
      groups->aggregates.push_back(std::move(part));
    }
    // A row without a match is one for count(*), and none for values, which are NULL.
    if (value->nullable && IsCount(a)) value = CountOr(std::move(value), a.argument == nullptr ? 1 : 0);
    return value;
  }

  // ---- Aggregates of other relations' rows, each of which stands for those that it would make with the rows of a group

  bool IsWeighed(const Aggregate& a) const { return !IsPart(a) && !Info(a.function).ignores_duplicates; }
  bool CanWeigh(const Aggregate& a, const ExprRanges& ranges) const {
    if (a.distinct || (RelationsOf(*a.argument) >> r_ & 1) != 0) return false;
    if (a.function == AggregateFunction::kCount) return true;
    const SqlType& type = a.argument->type;
    if (a.function != AggregateFunction::kSum || (!type.IsInteger() && type.id != TypeId::kDecimal)) return false;
    // (Otherwise a product might be out of range where the sum is not.)
    const int128_t rows = static_cast<int128_t>(q_.relations[r_].table->rows), most = PowerOf10(38) - 1;
    return Product(ranges.Range(*a.argument), {0, rows}).Within(-most, most);
  }
  /// `rows`: how many rows of the relation a row of the joins has.
  static Aggregate Weighed(const Aggregate& a, ExprPtr rows) {
    const Expr& x = *a.argument;
    Aggregate sum;
    sum.function = AggregateFunction::kSum;
    sum.type = a.type;
    sum.position = a.position;
    if (IsCount(a)) {
      ExprPtr none = MakeConstant(Value::Int(kBigint, 0), -1);
      sum.argument =
          !x.nullable
              ? std::move(rows)
              : MakeFunction(Function::kCase, kBigint, a.position,
                             ExprList(MakeTest(Function::kIsNull, x.Clone()), std::move(none), std::move(rows)));
    } else {
      const SqlType product = SqlType::Decimal(38, x.type.scale);
      sum.argument =
          MakeFunction(Function::kMul, product, a.position,
                       ExprList(MakeCast(x.Clone(), product), MakeCast(std::move(rows), SqlType::Decimal(38, 0))));
    }
    return sum;
  }
  /// Whether it is worth while to look closer: without filters there are as many pairs.
  bool MeetsSeveral() const {
    const auto rows = static_cast<double>(q_.relations[r_].table->rows);
    return std::ranges::any_of(q_.conjuncts, [&](const ExprPtr& e) {
      if (!IsFunction(*e, Function::kEq)) return false;
      const Expr &a = *e->args[0], &b = *e->args[1];
      if (a.kind != Expr::Kind::kColumn || b.kind != Expr::Kind::kColumn || a.relation == b.relation) return false;
      if (a.relation != static_cast<int>(r_) && b.relation != static_cast<int>(r_)) return false;
      const Relation& by =
          q_.relations[static_cast<size_t>(a.relation == static_cast<int>(r_) ? b.relation : a.relation)];
      const double others = by.table == nullptr ? 0 : static_cast<double>(by.table->rows);
      return rows * others >= kPairsOfRow * (rows + others) * std::max(DistinctOf(q_, a), DistinctOf(q_, b));
    });
  }
  /// How many pairs equalities of the relation's columns with those of others make for each row of both. `rows`: of the
  /// relation.
  double PairsOfRow(double rows) const {
    double best = 0;
    for (const ExprPtr& e : q_.conjuncts) {
      if (!IsFunction(*e, Function::kEq)) continue;
      for (size_t side = 0; side < 2; ++side) {
        const Expr &own = *e->args[side], &other = *e->args[1 - side];
        if (!IsOver(own, r_) || other.kind != Expr::Kind::kColumn) continue;
        const auto o = static_cast<size_t>(other.relation);
        const Relation& by = q_.relations[o];
        if (o == r_ || by.table == nullptr || by.join != JoinKind::kInner) continue;
        const double others = SelectivityOfAll(q_, FiltersOf(q_, o)) * static_cast<double>(by.table->rows);
        double values = 1;
        for (const int c : keys_) values *= DistinctOf(q_, *ColumnOf(c));
        values = std::max(values, DistinctOf(q_, other));
        best = std::max(best, rows / values * others / (rows + others));
      }
    }
    return best;
  }
  /// Whether the aggregate is of the relation's rows, or counts those of the joins.
  bool IsPart(const Aggregate& a) const { return a.argument == nullptr || IsOver(*a.argument, r_); }
  /// Whether every aggregate can be made of the groups' aggregates, or of their rows. Its argument is computed for rows that may not be in
  /// the joins, so that it must not fail; and if the relation is left-joined, it is NULL for a row without a match.
  bool FindParts() const {
    bool any = false;
    const StatisticsRanges statistics(q_);
    const ExprRanges ranges(statistics);
    const bool is_left = q_.relations[r_].join == JoinKind::kLeft;
    for (const Aggregate& a : q_.aggregates) {
      if (IsPart(a)) {
        if (!Merges(a)) return false;
        if (a.argument != nullptr && (ranges.CanFailAnywhere(*a.argument) || (is_left && !IsStrict(*a.argument))))
          return false;
        any = true;
      } else if (IsWeighed(a)) {
        if (!CanWeigh(a, ranges)) return false;  // it is of all rows of the joins
        any = true;
      } else if ((RelationsOf(*a.argument) >> r_ & 1) != 0) {
        return false;
      }
    }
    return any;
  }
  /// The columns that are read outside of aggregates and filters.
  bool FindKeys() {
    std::set<int> keys;
    bool can = true;
    const auto note = [&](const Expr& e) {
      ForEachColumn(e, [&](const Expr& c) {
        if (c.relation != static_cast<int>(r_)) return;
        can = can && !c.type.IsFloat();
        keys.insert(c.column);
      });
    };
    const bool is_inner = q_.relations[r_].join == JoinKind::kInner;
    for (const ExprPtr& e : q_.group_by) note(*e);
    for (const ExprPtr& e : q_.conjuncts) {
      if (!is_inner || !IsOver(*e, r_)) note(*e);
    }
    for (size_t r = 0; r < q_.relations.size(); ++r) {
      for (const ExprPtr& e : q_.relations[r].on) {
        if (r != r_ || !IsOver(*e, r_)) note(*e);
      }
    }
    keys_.assign(keys.begin(), keys.end());
    return can;
  }
  /// An expression over the relation alone, in the block that groups it.
  ExprPtr Inside(const Expr& e) const {
    ExprPtr inside = e.Clone();
    Substitute(&inside, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kColumn) return nullptr;
      ExprPtr column = x.Clone();
      column->relation = 0;
      return column;
    });
    return inside;
  }
  /// Keys are the first columns now. (Aggregates of the relation have been replaced.)
  void Renumber(Query* q) const {
    const auto place = [&](int column) {
      return static_cast<int>(std::find(keys_.begin(), keys_.end(), column) - keys_.begin());
    };
    const auto renumber = [&](ExprPtr& root) {
      Substitute(&root, [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn || x.relation != static_cast<int>(r_)) return nullptr;
        ExprPtr column = x.Clone();
        column->column = place(x.column);
        return column;
      });
    };
    for (ExprPtr& e : q->group_by) renumber(e);
    for (ExprPtr& e : q->conjuncts) renumber(e);
    for (Relation& relation : q->relations) {
      for (ExprPtr& e : relation.on) renumber(e);
    }
  }

  const Query& q_;
  const size_t r_;
  std::vector<int> keys_;  ///< columns of the relation
};

// ---- Leaving a grouping out

/// The aggregate of a single row; nullptr if it is none of the values there.
ExprPtr OfOneRow(const Aggregate& a) {
  const auto number = [](int64_t n) { return MakeConstant(Value::Int(kBigint, n), -1); };
  if (a.argument == nullptr) return number(1);
  const Expr& x = *a.argument;
  switch (a.function) {
    case AggregateFunction::kCount:
      if (!x.nullable) return number(1);
      return MakeFunction(Function::kCase, kBigint, a.position,
                          ExprList(MakeTest(Function::kIsNull, x.Clone()), number(0), number(1)));
    case AggregateFunction::kSum:
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      return x.type.IsFloat() ? nullptr : MakeCast(x.Clone(), a.type);  // (-0.0 + 0 is 0)
    default:
      return nullptr;
  }
}

/// Makes a block without grouping of one whose groups are single rows.
void UngroupRows(Query* q) {
  const auto is_float = [](const ExprPtr& key) { return key->type.IsFloat(); };  // all zeros are one key
  if (std::any_of(q->group_by.begin(), q->group_by.end(), is_float)) return;
  if (!DetermineRows(*q, ColumnsOf(q->group_by))) return;
  std::vector<ExprPtr> values;
  int below = HeightOfKeys(*q);
  for (const Aggregate& a : q->aggregates) {
    values.push_back(OfOneRow(a));
    if (values.back() == nullptr) return;
    below = std::max(below, HeightOf(*values.back()));
  }
  if (below + HeightAboveGroups(*q) > kMaxNesting) return;
  const auto replace = [&](ExprPtr* e) {
    Substitute(e, [&](const Expr& x) -> ExprPtr {
      const auto i = static_cast<size_t>(x.index);
      if (x.kind != Expr::Kind::kGroup && x.kind != Expr::Kind::kAggregate) return nullptr;
      ExprPtr value = x.kind == Expr::Kind::kGroup ? q->group_by[i]->Clone() : values[i]->Clone();
      if (value->position < 0) value->position = x.position;
      return value;
    });
  };
  for (Output& o : q->outputs) replace(&o.expr);
  for (ExprPtr& e : q->having) {
    replace(&e);
    q->conjuncts.push_back(std::move(e));
  }
  q->having.clear();
  q->group_by.clear();
  q->aggregates.clear();
  q->grouped = false;
}

}  // namespace

void GroupEarly(Query* query) {
  if (!IsPlainGrouping(*query) || query->relations.empty()) return;
  for (size_t r = 0; r < query->relations.size() && query->relations.size() > 1; ++r) {
    EarlyGroups groups(*query, r);
    if (!groups.Choose()) continue;
    groups.Rewrite(query);
    break;
  }
  UngroupRows(query);
}

}  // namespace tessera
