// Interval arithmetic over types, statistics and expressions.
#include "compiler/query/value_range.h"

#include <algorithm>

#include "compiler/query/type_rules.h"
#include "vm/meaning/meaning.h"

namespace tessera {
namespace {

int128_t SaturatingAdd(int128_t a, int128_t b) {
  int128_t r;
  if (__builtin_add_overflow(a, b, &r)) return a < 0 ? kInt128Min : kInt128Max;
  return r;
}
int128_t SaturatingMul(int128_t a, int128_t b) {
  int128_t r;
  if (__builtin_mul_overflow(a, b, &r)) return (a < 0) != (b < 0) ? kInt128Min : kInt128Max;
  return r;
}

ValueRange Cut(ValueRange a, const SqlType& type) {
  ValueRange t = RangeOfType(type);
  return {std::max(a.low, t.low), std::min(a.high, t.high)};
}

}  // namespace

ValueRange RangeOfType(const SqlType& type) {
  if (type.id == TypeId::kNull) return {};
  switch (type.storage()) {
    case StorageClass::kInt:
    case StorageClass::kWide: {
      const IntegerRange range = RangeOf(type);
      return {range.least, range.greatest};
    }
    default:
      return {};
  }
}

ValueRange RangeByStatistics(const Query& q, const Expr& column) {
  if (column.kind != Expr::Kind::kColumn || column.column == kMarkColumn) return RangeOfType(column.type);
  const Relation& relation = q.relations[static_cast<size_t>(column.relation)];
  if (relation.query != nullptr && relation.query->series > 0) return {1, relation.query->series};
  const TableInfo* table = relation.table.get();
  if (table == nullptr || column.type.IsFloat()) return RangeOfType(column.type);
  const ColumnStatistics& s = table->statistics[static_cast<size_t>(column.column)];
  return s.has_range ? ValueRange{s.min, s.max} : RangeOfType(column.type);
}

ValueRange RowsOfJoins(const Query& q) {
  constexpr int64_t kUnknown = int64_t{1} << 40;
  ValueRange rows = {0, 1};
  // (An outer join has a row more.)
  for (const Relation& r : q.relations)
    rows = Product(rows, {0, r.table != nullptr ? static_cast<int64_t>(r.table->rows) + 1 : kUnknown});
  return rows;
}

ValueRange Sum(ValueRange a, ValueRange b) { return {SaturatingAdd(a.low, b.low), SaturatingAdd(a.high, b.high)}; }
ValueRange Minus(ValueRange a) {
  return {a.high == kInt128Min ? kInt128Max : -a.high, a.low == kInt128Min ? kInt128Max : -a.low};
}
ValueRange Product(ValueRange a, ValueRange b) {
  const int128_t p[4] = {SaturatingMul(a.low, b.low), SaturatingMul(a.low, b.high), SaturatingMul(a.high, b.low),
                         SaturatingMul(a.high, b.high)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}
ValueRange Hull(ValueRange a, ValueRange b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

ValueRange ExprRanges::Range(const Expr& e) const {
  switch (e.kind) {
    case Expr::Kind::kConstant:
      if (e.constant.null) return {0, 0};
      if (e.type.storage() == StorageClass::kInt) return {e.constant.i64, e.constant.i64};
      if (IsWide(e.type)) return {e.constant.wide, e.constant.wide};
      return {};
    case Expr::Kind::kParameter:
      return e.type.storage() == StorageClass::kInt || IsWide(e.type) ? RangeOfType(e.type) : ValueRange{};
    case Expr::Kind::kColumn:
    case Expr::Kind::kGroup:
    case Expr::Kind::kAggregate:
      return Cut(leaves_.Range(e), e.type);
    case Expr::Kind::kWindow:
    case Expr::Kind::kOuter:
    case Expr::Kind::kSubquery:
      return {};
    case Expr::Kind::kFunction:
      break;
  }
  if (e.type.storage() != StorageClass::kInt && !IsWide(e.type)) return {};
  ValueRange r = RangeOfType(e.type);
  switch (Info(e.function).range) {
    case RangeRule::kType:
    case RangeRule::kMomentSum:
      break;
    case RangeRule::kBranches: {
      r = Range(*e.args.back());
      for (size_t i = 1; i < e.args.size(); i += 2) r = Hull(r, Range(*e.args[i]));
      break;
    }
    case RangeRule::kCast: {
      const Expr& a = *e.args[0];
      if (a.type.storage() != StorageClass::kInt && !IsWide(a.type)) break;
      if (e.type.IsTimestamp() || a.type.IsTimestamp() || e.type.id == TypeId::kBoolean) break;
      const int up = static_cast<int>(e.type.scale) - static_cast<int>(a.type.scale);
      r = Range(a);
      if (up > 0) r = Product(r, {PowerOf10(up), PowerOf10(up)});
      if (up < 0) r = {r.low / PowerOf10(-up) - 1, r.high / PowerOf10(-up) + 1};
      break;
    }
    default:
      r = ExactRange(e);
      break;
  }
  return Cut(r, e.type);  // beyond it the expression is an error, not a value
}

ValueRange ExprRanges::ExactRange(const Expr& e) const {
  const auto either_sign = [](ValueRange r) { return Hull(r, Minus(r)); };
  switch (Info(e.function).range) {
    case RangeRule::kSum:
    case RangeRule::kMomentSum:
      return Sum(Range(*e.args[0]), Range(*e.args[1]));
    case RangeRule::kDifference:
      return Sum(Range(*e.args[0]), Minus(Range(*e.args[1])));
    case RangeRule::kProduct:
      return Product(Range(*e.args[0]), Range(*e.args[1]));
    case RangeRule::kNegation:
      return Minus(Range(*e.args[0]));
    case RangeRule::kEither: {
      ValueRange r = {0, 0};
      for (const ExprPtr& a : e.args) r = Hull(r, either_sign(Range(*a)));
      return r;
    }
    case RangeRule::kEitherFirst:
      return either_sign(Range(*e.args[0]));
    case RangeRule::kRemainder:
      return Hull(either_sign(Range(*e.args[0])), {0, 0});
    case RangeRule::kType:
    case RangeRule::kBranches:
    case RangeRule::kCast:
      break;
  }
  return RangeOfType(e.type);
}

bool ExprRanges::CanFailAnywhere(const Expr& e) const {
  return CanFail(e) || std::any_of(e.args.begin(), e.args.end(), [&](const ExprPtr& a) { return CanFailAnywhere(*a); });
}

bool ExprRanges::CanFail(const Expr& e) const {
  if (e.kind != Expr::Kind::kFunction)
    return e.kind != Expr::Kind::kConstant && e.kind != Expr::Kind::kParameter && e.kind != Expr::Kind::kColumn &&
           e.kind != Expr::Kind::kGroup;
  const ValueRange all = RangeOfType(e.type);
  const auto fits = [&](ValueRange r) { return r.Within(all.low, all.high); };
  switch (Info(e.function).errors) {
    case ErrorRule::kNever:
      return false;
    case ErrorRule::kOutOfRange:
      if (e.type.IsFloat()) return e.type.id == TypeId::kReal && e.args.size() > 1;
      return !fits(ExactRange(e));
    case ErrorRule::kIfExact:
      return !e.type.IsFloat();
    case ErrorRule::kCast: {
      const SqlType& from = e.args[0]->type;
      if (from.id == TypeId::kText || e.type.id == TypeId::kText) return true;
      if (from.id == TypeId::kDouble && e.type.id == TypeId::kReal) return true;
      if (from.id == TypeId::kNull || e.type.id == TypeId::kBoolean || e.type.IsFloat()) return false;
      if (from.IsFloat()) return true;
      // A moment may have a date that a DATE does not hold.
      if (from.id == TypeId::kTimestampTz && e.type.id == TypeId::kDate) {
        const IntegerRange local = RangeOf(SqlType::Of(TypeId::kTimestamp));
        return !Range(*e.args[0]).Within(local.least, local.greatest);
      }
      if (from.IsTimestamp() != e.type.IsTimestamp()) return false;  // one is a DATE or a TIME
      const int up = static_cast<int>(e.type.scale) - static_cast<int>(from.scale);
      const ValueRange r = Range(*e.args[0]);
      if (up < 0) return !fits({r.low / PowerOf10(-up) - 1, r.high / PowerOf10(-up) + 1});
      return !fits(Product(r, {PowerOf10(up), PowerOf10(up)}));
    }
    case ErrorRule::kPossible:
      break;
  }
  return true;
}

bool ExprRanges::IsNoOp(const Expr& e) const {
  if (e.kind != Expr::Kind::kFunction || e.function != Function::kCast) return false;
  const SqlType &from = e.args[0]->type, &to = e.type;
  if (from.id == to.id && from.id != TypeId::kDecimal) return from.id != TypeId::kText;
  if (from.IsFloat() || to.IsFloat()) return from.IsFloat() && to.id == TypeId::kDouble;
  if (from.storage() != StorageClass::kInt || to.storage() != StorageClass::kInt || from.scale != to.scale)
    return false;
  if (to.id == TypeId::kBoolean || from.IsTimestamp() != to.IsTimestamp()) return false;
  return !CanFail(e);
}

}  // namespace tessera
