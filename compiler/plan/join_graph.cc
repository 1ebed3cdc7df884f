#include "compiler/plan/join_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/query/equal_columns.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/functions.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/selectivity.h"
#include "compiler/query/unique_key.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

bool IsSingle(RelationSet set) { return set != 0 && (set & (set - 1)) == 0; }

RelationSet RelationsOf(const std::vector<const Expr*>& members) {
  RelationSet set = 0;
  for (const Expr* e : members) set |= SetOf(static_cast<size_t>(e->relation));
  return set;
}

/// The column of a class that is of a relation in `set`; rather that of `preferred`. nullptr if there is none.
const Expr* ColumnIn(const std::vector<const Expr*>& members, RelationSet set, int preferred) {
  const Expr* found = nullptr;
  for (const Expr* e : members) {
    if ((SetOf(static_cast<size_t>(e->relation)) & set) == 0) continue;
    if (found == nullptr || e->relation == preferred) found = e;
  }
  return found;
}

}  // namespace

bool KeysAreConditions(const PlanOptions& options) {
  const vm::JoinStrategyInfo* const asked = AskedFor(options.join);
  return asked != nullptr && !asked->by_key;
}

JoinGraph::JoinGraph(const Query& q, const PlanOptions& options, const DerivedPlans& derived)
    : q_(q),
      keys_are_conditions_(KeysAreConditions(options)),
      cuts_(AskedFor(options.join) != nullptr && AskedFor(options.join)->cuts),
      n_(q.relations.size()),
      filters_(n_),
      filtered_(n_),
      size_(n_),
      selectivity_(n_, 1.0),
      texts_(n_),
      needed_(n_) {
  for (const ExprPtr& c : q.conjuncts) AddConjunct(*c);
  for (const auto& members : classes_) key_sides_.emplace_back(RelationsOf(members), RelationsOf(members));
  for (const Predicate& p : predicates_) {
    if (!IsFunction(*p.expr, Function::kEq) || IsVolatile(*p.expr)) continue;
    const RelationSet left = RelationsOf(*p.expr->args[0]), right = RelationsOf(*p.expr->args[1]);
    if (left != 0 && right != 0 && (left & right) == 0) key_sides_.emplace_back(left, right);
  }
  for (size_t r = 0; r < n_; ++r) {
    const Relation& relation = q.relations[r];
    for (const ExprPtr& e : relation.on) {
      const RelationSet set = RelationsOf(*e);
      // A part of ON on this relation alone filters its scan.
      if (IsSubset(set, SetOf(r)) && !IsVolatile(*e)) filters_[r].push_back(e.get());
      needed_[r] |= set & ~SetOf(r);
    }
    size_[r] = relation.table != nullptr ? static_cast<double>(relation.table->rows) : derived[r]->result_rows;
    EstimateScan(r);
  }
  for (const auto& members : classes_) {
    std::vector<KeyValues>& values = class_values_.emplace_back();
    for (const Expr* e : members) values.push_back(ValuesOf(*e));
  }
  FindTexts();
}

void JoinGraph::AddConjunct(const Expr& e) {
  // A value of its own for each row of the block: it is tested after all joins.
  const bool is_volatile = IsVolatile(e) && n_ > 0;
  const RelationSet set = is_volatile ? ~RelationSet{0} >> (64 - n_) : RelationsOf(e);
  if (set == 0) {
    constants_.push_back(&e);
  } else if (IsSingle(set) && IsInner(static_cast<size_t>(__builtin_ctzll(set)))) {
    filters_[static_cast<size_t>(__builtin_ctzll(set))].push_back(&e);
  } else if (is_volatile || keys_are_conditions_ || !AddToClasses(e)) {
    predicates_.push_back({&e, set});
  }
}

bool JoinGraph::AddToClasses(const Expr& e) {
  if (!IsFunction(e, Function::kEq)) return false;
  for (const ExprPtr& a : e.args) {
    if (a->kind != Expr::Kind::kColumn || a->column == kMarkColumn || a->type.IsFloat() ||
        !IsInner(static_cast<size_t>(a->relation)))
      return false;
  }
  const auto class_of = [&](const Expr& column) {
    return std::find_if(classes_.begin(), classes_.end(), [&](const auto& members) {
      return std::any_of(members.begin(), members.end(), [&](const Expr* m) { return m->SameAs(column); });
    });
  };
  const auto left = class_of(*e.args[0]), right = class_of(*e.args[1]);
  // Two columns of one relation in a class would have to be compared in its scan, too.
  RelationSet of_left = SetOf(static_cast<size_t>(e.args[0]->relation));
  RelationSet of_right = SetOf(static_cast<size_t>(e.args[1]->relation));
  if (left != classes_.end()) of_left = RelationsOf(*left);
  if (right != classes_.end()) of_right = RelationsOf(*right);
  if ((left != right || left == classes_.end()) && (of_left & of_right) != 0) return false;
  if (left == classes_.end() && right == classes_.end()) {
    if (classes_.size() == vm::kMaxKeys) return false;  // no join has more keys
    classes_.push_back({e.args[0].get(), e.args[1].get()});
  } else if (left == classes_.end()) {
    right->push_back(e.args[0].get());
  } else if (right == classes_.end()) {
    left->push_back(e.args[1].get());
  } else if (left != right) {
    left->insert(left->end(), right->begin(), right->end());
    classes_.erase(right);
  }
  return true;
}

