#include "compiler/rewrite/simplify.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/parse/parser.h"
#include "compiler/query/conditions.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/functions.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/rewrite/decorrelate.h"
#include "compiler/rewrite/derived_keys.h"
#include "compiler/rewrite/distinct_aggregates.h"
#include "compiler/rewrite/early_grouping.h"
#include "compiler/rewrite/key_grouping.h"
#include "compiler/rewrite/late_columns.h"
#include "compiler/rewrite/late_outputs.h"
#include "compiler/rewrite/match_conditions.h"
#include "compiler/rewrite/other_values.h"
#include "compiler/rewrite/pushdown.h"
#include "compiler/rewrite/range_joins.h"
#include "compiler/rewrite/same_groups.h"
#include "compiler/rewrite/shared_sums.h"
#include "compiler/rewrite/union_joins.h"
#include "compiler/rewrite/unread_columns.h"

namespace tessera {

namespace {

/// Turns LEFT JOINs into inner joins if a condition of the block drops their NULL-extended rows.
void ReduceOuterJoins(Query* query) {
  Query& q = *query;
  // A join that becomes an inner one adds its condition, which may drop the rows of another.
  for (bool changed = true; changed;) {
    changed = false;
    uint64_t present = 0;  // relations whose NULL-extended rows a condition drops
    for (const ExprPtr& c : q.conjuncts) {
      if (c->kind != Expr::Kind::kFunction) continue;
      const bool comparison = IsComparison(c->function);
      if (!comparison && c->function != Function::kIn && c->function != Function::kLike &&
          c->function != Function::kRegexMatch && c->function != Function::kIsNotNull)
        continue;
      for (const ExprPtr& a : c->args) {
        if (a->kind == Expr::Kind::kColumn && a->column != kMarkColumn) present |= uint64_t{1} << a->relation;
      }
    }
    for (size_t r = 0; r < q.relations.size(); ++r) {
      Relation& relation = q.relations[r];
      if (relation.join != JoinKind::kLeft || relation.single || relation.unique || (present >> r & 1) == 0) continue;
      relation.join = JoinKind::kInner;
      for (ExprPtr& e : relation.on) q.conjuncts.push_back(std::move(e));
      relation.on.clear();
      changed = true;
    }
  }
}

/// Whether the block gives one row for each row of its joins, alone: no grouping, DISTINCT, windows, order or limit.
bool OnlyFilters(const Query& q) {
  return !q.grouped && !q.distinct && q.limit < 0 && q.offset == 0 && q.order_by.empty() && q.union_all.empty() &&
         !q.folds() && q.windows.empty() && q.repeat < 0;
}

/// How often the block reads column `column` of relation `r`.
int Readers(const Query& q, int r, int column) {
  int n = 0;
  const auto walk = [&](const Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kColumn && e.relation == r && e.column == column) ++n;
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  ForEachRoot(q, [&](const ExprPtr& e) { walk(*e, walk); });
  return n;
}

/// Whether it is the values of a series, which take less time to compute again than to store.
bool IsCheapSeries(const Query& q) {
  return q.relations.size() == 1 && q.relations[0].query != nullptr && q.relations[0].query->series >= 0 &&
         std::ranges::none_of(q.outputs, [](const Output& o) { return IsFunction(*o.expr, Function::kCase); });
}

/// Whether a join would compute texts of derived table `r` again for each of the rows of a table that is so much larger. (Others
/// take about as long to compute as to look up.)
bool RepeatsTexts(const Query& q, size_t r) {
  constexpr uint64_t kLarger = 8;
  const Query& inner = *q.relations[r].query;
  if (inner.relations.size() != 1 || inner.relations[0].table == nullptr || q.relations[r].join != JoinKind::kInner)
    return false;
  const auto is_text = [](const Output& o) {
    return o.expr->kind == Expr::Kind::kFunction && o.expr->type.storage() == StorageClass::kText;
  };
  const uint64_t rows = inner.relations[0].table->rows;
  return std::ranges::any_of(inner.outputs, is_text) && std::ranges::any_of(q.relations, [&](const Relation& other) {
           return other.join == JoinKind::kInner && other.table != nullptr && other.table->rows / kLarger >= rows;
         });
}

/// Moves the relations and conditions of derived table `r` into the block, if that gives the same rows.
bool MergeDerivedTable(Query* query, size_t r) {
  Query& q = *query;
  const Relation& relation = q.relations[r];
  if (relation.query == nullptr || relation.query.use_count() > 1 || !OnlyFilters(*relation.query)) return false;
  const Query& inner = *relation.query;
  const auto is_inner = [](const Relation& i) { return i.join == JoinKind::kInner; };
  if (std::none_of(inner.relations.begin(), inner.relations.end(), is_inner)) return false;
  if (q.relations.size() + inner.relations.size() > 64) return false;
  // Joins would give such a value to several rows, or another one to each of them.
  if (HasVolatile(inner) && q.relations.size() + inner.relations.size() > 2) return false;
  if (RepeatsTexts(q, r)) return false;
  const bool is_cheap = IsCheapSeries(inner);
  for (size_t i = 0; i < inner.outputs.size(); ++i) {
    const Expr& e = *inner.outputs[i].expr;
    // So that an expression is still computed once, and nested expressions do not grow.
    if (e.kind == Expr::Kind::kFunction && !is_cheap && Readers(q, static_cast<int>(r), static_cast<int>(i)) > 1)
      return false;
    // Without a match its value must be NULL. Only a bare column is.
    if (relation.join != JoinKind::kInner && (e.kind != Expr::Kind::kColumn || e.column == kMarkColumn)) return false;
  }
  if (relation.join != JoinKind::kInner && inner.relations.size() > 1) return false;
  int height = 1;  // of an output, which takes the place of a column
  for (const Output& o : inner.outputs) height = std::max(height, HeightOf(*o.expr));
  if (height > 1) {
    int around = 0;
    ForEachRoot(q, [&](const ExprPtr& e) { around = std::max(around, HeightOf(*e)); });
    if (height + around > kMaxNesting) return false;
  }

  const std::shared_ptr<Query> from = q.relations[r].query;  // kept alive: the block changes while it is read
  const JoinKind join = q.relations[r].join;
  const int base = static_cast<int>(q.relations.size()) - 1;
  const auto moved = [&](int i) { return i == 0 ? static_cast<int>(r) : base + i; };
  const auto renumber = [&](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kColumn) return nullptr;
    ExprPtr c = x.Clone();
    c->relation = moved(x.relation);
    c->nullable = c->nullable || join == JoinKind::kLeft;
    return c;
  };
  ForEachRoot(q, [&](ExprPtr& root) {
    Substitute(&root, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kColumn || x.relation != static_cast<int>(r) || x.column == kMarkColumn) return nullptr;
      ExprPtr e = from->outputs[static_cast<size_t>(x.column)].expr->Clone();
      Substitute(&e, renumber);
      if (e->position < 0) e->position = x.position;
      return e;
    });
  });
  for (ExprPtr& e : from->conjuncts) Substitute(&e, renumber);
  for (Relation& i : from->relations) {
    for (ExprPtr& e : i.on) Substitute(&e, renumber);
  }
  if (join != JoinKind::kInner) {
    Relation& here = q.relations[r];
    Relation& only = from->relations[0];
    here.table = std::move(only.table);
    here.query = std::move(only.query);
    here.column_names = std::move(only.column_names);
    here.column_types = std::move(only.column_types);
    for (ExprPtr& e : from->conjuncts) here.on.push_back(std::move(e));
    return true;
  }
  for (size_t i = 0; i < from->relations.size(); ++i) {
    if (i == 0) {
      q.relations[r] = std::move(from->relations[i]);
    } else {
      q.relations.push_back(std::move(from->relations[i]));
    }
  }
  // Its conditions come first: they may protect what the block computes from its columns.
  q.conjuncts.insert(q.conjuncts.begin(), std::make_move_iterator(from->conjuncts.begin()),
                     std::make_move_iterator(from->conjuncts.end()));
  return true;
}

