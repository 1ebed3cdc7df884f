#include "compiler/bind/grouping_sets.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/grouping.h"
#include "compiler/bind/split_grouping.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/partial_aggregate.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

using Set = std::vector<int>;

/// Each is a section of the program.
constexpr size_t kMostSets = 128;
/// As many bits as an INTEGER has that are not its sign.
constexpr size_t kMostArguments = 31;

const SqlType kInteger = SqlType::Of(TypeId::kInteger);

// ---- From the tree to sets of keys

class SetBinder {
 public:
  explicit SetBinder(QueryBlock* block) : block_(*block) {}

  /// GROUP BY a, ROLLUP (b, c): each set of one element with each of the others.
  Result<std::vector<Set>> BindList(const ParseNode& list) {
    std::vector<Set> all = {{}};
    for (const ParseNode& node : list) {
      TESSERA_ASSIGN(const std::vector<Set> sets, BindElement(node));
      if (all.size() * sets.size() > kMostSets) return TooMany(node);
      std::vector<Set> product;
      for (const Set& a : all) {
        for (const Set& b : sets) product.push_back(Join(a, b));
      }
      all = std::move(product);
    }
    return all;
  }

 private:
  static Status TooMany(const ParseNode& node) {
    return Unsupported("more than " + std::to_string(kMostSets) + " grouping sets are not supported",
                       node.FirstLocation());
  }

  static Set Join(Set a, const Set& b) {
    for (int k : b) {
      if (std::find(a.begin(), a.end(), k) == a.end()) a.push_back(k);
    }
    return a;
  }

  Result<std::vector<Set>> BindElement(const ParseNode& node) {
    if (!node.Is(Tag::kGroupingSet)) {
      TESSERA_ASSIGN(Set keys, BindKeys(node));
      return std::vector<Set>{std::move(keys)};
    }
    const std::string_view kind = node.Text(Field::k_kind);
    std::vector<Set> sets;
    if (kind == "GROUPING_SET_EMPTY") return std::vector<Set>{{}};
    const ParseNode& content = *node.Get(Field::k_content);
    if (kind == "GROUPING_SET_SETS") {
      for (const ParseNode& element : content) {
        TESSERA_ASSIGN(std::vector<Set> more, BindElement(element));
        std::move(more.begin(), more.end(), std::back_inserter(sets));
        if (sets.size() > kMostSets) return TooMany(node);
      }
      return sets;
    }
    std::vector<Set> parts;
    for (const ParseNode& element : content) {
      TESSERA_ASSIGN(Set keys, BindKeys(element));
      parts.push_back(std::move(keys));
    }
    if (kind == "GROUPING_SET_ROLLUP") {
      for (size_t n = parts.size() + 1; n-- > 0;) {
        Set keys;
        for (size_t i = 0; i < n; ++i) keys = Join(std::move(keys), parts[i]);
        sets.push_back(std::move(keys));
      }
    } else {  // CUBE
      if (parts.size() >= 16 || size_t{1} << parts.size() > kMostSets) return TooMany(node);
      for (size_t left_out = 0; left_out < size_t{1} << parts.size(); ++left_out) {
        Set keys;
        for (size_t i = 0; i < parts.size(); ++i) {
          if ((left_out >> (parts.size() - 1 - i) & 1) == 0) keys = Join(std::move(keys), parts[i]);
        }
        sets.push_back(std::move(keys));
      }
    }
    if (sets.size() > kMostSets) return TooMany(node);
    return sets;
  }

  /// A key, or several in parentheses.
  Result<Set> BindKeys(const ParseNode& node) {
    const ParseNode* row = node.Is(Tag::kRowExpr) ? node.Get(Field::k_args) : nullptr;
    if (row == nullptr) {
      TESSERA_ASSIGN(const int key, BindKey(node));
      return Set{key};
    }
    Set keys;
    for (const ParseNode& item : *row) {
      TESSERA_ASSIGN(const int key, BindKey(item));
      keys = Join(std::move(keys), {key});
    }
    return keys;
  }

