#include "compiler/plan/plan_tree.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/join_strategy.h"
#include "compiler/rewrite/run_rows.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

using Part = PlanSections::Part;
using Counted = PlanNode::Counted;

/// "Scan ", and what is called that.
PlanNode Step(std::string text, const char* type) {
  PlanNode node;
  node.text = std::move(text);
  node.type = type;
  return node;
}

void AddAttribute(const char* name, std::string value, PlanNode* node) {
  if (!value.empty()) node->attributes.push_back({name, {std::move(value)}, false});
}

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

/// A pipeline: what scans and joins, and which sections do that.
struct Pipeline {
  int driver = -1;
  const std::vector<JoinStep>* joins = nullptr;
  size_t stored = 0;          ///< how many joins the section does that stores rows
  bool store_driver = false;  ///< the driver's rows are stored, too
  std::vector<int> section;   ///< what does the rest; none if it is not known
  bool makes_rows = false;    ///< the section's rows are those that come out of the last join
};

/// The steps of one block and of the blocks inside it.
class BlockTree {
 public:
  /// `shown`: the blocks that are in the tree; one that several relations share is there once.
  BlockTree(const Plan& plan, const PlanSections& sections, std::set<const Plan*>* shown)
      : plan_(plan), q_(*plan.query), sections_(sections), shown_(shown) {
    for (const Relation& r : q_.relations) {
      names_.emplace_back();
      for (const std::string& c : r.column_names) names_.back().push_back(r.alias + "." + c);
    }
  }

  PlanNode Tree() {
    if (q_.is_working) return Step("Rows of the last turn", "WorkTable Scan");
    if (q_.series >= 0) return Step(fmt::format("Series of {} rows", q_.series), "Function Scan");
    std::vector<PlanNode> steps = StepsAboveJoins();
    PlanNode inner = plan_.driver < 0 ? OneRow() : Joined(OfBlock(), "");
    for (; !steps.empty(); steps.pop_back()) {
      steps.back().children.push_back(std::move(inner));
      inner = std::move(steps.back());
    }
    return inner;
  }

 private:
  std::vector<int> SectionOf(Part part) const {
    const auto found = sections_.of_block.find({&plan_, part});
    return found == sections_.of_block.end() ? std::vector<int>() : std::vector<int>{found->second};
  }

  /// The outermost first.
  std::vector<PlanNode> StepsAboveJoins() const {
    std::vector<PlanNode> steps;
    const std::vector<int> rows = SectionOf(Part::kRows);
    const bool cut = q_.limit >= 0 || q_.offset > 0 || q_.folds() || q_.repeat >= 0;
    // (Of several steps of one section its rows are those of the first.)
    const auto add = [&](PlanNode node, double expected) {
      const bool counts = steps.empty() || !cut;
      node.sections = rows;
      node.counted = counts && !rows.empty() ? Counted::kOut : Counted::kNothing;
      node.rows = expected;
      steps.push_back(std::move(node));
    };
    if (q_.limit >= 0 || q_.offset > 0) {
      const std::string limit = q_.limit >= 0 ? fmt::format(" {}", q_.limit) : "";
      const std::string offset = q_.offset > 0 ? fmt::format(" offset {}", q_.offset) : "";
      add(Step("Limit" + limit + offset, "Limit"), plan_.result_rows);
    }
    if (q_.folds()) {
      add(Step(fmt::format("Fold rows in order: {} by {} {}", Info(q_.fold).text, q_.fold_keys,
                           q_.fold_keys == 1 ? "key" : "keys"),
               "Aggregate"),
          -1);
    }
    if (!q_.windows.empty()) {
      add(Step("Window " + WindowList(), "WindowAgg"), plan_.made_rows);
      for (const int section : SectionOf(Part::kWindows)) steps.back().sections.push_back(section);
    }
    if (!q_.order_by.empty()) {
      add(Step("Sort by " + SortKeys(), "Sort"), plan_.made_rows);
      PlanAttribute keys{"Sort Key", {}, true};
      for (size_t i = 0; i < q_.order_by.size(); ++i) keys.values.push_back(SortKeys(i, i + 1));
      steps.back().attributes.push_back(std::move(keys));
    }
    if (q_.distinct) {
      add(Step("Distinct", "Unique"), plan_.made_rows);
      steps.back().sections = SectionOf(Part::kDistinct);
      steps.back().sections.insert(steps.back().sections.end(), rows.begin(), rows.end());
      steps.back().counted = steps.back().sections.empty() ? Counted::kNothing : Counted::kOut;
    }
    if (q_.repeat >= 0) add(Step("Repeat rows by their counts", "SetOp"), -1);
    if (q_.grouped) AddGroups(&steps);
    return steps;
  }

