#include "compiler/rewrite/distinct_aggregates.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/query/expr_builder.h"
#include "compiler/query/functions.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"

namespace tessera {
namespace {

/// From this number on, arguments are read apart. Fewer are grouped together in about the same time, with one scan.
constexpr size_t kFewArguments = 4;
/// Blocks of one row that are joined: a block has 64 relations at most.
constexpr size_t kMostBlocks = 48;

bool IsDistinct(const Aggregate& a) { return a.distinct && !Info(a.function).ignores_duplicates; }

/// The block without its aggregates and outputs.
std::shared_ptr<Query> SameRows(const Query& q) {
  auto rows = std::make_shared<Query>();
  rows->relations.push_back(CopySource(q.relations[0]));
  for (const ExprPtr& e : q.conjuncts) rows->conjuncts.push_back(e->Clone());
  rows->grouped = true;
  return rows;
}

}  // namespace

void SplitDistinct(Query* query) {
  Query& q = *query;
  const bool is_plain = q.grouped && q.group_by.empty() && q.aggregates.size() >= kFewArguments &&
                        q.relations.size() == 1 && q.relations[0].join == JoinKind::kInner &&
                        q.relations[0].table != nullptr && q.union_all.empty() && q.windows.empty() && q.repeat < 0 &&
                        !q.folds() && q.working == nullptr && !q.is_working;
  if (!is_plain || HasVolatile(q)) return;
  std::vector<const Expr*> arguments;  // of DISTINCT aggregates, each once
  std::vector<size_t> block_of;        // by aggregate: 0 for those of all rows
  for (const Aggregate& a : q.aggregates) {
    block_of.push_back(0);
    if (!IsDistinct(a)) continue;
    const auto same = [&](const Expr* e) { return e->SameAs(*a.argument); };
    block_of.back() = static_cast<size_t>(std::ranges::find_if(arguments, same) - arguments.begin()) + 1;
    if (block_of.back() > arguments.size()) arguments.push_back(a.argument.get());
  }
  if (arguments.size() < kFewArguments || arguments.size() > kMostBlocks) return;

  std::vector<std::shared_ptr<Query>> blocks(arguments.size() + 1);
  std::vector<ExprPtr> values;  // by aggregate, over the blocks
  for (size_t i = 0; i < q.aggregates.size(); ++i) {
    std::shared_ptr<Query>& block = blocks[block_of[i]];
    if (block == nullptr) block = SameRows(q);
    Aggregate& a = q.aggregates[i];
    const auto index = static_cast<int>(block->aggregates.size());
    values.push_back(MakeColumn(static_cast<int>(block_of[i]), index, a.type, true, a.position));
    block->outputs.push_back({MakeLeaf(Expr::Kind::kAggregate, index, a.type, !IsCount(a)), Info(a.function).text});
    block->visible = index + 1;
    block->aggregates.push_back(std::move(a));
  }
  const bool has_all = blocks[0] != nullptr;
  const std::string alias = q.relations[0].alias;
  q.relations.clear();
  for (std::shared_ptr<Query>& block : blocks) {
    if (block == nullptr) continue;
    Relation row = DerivedTable(std::move(block));
    row.alias = alias;
    row.unique = !q.relations.empty();
    if (row.unique) row.join = JoinKind::kLeft;
    q.relations.push_back(std::move(row));
  }
  const auto above = [&](const Expr& x) -> ExprPtr {
    if (x.kind != Expr::Kind::kAggregate) return nullptr;
    ExprPtr value = values[static_cast<size_t>(x.index)]->Clone();
    if (!has_all) --value->relation;
    return value;
  };
  for (Output& o : q.outputs) Substitute(&o.expr, above);
  for (ExprPtr& e : q.having) Substitute(&e, above);
  q.conjuncts = std::exchange(q.having, {});
  q.aggregates.clear();
  q.grouped = false;
}

}  // namespace tessera
