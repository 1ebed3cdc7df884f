// Binding operators: arithmetic, comparisons and what is built from them (IN, BETWEEN, IS DISTINCT FROM, NULLIF), LIKE,
// and dates with intervals.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

#include "compiler/bind/array_binder.h"
#include "compiler/bind/array_text.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/query/fold.h"
#include "compiler/query/functions.h"
#include "tablet/values/array_type.h"
#include "vm/meaning/meaning.h"
#include "vm/meaning/regex.h"
#include "vm/meaning/text_meaning.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

bool IsUntyped(const Expr& e) { return e.type.id == TypeId::kNull; }

/// What an untyped literal is that is added to a moment, or subtracted: another moment of the type where the text is one
/// and `may_be_moment`, days where a DATE has a number beside it, else an interval. NULL is the first of these.
SqlType TypeBesideMoment(const SqlType& moment, bool may_be_moment, const Value& literal) {
  const SqlType integer = SqlType::Of(TypeId::kInteger);
  if (literal.null && !may_be_moment) return moment.id == TypeId::kDate ? integer : SqlType::Of(TypeId::kInterval);
  const std::string& text = literal.text;
  if (may_be_moment && ParseValue(text, moment).ok()) return moment;
  if (moment.id == TypeId::kDate && ParseValue(text, integer).ok()) return integer;
  return ParseInterval(text).ok() ? SqlType::Of(TypeId::kInterval) : moment;
}

Status NoOperator(std::string_view symbol, const SqlType& left, const SqlType& right, int position) {
  return SqlError(ErrorKind::kUndefinedFunction,
                  "operator does not exist: " + left.ToString() + " " + std::string(symbol) + " " + right.ToString(),
                  position, "No operator matches the given argument types. You might need to add explicit type casts.");
}

bool FindComparisonFunction(std::string_view symbol, Function* f) {
  for (Function candidate :
       {Function::kEq, Function::kNe, Function::kLt, Function::kLe, Function::kGt, Function::kGe}) {
    if (Info(candidate).text == symbol) {
      *f = candidate;
      return true;
    }
  }
  return false;
}

using Kind = AlignedConstant::Kind;

/// x `function` (a value above all of x's type).
AlignedConstant AboveAll(Function f) {
  const bool always = f == Function::kLt || f == Function::kLe || f == Function::kNe;
  return {always ? Kind::kAlways : Kind::kNever, f, {}};
}
AlignedConstant BelowAll(Function f) {
  const bool always = f == Function::kGt || f == Function::kGe || f == Function::kNe;
  return {always ? Kind::kAlways : Kind::kNever, f, {}};
}

/// x `function` (floor + a fraction, if not exact), with x an integer that `type` stores.
AlignedConstant AlignToInteger(Function f, const SqlType& type, int128_t floor, bool exact) {
  if (!exact) {
    switch (f) {
      case Function::kEq:
        return {Kind::kNever, f, {}};
      case Function::kNe:
        return {Kind::kAlways, f, {}};
      case Function::kLt:
      case Function::kLe:
        f = Function::kLe;
        break;
      case Function::kGt:
      case Function::kGe:
        f = Function::kGt;
        break;
      default:
        assert(false);
    }
  }
  const IntegerRange range = RangeOf(type);
  if (floor > range.greatest) return AboveAll(f);
  if (floor < range.least) return BelowAll(f);
  return {Kind::kExact, f, FromInteger(type, floor)};
}

/// x counts units of `x_unit`, the constant v units of `v_unit`; one of the two is 1.
AlignedConstant AlignUnits(Function f, const SqlType& type, int128_t v, int128_t x_unit, int128_t v_unit) {
  vm::Lane lane;
  if (v_unit > 1) {
    const int128_t scaled = vm::meaning::MulW::Apply(v, v_unit, lane);
    if (lane.error != vm::LaneError::kNone) return v > 0 ? AboveAll(f) : BelowAll(f);
    return AlignToInteger(f, type, scaled, true);
  }
  const int128_t floor = vm::meaning::FloorDivW::Apply(v, x_unit, lane);
  return AlignToInteger(f, type, floor, v % x_unit == 0);
}

/// Splits a double into an integer and the rest.
AlignedConstant AlignFloat(Function f, const SqlType& type, double v) {
  if (v != v) return AboveAll(f);  // NaN is the greatest number
  const double floor = std::floor(v);
  if (floor > 1e30) return AboveAll(f);
  if (floor < -1e30) return BelowAll(f);
  vm::Lane lane;
  return AlignToInteger(f, type, vm::meaning::FToW::Apply(floor, lane), floor == v);
}

}  // namespace

AlignedConstant AlignConstant(Function f, const SqlType& type, const Value& constant) {
  const SqlType& from = constant.type;
  const TypeClass x = ClassOf(type), c = ClassOf(from);
  if ((x & kClassExact) != 0 && (c & kClassExact) != 0) {
    const int128_t v = IntegerOf(constant);
    if (type.scale >= from.scale) return AlignUnits(f, type, v, 1, PowerOf10(type.scale - from.scale));
    return AlignUnits(f, type, v, PowerOf10(from.scale - type.scale), 1);
  }
  // A SMALLINT or INTEGER is exact as a DOUBLE, so comparing integers gives the same result. A BIGINT or DECIMAL is
  // not.
  if ((type.id == TypeId::kSmallint || type.id == TypeId::kInteger) && (c & kClassFloat) != 0)
    return AlignFloat(f, type, constant.f64);
  if ((x & kClassFloat) != 0 && (c & kClassNumber) != 0) {
    Result<Value> v = EvaluateCast(constant, SqlType::Of(TypeId::kDouble));
    if (!v.ok()) return {};
    // A constant that a REAL column can hold becomes a REAL. Another stays DOUBLE, and the column is compared with it
    // as it is.
    if (type.id == TypeId::kReal && static_cast<double>(static_cast<float>(v->f64)) == v->f64) v->type = type;
    return {Kind::kExact, f, std::move(v).value()};
  }
  if (x == kClassDate && c == kClassTimestamp) return AlignUnits(f, type, constant.i64, vm::kMicrosPerDay, 1);
  if (x == kClassTimestamp && c == kClassDate) return AlignUnits(f, type, constant.i64, 1, vm::kMicrosPerDay);
  if (x == c && (x & (kClassText | kClassBoolean | kClassDate | kClassTimestamp | kClassTimestampTz | kClassTime |
                      kClassUuid | kClassBytea)) != 0)
    return {Kind::kExact, f, constant};
  return {};
}