  void AddGroups(std::vector<PlanNode>* steps) const {
    const std::vector<int> above = SectionOf(Part::kAbove), rows = SectionOf(Part::kRows);
    const bool is_shown = above == rows && !steps->empty();  // its rows are those of a step around it
    if (!q_.having.empty()) {
      PlanNode filter = Step(
          fmt::format("Filter groups ({} {})", q_.having.size(), q_.having.size() == 1 ? "condition" : "conditions"),
          "Result");
      filter.sections = above;
      if (!above.empty() && (!is_shown || (q_.limit < 0 && q_.offset == 0))) filter.counted = Counted::kOut;
      steps->push_back(std::move(filter));
    }
    PlanNode groups = Step(Grouping(), "Aggregate");
    AddAttribute("Strategy", q_.group_by.empty() ? "Plain" : "Hashed", &groups);
    if (!q_.group_by.empty()) {
      PlanAttribute keys{"Group Key", {}, true};
      for (const ExprPtr& e : q_.group_by) keys.values.push_back(e->ToString(names_));
      groups.attributes.push_back(std::move(keys));
    }
    if (q_.having.empty()) groups.rows = plan_.made_rows;
    groups.sections = SectionOf(Part::kGroups);
    if (!groups.sections.empty()) groups.counted = Counted::kOut;
    for (const int section : SectionOf(Part::kPipeline)) groups.sections.push_back(section);
    if (steps->empty()) groups.sections.insert(groups.sections.end(), above.begin(), above.end());
    steps->push_back(std::move(groups));
  }

  Pipeline OfBlock() const {
    Pipeline p;
    p.driver = plan_.driver;
    p.joins = &plan_.joins;
    p.stored = plan_.stored;
    p.store_driver = plan_.build_driver;
    p.section = SectionOf(Part::kPipeline);
    p.makes_rows = !q_.grouped && (q_.distinct || (q_.limit < 0 && q_.offset == 0 && !q_.folds() && q_.repeat < 0));
    return p;
  }

  PlanNode OneRow() {
    Pipeline p = OfBlock();
    std::string text = plan_.constants.empty() ? "One row" : "One row where " + List(plan_.constants, " and ");
    PlanNode row = Step(std::move(text), "Result");
    row.sections = p.section;
    if (p.joins->empty() && p.makes_rows && !p.section.empty()) row.counted = Counted::kOut;
    AddAttribute("One-Time Filter", List(plan_.constants, " and "), &row);
    return AddJoins(p, std::move(row), "");
  }

  /// `prefix` comes before its last join or, without joins, before its scan.
  PlanNode Joined(const Pipeline& p, const std::string& prefix) {
    PlanNode scan = Scan(p, (p.joins->empty() ? prefix : "") + (p.store_driver ? "Store: " : ""));
    return AddJoins(p, std::move(scan), prefix);
  }

  /// The sections that scan the driver, or join the first tables.
  std::vector<int> FirstSection(const Pipeline& p) const {
    if (p.stored == 0 && !p.store_driver) return p.section;
    const auto found = sections_.of_stored.find({&plan_, p.driver});
    return found == sections_.of_stored.end() ? std::vector<int>() : std::vector<int>{found->second};
  }

  PlanNode AddJoins(const Pipeline& p, PlanNode inner, const std::string& prefix) {
    for (size_t i = 0; i < p.joins->size(); ++i) {
      const JoinStep& j = (*p.joins)[i];
      const bool is_last = i + 1 == p.joins->size();
      PlanNode join = Join(j, (is_last ? prefix : "") + (i + 1 == p.stored ? "Store: " : ""));
      join.sections = i < p.stored ? FirstSection(p) : p.section;
      join.children.push_back(std::move(inner));
      join.children.push_back(Side(j));
      inner = std::move(join);
    }
    return inner;
  }

