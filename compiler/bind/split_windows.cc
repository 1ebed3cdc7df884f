#include "compiler/bind/split_windows.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/grouping_sets.h"
#include "compiler/bind/ranked_rows.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/subquery_expr.h"
#include "vm/program/window_spec.h"

namespace tessera {
namespace {

/// Blocks of one chain. Each sorts all rows.
constexpr size_t kMaxSorts = 64;

/// Windows that are computed in one order of the rows.
struct Sort {
  std::vector<const WindowKey*> keys;  ///< those of PARTITION BY first
  std::vector<size_t> calls;
};

class WindowSplitter {
 public:
  explicit WindowSplitter(QueryBlock* block) : block_(*block), q_(*block->query), calls_(block->windows) {}

  Status Split() {
    TESSERA_TRY(RefuseCompared());
    for (WindowCall& c : calls_) {
      partitions_.emplace_back();
      for (ExprPtr& e : c.partition_by) partitions_.back().push_back({std::move(e), false, false});
      c.partition_by.clear();
    }
    TESSERA_TRY(FindSorts());
    block_.context.deepest += kWindowLevels * static_cast<int>(sorts_.size());
    if (block_.context.deepest > kMaxNesting) return NestedTooDeeply(calls_[0].position);

    auto rows = std::make_shared<Query>();
    rows->relations = std::move(q_.relations);
    rows->conjuncts = std::move(q_.conjuncts);
    rows->grouped = q_.grouped;
    rows->group_by = std::move(q_.group_by);
    rows->aggregates = std::move(q_.aggregates);
    rows->having = std::move(q_.having);
    q_.relations.clear();
    q_.conjuncts.clear();
    q_.grouped = false;
    q_.group_by.clear();
    q_.aggregates.clear();
    q_.having.clear();
    rows_ = rows.get();
    for (const Relation& r : rows->relations) {
      names_.emplace_back();
      for (const std::string& c : r.column_names) names_.back().push_back(r.alias.empty() ? c : r.alias + "." + c);
    }

    // First the columns are numbered, because the windows come after all of them.
    for (const Output& o : q_.outputs) Collect(*o.expr);
    if (block_.qualify != nullptr) Collect(*block_.qualify);
    for (const WindowCall& c : calls_) ForEachExpr(c, [&](const ExprPtr& e) { ColumnOf(*e); });
    for (const auto& keys : partitions_) {
      for (const WindowKey& k : keys) ColumnOf(*k.expr);
    }
    if (rows->outputs.empty())
      rows->outputs.push_back({MakeConstant(Value::Int(SqlType::Of(TypeId::kInteger), 1), -1), "one"});
    std::vector<int> place(calls_.size());
    int next = static_cast<int>(rows->outputs.size());
    for (const Sort& s : sorts_) {
      for (const size_t c : s.calls) place[c] = next++;
    }
    for (size_t s = 0; s < sorts_.size(); ++s) {
      if (s > 0) rows = ReaderOf(std::move(rows));
      AddWindows(sorts_[s], rows.get());
    }
    for (Output& o : q_.outputs) Replace(place, &o.expr);
    if (block_.qualify != nullptr) {
      Replace(place, &block_.qualify);
      SplitConjuncts(std::move(block_.qualify), &q_.conjuncts);
    }
    q_.relations.push_back(WindowedTable(std::move(rows)));
    TESSERA_TRY(ExpandGroupingSets(block_.grouping, rows_));
    if (RefersOutward(*rows_)) {
      MoveInward(rows_, static_cast<int>(sorts_.size()));
      for (Query* b = &q_; b != rows_; b = b->relations[0].query.get()) b->relations[0].correlated = true;
    }
    return {};
  }