// ---- Operand rules

Status ExpressionBinder::ApplyOperandRule(OperandRule rule, ExprPtr* left, ExprPtr* right) {
  const auto cast = [&](ExprPtr* e, const SqlType& type) -> Status {
    Result<ExprPtr> r = Cast(std::move(*e), type);
    if (!r.ok()) return r.status();
    *e = std::move(r).value();
    return {};
  };
  const auto both = [&](const SqlType& type) -> Status {
    TESSERA_TRY(cast(left, type));
    return cast(right, type);
  };
  switch (rule) {
    case OperandRule::kAsIs:
    case OperandRule::kSpan:
      return {};
    case OperandRule::kSwapped:
      std::swap(*left, *right);
      return {};
    case OperandRule::kDoubles: {
      const SqlType type = SqlType::Of(TypeId::kDouble);
      // The machine holds a REAL as a double already.
      if ((*left)->type.id != TypeId::kReal) TESSERA_TRY(cast(left, type));
      if ((*right)->type.id != TypeId::kReal) TESSERA_TRY(cast(right, type));
      return {};
    }
    case OperandRule::kTimestamps:
      return both(SqlType::Of(TypeId::kTimestamp));
    case OperandRule::kParts:
      return {};
    case OperandRule::kLengths:
      *left = OrderedForm(std::move(*left));
      *right = OrderedForm(std::move(*right));
      return {};
    case OperandRule::kMoments:
      return both(SqlType::Of(TypeId::kTimestampTz));
    case OperandRule::kMoment:
      if ((*left)->type.id == TypeId::kTime) std::swap(*left, *right);
      return cast(left, SqlType::Of(TypeId::kTimestamp));
    case OperandRule::kTexts: {
      if ((*left)->type.id != TypeId::kText) TESSERA_TRY(cast(left, SqlType::Text()));
      if ((*right)->type.id != TypeId::kText) TESSERA_TRY(cast(right, SqlType::Text()));
      return {};
    }
    case OperandRule::kSameScale:
    case OperandRule::kDecimals: {
      SqlType a = AsDecimal((*left)->type), b = AsDecimal((*right)->type);
      if (rule == OperandRule::kSameScale) {
        const int scale = std::max(a.scale, b.scale);
        a = SqlType::Decimal(std::min(38, a.precision - a.scale + scale), scale);
        b = SqlType::Decimal(std::min(38, b.precision - b.scale + scale), scale);
      }
      // Both have one machine class: if one needs 128 bits, the other gets them, too.
      if (IsWide(a) || IsWide(b)) {
        a.precision = std::max<uint8_t>(a.precision, 19);
        b.precision = std::max<uint8_t>(b.precision, 19);
      }
      TESSERA_TRY(cast(left, a));
      return cast(right, b);
    }
  }
  return {};
}

// ---- Arithmetic and ||

Result<ExprPtr> ExpressionBinder::Prefix(std::string_view symbol, ExprPtr operand, int position) {
  TESSERA_ASSIGN(operand, Resolve(std::move(operand), SqlType::Of(TypeId::kDouble)));
  const bool is_number = (ClassOf(operand->type) & kClassNumber) != 0;
  if (symbol == "+" && (is_number || operand->type.id == TypeId::kText)) return operand;  // of a text as in SQLite
  if (symbol == "~" && operand->type.IsInteger()) {
    ExprPtr all_bits = MakeConstant(Value::Int(SqlType::Of(TypeId::kSmallint), -1), position);
    return Infix("#", std::move(operand), std::move(all_bits), position);
  }
  const std::optional<Function> function = FindPrefix(symbol, operand->type);
  if (!function) {
    return SqlError(ErrorKind::kUndefinedFunction,
                    "operator does not exist: " + std::string(symbol) + " " + operand->type.ToString(), position,
                    "No operator matches the given argument type. You might need to add an explicit type cast.");
  }
  if (operand->type.id == TypeId::kInterval)
    return BindIntervalArithmetic(*function, MakeConstant(IntervalOf({}), position), std::move(operand), position);
  if (Info(*function).translation == Translation::kMath) {
    TESSERA_ASSIGN(operand, Folded(MakeCast(std::move(operand), SqlType::Of(TypeId::kDouble))));
  }
  const SqlType type = operand->type;  // what each prefix operator gives
  return Folded(MakeFunction(*function, type, position, ExprList(std::move(operand))));
}

/// -x in the type of x, to write a difference as a sum.
Result<ExprPtr> ExpressionBinder::Less(ExprPtr x, int sign, int position) {
  if (sign > 0) return x;
  const SqlType type = x->type;
  return Folded(MakeFunction(Function::kNeg, type, position, ExprList(std::move(x))));
}