  Result<int> BindKey(const ParseNode& node) {
    TESSERA_ASSIGN(ExprPtr key, BindGroupKey(node, &block_));
    std::vector<ExprPtr>& keys = block_.query->group_by;
    const auto same = std::find_if(keys.begin(), keys.end(), [&](const ExprPtr& k) { return k->SameAs(*key); });
    const auto number = static_cast<int>(same - keys.begin());
    if (same == keys.end()) keys.push_back(std::move(key));
    return number;
  }

  QueryBlock& block_;
};

// ---- The blocks

bool Has(const Set& set, int key) { return std::find(set.begin(), set.end(), key) != set.end(); }

/// The value of GROUPING in the rows of a set: a bit for each argument, 1 if the set leaves it out.
int64_t GroupingBits(const std::vector<int>& arguments, const Set& set) {
  int64_t bits = 0;
  for (int key : arguments) bits = bits << 1 | (Has(set, key) ? 0 : 1);
  return bits;
}

/// Makes means of integers from sums and counts, which merge, if all other aggregates merge, too. The sums are of DECIMAL, whose
/// range they cannot leave.
void SplitMeans(Query* query) {
  Query& q = *query;
  const auto is_mean = [](const Aggregate& a) {
    const bool small = a.function == AggregateFunction::kAvg && !a.distinct &&
                       (a.argument->type.id == TypeId::kInteger || a.argument->type.id == TypeId::kSmallint);
    return small && FindSubquery(*a.argument) == nullptr;
  };
  const auto merges = [&](const Aggregate& a) { return Merges(a) || is_mean(a); };
  if (!std::ranges::all_of(q.aggregates, merges) || std::ranges::none_of(q.aggregates, is_mean)) return;
  if (HeightAboveGroups(q) + 2 > kMaxNesting) return;
  const SqlType real = SqlType::Of(TypeId::kDouble), bigint = SqlType::Of(TypeId::kBigint);
  std::vector<ExprPtr> means(q.aggregates.size());
  for (size_t i = 0; i < means.size(); ++i) {
    if (!is_mean(q.aggregates[i])) continue;
    Aggregate count;
    count.function = AggregateFunction::kCount;
    count.argument = q.aggregates[i].argument->Clone();
    count.type = bigint;
    count.position = q.aggregates[i].position;
    const auto same = [&](const Aggregate& b) {
      return b.function == count.function && !b.distinct && b.argument->SameAs(*count.argument);
    };
    const auto counted = std::ranges::find_if(q.aggregates, same) - q.aggregates.begin();
    if (counted == static_cast<ptrdiff_t>(q.aggregates.size())) q.aggregates.push_back(std::move(count));
    Aggregate& sum = q.aggregates[i];
    sum.function = AggregateFunction::kSum;
    sum.argument = MakeCast(std::move(sum.argument), SqlType::Decimal(10, 0));
    sum.type = SqlType::Decimal(38, 0);
    means[i] = MakeFunction(
        Function::kDiv, real, sum.position,
        ExprList(MakeCast(MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(i), sum.type, true), real),
                 MakeCast(MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(counted), bigint, false), real)));
  }
  const auto replace = [&](ExprPtr& root) {
    Substitute(&root, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kAggregate || static_cast<size_t>(x.index) >= means.size()) return nullptr;
      const ExprPtr& mean = means[static_cast<size_t>(x.index)];
      return mean != nullptr ? mean->Clone() : nullptr;
    });
  };
  for (Output& o : q.outputs) replace(o.expr);
  for (ExprPtr& h : q.having) replace(h);
}

/// A relation over `core` itself, the grouping by all keys, and a grouping of its rows: keys and aggregates are its
/// columns.
std::unique_ptr<Query> MergeGroups(const std::shared_ptr<Query>& core) {
  auto q = std::make_unique<Query>();
  q->relations.push_back(DerivedTable(core));
  q->relations[0].alias = "groups";
  q->grouped = true;
  const auto column = [&](size_t i) {
    const Expr& e = *core->outputs[i].expr;
    return MakeColumn(0, static_cast<int>(i), e.type, e.nullable, -1);
  };
  const size_t keys = core->group_by.size();
  for (size_t i = 0; i < keys; ++i) q->group_by.push_back(column(i));
  for (size_t i = 0; i < core->aggregates.size(); ++i)
    q->aggregates.push_back(MergeOf(core->aggregates[i], column(keys + i)));
  for (size_t i = 0; i < core->outputs.size(); ++i) {
    const Expr& e = *core->outputs[i].expr;
    ExprPtr leaf = MakeLeaf(e.kind, e.index, e.type, true);
    if (i >= keys && IsCount(core->aggregates[i - keys])) leaf = CountOr(std::move(leaf), 0);
    q->outputs.push_back({std::move(leaf), core->outputs[i].name});
  }
  q->visible = static_cast<int>(q->outputs.size());
  return q;
}

