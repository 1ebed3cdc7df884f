#include "compiler/rewrite/match_conditions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/parse/parser.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/functions.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/unique_key.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

bool IsOverSeveral(const Expr& e) {
  const uint64_t relations = RelationsOf(e);
  return (relations & (relations - 1)) != 0;
}

/// Whether the comparison by order is true of no values that its sides can have.
bool IsNeverTrue(const Expr& e, const ExprRanges& ranges) {
  if (e.kind != Expr::Kind::kFunction || e.function < Function::kLt || e.function > Function::kGe) return false;
  const SqlType &a = e.args[0]->type, &b = e.args[1]->type;
  const StorageClass storage = a.storage();
  if ((storage != StorageClass::kInt && storage != StorageClass::kWide) || b.storage() != storage || a.id != b.id ||
      a.id == TypeId::kInterval || a.scale != b.scale)
    return false;
  const ValueRange left = ranges.Range(*e.args[0]), right = ranges.Range(*e.args[1]);
  if (e.function == Function::kLt) return left.low >= right.high;
  if (e.function == Function::kLe) return left.low > right.high;
  return e.function == Function::kGt ? left.high <= right.low : left.high < right.low;
}

/// If no pair of rows passes all of the conditions, the first of them is false.
void FindContradiction(const ExprRanges& ranges, std::vector<ExprPtr>* conditions) {
  const auto never = [&](const ExprPtr& e) { return IsNeverTrue(*e, ranges) && IsOverSeveral(*e); };
  const auto found = std::ranges::find_if(*conditions, never);
  if (found != conditions->end()) conditions->insert(conditions->begin(), MakeBoolean(false, (*found)->position));
}

/// The side of an equality that is of the rows that look for a match in relation `r`; nullptr if it is no key of the join.
ExprPtr* ProbeOf(Expr* e, size_t r) {
  if (!IsFunction(*e, Function::kEq) || IsVolatile(*e)) return nullptr;
  for (size_t side = 0; side < 2; ++side) {
    const uint64_t left = RelationsOf(*e->args[side]);
    if (left != 0 && (left >> r & 1) == 0 && IsOver(*e->args[1 - side], r)) return &e->args[side];
  }
  return nullptr;
}

/// Whether at most one row of relation `r` has the keys of its join.
bool FindsOneRow(const Relation& relation, size_t r) {
  return relation.unique || HasUniqueKey(relation, [&](int column) {
           return std::ranges::any_of(relation.on, [&](const ExprPtr& e) {
             ExprPtr* const probe = ProbeOf(e.get(), r);
             if (probe == nullptr) return false;
             const Expr& own = *e->args[probe == &e->args[0] ? 1 : 0];
             return own.kind == Expr::Kind::kColumn && own.column == column;
           });
         });
}

/// Conditions of the join of relation `r` that are over others alone become part of a key: NULL has no match.
void TakeIntoKey(const ExprRanges& ranges, size_t r, Query* q) {
  Relation& relation = q->relations[r];
  const auto is_left = [&](const ExprPtr& e) {
    const uint64_t relations = RelationsOf(*e);
    return relations != 0 && (relations >> r & 1) == 0 && !IsVolatile(*e) && !ranges.CanFailAnywhere(*e);
  };
  const auto has_key = [&](const ExprPtr& e) { return ProbeOf(e.get(), r) != nullptr; };
  const auto key = std::ranges::find_if(relation.on, has_key);
  if (key == relation.on.end() || std::ranges::none_of(relation.on, is_left) || FindsOneRow(relation, r)) return;
  ExprPtr* const probe = ProbeOf(key->get(), r);
  std::vector<ExprPtr> others, taken;
  int height = HeightOf(**probe);
  for (ExprPtr& e : relation.on) {
    if (is_left(e)) height = std::max(height, HeightOf(*e));
  }
  if (height + 2 > kMaxNesting) return;
  for (ExprPtr& e : relation.on) (is_left(e) ? taken : others).push_back(std::move(e));
  const SqlType type = (*probe)->type;
  const int position = (*probe)->position;
  ExprPtr condition =
      taken.size() == 1 ? std::move(taken[0]) : MakeFunction(Function::kAnd, kBoolean, position, std::move(taken));
  *probe = MakeFunction(Function::kCase, type, position,
                        ExprList(std::move(condition), std::move(*probe), MakeNull(type, position)));
  (*probe)->nullable = true;
  relation.on = std::move(others);
}

}  // namespace

void DecideMatches(Query* query) {
  if (query->relations.size() < 2) return;
  const StatisticsRanges statistics(*query);
  const ExprRanges ranges(statistics);
  FindContradiction(ranges, &query->conjuncts);
  for (size_t r = 0; r < query->relations.size(); ++r) {
    Relation& relation = query->relations[r];
    if (relation.join == JoinKind::kInner) continue;
    FindContradiction(ranges, &relation.on);
    // (A semi join has no rows that go on without a match.)
    if (relation.join != JoinKind::kSemi) TakeIntoKey(ranges, r, query);
  }
}

}  // namespace tessera