Result<ExprPtr> ExpressionBinder::Infix(std::string_view symbol, ExprPtr left, ExprPtr right, int position) {
  if (symbol == "~" || symbol == "~*" || symbol == "!~" || symbol == "!~*")
    return BindRegexOperator(symbol, std::move(left), std::move(right), position);
  if (symbol == "^@") {
    TESSERA_ASSIGN(left, Resolve(std::move(left), SqlType::Text()));
    TESSERA_ASSIGN(right, Resolve(std::move(right), SqlType::Text()));
    if (left->type.id == TypeId::kText && right->type.id == TypeId::kText)
      return BindPartOf("starts_with", std::move(left), std::move(right), position);
  }
  Function comparison;
  if (FindComparisonFunction(symbol, &comparison))
    return Comparison(comparison, std::move(left), std::move(right), position);
  if (IsUntyped(*left) || IsUntyped(*right)) {
    // As in PostgreSQL: an untyped constant first takes the type of the other operand. Two untyped constants are texts
    // for || and otherwise numbers.
    SqlType type = !IsUntyped(*left) ? left->type : right->type;
    if (type.id == TypeId::kNull) type = symbol == "||" ? SqlType::Text() : SqlType::Of(TypeId::kInteger);
    if (symbol == "||" && type.id != TypeId::kBytea) type = SqlType::Text();
    // A literal beside a decimal keeps its own digits; beside an interval it is one, or a moment.
    if (type.id == TypeId::kDecimal) type = SqlType::Decimal(38, std::max<int>(type.scale, 6));
    if (type.id == TypeId::kInterval) {
      const std::string& text = (IsUntyped(*left) ? left : right)->constant.text;
      const SqlType timestamp = SqlType::Of(TypeId::kTimestamp);
      if (symbol == "*" || symbol == "/") type = SqlType::Of(TypeId::kDouble);
      if (type.id == TypeId::kInterval && !ParseInterval(text).ok()) type = timestamp;
    }
    const bool moment = (ClassOf(type) & kClassMoment) != 0 || type.id == TypeId::kTime;
    if (moment && (symbol == "+" || symbol == "-"))
      type = TypeBesideMoment(type, symbol == "-", (IsUntyped(*left) ? left : right)->constant);
    if (type.id == TypeId::kText) type.length = 0;
    TESSERA_ASSIGN(left, Resolve(std::move(left), type));
    TESSERA_ASSIGN(right, Resolve(std::move(right), type));
  }
  const std::optional<OperatorRule> rule = FindOperator(symbol, left->type, right->type);
  if (!rule) return NoOperator(symbol, left->type, right->type, position);
  if (rule->operands == OperandRule::kSpan) {
    if (left->type.id == TypeId::kInterval) std::swap(left, right);
    if (!IsConstant(*right)) return AddInterval(std::move(left), std::move(right), symbol == "-", position);
    const Value span = right->constant;
    return AddSpan(std::move(left), span, symbol == "-", position);
  }
  if (rule->operands == OperandRule::kParts)
    return BindIntervalArithmetic(rule->function, std::move(left), std::move(right), position);
  Result<SqlType> type = ResultOfOperator(*rule, AsDecimal(left->type), AsDecimal(right->type));
  if (rule->operands == OperandRule::kAsIs || rule->operands == OperandRule::kSwapped ||
      rule->operands == OperandRule::kMoment) {
    type = ResultOfOperator(*rule, left->type, right->type);
  }
  if (!type.ok()) return type.status().At(position);
  TESSERA_TRY(ApplyOperandRule(rule->operands, &left, &right));
  if (rule->function == Function::kAddDays && symbol == "-") {
    TESSERA_ASSIGN(right, Less(std::move(right), -1, position));
  }
  return Folded(MakeFunction(rule->function, *type, position, ExprList(std::move(left), std::move(right))));
}

Result<ExprPtr> ExpressionBinder::AddSpan(ExprPtr moment, const Value& interval, bool negative, int position) {
  const SqlType date = SqlType::Of(TypeId::kDate), timestamp = SqlType::Of(TypeId::kTimestamp);
  if (interval.null) return MakeNull(moment->type, position);
  Interval span = UnpackInterval(interval.wide);
  if (negative) span = {-span.months, -span.days, -span.micros};
  if (moment->type.id == TypeId::kTime) {
    // Around the clock; months and days do not count, as in PostgreSQL.
    const SqlType time = moment->type, bigint = SqlType::Of(TypeId::kBigint);
    const auto number = [&](int64_t v) { return MakeConstant(Value::Int(bigint, v), position); };
    TESSERA_ASSIGN(
        ExprPtr sum,
        Folded(MakeFunction(Function::kAdd, bigint, position,
                            ExprList(std::move(moment), number(vm::FloorMod(span.micros, vm::kMicrosPerDay))))));
    return Folded(MakeFunction(Function::kMod, time, position, ExprList(std::move(sum), number(vm::kMicrosPerDay))));
  }
  if (moment->type.id == TypeId::kTimestampTz && (span.months != 0 || span.days != 0)) {
    // Months and days by the calendar of the time zone: a day may have 23 hours.
    TESSERA_ASSIGN(moment, Cast(std::move(moment), timestamp));
    Interval days = span;
    days.micros = 0;
    TESSERA_ASSIGN(moment, AddSpan(std::move(moment), IntervalOf(days), false, position));
    TESSERA_ASSIGN(moment, Cast(std::move(moment), SqlType::Of(TypeId::kTimestampTz)));
    span.months = span.days = 0;
  }
  const auto add = [&](Function f, const SqlType& type, TypeId amount_type, int64_t amount) -> Status {
    ExprPtr constant = MakeConstant(Value::Int(SqlType::Of(amount_type), amount), position);
    Result<ExprPtr> r = Folded(MakeFunction(f, type, position, ExprList(std::move(moment), std::move(constant))));
    if (!r.ok()) return r.status();
    moment = std::move(r).value();
    return {};
  };
  if (span.months != 0) TESSERA_TRY(add(Function::kAddMonths, moment->type, TypeId::kInteger, span.months));
  if (moment->type.id == TypeId::kDate) {
    if (span.micros == 0) {
      if (span.days != 0) TESSERA_TRY(add(Function::kAddDays, date, TypeId::kInteger, span.days));
      return moment;
    }
    TESSERA_ASSIGN(moment, Folded(MakeCast(std::move(moment), timestamp)));
  }
  const int64_t micros = span.days * vm::kMicrosPerDay + span.micros;
  if (micros != 0) TESSERA_TRY(add(Function::kAddMicros, moment->type, TypeId::kBigint, micros));
  return moment;
}