void JoinGraph::EstimateScan(size_t r) {
  // Tests of columns come first, so that `x <> 0 AND f(x)` protects f as people expect.
  std::stable_sort(filters_[r].begin(), filters_[r].end(), [&](const Expr* a, const Expr* b) {
    if (IsColumnTest(*a) != IsColumnTest(*b)) return IsColumnTest(*a);
    return IsColumnTest(*a) && Selectivity(q_, *a) < Selectivity(q_, *b);
  });
  filtered_[r] = !filters_[r].empty();
  selectivity_[r] = SelectivityOfAll(q_, filters_[r]);
}

void JoinGraph::FindTexts() {
  std::vector<ColumnNumber> texts;
  const auto note = [&](const Expr& e) {
    ForEachColumn(e, [&](const Expr& c) {
      if (c.column == kMarkColumn || c.type.storage() != StorageClass::kText ||
          std::ranges::count(texts, NumberOf(c)) > 0)
        return;
      texts.push_back(NumberOf(c));
      const auto r = static_cast<size_t>(c.relation);
      const TableInfo* const table = q_.relations[r].table.get();
      if (table == nullptr || static_cast<size_t>(c.column) >= table->statistics.size()) return;
      const ColumnStatistics& s = table->statistics[static_cast<size_t>(c.column)];
      const auto rows = static_cast<double>(std::max<uint64_t>(table->stored_rows, 1));
      const double rare = std::min(1.0, static_cast<double>(s.distinct) / rows);
      texts_[r] += kTextCost + rare * (kRareTextCost + kTextByteCost * static_cast<double>(s.encoded_bytes) / rows);
    });
  };
  for (const ExprPtr& e : q_.group_by) note(*e);
  for (const Aggregate& a : q_.aggregates) {
    if (a.argument != nullptr) note(*a.argument);
  }
  if (!q_.grouped) {
    for (const Output& o : q_.outputs) note(*o.expr);
  }
  for (const Predicate& p : predicates_) note(*p.expr);
  for (const auto& members : classes_) {
    for (const Expr* e : members) note(*e);
  }
}

void JoinGraph::TakeFilters(Plan* plan) {
  plan->rows.resize(n_);
  for (size_t r = 0; r < n_; ++r) plan->rows[r] = filtered_rows(r);
  plan->filters = std::move(filters_);
  plan->constants = std::move(constants_);
}

RelationSet JoinGraph::Neighbours(size_t r) const {
  // One that asks nothing of others, a scalar subquery, can be joined to any.
  const auto joins_any = [&](size_t other) { return !IsInner(other) && needed_[other] == 0; };
  if (joins_any(r)) return ~RelationSet{0};
  RelationSet found = SetOf(r) | needed_[r];
  for (const auto& [left, right] : key_sides_) {
    if (((left | right) & SetOf(r)) != 0) found |= left | right;
  }
  for (size_t other = 0; other < n_; ++other) {
    if ((needed_[other] & SetOf(r)) != 0 || joins_any(other)) found |= SetOf(other);
  }
  return found;
}

bool JoinGraph::HasKey(RelationSet a, RelationSet b) const {
  return std::any_of(key_sides_.begin(), key_sides_.end(), [&](const auto& sides) {
    const auto& [left, right] = sides;
    if (left == right) return (left & a) != 0 && (left & b) != 0;  // a class
    return (IsSubset(left, a) && IsSubset(right, b)) || (IsSubset(left, b) && IsSubset(right, a));
  });
}