void MergeDerivedTables(Query* query) {
  bool merged = false;
  for (size_t r = 0; r < query->relations.size(); ++r) {
    while (MergeDerivedTable(query, r)) merged = true;
  }
  if (merged) ReduceOuterJoins(query);
}

/// `done`: the blocks that have been rewritten; relations may share one. `pairs`: becomes true if GroupOtherValues may find
/// something.
void Rewrite(Query* query, std::set<const Query*>* done, bool* pairs) {
  if (!done->insert(query).second) return;
  for (const Relation& r : query->relations) {
    if (r.query != nullptr) Rewrite(r.query.get(), done, pairs);
  }
  for (const auto& more : query->union_all) Rewrite(more.get(), done, pairs);
  ReduceOuterJoins(query);
  MergeDerivedTables(query);
  ShareSums(query);
  *pairs = *pairs || AsksForOtherValues(*query);
  JoinArms(query, MergeDerivedTables);
  LeaveOutDerivedKeys(query);
  MakeOutputsLate(query);
  GroupEarly(ReadLate(query));
  SplitDistinct(query);
}

/// Simplifies and moves conditions, from the outermost block inwards. A block that several others read comes after all of
/// these, so that it gets their conditions.
class ConditionSink {
 public:
  void Run(Query* query) {
    Sink(query);
    while (!shared_.empty()) {
      const auto is_whole = [](const Shared& s) {
        return static_cast<size_t>(s.query->use_count()) == s.readers.size();
      };
      auto next = std::ranges::find_if(shared_, is_whole);
      const bool whole = next != shared_.end();
      if (!whole) next = shared_.begin();  // a recursion reads itself
      const Shared taken = std::move(*next);
      shared_.erase(next);
      if (whole) PushIntoShared(taken.query->get(), taken.readers);
      Sink(taken.query->get());
    }
  }

 private:
  struct Shared {
    const std::shared_ptr<Query>* query;  ///< as its first reader has it
    std::vector<Reader> readers;
  };