 private:
  Status RefuseCompared() const {
    const auto compared = [](const Expr& e, auto& self) -> const Expr* {
      if (e.kind == Expr::Kind::kSubquery && HasWindow(e) && RefersOutward(*e.subquery->query)) return &e;
      for (const ExprPtr& a : e.args) {
        if (const Expr* found = self(*a, self)) return found;
      }
      return nullptr;
    };
    for (const Output& o : q_.outputs) {
      if (const Expr* e = compared(*o.expr, compared)) {
        return Unsupported("a window function beside a correlated subquery that it is compared with is not supported",
                           e->position, "Put the window function into a derived table.");
      }
    }
    return {};
  }

  // ---- Sorts

  static bool SameKey(const WindowKey& a, const WindowKey& b) {
    return a.descending == b.descending && a.nulls_first == b.nulls_first && a.expr->SameAs(*b.expr);
  }

  /// Whether the call's partitions and peers are found in rows of that order.
  bool Fits(size_t call, const Sort& s) const {
    const std::vector<WindowKey>&partition = partitions_[call], &order = calls_[call].order_by;
    if (partition.size() + order.size() > s.keys.size()) return false;
    for (size_t k = 0; k < partition.size(); ++k) {  // as a set
      const auto same = [&](const WindowKey& p) { return p.expr->SameAs(*s.keys[k]->expr); };
      if (std::none_of(partition.begin(), partition.end(), same)) return false;
    }
    for (size_t k = 0; k < order.size(); ++k) {
      if (!SameKey(order[k], *s.keys[partition.size() + k])) return false;
    }
    return true;
  }

  /// Calls with more keys come first: others may fit into their order. A key by which many calls partition comes before
  /// those of few, so that it may be alone in front.
  Status FindSorts() {
    const auto keys = [&](size_t c) { return partitions_[c].size() + calls_[c].order_by.size(); };
    const auto users = [&](const WindowKey& key) {
      return std::count_if(partitions_.begin(), partitions_.end(), [&](const std::vector<WindowKey>& p) {
        return std::any_of(p.begin(), p.end(), [&](const WindowKey& k) { return k.expr->SameAs(*key.expr); });
      });
    };
    std::vector<size_t> order(calls_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys(a) > keys(b); });
    for (const size_t c : order) {
      const auto found = std::find_if(sorts_.begin(), sorts_.end(), [&](const Sort& s) { return Fits(c, s); });
      if (found != sorts_.end()) {
        found->calls.push_back(c);
        continue;
      }
      if (sorts_.size() == kMaxSorts) {
        return Unsupported("window functions over more than 64 different orders of the rows are not supported",
                           calls_[c].position);
      }
      Sort s;
      for (const WindowKey& k : partitions_[c]) s.keys.push_back(&k);
      std::stable_sort(s.keys.begin(), s.keys.end(),
                       [&](const WindowKey* a, const WindowKey* b) { return users(*a) > users(*b); });
      for (const WindowKey& k : calls_[c].order_by) s.keys.push_back(&k);
      s.calls.push_back(c);
      sorts_.push_back(std::move(s));
    }
    return {};
  }

  // ---- Blocks

  std::string NameOf(const Expr& e) const {
    if (e.kind == Expr::Kind::kGroup && e.index < 0) return "grouping";
    if (e.kind == Expr::Kind::kGroup) return rows_->group_by[static_cast<size_t>(e.index)]->ToString(names_);
    return e.ToString(names_);
  }

  /// The output of the first block that has the value.
  int ColumnOf(const Expr& e) {
    size_t i = 0;
    while (i < rows_->outputs.size() && !rows_->outputs[i].expr->SameAs(e)) ++i;
    if (i == rows_->outputs.size()) rows_->outputs.push_back({e.Clone(), NameOf(e)});
    return static_cast<int>(i);
  }
  int ColumnOf(const ExprPtr& e) { return e == nullptr ? -1 : ColumnOf(*e); }

  /// Whether it stays as it is above the windows.
  static bool Stays(const Expr& e) { return IsConstant(e) || IsSubqueryOutput(e); }

