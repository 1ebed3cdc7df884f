#include "compiler/plan/plan_text.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "compiler/plan/join_strategy.h"
#include "compiler/rewrite/run_rows.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// For example "Hash left join". A join that only looks whether a table without keys has a row has no strategy.
std::string JoinText(const Query& q, const JoinStep& j) {
  static constexpr const char* kKinds[] = {"join", "left join", "semi join", "anti join", "mark join"};
  std::string strategy = vm::Info(j.strategy).word + std::string(" ");
  // Without keys each row is compared with all of the table.
  if (vm::Info(j.strategy).by_key && j.build_keys.empty()) strategy = NeedsPairs(q, j) ? "loop " : "";
  std::string text = strategy + kKinds[static_cast<int>(j.kind)];
  text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string RowsText(double rows) { return fmt::format("  (~{:.0f} rows)", rows); }

/// The lines of one block and of the blocks inside it.
class BlockPrinter {
 public:
  /// `shown`: the blocks that have been printed; one that several relations share is printed once.
  BlockPrinter(const Plan& plan, std::set<const Plan*>* shown, std::string* out)
      : plan_(plan), q_(*plan.query), shown_(shown), out_(out) {
    for (const Relation& r : q_.relations) {
      names_.emplace_back();
      for (const std::string& c : r.column_names) names_.back().push_back(r.alias + "." + c);
    }
  }

  void Print(int depth) {
    if (q_.is_working) return Line(depth, "Rows of the last turn");
    if (q_.series >= 0) return Line(depth, fmt::format("Series of {} rows", q_.series));
    if (q_.limit >= 0 || q_.offset > 0) {
      Line(depth++, "Limit" + (q_.limit >= 0 ? fmt::format(" {}", q_.limit) : "") +
                        (q_.offset > 0 ? fmt::format(" offset {}", q_.offset) : ""));
    }
    if (q_.folds()) {
      Line(depth++, fmt::format("Fold rows in order: {} by {} {}", Info(q_.fold).text, q_.fold_keys,
                                q_.fold_keys == 1 ? "key" : "keys"));
    }
    if (!q_.windows.empty()) Line(depth++, "Window " + WindowList());
    if (!q_.order_by.empty()) Line(depth++, "Sort by " + SortKeys());
    if (q_.distinct) Line(depth++, "Distinct");
    if (q_.repeat >= 0) Line(depth++, "Repeat rows by their counts");
    if (q_.grouped) {
      if (!q_.having.empty()) {
        Line(depth++, fmt::format("Filter groups ({} {})", q_.having.size(),
                                  q_.having.size() == 1 ? "condition" : "conditions"));
      }
      Line(depth++, Grouping());
    }
    if (plan_.driver < 0) {
      const int inside = PrintJoins(depth, "", plan_.joins, 0);
      Line(inside, plan_.constants.empty() ? "One row" : "One row where " + List(plan_.constants, " and "));
      PrintSides(inside, plan_.joins);
    } else {
      PrintPipeline(depth, "", plan_.build_driver ? "Store: " : "", plan_.driver, plan_.joins, plan_.stored);
    }
  }

 private:
  /// `prefix` comes before its last join or, without joins, before its scan; `of_scan` before its scan.
  void PrintPipeline(int depth, const std::string& prefix, const std::string& of_scan, int driver,
                     const std::vector<JoinStep>& joins, size_t stored) {
    const int inside = PrintJoins(depth, prefix, joins, stored);
    Scan(inside, (joins.empty() ? prefix : "") + of_scan, driver);
    PrintSides(inside, joins);
  }

  /// The joins, the last one first, each one level deeper. Returns the depth of what comes below them.
  int PrintJoins(int depth, std::string prefix, const std::vector<JoinStep>& joins, size_t stored) {
    for (size_t i = joins.size(); i-- > 0; prefix.clear())
      Line(depth++, prefix + (i + 1 == stored ? "Store: " : "") + Join(joins[i]));
    return depth;
  }

  void PrintSides(int depth, const std::vector<JoinStep>& joins) {
    for (const JoinStep& j : joins) {
      if (j.of_stored) {
        Line(depth--, "Build: Stored rows of " + NameOf(j.relation) + RowsText(j.side_rows));
      } else {
        PrintPipeline(depth--, "Build: ", "", j.relation, j.joins, j.stored);
      }
    }
  }

  void Line(int indent, const std::string& text) {
    *out_ += std::string(static_cast<size_t>(2 * indent), ' ') + text + "\n";
  }

  template <class Exprs>
  std::string List(const Exprs& exprs, const char* separator) const {
    std::string s;
    for (const auto& e : exprs) s += (s.empty() ? "" : separator) + e->ToString(names_);
    return s;
  }

  std::string SortKeys() const { return SortKeys(0, q_.order_by.size()); }
  std::string SortKeys(size_t from, size_t to) const {
    std::string keys;
    for (size_t i = from; i < to; ++i) {
      const OrderKey& k = q_.order_by[i];
      keys +=
          (keys.empty() ? "" : ", ") + q_.outputs[static_cast<size_t>(k.output)].name + (k.descending ? " desc" : "");
    }
    return keys;
  }

  /// "rank() over (partition by t.a order by t.b), ..."
  std::string WindowList() const {
    std::string list;
    for (const Output& o : q_.outputs) {
      if (o.expr->kind != Expr::Kind::kWindow) continue;
      const Window& w = q_.windows[static_cast<size_t>(o.expr->index)];
      const auto keys = static_cast<size_t>(w.partition_keys), end = keys + static_cast<size_t>(w.order_keys);
      std::string over = keys == 0 ? "" : "partition by " + SortKeys(0, keys);
      if (end > keys) over += (over.empty() ? "order by " : " order by ") + SortKeys(keys, end);
      list += (list.empty() ? "" : ", ") + o.name + " over (" + over + ")";
    }
    return list;
  }

  std::string Grouping() const {
    std::string aggregates;
    for (const Aggregate& a : q_.aggregates) {
      aggregates +=
          fmt::format("{}{}({}{})", aggregates.empty() ? "" : ", ", Info(a.function).text,
                      a.distinct ? "distinct " : "", a.argument == nullptr ? "*" : a.argument->ToString(names_));
    }
    if (q_.group_by.empty()) return "Aggregate " + aggregates;
    return "Group by " + List(q_.group_by, ", ") + (aggregates.empty() ? "" : ": " + aggregates);
  }

  std::string Join(const JoinStep& j) const {
    std::string keys;
    for (size_t k = 0; k < j.build_keys.size(); ++k) {
      keys += (k == 0 ? "" : " and ") + j.probe_keys[k]->ToString(names_) + " = " + j.build_keys[k]->ToString(names_);
    }
    std::string text = JoinText(q_, j);
    if (!keys.empty()) text += std::string(j.unique ? " (unique key)" : "") + " on " + keys;
    if (j.probe_order != nullptr)
      text += " sorted by " + j.probe_order->ToString(names_) + " and " + j.build_order->ToString(names_);
    if (!j.match.empty()) text += (keys.empty() ? " on " : " and ") + List(j.match, " and ");
    if (!j.residuals.empty()) text += " where " + List(j.residuals, " and ");
    return text + RowsText(j.rows);
  }

  /// "lineitem l1"
  std::string NameOf(int r) const {
    const Relation& relation = q_.relations[static_cast<size_t>(r)];
    if (relation.table == nullptr) return relation.alias.empty() ? "derived table" : relation.alias;
    return NameOfStored(relation) +
           (BaseName(relation.table->schema.name) == relation.alias ? "" : " " + relation.alias);
  }

  void Scan(int indent, const std::string& prefix, int r) {
    std::string text = "Scan " + NameOf(r);
    const auto& filters = plan_.filters[static_cast<size_t>(r)];
    std::vector<const Expr*> tested = filters;
    if (r == plan_.driver) tested.insert(tested.begin(), plan_.constants.begin(), plan_.constants.end());
    if (!tested.empty()) text += " where " + List(tested, " and ");
    Line(indent, prefix + text + RowsText(plan_.rows[static_cast<size_t>(r)]));
    const Plan* inside = plan_.derived[static_cast<size_t>(r)].get();
    if (inside == nullptr || !shown_->insert(inside).second) return;
    std::vector<const Plan*> blocks = {inside};
    for (const auto& more : inside->union_all) blocks.push_back(more.get());
    for (size_t i = 0; i < blocks.size();) {
      if (i > 0) Line(indent + 1, inside->query->working != nullptr ? "Again, until there are no rows" : "Union all");
      const int depth = indent + (i == 0 ? 1 : 2);
      size_t end = i;  // of rows of values, which are made together
      while (end < blocks.size() && IsRowOfValues(*blocks[end])) ++end;
      if (end > i + 1) {
        Line(depth, fmt::format("{} rows of values", end - i));
        i = end;
      } else {
        BlockPrinter(*blocks[i++], shown_, out_).Print(depth);
      }
    }
  }

  const Plan& plan_;
  const Query& q_;
  std::set<const Plan*>* shown_;
  std::string* out_;
  std::vector<std::vector<std::string>> names_;
};

}  // namespace

std::string PlanText(const Plan& plan) {
  std::string out;
  std::set<const Plan*> shown;
  BlockPrinter(plan, &shown, &out).Print(0);
  return out;
}

}  // namespace tessera