Result<ExprPtr> ExpressionBinder::BindOperator(const ParseNode& node) {
  const std::string_view kind = node.Text(Field::k_kind);
  const int position = node.location();
  if (kind == "AEXPR_IN") return BindIn(node);
  if (kind == "AEXPR_LIKE" || kind == "AEXPR_ILIKE") return BindLike(node);
  if (kind == "AEXPR_SIMILAR") return BindSimilar(node);
  if (kind == "AEXPR_BETWEEN" || kind == "AEXPR_NOT_BETWEEN" || kind == "AEXPR_BETWEEN_SYM" ||
      kind == "AEXPR_NOT_BETWEEN_SYM")
    return BindBetween(node);
  if (kind == "AEXPR_DISTINCT" || kind == "AEXPR_NOT_DISTINCT") return BindDistinct(node);
  if (kind == "AEXPR_NULLIF") return BindNullIf(node);
  if (kind != "AEXPR_OP") {
    if (kind == "AEXPR_OP_ANY" || kind == "AEXPR_OP_ALL") return BindAnyOfArray(node);
    return Unsupported("this operator is not supported", position);
  }
  const ParseNode* name = node.Get(Field::k_name);
  std::string_view symbol = name->first()->Text(Field::k_sval);
  if (name->size() == 2 && symbol == "pg_catalog") symbol = name->first()->next()->Text(Field::k_sval);
  if (name->size() > 1 && symbol == name->first()->Text(Field::k_sval))
    return Unsupported("OPERATOR(schema.name) is not supported", position);
  const ParseNode* l = node.Get(Field::k_lexpr);
  const ParseNode* r = node.Get(Field::k_rexpr);
  if (l == nullptr) {
    TESSERA_ASSIGN(ExprPtr operand, Bind(*r));
    return Prefix(symbol, std::move(operand), position);
  }
  if (l->Is(Tag::kRowExpr) && r->Is(Tag::kSubLink) && r->Text(Field::k_subLinkType) == "EXPR_SUBLINK" &&
      context_->snapshot != nullptr && clause_ != Clause::kLimit && clause_ != Clause::kOffset)
    return BindRowSubquery(*l, symbol, *r, position);
  if (l->Is(Tag::kRowExpr) && r->Is(Tag::kRowExpr)) return BindRowComparison(*l, symbol, *r, position);
  TESSERA_ASSIGN(ExprPtr left, Bind(*l));
  TESSERA_ASSIGN(ExprPtr right, Bind(*r));
  // An element of an array, which is a text, is a number beside a number.
  if (l->Is(Tag::kA_Indirection) && left->type.id == TypeId::kText && right->type.IsNumeric()) {
    TESSERA_ASSIGN(left, Cast(std::move(left), right->type));
  } else if (r->Is(Tag::kA_Indirection) && right->type.id == TypeId::kText && left->type.IsNumeric()) {
    TESSERA_ASSIGN(right, Cast(std::move(right), left->type));
  }
  if (symbol == "||" && (IsArray(*l) || IsArray(*r))) {
    TESSERA_ASSIGN(left, Resolve(std::move(left), SqlType::Text()));
    TESSERA_ASSIGN(right, Resolve(std::move(right), SqlType::Text()));
    const bool prepends = left->type.id != TypeId::kText, appends = right->type.id != TypeId::kText;
    std::vector<ExprPtr> both = ExprList(std::move(left), std::move(right));
    return ArrayBinder(context_, clause_)
        .Call(prepends  ? "array_prepend"
              : appends ? "array_append"
                        : "array_cat",
              &both, position);
  }
  Function comparison;
  if (FindComparisonFunction(symbol, &comparison))
    return CompareHeld(comparison, *l, *r, std::move(left), std::move(right), position);
  return Infix(symbol, std::move(left), std::move(right), position);
}

// ---- Comparisons

Result<ExprPtr> ExpressionBinder::Comparison(Function function, ExprPtr left, ExprPtr right, int position) {
  if (IsUntyped(*left) && IsUntyped(*right)) {
    TESSERA_ASSIGN(left, Resolve(std::move(left), SqlType::Text()));
    TESSERA_ASSIGN(right, Resolve(std::move(right), SqlType::Text()));
  } else if (IsUntyped(*left) || IsUntyped(*right)) {
    ExprPtr& literal = IsUntyped(*left) ? left : right;
    SqlType type = IsUntyped(*left) ? right->type : left->type;
    if (type.id == TypeId::kText) type.length = 0;
    // Beside a decimal a literal keeps all its digits: 1.234 is no DECIMAL(5,2).
    if (type.id == TypeId::kDecimal && !literal->constant.null) {
      const std::string& text = literal->constant.text;
      const size_t point = text.find('.');
      const size_t digits = point == std::string::npos ? 0 : text.size() - point - 1;
      type = SqlType::Decimal(38, static_cast<int>(std::min<size_t>(38, std::max<size_t>(digits, type.scale))));
    }
    TESSERA_ASSIGN(literal, Resolve(std::move(literal), type));
  }
  if (IsArrayType(left->type) && IsArrayType(right->type) && function != Function::kEq && function != Function::kNe) {
    const ArrayBinder arrays(context_, clause_);
    TESSERA_ASSIGN(left, arrays.Ordered(std::move(left)));
    TESSERA_ASSIGN(right, arrays.Ordered(std::move(right)));
  }
  const std::optional<OperandRule> rule = FindComparison(left->type, right->type);
  if (!rule) return NoOperator(Info(function).text, left->type, right->type, position);
  if (IsNullConstant(*left) || IsNullConstant(*right)) return MakeNull(kBoolean, position);

  if (IsConstant(*left) && !IsConstant(*right)) {
    std::swap(left, right);
    function = Mirrored(function);
  }
  if (rule == OperandRule::kMoments && IsConstant(*right) && !IsConstant(*left)) {
    // A column that is a TIMESTAMPTZ, or is one of UTC, stays as it is.
    const SqlType type = left->type.id == TypeId::kTimestampTz ? left->type : SqlType::Of(TypeId::kTimestamp);
    if (left->type.id == TypeId::kTimestampTz || ZoneOf(*context_) == nullptr) {
      TESSERA_ASSIGN(right, Cast(std::move(right), type));
    }
  }
  if (IsConstant(*right) && !IsConstant(*left)) {
    AlignedConstant aligned = AlignConstant(function, left->type, right->constant);
    switch (aligned.kind) {
      case Kind::kExact: {
        ExprPtr constant = MakeConstant(std::move(aligned.value), right->position);
        return MakeFunction(aligned.function, kBoolean, position, ExprList(std::move(left), std::move(constant)));
      }
      case Kind::kAlways:
      case Kind::kNever: {
        if (!left->nullable) return MakeBoolean(aligned.kind == Kind::kAlways, position);
        // NULL stays NULL: a test against the greatest value of the type, which every value passes or fails.
        ExprPtr greatest = MakeConstant(FromInteger(left->type, RangeOf(left->type).greatest), right->position);
        const Function f = aligned.kind == Kind::kAlways ? Function::kLe : Function::kGt;
        return MakeFunction(f, kBoolean, position, ExprList(std::move(left), std::move(greatest)));
      }
      case Kind::kNone:
        break;
    }
  }
  OperandRule operands = *rule;
  if (operands == OperandRule::kSameScale && !CommonDecimal(left->type, right->type)) operands = OperandRule::kDoubles;
  TESSERA_TRY(ApplyOperandRule(operands, &left, &right));
  return Folded(MakeFunction(function, kBoolean, position, ExprList(std::move(left), std::move(right))));
}