/// Moves the relations and conditions of `core` into a derived table of the columns that it groups and aggregates.
void ShareInput(Query* core) {
  auto input = std::make_shared<Query>();
  input->relations = std::move(core->relations);
  input->conjuncts = std::move(core->conjuncts);
  core->relations.clear();
  core->conjuncts.clear();
  ForEachRoot(*core, [&](ExprPtr& root) {
    Substitute(&root, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kColumn) return nullptr;
      size_t i = 0;
      while (i < input->outputs.size() && !input->outputs[i].expr->SameAs(x)) ++i;
      if (i == input->outputs.size()) input->outputs.push_back({x.Clone(), "column"});
      return MakeColumn(0, static_cast<int>(i), x.type, x.nullable, x.position);
    });
  });
  if (input->outputs.empty()) input->outputs.push_back({MakeConstant(Value::Int(kInteger, 0), -1), "row"});
  input->visible = static_cast<int>(input->outputs.size());
  core->relations.push_back(DerivedTable(std::move(input)));
  core->relations[0].alias = "rows";
}

/// The groupings would each have the subquery in their keys and aggregates.
Status RefuseSubqueries(const Query& core) {
  const auto check = [](const Expr* e) -> Status {
    const Expr* const subquery = e != nullptr ? FindSubquery(*e) : nullptr;
    if (subquery == nullptr) return {};
    return Unsupported("a subquery in a key or an aggregate of GROUPING SETS is not supported", subquery->position,
                       "Compute it in a derived table.");
  };
  for (const ExprPtr& k : core.group_by) TESSERA_TRY(check(k.get()));
  for (const Aggregate& a : core.aggregates) {
    TESSERA_TRY(check(a.argument.get()));
    for (const AggregateOrder& o : a.order) TESSERA_TRY(check(o.expr.get()));
  }
  return {};
}

/// The grouping by a set: `all` groups by all keys, with the first outputs for them.
std::unique_ptr<Query> GroupBySet(const Query& all, const Set& set, const std::vector<std::vector<int>>& calls) {
  std::unique_ptr<Query> q = CopyQuery(all);
  std::vector<ExprPtr> keys = std::move(q->group_by);
  q->group_by.clear();
  for (size_t i = 0; i < keys.size(); ++i) {
    ExprPtr& output = q->outputs[i].expr;
    if (Has(set, static_cast<int>(i))) {
      output->index = static_cast<int>(q->group_by.size());
      q->group_by.push_back(std::move(keys[i]));
    } else {
      output = MakeNull(output->type, -1);
    }
  }
  for (const std::vector<int>& arguments : calls)
    q->outputs.push_back({MakeConstant(Value::Int(kInteger, GroupingBits(arguments, set)), -1), "grouping"});
  q->visible = static_cast<int>(q->outputs.size());
  return q;
}

/// The keys that the arguments of each call of GROUPING are.
Result<std::vector<std::vector<int>>> KeysOfCalls(const GroupingSets& sets, const Query& query) {
  std::vector<std::vector<int>> calls;
  for (const std::vector<ExprPtr>& arguments : sets.calls) {
    std::vector<int> keys;
    for (const ExprPtr& a : arguments) {
      const auto same = [&](const ExprPtr& k) { return k->SameAs(*a); };
      const auto key = std::find_if(query.group_by.begin(), query.group_by.end(), same);
      if (key == query.group_by.end())
        return SqlError(ErrorKind::kInvalidParameterValue, "arguments to GROUPING must be keys of GROUP BY",
                        a->position);
      keys.push_back(static_cast<int>(key - query.group_by.begin()));
    }
    calls.push_back(std::move(keys));
  }
  return calls;
}

}  // namespace