  void Sink(Query* query) {
    if (!done_.insert(query).second) return;
    ReduceOuterJoins(query);
    HavingToWhere(query);
    SimplifyConditions(query);
    PushDown(query);
    JoinRangesFirst(query);
    DecideMatches(query);
    for (size_t r = 0; r < query->relations.size(); ++r) {
      const std::shared_ptr<Query>& inner = query->relations[r].query;
      if (inner == nullptr) continue;
      if (inner.use_count() == 1) {
        Sink(inner.get());
      } else if (!done_.contains(inner.get())) {
        Note(inner, {query, r});
      }
    }
    for (const auto& more : query->union_all) Sink(more.get());
  }

  void Note(const std::shared_ptr<Query>& query, const Reader& reader) {
    const auto is_this = [&](const Shared& s) { return *s.query == query; };
    auto known = std::ranges::find_if(shared_, is_this);
    if (known == shared_.end()) known = shared_.insert(known, {&query, {}});
    known->readers.push_back(reader);
  }

  std::set<const Query*> done_;
  std::vector<Shared> shared_;  ///< not done yet, and those of their readers that are
};

/// Gives each arm of UNION ALL the limit of the only reader of all: it takes no more rows of any.
void LimitArms(int64_t rows, Query* query) {
  std::vector<std::unique_ptr<Query>> others = std::exchange(query->union_all, {});
  const auto limit = [&](Query* arm) {
    const auto is_inner = [](const Relation& r) { return r.join == JoinKind::kInner; };
    const bool makes_rows = std::ranges::any_of(arm->relations, is_inner);
    if (!makes_rows || arm->repeat >= 0 || arm->folds() || !arm->windows.empty() || HasVolatile(*arm)) return;
    auto limited = std::make_shared<Query>(std::move(*arm));
    limited->limit = rows;
    *arm = std::move(*SelectAll(std::move(limited)));
  };
  limit(query);
  for (const auto& arm : others) limit(arm.get());
  query->union_all = std::move(others);
}

/// DISTINCT with a LIMIT as a grouping: then rows are grouped as they are scanned, which ends as soon as there are enough
/// groups.
void GroupDistinct(Query* query) {
  Query& q = *query;
  const bool is_plain = q.distinct && q.limit >= 0 && q.order_by.empty() && !q.grouped && q.union_all.empty() &&
                        q.windows.empty() && q.repeat < 0 && !q.folds() && q.working == nullptr && !q.is_working &&
                        q.visible == static_cast<int>(q.outputs.size()) && !HasVolatile(q);
  const bool has_columns = std::ranges::all_of(q.outputs, [](const Output& o) { return RelationsOf(*o.expr) != 0; });
  if (!is_plain || !has_columns) return;
  for (Output& o : q.outputs) {
    const auto same = [&](const ExprPtr& key) { return key->SameAs(*o.expr); };
    const auto index = std::ranges::find_if(q.group_by, same) - q.group_by.begin();
    ExprPtr leaf = MakeLeaf(Expr::Kind::kGroup, static_cast<int>(index), o.expr->type, o.expr->nullable);
    leaf->position = o.expr->position;
    if (index == static_cast<ptrdiff_t>(q.group_by.size())) q.group_by.push_back(std::move(o.expr));
    o.expr = std::move(leaf);
  }
  q.grouped = true;
  q.distinct = false;
}

/// What the only reader takes of a recursion ends it (it may not end otherwise), and bounds the arms of UNION ALL.
void SinkLimits(Query* query, std::set<const Query*>* done) {
  if (!done->insert(query).second) return;
  for (const Relation& r : query->relations) {
    if (r.query != nullptr) SinkLimits(r.query.get(), done);
  }
  for (const auto& more : query->union_all) SinkLimits(more.get(), done);
  GroupDistinct(query);
  const Query& q = *query;
  const bool takes_first = q.relations.size() == 1 && q.conjuncts.empty() && !q.grouped && !q.distinct &&
                           q.order_by.empty() && q.windows.empty() && q.limit >= 0 && q.limit <= INT64_MAX - q.offset;
  if (!takes_first || q.relations[0].query == nullptr || q.relations[0].query.use_count() > 1) return;
  Query& inner = *q.relations[0].query;
  const int64_t rows = q.limit + q.offset;
  if (inner.working != nullptr) {
    inner.turn_limit = inner.turn_limit < 0 ? rows : std::min(inner.turn_limit, rows);
  } else if (!inner.union_all.empty() && !inner.distinct && inner.repeat < 0 && !inner.folds() &&
             inner.windows.empty()) {
    LimitArms(rows, &inner);
  }
}

}  // namespace

void Simplify(Query* query) {
  std::set<const Query*> rewritten, limited;
  bool pairs = false;
  Rewrite(query, &rewritten, &pairs);
  if (pairs) GroupOtherValues(query);
  ConditionSink().Run(query);
  GroupByKeys(query);
  ShareGroups(query);
  DropUnread(query);
  SinkLimits(query, &limited);
}

}  // namespace tessera