Result<ExprPtr> ExpressionBinder::BindIn(const ParseNode& node) {
  const int position = node.location();
  const ParseNode* rows = node.Get(Field::k_rexpr);
  const ParseNode* items = rows->Is(Tag::kList) ? rows->Get(Field::k_items) : rows;
  const bool in = node.Get(Field::k_name)->first()->Text(Field::k_sval) == "=";
  if (node.Get(Field::k_lexpr)->Is(Tag::kRowExpr)) {
    TESSERA_ASSIGN(ExprPtr is, BindRowIn(*node.Get(Field::k_lexpr), *items, position));
    if (in) return is;
    return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(is))));
  }
  TESSERA_ASSIGN(ExprPtr x, Bind(*node.Get(Field::k_lexpr)));
  // Nothing is in an empty list, not even NULL.
  if (FindMark(*context_, Dialect::Mark::Kind::kEmptyList, items->first()->location()) != nullptr)
    return MakeBoolean(!in, position);
  std::vector<ExprPtr> list;
  list.reserve(items->size());
  for (const ParseNode& item : *items) {
    TESSERA_ASSIGN(ExprPtr e, Bind(item));
    list.push_back(std::move(e));
  }
  TESSERA_ASSIGN(ExprPtr is, InList(std::move(x), std::move(list), position));
  if (in) return is;
  return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(is))));
}

Result<ExprPtr> ExpressionBinder::InList(ExprPtr x, std::vector<ExprPtr> list, int position) {
  if (IsUntyped(*x)) {
    // The first typed element decides.
    const auto typed = std::find_if(list.begin(), list.end(), [](const ExprPtr& e) { return !IsUntyped(*e); });
    TESSERA_ASSIGN(x, Resolve(std::move(x), typed != list.end() ? (*typed)->type : SqlType::Text()));
  }
  const auto is_constant = [](const ExprPtr& e) { return IsConstant(*e); };
  if (!IsConstant(*x) && list.size() > 1 && std::all_of(list.begin(), list.end(), is_constant)) {
    // Each element is bound as an equality and its constant taken from there, so conversions and errors are the same.
    std::vector<ExprPtr> args;
    args.reserve(list.size() + 1);
    bool aligned = true;
    bool null = false;
    SqlType element = x->type;
    if (element.id == TypeId::kText) element.length = 0;
    for (ExprPtr& e : list) {
      if (IsUntyped(*e) && element.id != TypeId::kDecimal) {
        TESSERA_ASSIGN(e, Resolve(std::move(e), element));
      } else if (IsUntyped(*e)) {
        TESSERA_ASSIGN(e, Resolve(std::move(e), SqlType::Decimal(38, std::max<int>(element.scale, 6))));
      }
      if (!FindComparison(x->type, e->type)) return NoOperator("=", x->type, e->type, position);
      if (e->constant.null) {
        null = true;
        continue;
      }
      AlignedConstant a = AlignConstant(Function::kEq, x->type, e->constant);
      if (a.kind == Kind::kNone) {
        aligned = false;
        break;
      }
      // A REAL never equals a double that no REAL holds.
      if (a.kind == Kind::kExact && x->type.id == TypeId::kReal && a.value.type.id == TypeId::kDouble &&
          a.value.f64 == a.value.f64)
        continue;
      if (a.kind == Kind::kExact) args.push_back(MakeConstant(std::move(a.value), e->position));
    }
    if (aligned) {
      if (null) args.push_back(MakeNull(element, position));
      if (args.empty()) {  // no element can ever be equal
        if (!x->nullable) return MakeBoolean(false, position);
        if (x->type.IsFloat()) return Comparison(Function::kEq, std::move(x), std::move(list[0]), position);
        ExprPtr greatest = MakeConstant(FromInteger(x->type, RangeOf(x->type).greatest), position);
        return MakeFunction(Function::kGt, kBoolean, position, ExprList(std::move(x), std::move(greatest)));
      }
      if (args.size() == 1) return Comparison(Function::kEq, std::move(x), std::move(args[0]), position);
      const auto same_class = [&](const ExprPtr& e) {
        return e->type.storage() == x->type.storage() && e->type.scale == x->type.scale;
      };
      if (IsJoinedList({x.get()}, args.size()) && std::all_of(args.begin(), args.end(), same_class)) {
        std::vector<std::vector<ExprPtr>> rows;
        for (ExprPtr& e : args) rows.push_back(ExprList(std::move(e)));
        return InRows(ExprList(std::move(x)), std::move(rows), position);
      }
      args.insert(args.begin(), std::move(x));
      return MakeFunction(Function::kIn, kBoolean, position, std::move(args));
    }
  }
  std::vector<ExprPtr> any;
  any.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    ExprPtr operand;
    if (i + 1 == list.size()) {
      operand = std::move(x);
    } else {
      TESSERA_ASSIGN(operand, Copy(*x));
    }
    TESSERA_ASSIGN(ExprPtr equal, Comparison(Function::kEq, std::move(operand), std::move(list[i]), position));
    any.push_back(std::move(equal));
  }
  if (any.size() == 1) return std::move(any[0]);
  return Folded(MakeFunction(Function::kOr, kBoolean, position, std::move(any)));
}

