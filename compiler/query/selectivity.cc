#include "compiler/query/selectivity.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/query/equal_columns.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"
#include "tablet/values/ordered_float.h"

namespace tessera {
namespace {

const ColumnStatistics* StatisticsOf(const Query& q, const Expr& e) {
  if (e.kind != Expr::Kind::kColumn) return nullptr;
  const Relation& r = q.relations[static_cast<size_t>(e.relation)];
  if (r.table == nullptr || static_cast<size_t>(e.column) >= r.table->statistics.size()) return nullptr;
  return &r.table->statistics[static_cast<size_t>(e.column)];
}

double NumberOf(const Value& v) {
  switch (v.type.storage()) {
    case StorageClass::kInt:
      return static_cast<double>(v.i64);
    case StorageClass::kWide:
      return static_cast<double>(v.wide);
    case StorageClass::kFloat:
      return v.f64;
    case StorageClass::kText:
      return 0;
  }
  return 0;
}
/// ColumnStatistics::min or max of a column as a number: floats are kept in their ordered form, in which differences
/// are no distances.
double NumberOf(int128_t bound, const SqlType& type) {
  if (!type.IsFloat()) return static_cast<double>(bound);
  if (type.id == TypeId::kReal) return static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(bound)));
  return FromOrderedFloat(static_cast<uint64_t>(bound));
}

/// The column that `e` bounds by a constant, from above or from below; nullptr if it does not, or if nothing is known of
/// the column.
const Expr* BoundedColumn(const Query& q, const Expr& e, bool* upper) {
  if (e.kind != Expr::Kind::kFunction || e.function < Function::kLt || e.function > Function::kGe) return nullptr;
  const bool flipped = IsFixed(*e.args[0]);
  const Expr &column = *e.args[flipped ? 1 : 0], &bound = *e.args[flipped ? 0 : 1];
  const ColumnStatistics* const s = StatisticsOf(q, column);
  if (!IsFixed(bound) || bound.constant.null || s == nullptr || !s->has_range) return nullptr;
  *upper = (e.function == Function::kLt || e.function == Function::kLe) != flipped;
  return &column;
}

/// The column of which `e` lets some values pass, which it lists: x = 1, x IN (1, 2), or an OR of such; nullptr if it is none.
const Expr* ListedColumn(const Expr& e) {
  if (IsFunction(e, Function::kOr)) {
    const Expr* column = nullptr;
    for (const ExprPtr& a : e.args) {
      const Expr* const of_arm = ListedColumn(*a);
      if (of_arm == nullptr || (column != nullptr && !column->SameAs(*of_arm))) return nullptr;
      column = of_arm;
    }
    return column;
  }
  if (!IsFunction(e, Function::kEq) && !IsFunction(e, Function::kIn)) return nullptr;
  const bool lists = std::all_of(e.args.begin() + 1, e.args.end(), [](const ExprPtr& a) { return IsFixed(*a); });
  return lists && e.args[0]->kind == Expr::Kind::kColumn ? e.args[0].get() : nullptr;
}

/// Whether condition `i` lists values of a column of which another one lists fewer, or one before it as many.
bool IsSurpassed(const Query& q, const std::vector<const Expr*>& conditions, size_t i) {
  const Expr* const column = conditions.size() > 1 ? ListedColumn(*conditions[i]) : nullptr;
  if (column == nullptr) return false;
  for (size_t k = 0; k < conditions.size(); ++k) {
    const Expr* const other = k != i ? ListedColumn(*conditions[k]) : nullptr;
    if (other == nullptr || !other->SameAs(*column)) continue;
    const double own = Selectivity(q, *conditions[i]), others = Selectivity(q, *conditions[k]);
    if (others < own || (others == own && k < i)) return true;
  }
  return false;
}