  PlanNode Side(const JoinStep& j) {
    Pipeline p;
    const auto found = sections_.of_side.find(&j);
    if (found != sections_.of_side.end()) p.section = {found->second};
    PlanNode side;
    if (j.of_stored) {
      side = Step("Build: Stored rows of " + NameOf(j.relation), "CTE Scan");
      side.rows = j.side_rows;
      side.sections = p.section;
      if (!p.section.empty()) side.counted = Counted::kOut;
    } else {
      p.driver = j.relation;
      p.joins = &j.joins;
      p.stored = j.stored;
      p.makes_rows = true;
      side = Joined(p, "Build: ");
    }
    side.is_side = true;
    return side;
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

  PlanNode Join(const JoinStep& j, const std::string& prefix) const {
    static constexpr const char* kTypes[] = {"Inner", "Left", "Semi", "Anti", "Mark"};
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
    PlanNode node = Step(prefix + text, keys.empty() ? "Nested Loop" : "Hash Join");
    AddAttribute("Join Type", kTypes[static_cast<int>(j.kind)], &node);
    if (!keys.empty()) node.attributes.push_back({"Inner Unique", {j.unique ? "true" : "false"}, false});
    AddAttribute("Hash Cond", std::move(keys), &node);
    AddAttribute("Join Filter", List(j.match, " and "), &node);
    AddAttribute("Filter", List(j.residuals, " and "), &node);
    node.rows = j.rows;
    const auto side = sections_.of_side.find(&j);
    if (side != sections_.of_side.end()) {
      node.side = side->second;
      node.counted = Counted::kJoin;
    }
    return node;
  }

  /// "lineitem l1"
  std::string NameOf(int r) const {
    const Relation& relation = q_.relations[static_cast<size_t>(r)];
    if (relation.table == nullptr) return relation.alias.empty() ? "derived table" : relation.alias;
    return NameOfStored(relation) +
           (BaseName(relation.table->schema.name) == relation.alias ? "" : " " + relation.alias);
  }

  PlanNode Scan(const Pipeline& p, const std::string& prefix) {
    const int r = p.driver;
    const Relation& relation = q_.relations[static_cast<size_t>(r)];
    std::string text = "Scan " + NameOf(r);
    std::vector<const Expr*> tested = plan_.filters[static_cast<size_t>(r)];
    if (r == plan_.driver) tested.insert(tested.begin(), plan_.constants.begin(), plan_.constants.end());
    if (!tested.empty()) text += " where " + List(tested, " and ");
    PlanNode node = Step(prefix + text, relation.table != nullptr ? "Seq Scan" : "Subquery Scan");
    if (relation.table != nullptr)
      AddAttribute("Relation Name", std::string(BaseName(relation.table->schema.name)), &node);
    AddAttribute("Alias", relation.alias, &node);
    AddAttribute("Filter", List(tested, " and "), &node);
    node.rows = plan_.rows[static_cast<size_t>(r)];
    node.sections = FirstSection(p);
    node.reads = !node.sections.empty();
    const bool is_all = tested.empty() && (relation.table == nullptr || relation.table->live_column < 0);
    const bool is_last = p.joins->empty() && (p.store_driver || p.makes_rows);
    if (node.reads) node.counted = is_last ? Counted::kOut : is_all ? Counted::kIn : Counted::kNothing;
    const Plan* inside = plan_.derived[static_cast<size_t>(r)].get();
    if (inside != nullptr && shown_->insert(inside).second) AddBlocks(*inside, &node);
    return node;
  }

  /// The blocks whose rows a derived table has.
  void AddBlocks(const Plan& inside, PlanNode* node) const {
    std::vector<const Plan*> blocks = {&inside};
    for (const auto& more : inside.union_all) blocks.push_back(more.get());
    const bool turns = inside.query->working != nullptr;
    for (size_t i = 0; i < blocks.size();) {
      size_t end = i;  // of rows of values, which are made together
      while (end < blocks.size() && IsRowOfValues(*blocks[end])) ++end;
      PlanNode arm;
      if (end > i + 1) {
        arm = Step(fmt::format("{} rows of values", end - i), "Values Scan");
        const auto section = sections_.of_block.find({blocks[i], Part::kPipeline});
        if (section != sections_.of_block.end()) arm.sections = {section->second};
      } else {
        arm = BlockTree(*blocks[i], sections_, shown_).Tree();
      }
      if (i > 0) {
        PlanNode behind =
            turns ? Step("Again, until there are no rows", "Recursive Union") : Step("Union all", "Append");
        behind.children.push_back(std::move(arm));
        arm = std::move(behind);
      }
      node->children.push_back(std::move(arm));
      i = std::max(end, i + 1);
    }
  }

  const Plan& plan_;
  const Query& q_;
  const PlanSections& sections_;
  std::set<const Plan*>* shown_;
  std::vector<std::vector<std::string>> names_;
};

void AppendLines(const PlanNode& node, size_t depth, std::string* out) {
  *out += std::string(2 * depth, ' ') + node.text;
  if (node.rows >= 0) *out += fmt::format("  (~{:.0f} rows)", node.rows);
  *out += '\n';
  for (const PlanNode& child : node.children) AppendLines(child, depth + 1, out);
}

}  // namespace

PlanNode PlanTree(const Plan& plan, const PlanSections& sections) {
  std::set<const Plan*> shown;
  return BlockTree(plan, sections, &shown).Tree();
}

PlanNode ValuesNode(uint64_t rows) {
  if (rows == 0) return Step("No rows", "Result");
  PlanNode node = Step(fmt::format("{} {} of values", rows, rows == 1 ? "row" : "rows"), "Values Scan");
  node.rows = static_cast<double>(rows);
  return node;
}

PlanNode ChangeNode(const Statement& statement, PlanNode rows) {
  using Kind = Statement::Kind;
  const std::string table =
      ShownName(statement.kind == Kind::kCreateTable ? statement.definition.schema.name : statement.table);
  const auto change = [&](const char* text, const char* operation) {
    PlanNode node = Step(text + table, "ModifyTable");
    AddAttribute("Operation", operation, &node);
    AddAttribute("Relation Name", table, &node);
    node.children.push_back(std::move(rows));
    return node;
  };
  if (statement.kind == Kind::kInsert) return change("Insert into ", "Insert");
  if (statement.kind == Kind::kDelete) return change("Delete from ", "Delete");
  if (statement.kind == Kind::kUpdate) return change("Update ", "Update");
  if (statement.kind == Kind::kMerge) return change("Merge into ", "Merge");
  if (statement.kind == Kind::kCreateTable) return change("Create table ", "Create");
  return rows;
}

std::string PlanText(const PlanNode& node) {
  std::string out;
  AppendLines(node, 0, &out);
  return out;
}

}  // namespace tessera