Result<ExprPtr> ExpressionBinder::BindBetween(const ParseNode& node) {
  const int position = node.location();
  const std::string_view kind = node.Text(Field::k_kind);
  const ParseNode* bounds = node.Get(Field::k_rexpr);
  if (bounds->Is(Tag::kList)) bounds = bounds->Get(Field::k_items);
  const ParseNode &tested = *node.Get(Field::k_lexpr), &first = *bounds->first(), &second = *first.next();
  const bool rows = tested.Is(Tag::kRowExpr) && first.Is(Tag::kRowExpr) && second.Is(Tag::kRowExpr);
  ++may_skip_;
  ExprPtr both, other;  // other: SYMMETRIC, with the bounds the other way round
  if (rows) {
    TESSERA_ASSIGN(both, BindRowBetween(tested, first, second, position));
    if (kind.ends_with("_SYM")) {
      TESSERA_ASSIGN(other, BindRowBetween(tested, second, first, position));
    }
  } else {
    TESSERA_TRY(BindValueBetween(tested, first, second, position, &both, kind.ends_with("_SYM") ? &other : nullptr));
  }
  --may_skip_;
  if (other != nullptr) {
    TESSERA_ASSIGN(
        both, Folded(MakeFunction(Function::kOr, kBoolean, position, ExprList(std::move(both), std::move(other)))));
  }
  if (!kind.starts_with("AEXPR_NOT")) return both;
  return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(both))));
}

Status ExpressionBinder::BindValueBetween(const ParseNode& tested, const ParseNode& first, const ParseNode& second,
                                          int position, ExprPtr* both, ExprPtr* other) {
  TESSERA_ASSIGN(ExprPtr x, Bind(tested));
  TESSERA_ASSIGN(ExprPtr low, Bind(first));
  TESSERA_ASSIGN(ExprPtr high, Bind(second));
  if (IsUntyped(*x)) {
    TESSERA_ASSIGN(
        x, Resolve(std::move(x), !IsUntyped(*low) ? low->type : (!IsUntyped(*high) ? high->type : SqlType::Text())));
  }
  if (other == nullptr) {
    TESSERA_ASSIGN(ExprPtr again, Copy(*x));
    TESSERA_ASSIGN(ExprPtr from, CompareHeld(Function::kGe, tested, first, std::move(x), std::move(low), position));
    TESSERA_ASSIGN(ExprPtr to, CompareHeld(Function::kLe, tested, second, std::move(again), std::move(high), position));
    TESSERA_ASSIGN(*both,
                   Folded(MakeFunction(Function::kAnd, kBoolean, position, ExprList(std::move(from), std::move(to)))));
    return {};
  }
  const auto between = [&](const Expr& value, const Expr& least, const Expr& most) -> Result<ExprPtr> {
    TESSERA_ASSIGN(ExprPtr a, Copy(value));
    TESSERA_ASSIGN(ExprPtr b, Copy(value));
    TESSERA_ASSIGN(ExprPtr l, Copy(least));
    TESSERA_ASSIGN(ExprPtr m, Copy(most));
    TESSERA_ASSIGN(ExprPtr from, Comparison(Function::kGe, std::move(a), std::move(l), position));
    TESSERA_ASSIGN(ExprPtr to, Comparison(Function::kLe, std::move(b), std::move(m), position));
    return Folded(MakeFunction(Function::kAnd, kBoolean, position, ExprList(std::move(from), std::move(to))));
  };
  TESSERA_ASSIGN(*both, between(*x, *low, *high));
  TESSERA_ASSIGN(*other, between(*x, *high, *low));
  return {};
}

Result<ExprPtr> ExpressionBinder::BindDistinct(const ParseNode& node) {
  const int position = node.location();
  const bool negated = node.Text(Field::k_kind) == "AEXPR_NOT_DISTINCT";
  const ParseNode &left = *node.Get(Field::k_lexpr), &right = *node.Get(Field::k_rexpr);
  if (left.Is(Tag::kRowExpr) && right.Is(Tag::kRowExpr)) return BindRowDistinct(left, right, negated, position);
  TESSERA_ASSIGN(ExprPtr a, Bind(left));
  TESSERA_ASSIGN(ExprPtr b, Bind(right));
  return Distinct(std::move(a), std::move(b), negated, position);
}

