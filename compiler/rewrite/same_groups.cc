#include "compiler/rewrite/same_groups.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"

namespace tessera {
namespace {

/// More groupings than this are not compared with each other.
constexpr size_t kMostGroups = 32;

/// Whether the block gives its groups, and that is all.
bool GivesGroups(const Query& q) {
  return q.grouped && !q.group_by.empty() && !q.distinct && q.order_by.empty() && q.limit < 0 && q.offset == 0 &&
         q.union_all.empty() && q.windows.empty() && q.repeat < 0 && !q.folds() && q.working == nullptr &&
         !q.is_working && q.series < 0 && q.visible == static_cast<int>(q.outputs.size()) && !HasVolatile(q);
}

bool AreSame(const std::vector<ExprPtr>& a, const std::vector<ExprPtr>& b) {
  return std::ranges::equal(a, b, [](const ExprPtr& x, const ExprPtr& y) { return x->SameAs(*y); });
}

bool AreSame(const Relation& a, const Relation& b) {
  return a.table == b.table && a.query == b.query && a.join == b.join && a.unique == b.unique && a.single == b.single &&
         AreSame(a.on, b.on);
}

/// (Aggregates whose values have an order or a parameter are blocks of their own by now, see FoldAggregates.)
bool AreSame(const Aggregate& a, const Aggregate& b) {
  const bool same_argument =
      a.argument == nullptr ? b.argument == nullptr : b.argument != nullptr && a.argument->SameAs(*b.argument);
  return a.function == b.function && a.distinct == b.distinct && a.type == b.type && same_argument;
}

class SharedGroups {
 public:
  void Run(Query* query) {
    Visit(query);
    for (const Reader& reader : readers_) {
      Relation& relation = reader.block->relations[reader.relation];
      if (!reader.is_new && relation.column_types.size() == relation.query->outputs.size()) continue;
      TakeColumns(&relation);
    }
  }

 private:
  struct Reader {
    Query* block;
    size_t relation;
    bool is_new = false;  ///< it reads another block than before
  };

  void Visit(Query* query) {
    if (!done_.insert(query).second || query->working != nullptr) return;
    for (size_t r = 0; r < query->relations.size(); ++r) {
      const std::shared_ptr<Query> inner = query->relations[r].query;
      if (inner == nullptr) continue;
      Visit(inner.get());
      if (!GivesGroups(*inner)) continue;
      readers_.push_back({query, r});
      const auto is_this = [&](const std::shared_ptr<Query>& known) { return known == inner; };
      if (std::ranges::any_of(groups_, is_this)) continue;
      const auto found = std::ranges::find_if(groups_, [&](const auto& known) { return Takes(*known, *inner); });
      if (found != groups_.end()) {
        Share(*found, query, r);
        readers_.back().is_new = true;
      } else if (groups_.size() < kMostGroups) {
        groups_.push_back(inner);
      }
    }
    for (const auto& more : query->union_all) Visit(more.get());
  }

  /// The number of an aggregate among those of a block; their number if it is none of them.
  static size_t Find(const Aggregate& a, const Query& q) {
    const auto same = [&](const Aggregate& known) { return AreSame(a, known); };
    return static_cast<size_t>(std::ranges::find_if(q.aggregates, same) - q.aggregates.begin());
  }

  /// An expression over the groups of `from` as one over those of `q`.
  static ExprPtr Moved(const Expr& e, const Query& from, const Query& q) {
    ExprPtr moved = e.Clone();
    Substitute(&moved, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kAggregate) return nullptr;
      ExprPtr leaf = x.Clone();
      leaf->index = static_cast<int>(Find(from.aggregates[static_cast<size_t>(x.index)], q));
      return leaf;
    });
    return moved;
  }

  /// Whether the groups of `other` are those of `q`, whatever is computed of them.
  static bool Takes(const Query& q, const Query& other) {
    const auto same = [](const Relation& a, const Relation& b) { return AreSame(a, b); };
    if (!std::ranges::equal(q.relations, other.relations, same) || !AreSame(q.conjuncts, other.conjuncts) ||
        !AreSame(q.group_by, other.group_by))
      return false;
    return std::ranges::equal(q.having, other.having,
                              [&](const ExprPtr& a, const ExprPtr& b) { return a->SameAs(*Moved(*b, other, q)); });
  }

  /// Relation `r` of the block reads `q`, which gets what it lacks.
  void Share(const std::shared_ptr<Query>& q, Query* block, size_t r) {
    const std::shared_ptr<Query>& before = left_.emplace_back(block->relations[r].query);
    for (const Aggregate& a : before->aggregates) {
      if (Find(a, *q) == q->aggregates.size()) q->aggregates.push_back(CopyAggregate(a));
    }
    std::vector<int> place;
    for (const Output& o : before->outputs) {
      ExprPtr moved = Moved(*o.expr, *before, *q);
      const auto same = [&](const Output& known) { return known.expr->SameAs(*moved); };
      const auto at = std::ranges::find_if(q->outputs, same) - q->outputs.begin();
      place.push_back(static_cast<int>(at));
      if (at == static_cast<ptrdiff_t>(q->outputs.size())) q->outputs.push_back({std::move(moved), o.name});
    }
    q->visible = static_cast<int>(q->outputs.size());
    ForEachRoot(*block, [&](ExprPtr& root) {
      Substitute(&root, [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn || x.relation != static_cast<int>(r) || x.column == kMarkColumn)
          return nullptr;
        ExprPtr column = x.Clone();
        column->column = place[static_cast<size_t>(x.column)];
        return column;
      });
    });
    block->relations[r].query = q;
  }

  std::set<const Query*> done_;
  std::vector<std::shared_ptr<Query>> groups_;  ///< those that are made
  std::vector<std::shared_ptr<Query>> left_;    ///< those that are not any more; blocks in them may be readers
  std::vector<Reader> readers_;
};

}  // namespace

void ShareGroups(Query* query) { SharedGroups().Run(query); }

}  // namespace tessera
