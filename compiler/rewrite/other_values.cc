#include "compiler/rewrite/other_values.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/selectivity.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

/// This number of rows must have a key: otherwise there are about as many pairs as rows.
constexpr double kRowsOfKey = 2;
constexpr uint64_t kFewestRows = 1024;

/// Two relations with the rows of one table, and what is asked of them.
struct Pair {
  size_t a = 0, b = 0;
  int value = -1;         ///< the column that must differ
  std::vector<int> keys;  ///< those that must be equal
};

/// A conjunct a.c <op> b.c: its relations and its column.
bool SameColumns(const Query& q, const Expr& e, Function op, Pair* pair, int* column) {
  if (!IsFunction(e, op)) return false;
  const Expr &x = *e.args[0], &y = *e.args[1];
  const bool columns = x.kind == Expr::Kind::kColumn && y.kind == Expr::Kind::kColumn && x.column == y.column &&
                       x.column != kMarkColumn && x.relation != y.relation;
  if (!columns || x.type.storage() != StorageClass::kInt || !(x.type == y.type)) return false;
  pair->a = static_cast<size_t>(std::min(x.relation, y.relation));
  pair->b = static_cast<size_t>(std::max(x.relation, y.relation));
  const Relation &r = q.relations[pair->a], &s = q.relations[pair->b];
  *column = x.column;
  return r.table != nullptr && r.table == s.table && r.join == JoinKind::kInner && s.join == JoinKind::kInner;
}

class OtherValues {
 public:
  void Run(Query* root) {
    Note(root, root);
    if (pairs_.empty()) return;
    for (const auto& [query, pair] : pairs_) {
      if (query != root && AsksForOne(query)) Group(query, pair);
    }
  }

 private:
  struct Reader {
    const Query* block;
    size_t relation;
  };
  struct Use {
    std::vector<Reader> readers;
    long holders = 0;     ///< of the query; with others than readers it is left alone
    std::set<int> reads;  ///< its outputs
    int asks_for_one = -1;
  };

  /// `head`: the block that has this one in its union_all, or itself.
  void Note(Query* q, Query* head) {
    if (!done_.insert(q).second) return;
    head_[q] = head;
    Pair pair;
    if (FindPair(*q, &pair)) pairs_.emplace_back(q, pair);
    for (size_t r = 0; r < q->relations.size(); ++r) {
      const std::shared_ptr<Query>& inner = q->relations[r].query;
      if (inner == nullptr) continue;
      Use& use = uses_[inner.get()];
      use.readers.push_back({q, r});
      use.holders = inner.use_count();
      Note(inner.get(), inner.get());
    }
    ForEachRoot(*q, [&](const ExprPtr& root) {
      ForEachColumn(*root, [&](const Expr& c) {
        const Relation& r = q->relations[static_cast<size_t>(c.relation)];
        if (r.query != nullptr) uses_[r.query.get()].reads.insert(c.column);
      });
    });
    for (const auto& more : q->union_all) Note(more.get(), head);
  }

  /// Whether the block only filters and joins, so that a row more of a relation is a row more of the block.
  static bool OnlyJoins(const Query& q) { return !q.grouped && HasRowsOfJoins(q); }

  /// Whether nothing changes if rows of the block are there once.
  bool AsksForOne(const Query* query) {
    const auto found = uses_.find(head_.at(query));
    if (found == uses_.end()) return false;
    Use& use = found->second;
    if (use.asks_for_one >= 0) return use.asks_for_one == 1;
    use.asks_for_one = 0;  // of a recursion
    bool one = use.holders == static_cast<long>(use.readers.size());
    for (const Reader& reader : use.readers) {
      const Relation& r = reader.block->relations[reader.relation];
      const bool asks = r.join == JoinKind::kSemi || r.join == JoinKind::kAnti || r.join == JoinKind::kMark;
      one = one && (asks || (r.join == JoinKind::kInner && OnlyJoins(*reader.block) && AsksForOne(reader.block)));
    }
    use.asks_for_one = one ? 1 : 0;
    return one;
  }

  /// Finds two relations of a block that only joins, of which nothing else is asked but keys.
  static bool FindPair(const Query& q, Pair* pair) {
    if (!OnlyJoins(q) || q.distinct || q.relations.size() < 2) return false;
    const auto differs = std::ranges::find_if(
        q.conjuncts, [&](const ExprPtr& e) { return SameColumns(q, *e, Function::kNe, pair, &pair->value); });
    if (differs == q.conjuncts.end()) return false;
    const TableInfo& table = *q.relations[pair->a].table;
    if (table.rows < kFewestRows) return false;
    double keys = 1;
    bool plain = true;
    const auto reads_other = [&](const Expr& e) {
      bool found = false;
      ForEachColumn(e, [&](const Expr& c) {
        const bool own = c.relation == static_cast<int>(pair->a) || c.relation == static_cast<int>(pair->b);
        found = found || (own && std::ranges::find(pair->keys, c.column) == pair->keys.end());
      });
      return found;
    };
    for (const ExprPtr& e : q.conjuncts) {
      Pair same;
      int key = -1;
      if (!SameColumns(q, *e, Function::kEq, &same, &key) || same.a != pair->a || same.b != pair->b) continue;
      pair->keys.push_back(key);
      keys *= DistinctOf(q, *e->args[0]);
    }
    for (const ExprPtr& e : q.conjuncts) plain = plain && (e == *differs || !reads_other(*e));
    for (const Relation& r : q.relations) {
      for (const ExprPtr& e : r.on) plain = plain && !reads_other(*e);
    }
    return plain && !pair->keys.empty() && keys * kRowsOfKey <= static_cast<double>(table.rows);
  }