/// How often one of two values that lie anywhere in their ranges is less than the other. False: ranges are not known.
bool OddsOfLess(const Query& q, const Expr& a, const Expr& b, double* odds) {
  const auto is_number = [](const Expr& e) {
    return e.type.storage() == StorageClass::kInt || e.type.storage() == StorageClass::kWide;
  };
  if (!is_number(a) || !is_number(b)) return false;
  const StatisticsRanges statistics(q);
  const ExprRanges ranges(statistics);
  const ValueRange x = ranges.Range(a), y = ranges.Range(b);
  const ValueRange of_x = RangeOfType(a.type), of_y = RangeOfType(b.type);
  if ((x.low == of_x.low && x.high == of_x.high) || (y.low == of_y.low && y.high == of_y.high)) return false;
  const auto low_x = static_cast<double>(x.low), low_y = static_cast<double>(y.low);
  const double width_x = static_cast<double>(x.high) - low_x + 1, width_y = static_cast<double>(y.high) - low_y + 1;
  if (!(width_x > 0) || !(width_y > 0)) return false;
  // The mean over y of the part of x's range that is less, which rises from 0 at low_x to 1 at low_x + width_x.
  const auto sum_up_to = [&](double v) {
    const double inside = std::clamp(v - low_x, 0.0, width_x);
    return inside * inside / (2 * width_x) + std::max(0.0, v - low_x - width_x);
  };
  *odds = std::clamp((sum_up_to(low_y + width_y) - sum_up_to(low_y)) / width_y, 0.0, 1.0);
  return true;
}

}  // namespace

double DistinctOf(const Query& q, const Expr& e) {
  constexpr double kUnknown = 100;
  if (const ColumnStatistics* s = StatisticsOf(q, e)) return std::max<double>(1, static_cast<double>(s->distinct));
  if (IsFunction(e, Function::kCast)) return DistinctOf(q, *e.args[0]);
  if (e.kind == Expr::Kind::kGroup) return DistinctOf(q, *q.group_by[static_cast<size_t>(e.index)]);
  if (e.kind != Expr::Kind::kColumn || e.column == kMarkColumn) return kUnknown;
  // An output of a derived table has at most as many values as what it is made of.
  const Relation& r = q.relations[static_cast<size_t>(e.relation)];
  if (r.query == nullptr || !r.query->union_all.empty()) return kUnknown;
  return DistinctOf(*r.query, *r.query->outputs[static_cast<size_t>(e.column)].expr);
}

double DistinctLeft(const Query& q, const Expr& e) {
  const double all = DistinctOf(q, e);
  if (StatisticsOf(q, e) == nullptr) return all;
  const auto r = static_cast<size_t>(e.relation);
  const std::vector<const Expr*> filters = FiltersOf(q, r);
  std::vector<const Expr*> own;  // on this column alone
  for (const Expr* filter : filters) {
    bool is_own = true;
    ForEachColumn(*filter, [&](const Expr& c) { is_own = is_own && c.column == e.column; });
    if (is_own) own.push_back(filter);
  }
  const double rows = static_cast<double>(q.relations[r].table->rows) * SelectivityOfAll(q, filters);
  return std::max(1.0, std::min(all * SelectivityOfAll(q, own), rows));
}

double PartWithin(const Query& q, const Expr& of, const Expr& other) {
  ValueRange a, b;
  if (!StoredRange(q, of, &a) || !StoredRange(q, other, &b) || a.low > b.high || b.low > a.high) return 1;
  const double width = static_cast<double>(a.high) - static_cast<double>(a.low) + 1;
  const double both = static_cast<double>(std::min(a.high, b.high)) - static_cast<double>(std::max(a.low, b.low)) + 1;
  // (Values may lie closer there: there are at least as many as the other column has.)
  return std::min(1.0, std::max(both / width, DistinctOf(q, other) / DistinctOf(q, of)));
}

bool StoredRange(const Query& q, const Expr& e, ValueRange* range) {
  if (e.kind == Expr::Kind::kGroup) return StoredRange(q, *q.group_by[static_cast<size_t>(e.index)], range);
  if (e.kind != Expr::Kind::kColumn || e.column == kMarkColumn || e.type.storage() != StorageClass::kInt) return false;
  if (const ColumnStatistics* s = StatisticsOf(q, e)) {
    *range = {s->min, s->max};
    return s->has_range;
  }
  const Relation& r = q.relations[static_cast<size_t>(e.relation)];
  if (r.query == nullptr || !r.query->union_all.empty()) return false;
  return StoredRange(*r.query, *r.query->outputs[static_cast<size_t>(e.column)].expr, range);
}