Result<ExprPtr> ExpressionBinder::Distinct(ExprPtr a, ExprPtr b, bool negated, int position) {
  if (IsUntyped(*a) && !IsUntyped(*b)) std::swap(a, b);
  if (IsUntyped(*a)) {
    TESSERA_ASSIGN(a, Resolve(std::move(a), SqlType::Text()));
  }
  if (!IsUntyped(*b) && !FindComparison(a->type, b->type)) return NoOperator("=", a->type, b->type, position);
  if (IsUntyped(*b)) TESSERA_TRY(NoteParameter(*b, a->type));
  if (IsNullConstant(*b)) {
    return Folded(
        MakeFunction(negated ? Function::kIsNull : Function::kIsNotNull, kBoolean, position, ExprList(std::move(a))));
  }
  const bool may_both_be_null = a->nullable && b->nullable;
  ExprPtr a_again, b_again;
  if (may_both_be_null) {
    TESSERA_ASSIGN(a_again, Copy(*a));
    TESSERA_ASSIGN(b_again, Copy(*b));
  }
  TESSERA_ASSIGN(ExprPtr equal, Comparison(Function::kEq, std::move(a), std::move(b), position));
  if (!equal->nullable) {
    if (negated) return equal;
    return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(equal))));
  }
  // CASE WHEN a = b THEN same WHEN a IS NULL AND b IS NULL THEN same ELSE different END
  std::vector<ExprPtr> args;
  args.push_back(std::move(equal));
  args.push_back(MakeBoolean(negated, position));
  if (may_both_be_null) {
    TESSERA_ASSIGN(ExprPtr x,
                   Folded(MakeFunction(Function::kIsNull, kBoolean, position, ExprList(std::move(a_again)))));
    TESSERA_ASSIGN(ExprPtr y,
                   Folded(MakeFunction(Function::kIsNull, kBoolean, position, ExprList(std::move(b_again)))));
    TESSERA_ASSIGN(ExprPtr nulls,
                   Folded(MakeFunction(Function::kAnd, kBoolean, position, ExprList(std::move(x), std::move(y)))));
    args.push_back(std::move(nulls));
    args.push_back(MakeBoolean(negated, position));
  }
  args.push_back(MakeBoolean(!negated, position));
  return Folded(MakeFunction(Function::kCase, kBoolean, position, std::move(args)));
}

Result<ExprPtr> ExpressionBinder::BindNullIf(const ParseNode& node) {
  const int position = node.location();
  TESSERA_ASSIGN(ExprPtr a, Bind(*node.Get(Field::k_lexpr)));
  TESSERA_ASSIGN(ExprPtr b, Bind(*node.Get(Field::k_rexpr)));
  if (IsUntyped(*a)) {
    SqlType type = IsUntyped(*b) ? SqlType::Text() : b->type;
    if (type.id == TypeId::kText) type.length = 0;  // the literal may be longer than the column
    TESSERA_ASSIGN(a, Resolve(std::move(a), type));
  }
  const SqlType type = a->type;
  TESSERA_ASSIGN(ExprPtr again, Copy(*a));
  TESSERA_ASSIGN(ExprPtr equal, Comparison(Function::kEq, std::move(a), std::move(b), position));
  return Folded(MakeFunction(Function::kCase, type, position,
                             ExprList(std::move(equal), MakeNull(type, position), std::move(again))));
}

// ---- LIKE

namespace {

/// True if the pattern has no wildcard; `out` is then the text that it matches.
bool IsPlainText(std::string_view pattern, std::string* out) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%' || pattern[i] == '_') return false;
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    out->push_back(pattern[i]);
  }
  return true;
}

}  // namespace

Result<ExprPtr> ExpressionBinder::BindLike(const ParseNode& node) {
  if (FindMark(*context_, Dialect::Mark::Kind::kGlob, node.location()) != nullptr) return BindGlob(node);
  TESSERA_ASSIGN(ExprPtr x, BindTyped(*node.Get(Field::k_lexpr)));
  return Like(node.Get(Field::k_name)->first()->Text(Field::k_sval), std::move(x), node.Get(Field::k_rexpr),
              node.location());
}

namespace {

/// The array without a cast to a type of arrays around it.
const ParseNode& WithoutArrayCast(const ParseNode& node) {
  const bool is_cast = node.Is(Tag::kTypeCast) && node.Get(Field::k_typeName)->Get(Field::k_arrayBounds) != nullptr;
  return is_cast ? *node.Get(Field::k_arg) : node;
}

/// The elements of '{1,2}' as literals in quotes.
Result<std::vector<ExprPtr>> LiteralsOf(const Expr& array) {
  TESSERA_ASSIGN(const auto elements, ElementsOfArray(array.constant.text, array.position));
  std::vector<ExprPtr> literals;
  for (const std::optional<std::string>& element : elements) {
    Value value = Value::Null(SqlType::Of(TypeId::kNull));
    if (element) {
      value.null = false;
      value.text = *element;
    }
    literals.push_back(MakeConstant(std::move(value), array.position));
  }
  return literals;
}

}  // namespace

