#include "compiler/rewrite/unread_columns.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"
#include "compiler/rewrite/decorrelate.h"

namespace tessera {
namespace {

/// Calls f for the number of each output that the window reads, but for those of its order.
template <class W, class F>
void ForEachOutput(W& w, F f) {
  for (auto* c : {&w.value, &w.count, &w.fallback, &w.frame.key, &w.frame.start_column, &w.frame.end_column}) {
    if (*c >= 0) f(*c);
  }
  for (auto& k : w.value_order) f(k.output);
}

/// Adds the outputs that the block's windows read.
void KeepOfWindows(const Query& q, std::set<int>* keep) {
  const std::set<int> used = *keep;
  for (const int i : used) {
    const Expr& e = *q.outputs[static_cast<size_t>(i)].expr;
    if (e.kind != Expr::Kind::kWindow) continue;
    const Window& w = q.windows[static_cast<size_t>(e.index)];
    ForEachOutput(w, [&](int c) { keep->insert(c); });
  }
}

/// The outputs of the block have become fewer. Windows that are left out go; the others read columns at their `place`.
void PruneWindows(const std::vector<int>& place, Query* q) {
  std::vector<Window> windows;
  for (Output& o : q->outputs) {
    if (o.expr->kind != Expr::Kind::kWindow) continue;
    Window w = q->windows[static_cast<size_t>(o.expr->index)];
    ForEachOutput(w, [&](int& c) { c = place[static_cast<size_t>(c)]; });
    o.expr->index = static_cast<int>(windows.size());
    windows.push_back(w);
  }
  q->windows = std::move(windows);
}

/// A column for a derived table that has none: a subquery that only shows columns of the query around it.
void AddOutput(Relation* relation) {
  Query* const query = relation->query.get();
  query->outputs.push_back(OneOutput());
  query->visible = 1;
  for (const auto& more : query->union_all) {
    more->outputs.push_back(OneOutput());
    more->visible = 1;
  }
  relation->column_names = {query->outputs[0].name};
  relation->column_types = {query->outputs[0].expr->type};
}

/// No column of the derived table is read, only its rows are counted: the first column need not be computed.
void CountByConstant(Relation* relation) {
  Query* const query = relation->query.get();
  const auto is_computed = [](const Expr& e) {
    return e.kind == Expr::Kind::kFunction || e.kind == Expr::Kind::kAggregate;
  };
  bool computed = is_computed(*query->outputs[0].expr);
  for (const auto& more : query->union_all) computed = computed || is_computed(*more->outputs[0].expr);
  if (!computed) return;
  const auto replace = [](Query* q) { q->outputs[0].expr = OneOutput().expr; };
  replace(query);
  for (const auto& more : query->union_all) replace(more.get());
  if (!relation->column_types.empty()) relation->column_types[0] = query->outputs[0].expr->type;
}

/// Removes aggregates that neither the outputs nor HAVING have.
void PruneAggregates(Query* query) {
  Query& q = *query;
  if (q.aggregates.empty()) return;
  std::vector<int> place(q.aggregates.size(), -1);
  const auto note = [&](const Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kAggregate) place[static_cast<size_t>(e.index)] = 0;
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  for (const Output& o : q.outputs) note(*o.expr, note);
  for (const ExprPtr& e : q.having) note(*e, note);
  std::vector<Aggregate> aggregates;
  for (size_t i = 0; i < place.size(); ++i) {
    if (place[i] < 0) continue;
    place[i] = static_cast<int>(aggregates.size());
    aggregates.push_back(std::move(q.aggregates[i]));
  }
  if (aggregates.size() == q.aggregates.size()) {
    q.aggregates = std::move(aggregates);
    return;
  }
  if (aggregates.empty() && q.group_by.empty()) {  // it is one row
    Aggregate count;
    count.type = SqlType::Of(TypeId::kBigint);
    aggregates.push_back(std::move(count));
  }
  q.aggregates = std::move(aggregates);
  const auto renumber = [&](Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kAggregate) e.index = place[static_cast<size_t>(e.index)];
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  for (Output& o : q.outputs) renumber(*o.expr, renumber);
  for (ExprPtr& e : q.having) renumber(*e, renumber);
}

/// Removes unused outputs of derived tables.
void PruneOutputs(Query* query, std::set<const Query*>* done) {
  if (!done->insert(query).second) return;
  std::vector<std::set<int>> used(query->relations.size());
  const auto note = [&](const Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kColumn && e.column != kMarkColumn)
      used[static_cast<size_t>(e.relation)].insert(e.column);
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  ForEachRoot(*query, [&](const ExprPtr& e) { note(*e, note); });
  for (size_t r = 0; r < query->relations.size(); ++r) {
    Relation& relation = query->relations[r];
    Query* inner = relation.query.get();
    if (inner == nullptr) continue;
    bool all = inner->distinct || inner->folds() || relation.query.use_count() > 1;  // others may read other outputs
    all = all || inner->working != nullptr || inner->is_working;
    for (const auto& more : inner->union_all) all = all || more->distinct;
    if (!all) {
      std::set<int> keep = used[r];
      KeepOfWindows(*inner, &keep);
      const auto is_window = [&](int i) {
        return inner->outputs[static_cast<size_t>(i)].expr->kind == Expr::Kind::kWindow;
      };
      // (The order of a block with windows is theirs alone.)
      if (!inner->windows.empty() && std::none_of(keep.begin(), keep.end(), is_window)) inner->order_by.clear();
      for (const OrderKey& k : inner->order_by) keep.insert(k.output);
      if (inner->repeat >= 0) keep.insert(inner->repeat);
      if (inner->outputs.empty()) AddOutput(&relation);
      if (keep.empty()) {  // one column is needed to count rows
        CountByConstant(&relation);
        keep.insert(0);
      }
      std::vector<int> place(inner->outputs.size(), -1);
      // Visible ones first, and in order.
      int n = 0;
      for (int old : keep) place[static_cast<size_t>(old)] = n++;
      const auto prune = [&](Query* q) {
        std::vector<Output> outputs;
        for (int old : keep) outputs.push_back(std::move(q->outputs[static_cast<size_t>(old)]));
        q->outputs = std::move(outputs);
      };
      int visible = 0;
      for (int old : keep) visible += old < inner->visible ? 1 : 0;
      prune(inner);
      inner->visible = visible;
      for (OrderKey& k : inner->order_by) k.output = place[static_cast<size_t>(k.output)];
      if (!inner->windows.empty()) PruneWindows(place, inner);
      if (inner->repeat >= 0) inner->repeat = place[static_cast<size_t>(inner->repeat)];
      for (const auto& more : inner->union_all) {
        prune(more.get());
        more->visible = visible;
      }
      std::vector<std::string> names;
      std::vector<SqlType> types;
      for (int old : keep) {
        if (old >= static_cast<int>(relation.column_names.size())) continue;
        names.push_back(std::move(relation.column_names[static_cast<size_t>(old)]));
        types.push_back(relation.column_types[static_cast<size_t>(old)]);
      }
      relation.column_names = std::move(names);
      relation.column_types = std::move(types);
      const auto renumber = [&](Expr& e, auto& self) -> void {
        if (e.kind == Expr::Kind::kColumn && e.relation == static_cast<int>(r) && e.column != kMarkColumn) {
          e.column = place[static_cast<size_t>(e.column)];
        }
        for (ExprPtr& a : e.args) self(*a, self);
      };
      ForEachRoot(*query, [&](ExprPtr& e) { renumber(*e, renumber); });
    }
    PruneAggregates(inner);
    for (const auto& more : inner->union_all) PruneAggregates(more.get());
    PruneOutputs(inner, done);
  }
  for (const auto& more : query->union_all) PruneOutputs(more.get(), done);
}

/// The columns that are read of queries with several readers.
using Reads = std::map<Query*, std::set<int>>;

void NoteReads(const Query& query, std::set<const Query*>* done, Reads* reads) {
  if (!done->insert(&query).second) return;
  const auto note = [&](const Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kColumn && e.column != kMarkColumn) {
      const Relation& r = query.relations[static_cast<size_t>(e.relation)];
      if (r.query != nullptr && r.query.use_count() > 1) (*reads)[r.query.get()].insert(e.column);
    }
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  ForEachRoot(query, [&](const ExprPtr& e) { note(*e, note); });
  for (const Relation& r : query.relations) {
    if (r.query == nullptr) continue;
    if (r.query.use_count() > 1) (void)(*reads)[r.query.get()];
    NoteReads(*r.query, done, reads);
  }
  for (const auto& more : query.union_all) NoteReads(*more, done, reads);
}

/// Columns of queries with several readers, which all keep their numbers, become NULL where no one reads them. False if
/// there are none.
bool ClearShared(Query* query) {
  std::set<const Query*> done;
  Reads reads;
  NoteReads(*query, &done, &reads);
  bool cleared = false;
  for (auto& [shared, read] : reads) {
    Query& q = *shared;
    bool all = q.distinct || q.folds() || !q.windows.empty() || q.working != nullptr || q.is_working;
    for (const auto& more : q.union_all) all = all || more->distinct || !more->windows.empty();
    if (all) continue;
    for (const OrderKey& k : q.order_by) read.insert(k.output);
    if (q.repeat >= 0) read.insert(q.repeat);
    for (size_t i = 0; i < q.outputs.size(); ++i) {
      if (read.contains(static_cast<int>(i))) continue;
      const auto clear = [&](Query* of) {
        ExprPtr& e = of->outputs[i].expr;
        if (e->kind == Expr::Kind::kConstant || e->kind == Expr::Kind::kColumn) return;
        e = MakeNull(e->type, e->position);
        cleared = true;
      };
      clear(&q);
      for (const auto& more : q.union_all) clear(more.get());
    }
    PruneAggregates(&q);
  }
  return cleared;
}

}  // namespace

void DropUnread(Query* query) {
  std::set<const Query*> pruned;
  PruneOutputs(query, &pruned);
  if (!ClearShared(query)) return;
  std::set<const Query*> again;
  PruneOutputs(query, &again);
}

}  // namespace tessera