double Selectivity(const Query& q, const Expr& e) {
  constexpr double kUnknown = 1.0 / 3, kRange = 1.0 / 4, kColumns = 1.0 / 2, kLike = 1.0 / 10, kGroups = 1.0 / 20;
  if (e.kind == Expr::Kind::kConstant) return !e.constant.null && e.constant.i64 != 0 ? 1 : 0;
  if (e.kind != Expr::Kind::kFunction) return kUnknown;
  switch (e.function) {
    case Function::kAnd: {
      std::vector<const Expr*> all;
      for (const ExprPtr& a : e.args) all.push_back(a.get());
      return SelectivityOfAll(q, all);
    }
    case Function::kOr: {
      double miss = 1;
      for (const ExprPtr& a : e.args) miss *= 1 - Selectivity(q, *a);
      return 1 - miss;
    }
    case Function::kNot:
      return 1 - Selectivity(q, *e.args[0]);
    case Function::kIn:
      return std::min(1.0, static_cast<double>(e.args.size() - 1) / DistinctOf(q, *e.args[0]));
    case Function::kLike:
    case Function::kRegexMatch:
      return kLike;
    case Function::kEq:
      return 1 / std::max(DistinctOf(q, *e.args[0]), IsFixed(*e.args[1]) ? 1 : DistinctOf(q, *e.args[1]));
    case Function::kNe:
      return 1 - 1 / DistinctOf(q, *e.args[0]);
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe: {
      const bool less = e.function == Function::kLt || e.function == Function::kLe;
      const auto has_columns = [](const ExprPtr& a) { return RelationsOf(*a) != 0; };
      if (std::ranges::all_of(e.args, has_columns)) {
        double below = kColumns;
        if (OddsOfLess(q, *e.args[less ? 0 : 1], *e.args[less ? 1 : 0], &below)) return below;
        const auto is_column = [](const ExprPtr& a) { return a->kind == Expr::Kind::kColumn; };
        if (std::ranges::all_of(e.args, is_column)) return kColumns;
      }
      // HAVING is asked for the few groups that stand out.
      const auto is_aggregate = [](const ExprPtr& a) { return a->kind == Expr::Kind::kAggregate; };
      if (std::any_of(e.args.begin(), e.args.end(), is_aggregate)) return kGroups;
      const bool flipped = IsFixed(*e.args[0]);
      const Expr& column = *e.args[flipped ? 1 : 0];
      const Expr& bound = *e.args[flipped ? 0 : 1];
      const ColumnStatistics* s = StatisticsOf(q, column);
      if (s == nullptr || !s->has_range || !IsFixed(bound) || bound.constant.null) return kRange;
      // An integer covers an interval of width 1, a float a point.
      const double step = column.type.IsFloat() ? 0 : 1;
      const double low = NumberOf(s->min, column.type), width = NumberOf(s->max, column.type) - low + step;
      const double position = (NumberOf(bound.constant) - low + step / 2) / width;
      if (!(width > 0) || !std::isfinite(width) || !std::isfinite(position)) return kRange;
      const double below = std::clamp(position, 0.0, 1.0);
      return less != flipped ? below : 1 - below;
    }
    default:
      return kUnknown;
  }
}

double SelectivityOfAll(const Query& q, const std::vector<const Expr*>& conditions) {
  double s = 1;
  std::map<ColumnNumber, double> bounds[2];  // lower, upper: the fraction of the strongest one
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Expr* const e = conditions[i];
    bool upper = false;
    const Expr* const column = BoundedColumn(q, *e, &upper);
    if (column == nullptr) {
      if (!IsSurpassed(q, conditions, i)) s *= Selectivity(q, *e);
      continue;
    }
    const auto [known, added] = bounds[upper ? 1 : 0].emplace(NumberOf(*column), 1);
    known->second = std::min(known->second, Selectivity(q, *e));
  }
  for (const auto& [column, below] : bounds[1]) {
    const auto lower = bounds[0].find(column);
    if (lower == bounds[0].end()) {
      s *= below;
      continue;
    }
    s *= std::max(below + lower->second - 1, std::min(below * lower->second, 1e-4));
    bounds[0].erase(lower);
  }
  for (const auto& [column, above] : bounds[0]) s *= above;
  return s;
}

double EstimateMade(const Query& q, double joined) {
  if (!q.grouped && !q.distinct) return joined;
  double groups = 1;
  if (q.grouped) {
    for (const ExprPtr& e : q.group_by) groups *= DistinctLeft(q, *e);
  } else {
    for (int i = 0; i < q.visible; ++i) groups *= DistinctLeft(q, *q.outputs[static_cast<size_t>(i)].expr);
  }
  double made = std::min(joined, groups);
  for (const ExprPtr& h : q.having) made *= Selectivity(q, *h);
  return made;
}

}  // namespace tessera