JoinStep JoinGraph::Step(RelationSet joined, int probing, RelationSet side, int driver, double* fraction) const {
  const Relation& relation = q_.relations[static_cast<size_t>(driver)];
  JoinStep step;
  step.relation = driver;
  step.kind = relation.join;
  const bool inner = step.kind == JoinKind::kInner;
  bool lost_key = false;  // an equality became a condition, so that more than one row may be found
  *fraction = 1;
  Meeting meeting;
  const auto add_key = [&](const Expr& e) {
    const Expr *probe = nullptr, *build = nullptr;
    if (!IsKey(e, joined, side, &probe, &build)) return false;
    if (keys_are_conditions_) {
      lost_key = true;
      if (inner || !cuts_) return false;
    }
    for (size_t k = 0; k < step.build_keys.size(); ++k) {
      if (step.build_keys[k]->SameAs(*build) && step.probe_keys[k]->SameAs(*probe)) return true;
    }
    if (step.build_keys.size() == vm::kMaxKeys) {  // the rest are conditions
      lost_key = true;
      return false;
    }
    step.build_keys.push_back(build);
    step.probe_keys.push_back(probe);
    const KeyValues equal[] = {ValuesOf(*probe), ValuesOf(*build)};
    Meet(equal, joined, side, &meeting);
    return true;
  };
  for (size_t c = 0; c < classes_.size(); ++c) {
    const Expr* const probe = ColumnIn(classes_[c], joined, probing);
    const Expr* const build = ColumnIn(classes_[c], side, driver);
    if (probe == nullptr || build == nullptr) continue;
    step.probe_keys.push_back(probe);
    step.build_keys.push_back(build);
    Meet(class_values_[c], joined, side, &meeting);
  }
  if (!inner) {
    for (const ExprPtr& e : relation.on) {
      if ((IsSubset(RelationsOf(*e), side) && !IsVolatile(*e)) || add_key(*e)) continue;
      step.match.push_back(e.get());
      *fraction *= Selectivity(q_, *e);
    }
  }
  for (const Predicate& p : predicates_) {
    if (!IsSubset(p.relations, joined | side) || IsSubset(p.relations, joined)) continue;
    if (inner && IsSubset(p.relations, side)) continue;  // it was tested there
    if (inner && add_key(*p.expr)) continue;
    step.residuals.push_back(p.expr);
    if (inner) *fraction *= Selectivity(q_, *p.expr);
  }
  // With several keys neither side has more different ones than rows.
  const double build_keys = std::min(meeting.side_values, std::max(1.0, size_[static_cast<size_t>(driver)]));
  double largest = 1;
  for (size_t r = 0; r < n_; ++r) {
    if ((joined & SetOf(r)) != 0) largest = std::max(largest, size_[r]);
  }
  // What filters choose is taken to be there on the other side, as far as there is room for it.
  *fraction *=
      std::min(1.0, meeting.side_part / meeting.side_kept) * std::min(1.0, meeting.joined_part / meeting.joined_kept);
  *fraction /= std::max(build_keys, std::min(meeting.joined_values, largest));
  step.reached = meeting.side_part;
  step.unique = (relation.unique && !lost_key) || IsUnique(driver, step.build_keys);
  step.filtered = relation.table == nullptr;
  for (size_t r = 0; r < n_; ++r) step.filtered |= (side & SetOf(r)) != 0 && filtered_[r];
  return step;
}

double JoinGraph::RowsAfter(const JoinStep& step, double rows, double fraction) const {
  const auto r = static_cast<size_t>(step.relation);
  const double found =
      step.unique ? rows * std::min(1.0, selectivity_[r] / step.reached) : rows * filtered_rows(r) * fraction;
  switch (step.kind) {
    case JoinKind::kInner:
      return found;
    case JoinKind::kLeft:
      return std::max(rows, found);
    case JoinKind::kSemi: {
      // A row finds a match if the key that it has is one of those that pass the filters.
      const double keys = step.probe_keys.empty() ? 1 : DistinctKeys(step.probe_keys);
      return rows * std::min(0.5, std::min(1.0, filtered_rows(r) / keys));
    }
    case JoinKind::kAnti:
      return rows * 0.5;
    case JoinKind::kMark:
      return rows;
  }
  return rows;
}

double JoinGraph::RowsWith(RelationSet joined, double rows, size_t r, bool* unique) const {
  double fraction = 1;
  const JoinStep step = Step(joined, -1, SetOf(r), static_cast<int>(r), &fraction);
  const double after = RowsAfter(step, rows, fraction);
  *unique = step.unique;
  if (!step.unique && step.kind == JoinKind::kInner) return after;
  double residual = 1;  // (the fraction of a unique key is that of its filters)
  for (const Expr* e : step.residuals) residual *= Selectivity(q_, *e);
  return after * residual;
}

