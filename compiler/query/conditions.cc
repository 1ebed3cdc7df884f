#include "compiler/query/conditions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "compiler/query/equal_columns.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"

namespace tessera {
namespace {

/// Long lists come from machines, and comparing all with all would take longer than it saves.
constexpr size_t kMostConditions = 256;

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

/// The parts of a chain of AND, or of OR.
void Flatten(const Expr& e, Function chain, std::vector<const Expr*>* parts) {
  if (!IsFunction(e, chain)) {
    parts->push_back(&e);
    return;
  }
  for (const ExprPtr& a : e.args) Flatten(*a, chain, parts);
}

std::vector<const Expr*> Parts(const Expr& e, Function chain) {
  std::vector<const Expr*> parts;
  Flatten(e, chain, &parts);
  return parts;
}

bool Has(const std::vector<const Expr*>& list, const Expr& e) {
  return std::any_of(list.begin(), list.end(), [&](const Expr* other) { return other->SameAs(e); });
}

std::vector<ExprPtr> Copies(const std::vector<const Expr*>& list) {
  std::vector<ExprPtr> copies;
  for (const Expr* e : list) copies.push_back(e->Clone());
  return copies;
}

using Arms = std::vector<std::vector<const Expr*>>;

Arms ArmsOf(const Expr& either) {
  Arms arms;
  for (const Expr* arm : Parts(either, Function::kOr)) arms.push_back(Parts(*arm, Function::kAnd));
  return arms;
}

/// Takes the tests that all arms share out of the OR. They are added to `out`; `e` keeps what is left, or becomes
/// nullptr if an arm has nothing more to ask.
void TakeCommon(ExprPtr* e, std::vector<ExprPtr>* out) {
  const int position = (*e)->position;
  Arms arms = ArmsOf(**e);
  std::vector<const Expr*> common;
  for (const Expr* test : arms[0]) {
    const auto has = [&](const auto& arm) { return Has(arm, *test); };
    if (IsColumnTest(*test) && !Has(common, *test) && std::all_of(arms.begin(), arms.end(), has))
      common.push_back(test);
  }
  if (common.empty()) return;
  bool nothing_left = false;
  std::vector<ExprPtr> left;
  for (std::vector<const Expr*>& arm : arms) {
    std::erase_if(arm, [&](const Expr* test) { return Has(common, *test); });
    nothing_left |= arm.empty();
    if (!arm.empty()) left.push_back(Chain(Copies(arm), Function::kAnd, position));
  }
  for (const Expr* test : common) out->push_back(test->Clone());
  *e = nothing_left ? nullptr : Chain(std::move(left), Function::kOr, position);
}

/// For each relation on which every arm has a test of its own: that one of these is true.
void AddFilters(const Expr& either, std::vector<ExprPtr>* out) {
  const uint64_t all = RelationsOf(either);
  if ((all & (all - 1)) == 0) return;
  for (uint64_t rest = all; rest != 0; rest &= rest - 1) {
    const uint64_t relation = rest & (~rest + 1);
    const auto is_own = [&](const Expr& test) { return IsColumnTest(test) && RelationsOf(test) == relation; };
    if (ExprPtr own = ImpliedOr(either, is_own)) out->push_back(std::move(own));
  }
}

/// What follows from each OR.
void SplitOrs(std::vector<ExprPtr>* conjuncts) {
  std::vector<ExprPtr> out;
  for (ExprPtr& e : *conjuncts) {
    if (IsFunction(*e, Function::kOr)) TakeCommon(&e, &out);
    if (e == nullptr) continue;
    if (IsFunction(*e, Function::kOr)) AddFilters(*e, &out);
    out.push_back(std::move(e));
  }
  *conjuncts = std::move(out);
}

/// The column that `e` compares with constants; nullptr if it does anything else.
const Expr* TestedColumn(const Expr& e) {
  if (e.kind != Expr::Kind::kFunction || e.args.empty()) return nullptr;
  if (!IsComparison(e.function) && e.function != Function::kIn) return nullptr;
  const Expr* column = nullptr;
  for (const ExprPtr& a : e.args) {
    if (IsFixed(*a)) continue;
    if (a->kind != Expr::Kind::kColumn || a->column == kMarkColumn || column != nullptr) return nullptr;
    column = a.get();
  }
  return column;
}

/// What is tested of a column is true of the columns that equal it.
void AddTransitive(Query* q) {
  const EqualColumns equal(*q);
  std::vector<ExprPtr> added;
  for (const ExprPtr& c : q->conjuncts) {
    const Expr* const tested = TestedColumn(*c);
    const std::vector<const Expr*>* const others = tested == nullptr ? nullptr : equal.Of(*tested);
    if (others == nullptr) continue;
    for (const Expr* other : *others) {
      if (other->SameAs(*tested)) continue;
      ExprPtr e = c->Clone();
      Substitute(&e, [&](const Expr& x) { return x.kind == Expr::Kind::kColumn ? other->Clone() : nullptr; });
      const auto same = [&](const ExprPtr& known) { return known->SameAs(*e); };
      if (std::any_of(q->conjuncts.begin(), q->conjuncts.end(), same)) continue;
      if (std::none_of(added.begin(), added.end(), same)) added.push_back(std::move(e));
    }
  }
  std::move(added.begin(), added.end(), std::back_inserter(q->conjuncts));
}

/// What is known of a column of the rows that are left, or of those of an outer join's other side that match.
std::vector<const Expr*> TestsOf(const Query& q, const Expr& column) {
  std::vector<const Expr*> tests;
  const auto note = [&](const std::vector<ExprPtr>& conditions) {
    for (const ExprPtr& c : conditions) {
      const Expr* const tested = TestedColumn(*c);
      if (tested != nullptr && tested->SameAs(column)) tests.push_back(c.get());
    }
  };
  const Relation& own = q.relations[static_cast<size_t>(column.relation)];
  note(q.conjuncts);
  if (own.join == JoinKind::kLeft) note(own.on);
  return tests;
}

/// The same of relations that are not joined by an inner join: rows that equal no row that is left need not be found. They may
/// be looked up by columns of others of their kind.
void AddToOuter(Query* q) {
  for (size_t r = 0; r < q->relations.size(); ++r) {
    Relation& relation = q->relations[r];
    std::vector<ExprPtr> added;
    for (const ExprPtr& e : relation.on) {
      if (!IsFunction(*e, Function::kEq) || !(e->args[0]->type == e->args[1]->type)) continue;
      for (size_t side = 0; side < 2; ++side) {
        const Expr &own = *e->args[side], &other = *e->args[1 - side];
        const bool looks_up = own.kind == Expr::Kind::kColumn && own.relation == static_cast<int>(r) &&
                              other.kind == Expr::Kind::kColumn && other.relation != static_cast<int>(r) &&
                              other.column != kMarkColumn;
        if (!looks_up) continue;
        for (const Expr* test : TestsOf(*q, other)) {
          ExprPtr here = test->Clone();
          Substitute(&here, [&](const Expr& x) { return x.kind == Expr::Kind::kColumn ? own.Clone() : nullptr; });
          const auto same = [&](const ExprPtr& known) { return known->SameAs(*here); };
          if (std::ranges::none_of(relation.on, same) && std::ranges::none_of(added, same))
            added.push_back(std::move(here));
        }
      }
    }
    std::move(added.begin(), added.end(), std::back_inserter(relation.on));
  }
}

/// Whether the comparisons of some column with integers leave it no value.
bool Contradict(const std::vector<ExprPtr>& conjuncts) {
  struct Range {
    int64_t low = INT64_MIN, high = INT64_MAX;
  };
  std::map<ColumnNumber, Range> ranges;
  for (const ExprPtr& c : conjuncts) {
    const Expr* const column = TestedColumn(*c);
    if (column == nullptr || !IsComparison(c->function) || c->args.size() != 2) continue;
    const bool flipped = IsConstant(*c->args[0]);
    if (!flipped && !IsConstant(*c->args[1])) continue;  // a parameter, which may have any value
    const Value& value = c->args[flipped ? 0 : 1]->constant;
    if (value.null || value.type.storage() != StorageClass::kInt || column->type.storage() != StorageClass::kInt ||
        value.type.scale != column->type.scale)
      continue;
    Range& range = ranges[NumberOf(*column)];
    const Function f = c->function;
    const bool upper = f == Function::kEq ||
                       (flipped ? f == Function::kGt || f == Function::kGe : f == Function::kLt || f == Function::kLe);
    const bool lower = f == Function::kEq || (!upper && f != Function::kNe);
    const bool strict = f == Function::kLt || f == Function::kGt;
    if (upper) range.high = std::min(range.high, strict && value.i64 > INT64_MIN ? value.i64 - 1 : value.i64);
    if (lower) range.low = std::max(range.low, strict && value.i64 < INT64_MAX ? value.i64 + 1 : value.i64);
    if (range.low > range.high) return true;
  }
  return false;
}

}  // namespace

ExprPtr Chain(std::vector<ExprPtr> parts, Function chain, int position) {
  if (parts.size() == 1) return std::move(parts[0]);
  return MakeFunction(chain, kBoolean, position, std::move(parts));
}

ExprPtr ImpliedOr(const Expr& either, const std::function<bool(const Expr&)>& takes) {
  std::vector<ExprPtr> tests;
  for (const std::vector<const Expr*>& arm : ArmsOf(either)) {
    std::vector<const Expr*> own;
    std::copy_if(arm.begin(), arm.end(), std::back_inserter(own), [&](const Expr* test) { return takes(*test); });
    if (own.empty()) return nullptr;
    tests.push_back(Chain(Copies(own), Function::kAnd, either.position));
  }
  return Chain(std::move(tests), Function::kOr, either.position);
}

void SimplifyConditions(Query* query) {
  Query& q = *query;
  if (q.conjuncts.size() > kMostConditions) return;
  SplitOrs(&q.conjuncts);
  AddTransitive(&q);
  AddToOuter(&q);
  if (!Contradict(q.conjuncts)) return;
  q.conjuncts.insert(q.conjuncts.begin(), MakeBoolean(false, q.conjuncts[0]->position));
}

}  // namespace tessera