Result<ExprPtr> ExpressionBinder::BindAnyOfArray(const ParseNode& node) {
  const int position = node.location();
  const ParseNode& array = WithoutArrayCast(*node.Get(Field::k_rexpr));
  std::string_view symbol;
  for (const ParseNode& part : *node.Get(Field::k_name)) symbol = part.Text(Field::k_sval);
  const bool all = node.Text(Field::k_kind) == "AEXPR_OP_ALL";
  const bool like = symbol.find("~~") != std::string_view::npos;
  if (!array.Is(Tag::kA_ArrayExpr) && !like) {
    // (The type of a parameter is that of its cast.)
    TESSERA_ASSIGN(ExprPtr text, Bind(array.Is(Tag::kParamRef) ? *node.Get(Field::k_rexpr) : array));
    TESSERA_ASSIGN(text, Resolve(std::move(text), SqlType::Text()));
    const bool is_text = text->type.id == TypeId::kText;
    if (is_text && IsConstant(*text) && !text->constant.null) {
      TESSERA_ASSIGN(ExprPtr x, Bind(*node.Get(Field::k_lexpr)));
      TESSERA_ASSIGN(std::vector<ExprPtr> parts, LiteralsOf(*text));
      if (parts.empty()) return MakeBoolean(all, position);
      if (symbol == "=" && !all) return InList(std::move(x), std::move(parts), position);
      for (ExprPtr& part : parts) {
        TESSERA_ASSIGN(ExprPtr copy, Copy(*x));
        TESSERA_ASSIGN(part, Infix(symbol, std::move(copy), std::move(part), position));
        TESSERA_ASSIGN(part, Resolve(std::move(part), kBoolean));
        if (part->type.id != TypeId::kBoolean)
          return SqlError("op ANY/ALL (array) requires operator to yield boolean", position);
      }
      if (parts.size() == 1) return std::move(parts[0]);
      return Folded(MakeFunction(all ? Function::kAnd : Function::kOr, kBoolean, position, std::move(parts)));
    }
    const bool differs = symbol == "<>" || symbol == "!=";
    if (is_text && (all ? differs : symbol == "=")) {
      TESSERA_ASSIGN(ExprPtr x, Bind(*node.Get(Field::k_lexpr)));
      TESSERA_ASSIGN(x, ArrayBinder(context_, clause_).IsElement(std::move(x), std::move(text), position));
      return all ? Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(x)))) : std::move(x);
    }
  }
  if (!array.Is(Tag::kA_ArrayExpr)) {
    return Unsupported("this operator with ANY or ALL of an array that is not written as ARRAY[...] is not supported",
                       position, "Write x = ANY (y), x <> ALL (y), or x < ANY (ARRAY[1, 2]).");
  }
  const ParseNode* const elements = array.Get(Field::k_elements);
  TESSERA_ASSIGN(ExprPtr x, like ? BindTyped(*node.Get(Field::k_lexpr)) : Bind(*node.Get(Field::k_lexpr)));
  if (elements == nullptr) return MakeBoolean(all, position);
  std::vector<ExprPtr> parts;
  for (const ParseNode& element : *elements) {
    ExprPtr part;
    if (!like) {
      TESSERA_ASSIGN(part, Bind(element));
    }
    if (symbol != "=" || all) {
      TESSERA_ASSIGN(ExprPtr copy, Copy(*x));
      TESSERA_ASSIGN(part, like ? Like(symbol, std::move(copy), &element, position)
                                : Infix(symbol, std::move(copy), std::move(part), position));
      TESSERA_ASSIGN(part, Resolve(std::move(part), kBoolean));
      if (part->type.id != TypeId::kBoolean)
        return SqlError("op ANY/ALL (array) requires operator to yield boolean", position);
    }
    parts.push_back(std::move(part));
  }
  if (symbol == "=" && !all) return InList(std::move(x), std::move(parts), position);
  if (parts.size() == 1) return std::move(parts[0]);
  return Folded(MakeFunction(all ? Function::kAnd : Function::kOr, kBoolean, position, std::move(parts)));
}

Result<ExprPtr> ExpressionBinder::Like(std::string_view symbol, ExprPtr x, const ParseNode* pattern_node,
                                       int position) {
  const bool negated = symbol[0] == '!';
  const bool ignore_case = symbol.back() == '*';
  ExprPtr escape;
  if (pattern_node->Is(Tag::kFuncCall)) {
    const ParseNode* name = pattern_node->Get(Field::k_funcname);
    if (name->size() == 2 && name->first()->next()->Text(Field::k_sval) == "like_escape") {
      const ParseNode* args = pattern_node->Get(Field::k_args);
      TESSERA_ASSIGN(escape, BindTyped(*args->first()->next()));
      pattern_node = args->first();
    }
  }
  const bool bytes = x->type.id == TypeId::kBytea && !ignore_case;
  const SqlType type = bytes ? x->type : SqlType::Text();
  TESSERA_ASSIGN(ExprPtr pattern, Bind(*pattern_node));
  TESSERA_ASSIGN(pattern, Resolve(std::move(pattern), type));
  if (x->type.id != type.id || pattern->type.id != type.id)
    return NoOperator(negated ? "NOT LIKE" : "LIKE", x->type, pattern->type, position);
  if (bytes && (!IsConstant(*pattern) || pattern->constant.text.find('_') != std::string::npos)) {
    return Unsupported("LIKE of BYTEA with _ or with a pattern that is not a constant is not supported",
                       pattern->position, "substring(x, 1, n) = y compares bytes; encode(x, 'hex') gives a text.");
  }
  // (A pattern of rows without ESCAPE is in that form.)
  if (IsConstant(*pattern) || escape != nullptr) {
    TESSERA_ASSIGN(pattern, InForm(vm::kLikePattern, std::move(pattern), std::move(escape)));
  }
  if (!IsConstant(*pattern)) {
    const SqlType integer = SqlType::Of(TypeId::kInteger);
    for (ExprPtr* e : {&x, &pattern}) {
      if (!ignore_case) continue;
      TESSERA_ASSIGN(*e, Folded(MakeFunction(Function::kLower, SqlType::Text(), position, ExprList(std::move(*e)))));
    }
    TESSERA_ASSIGN(ExprPtr match, Folded(MakeFunction(Function::kLikeText, integer, position,
                                                      ExprList(std::move(x), std::move(pattern)))));
    return Comparison(negated ? Function::kEq : Function::kNe, std::move(match),
                      MakeConstant(Value::Int(integer, 0), position), position);
  }
  if (pattern->constant.null) return MakeNull(kBoolean, position);
  std::string text = pattern->constant.text;
  if (ignore_case) {
    TESSERA_ASSIGN(x, Folded(MakeFunction(Function::kLower, SqlType::Text(), position, ExprList(std::move(x)))));
    std::string lower;
    vm::meaning::LowerT::Apply(text, &lower);
    text = lower;
  }
  std::string plain;
  ExprPtr like, value = MakeConstant(Value::Text({}), pattern->position);
  if (IsPlainText(text, &plain)) {
    value->constant.text = std::move(plain);
    value->type = value->constant.type = type;
    TESSERA_ASSIGN(like, Comparison(Function::kEq, std::move(x), std::move(value), position));
  } else {
    value->constant.text = std::move(text);
    TESSERA_ASSIGN(like,
                   Folded(MakeFunction(Function::kLike, kBoolean, position, ExprList(std::move(x), std::move(value)))));
  }
  if (!negated) return like;
  return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(like))));
}

}  // namespace tessera