  void Group(Query* query, const Pair& pair) {
    Query& q = *query;
    const std::set<int>& reads = uses_.at(head_.at(query)).reads;
    const auto is_of_pair = [&](const Expr& c) {
      return c.relation == static_cast<int>(pair.a) || c.relation == static_cast<int>(pair.b);
    };
    const auto place = [&](int column) { return std::ranges::find(pair.keys, column) - pair.keys.begin(); };
    for (size_t i = 0; i < q.outputs.size(); ++i) {
      bool other = false;
      ForEachColumn(*q.outputs[i].expr, [&](const Expr& c) {
        other = other || (is_of_pair(c) && place(c.column) == static_cast<ptrdiff_t>(pair.keys.size()));
      });
      if (!other) continue;
      if (reads.contains(static_cast<int>(i))) return;
      q.outputs[i].expr = MakeNull(q.outputs[i].expr->type, q.outputs[i].expr->position);
    }
    std::erase_if(q.conjuncts, [&](const ExprPtr& e) {
      Pair same;
      int column = -1;
      return (SameColumns(q, *e, Function::kNe, &same, &column) || SameColumns(q, *e, Function::kEq, &same, &column)) &&
             same.a == pair.a && same.b == pair.b;
    });
    Relation groups = DerivedTable(Groups(q.relations[pair.a], pair));
    groups.alias = q.relations[pair.a].alias;
    q.relations[pair.a] = std::move(groups);
    q.relations.erase(q.relations.begin() + static_cast<ptrdiff_t>(pair.b));
    ForEachRoot(q, [&](ExprPtr& root) {
      Substitute(&root, [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kColumn) return nullptr;
        ExprPtr c = x.Clone();
        if (is_of_pair(x)) {
          c->relation = static_cast<int>(pair.a);
          c->column = static_cast<int>(place(x.column));
        } else if (x.relation > static_cast<int>(pair.b)) {
          --c->relation;
        }
        return c;
      });
    });
  }

  /// The keys with two values.
  static std::shared_ptr<Query> Groups(const Relation& table, const Pair& pair) {
    auto groups = std::make_shared<Query>();
    groups->relations.push_back(CopySource(table));
    groups->grouped = true;
    const auto column = [&](int c) {
      const bool nullable = !table.table->schema.columns[static_cast<size_t>(c)].not_null;
      return MakeColumn(0, c, table.column_types[static_cast<size_t>(c)], nullable, -1);
    };
    for (size_t k = 0; k < pair.keys.size(); ++k) {
      ExprPtr key = column(pair.keys[k]);
      if (key->nullable) groups->conjuncts.push_back(MakeTest(Function::kIsNotNull, key->Clone()));
      groups->outputs.push_back({MakeLeaf(Expr::Kind::kGroup, static_cast<int>(k), key->type, key->nullable),
                                 table.column_names[static_cast<size_t>(pair.keys[k])]});
      groups->group_by.push_back(std::move(key));
    }
    groups->visible = static_cast<int>(groups->outputs.size());
    std::vector<ExprPtr> ends;
    for (const AggregateFunction f : {AggregateFunction::kMin, AggregateFunction::kMax}) {
      Aggregate a;
      a.function = f;
      a.argument = column(pair.value);
      a.type = a.argument->type;
      ends.push_back(MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(groups->aggregates.size()), a.type, true));
      groups->aggregates.push_back(std::move(a));
    }
    groups->having.push_back(MakeFunction(Function::kNe, SqlType::Of(TypeId::kBoolean), -1, std::move(ends)));
    return groups;
  }

  std::set<const Query*> done_;
  std::map<const Query*, Query*> head_;
  std::map<const Query*, Use> uses_;
  std::vector<std::pair<Query*, Pair>> pairs_;
};

}  // namespace

bool AsksForOtherValues(const Query& q) {
  return std::ranges::any_of(q.conjuncts, [&](const ExprPtr& e) {
    Pair pair;
    int column = -1;
    return SameColumns(q, *e, Function::kNe, &pair, &column);
  });
}

void GroupOtherValues(Query* query) { OtherValues().Run(query); }

}  // namespace tessera