  /// Gives columns to what stands beside the windows in an expression.
  void Collect(const Expr& e) {
    if (e.kind == Expr::Kind::kWindow || Stays(e)) return;
    if (!HasWindow(e) && !HasSubqueryOutput(e)) {
      ColumnOf(e);
      return;
    }
    for (const ExprPtr& a : e.args) Collect(*a);
  }

  /// Whether it is over the output of a subquery that is around it.
  static bool HasSubqueryOutput(const Expr& e) {
    if (e.kind == Expr::Kind::kSubquery) return false;
    return IsSubqueryOutput(e) ||
           std::any_of(e.args.begin(), e.args.end(), [](const ExprPtr& a) { return HasSubqueryOutput(*a); });
  }

  /// Makes an expression of the block one over the columns and windows.
  void Replace(const std::vector<int>& place, ExprPtr* e) {
    Expr& x = **e;
    if (Stays(x)) return;
    const bool window = x.kind == Expr::Kind::kWindow;
    if (window || (!HasWindow(x) && !HasSubqueryOutput(x))) {
      const int column = window ? place[static_cast<size_t>(x.index)] : ColumnOf(x);
      *e = MakeColumn(0, column, x.type, x.nullable, x.position);
      return;
    }
    for (ExprPtr& a : x.args) Replace(place, &a);
  }

  void AddWindows(const Sort& sort, Query* rows) {
    std::vector<Output> windows;
    for (const WindowKey* k : sort.keys) rows->order_by.push_back({ColumnOf(*k->expr), k->descending, k->nulls_first});
    for (const size_t c : sort.calls) {
      const WindowCall& call = calls_[c];
      Window w;
      w.function = call.function;
      w.aggregate = call.aggregate;
      w.value = ColumnOf(call.value);
      w.count = ColumnOf(call.count);
      w.fallback = ColumnOf(call.fallback);
      w.number = call.number;
      w.ignore_nulls = call.ignore_nulls;
      w.distinct = call.distinct;
      for (const AggregateOrder& k : call.value_order)
        w.value_order.push_back({ColumnOf(*k.expr), k.descending, k.nulls_first});
      w.parameter = call.parameter;
      w.partition_keys = static_cast<int>(partitions_[c].size());
      w.order_keys = static_cast<int>(call.order_by.size());
      w.frame = call.frame;
      w.frame.key = ColumnOf(call.range_key);
      w.frame.start_column = ColumnOf(call.range_start);
      w.frame.end_column = ColumnOf(call.range_end);
      w.type = call.type;
      ExprPtr e = MakeLeaf(Expr::Kind::kWindow, static_cast<int>(rows->windows.size()), call.type, call.nullable);
      e->position = call.position;
      rows->windows.push_back(w);
      windows.push_back({std::move(e), TextOf(call)});
    }
    for (Output& o : windows) rows->outputs.push_back(std::move(o));
  }

  std::string TextOf(const WindowCall& call) const {
    const bool aggregate = call.function >= vm::WindowFunction::kAggregate;
    std::string text = aggregate ? Info(call.aggregate).text : vm::NameOf(call.function);
    return text + (call.distinct ? "(distinct " : "(") +
           (call.value != nullptr ? NameOf(*call.value)
            : aggregate           ? "*"
                                  : "") +
           (call.ignore_nulls ? " ignore nulls)" : ")");
  }

  QueryBlock& block_;
  Query& q_;
  std::vector<WindowCall>& calls_;
  std::vector<std::vector<WindowKey>> partitions_;  ///< of each call
  std::vector<Sort> sorts_;
  Query* rows_ = nullptr;                        ///< the first block
  std::vector<std::vector<std::string>> names_;  ///< of the columns of its relations
};

}  // namespace

Status SplitWindows(QueryBlock* block) { return block->windows.empty() ? Status::Ok() : WindowSplitter(block).Split(); }

}  // namespace tessera