void JoinGraph::FindMatches(size_t probing, size_t side, JoinSides* sides) const {
  if (n_ != 2 || !IsInner(probing) || !IsInner(side)) return;
  double fraction = 1;
  const JoinStep step = Step(SetOf(probing), static_cast<int>(probing), SetOf(side), static_cast<int>(side), &fraction);
  if (step.build_keys.empty() || step.unique) return;
  // The statistics know the different values of stored columns.
  const auto is_stored = [&](const Expr& e) {
    return e.kind == Expr::Kind::kColumn && q_.relations[static_cast<size_t>(e.relation)].table != nullptr;
  };
  for (size_t k = 0; k < step.build_keys.size(); ++k) {
    const Expr &build = *step.build_keys[k], &probe = *step.probe_keys[k];
    const StorageClass storage = build.type.storage();
    const bool numbers = storage == StorageClass::kInt || storage == StorageClass::kFloat;
    if (!numbers || storage != probe.type.storage() || !is_stored(build) || !is_stored(probe)) return;
  }
  const double values = DistinctKeys(step.build_keys);
  sides->matches = sides->side / values;
  sides->meeting = sides->side / std::max(values, DistinctKeys(step.probe_keys)) * sides->probing;
}

bool JoinGraph::IsKey(const Expr& e, RelationSet joined, RelationSet side, const Expr** probe,
                      const Expr** build) const {
  if (!IsFunction(e, Function::kEq) || IsVolatile(e)) return false;
  for (size_t k = 0; k < 2; ++k) {
    *build = e.args[k].get();
    *probe = e.args[1 - k].get();
    const RelationSet of_build = RelationsOf(**build), of_probe = RelationsOf(**probe);
    if (of_build != 0 && of_probe != 0 && IsSubset(of_build, side) && IsSubset(of_probe, joined)) return true;
  }
  return false;
}

bool JoinGraph::IsUnique(int r, const std::vector<const Expr*>& keys) const {
  const Relation& relation = q_.relations[static_cast<size_t>(r)];
  const auto is_key = [&](int column) {
    return std::any_of(keys.begin(), keys.end(), [&](const Expr* e) {
      return e->kind == Expr::Kind::kColumn && e->relation == r && e->column == column;
    });
  };
  return HasUniqueKey(relation, is_key);
}

JoinGraph::KeyValues JoinGraph::ValuesOf(const Expr& key) const {
  KeyValues v;
  v.relations = RelationsOf(key);
  v.different = DistinctOf(q_, key);
  for (size_t r = 0; r < n_; ++r) {
    if ((v.relations & SetOf(r)) != 0) v.kept = std::min(v.kept, std::max(selectivity_[r], 1e-9));
  }
  ValueRange range;
  v.has_range = StoredRange(q_, key, &range);
  if (!v.has_range) return v;
  v.low = static_cast<double>(range.low);
  v.width = static_cast<double>(range.high) - v.low + 1;
  return v;
}

/// A calendar has the days of two centuries, of which sales have those of five years. So one of a hundred days that a filter
/// leaves is not one of a hundred sales: of two ranges of different values the part counts that both have.
void JoinGraph::Meet(std::span<const KeyValues> equal, RelationSet joined, RelationSet side, Meeting* m) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  struct Values {
    double different = kNone, kept = 1, low = -kNone, end = kNone;
  };
  Values of[2];
  bool known = true;
  for (const KeyValues& v : equal) {
    for (size_t s = 0; s < 2; ++s) {
      if (!IsSubset(v.relations, s == 0 ? joined : side)) continue;
      of[s].different = std::min(of[s].different, v.different);
      of[s].kept = std::min(of[s].kept, v.kept);
      of[s].low = std::max(of[s].low, v.low);
      of[s].end = std::min(of[s].end, v.low + v.width);
      known = known && v.has_range;
    }
  }
  const double width = std::min(of[0].end, of[1].end) - std::max(of[0].low, of[1].low);
  double part[2] = {1, 1};
  for (size_t s = 0; s < 2 && known && width > 0; ++s) {
    // (Values may lie closer in the part that both have: there are at least as many as the other set has.)
    part[s] = std::min(1.0, std::max(width / (of[s].end - of[s].low), of[1 - s].different / of[s].different));
  }
  m->joined_values *= std::max(1.0, of[0].different * part[0]);
  m->side_values *= std::max(1.0, of[1].different * part[1]);
  m->joined_part *= part[0];
  m->side_part *= part[1];
  m->joined_kept = std::min(m->joined_kept, of[0].kept);
  m->side_kept = std::min(m->side_kept, of[1].kept);
}

double JoinGraph::DistinctKeys(const std::vector<const Expr*>& keys) const {
  double distinct = 1;
  for (const Expr* e : keys) distinct *= DistinctOf(q_, *e);
  return distinct;
}

}  // namespace tessera