bool HasGroupingSets(const ParseNode& list) {
  for (const ParseNode& node : list) {
    if (node.Is(Tag::kGroupingSet) || node.Is(Tag::kRowExpr)) return true;
  }
  return false;
}

Status BindGroupingSets(const ParseNode& list, bool distinct, QueryBlock* block) {
  TESSERA_ASSIGN(std::vector<Set> sets, SetBinder(block).BindList(list));
  for (Set& s : sets) {
    Set& kept = block->grouping.sets.emplace_back(std::move(s));
    if (!distinct) continue;
    std::sort(kept.begin(), kept.end());
    auto& all = block->grouping.sets;
    if (std::count(all.begin(), all.end(), kept) > 1) all.pop_back();
  }
  return {};
}

Status ExpandGroupingSets(const GroupingSets& grouping, Query* query) {
  const bool one = grouping.sets.size() < 2;
  if (one && grouping.calls.empty()) return {};
  Query& q = *query;
  TESSERA_ASSIGN(const std::vector<std::vector<int>> calls, KeysOfCalls(grouping, q));
  if (!one) SplitMeans(&q);
  // GROUPING comes after the aggregates.
  const auto above = static_cast<int>(q.aggregates.size());
  const auto place = [&](ExprPtr& root) {
    Substitute(&root, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kGroup || x.index >= 0) return nullptr;
      if (one) return MakeConstant(Value::Int(kInteger, 0), x.position);
      return MakeLeaf(Expr::Kind::kAggregate, above - 1 - x.index, kInteger, false);
    });
  };
  for (Output& o : q.outputs) place(o.expr);
  for (ExprPtr& h : q.having) place(h);
  if (one) return {};

  const char* const outward = "GROUPING SETS over a column of an enclosing query is not supported";
  if (RefersOutward(q)) return Unsupported(outward, -1, "Join with the table in the subquery itself.");
  TESSERA_ASSIGN(std::shared_ptr<Query> core, SplitGrouping(&q));
  std::unique_ptr<Query> all;
  if (std::all_of(core->aggregates.begin(), core->aggregates.end(), Merges)) {
    all = MergeGroups(core);
  } else {
    TESSERA_TRY(RefuseSubqueries(*core));
    ShareInput(core.get());
    all = CopyQuery(*core);
  }
  std::shared_ptr<Query> rows;
  for (const Set& set : grouping.sets) {
    std::unique_ptr<Query> arm = GroupBySet(*all, set, calls);
    if (rows == nullptr) {
      rows = std::move(arm);
    } else {
      rows->union_all.push_back(std::move(arm));
    }
  }
  const std::string alias = q.relations[0].alias;
  q.relations[0] = DerivedTable(std::move(rows));
  q.relations[0].alias = alias;
  return {};
}

Result<ExprPtr> ExpressionBinder::BindGrouping(const ParseNode& node) {
  const int position = node.location();
  GroupingSets* const sets = context_->grouping;
  const bool above = clause_ == Clause::kSelect || clause_ == Clause::kHaving || clause_ == Clause::kQualify ||
                     clause_ == Clause::kOrderBy;
  if (sets == nullptr || !above || in_aggregate_)
    return SqlError("GROUPING stands in the select list, HAVING or ORDER BY of a query with GROUP BY only", position);
  std::vector<ExprPtr> arguments;
  for (const ParseNode& child : *node.Get(Field::k_args)) {
    TESSERA_ASSIGN(ExprPtr e, Bind(child));
    arguments.push_back(OrderedForm(std::move(e)));
  }
  if (arguments.size() > kMostArguments) return SqlError("GROUPING must have fewer than 32 arguments", position);
  const auto same = [&](const std::vector<ExprPtr>& call) {
    return std::equal(call.begin(), call.end(), arguments.begin(), arguments.end(),
                      [](const ExprPtr& a, const ExprPtr& b) { return a->SameAs(*b); });
  };
  const auto call = std::find_if(sets->calls.begin(), sets->calls.end(), same);
  const auto number = static_cast<int>(call - sets->calls.begin());
  if (call == sets->calls.end()) sets->calls.push_back(std::move(arguments));
  ExprPtr e = MakeLeaf(Expr::Kind::kGroup, -1 - number, kInteger, false);
  e->position = position;
  return e;
}

}  // namespace tessera
