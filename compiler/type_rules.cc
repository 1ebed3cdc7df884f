// vm/types.def as arrays, and the arithmetic of precision and scale.
#include "compiler/type_rules.h"

#include <algorithm>
#include <iterator>

#include "vm/meaning.h"

namespace tessera {
namespace {

constexpr int kMaxDigits = 38;

/// Result types as types.def names them.
enum class ResultRule : uint8_t {
  kWider,
  kDecimalSum,
  kDecimalProduct,
  kDecimalRemainder,
  kFirst,
  kRounded,
  kWhole,
  kLongDecimal,
  kBigint,
  kInteger,
  kReal,
  kDouble,
  kDate,
  kText,
};

struct OperatorRow {
  std::string_view symbol;
  TypeClass left, right;
  Function function;
  OperandRule operands;
  ResultRule result;
};
constexpr OperatorRow kOperators[] = {
#define TESSERA_OPERATOR(symbol, left, right, function, operands, result) \
  {symbol, kClass##left, kClass##right, Function::function, OperandRule::k##operands, ResultRule::k##result},
#include "vm/types.def"
};

struct PrefixRow {
  std::string_view symbol;
  TypeClass operand;
  Function function;
  ResultRule result;
};
constexpr PrefixRow kPrefixes[] = {
#define TESSERA_PREFIX(symbol, operand, function, result) \
  {symbol, kClass##operand, Function::function, ResultRule::k##result},
#include "vm/types.def"
};

struct ComparisonRow {
  TypeClass left, right;
  OperandRule operands;
};
constexpr ComparisonRow kComparisons[] = {
#define TESSERA_COMPARISON(left, right, operands) {kClass##left, kClass##right, OperandRule::k##operands},
#include "vm/types.def"
};

struct FunctionRow {
  std::string_view name;
  Function function;
  size_t least, most;
  TypeClass first, others;
  ResultRule result;
};
constexpr FunctionRow kFunctions[] = {
#define TESSERA_FUNCTION(name, function, least, most, first, others, result) \
  {name, Function::function, least, most, kClass##first, kClass##others, ResultRule::k##result},
#include "vm/types.def"
};

struct FieldRow {
  std::string_view name;
  DateField field;
};
constexpr FieldRow kFields[] = {
#define TESSERA_FIELD_FUNCTION(name, field) {name, DateField::field},
#include "vm/types.def"
};

struct AggregateRow {
  std::string_view name;
  TypeClass argument;
  AggregateFunction function;
  ResultRule result;
};
constexpr AggregateRow kAggregates[] = {
#define TESSERA_AGGREGATE(name, argument, function, result) \
  {name, kClass##argument, AggregateFunction::function, ResultRule::k##result},
#include "vm/types.def"
};

struct CastRow {
  TypeClass from, to;
  CastContext context;
};
constexpr CastRow kCasts[] = {
#define TESSERA_CAST(from, to, context) {kClass##from, kClass##to, CastContext::k##context},
#include "vm/types.def"
};

struct TypeNameRow {
  std::string_view name;
  TypeId type;
};
constexpr TypeNameRow kTypeNames[] = {
#define TESSERA_TYPE_NAME(name, type) {#name, TypeId::k##type},
#include "vm/types.def"
};

SqlType CappedDecimal(int precision, int scale) { return SqlType::Decimal(std::min(precision, kMaxDigits), scale); }

bool Fits(TypeClass type, TypeClass allowed) { return (type & allowed) != 0; }

/// The results that depend on one operand at most.
SqlType ResultOfOne(ResultRule rule, const SqlType& type) {
  switch (rule) {
    case ResultRule::kWhole:
      return CappedDecimal(type.precision - type.scale + 1, 0);
    case ResultRule::kLongDecimal:
      return SqlType::Decimal(kMaxDigits, type.scale);
    case ResultRule::kBigint:
      return SqlType::Of(TypeId::kBigint);
    case ResultRule::kInteger:
      return SqlType::Of(TypeId::kInteger);
    case ResultRule::kReal:
      return SqlType::Of(TypeId::kReal);
    case ResultRule::kDouble:
      return SqlType::Of(TypeId::kDouble);
    case ResultRule::kDate:
      return SqlType::Of(TypeId::kDate);
    case ResultRule::kText:
      return SqlType::Text();
    default:  // kFirst; kRounded depends on the number of digits, which the binder knows
      return type;
  }
}

}  // namespace

TypeClass ClassOf(const SqlType& type) {
  switch (type.id) {
    case TypeId::kNull:
      return kClassNone;
    case TypeId::kBoolean:
      return kClassBoolean;
    case TypeId::kSmallint:
    case TypeId::kInteger:
    case TypeId::kBigint:
      return kClassInteger;
    case TypeId::kReal:
      return kClassReal;
    case TypeId::kDouble:
      return kClassDouble;
    case TypeId::kDecimal:
      return kClassDecimal;
    case TypeId::kDate:
      return kClassDate;
    case TypeId::kTimestamp:
      return kClassTimestamp;
    case TypeId::kText:
      return kClassText;
    case TypeId::kInterval:
      return kClassInterval;
  }
  return kClassNone;
}

std::optional<OperatorRule> FindOperator(std::string_view symbol, const SqlType& left, const SqlType& right) {
  const TypeClass l = ClassOf(left), r = ClassOf(right);
  for (size_t i = 0; i < std::size(kOperators); ++i) {
    const OperatorRow& row = kOperators[i];
    if (Fits(l, row.left) && Fits(r, row.right) && row.symbol == symbol) {
      return OperatorRule{row.function, row.operands, static_cast<int>(i)};
    }
  }
  return std::nullopt;
}

Result<SqlType> ResultOfOperator(const OperatorRule& rule, const SqlType& left, const SqlType& right) {
  const ResultRule result = kOperators[rule.row].result;
  switch (result) {
    case ResultRule::kWider:
      return left.id > right.id ? left : right;  // TypeId orders them by width
    case ResultRule::kDecimalSum: {
      const int scale = std::max(left.scale, right.scale);
      return CappedDecimal(std::max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale);
    }
    case ResultRule::kDecimalProduct: {
      const int scale = left.scale + right.scale;
      if (scale > kMaxDigits) {
        return SqlError("the product of " + left.ToString() + " and " + right.ToString() + " needs " +
                            std::to_string(scale) + " digits after the point, more than 38",
                        -1, "Cast an operand to a smaller scale or to DOUBLE PRECISION.");
      }
      return CappedDecimal(left.precision + right.precision, scale);
    }
    case ResultRule::kDecimalRemainder: {
      const int scale = std::max(left.scale, right.scale);
      const int whole = std::min(left.precision - left.scale, right.precision - right.scale);
      return CappedDecimal(std::max(whole + scale, 1), scale);
    }
    default:
      return ResultOfOne(result, left);
  }
}

std::optional<Function> FindPrefix(std::string_view symbol, const SqlType& operand) {
  for (const PrefixRow& row : kPrefixes) {
    if (row.symbol == symbol && Fits(ClassOf(operand), row.operand)) return row.function;
  }
  return std::nullopt;
}

std::optional<OperandRule> FindComparison(const SqlType& left, const SqlType& right) {
  const TypeClass l = ClassOf(left), r = ClassOf(right);
  for (const ComparisonRow& row : kComparisons) {
    if (Fits(l, row.left) && Fits(r, row.right)) return row.operands;
  }
  return std::nullopt;
}

FunctionMatch FindFunction(std::string_view name, std::span<const SqlType> arguments, FunctionRule* out) {
  bool named = false;
  for (const FunctionRow& row : kFunctions) {
    if (row.name != name) continue;
    named = true;
    if (arguments.size() < row.least || arguments.size() > row.most) continue;
    bool fits = true;
    for (size_t i = 0; i < arguments.size() && fits; ++i) {
      const TypeClass c = ClassOf(arguments[i]);
      fits = c == kClassNone || Fits(c, i == 0 ? row.first : row.others);
    }
    if (!fits) continue;
    *out = {row.function, ResultOfOne(row.result, arguments[0])};
    return FunctionMatch::kFound;
  }
  return named ? FunctionMatch::kWrongArguments : FunctionMatch::kNoSuchName;
}

TypeClass ArgumentClass(std::string_view name, size_t index) {
  int all = kClassNone;
  for (const FunctionRow& row : kFunctions) {
    if (row.name == name && index < row.most) all |= index == 0 ? row.first : row.others;
  }
  return static_cast<TypeClass>(all);
}

const std::vector<std::string_view>& FunctionNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all = {"mod",    "extract",  "date_part", "coalesce",
                                         "nullif", "greatest", "least",     "concat"};
    for (const FunctionRow& row : kFunctions) all.push_back(row.name);
    for (const FieldRow& row : kFields) all.push_back(row.name);
    for (const AggregateRow& row : kAggregates) all.push_back(row.name);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }();
  return names;
}

std::optional<DateField> FindDateField(std::string_view name) {
  // The order is that of vm::DatePart: both sides index the same switch.
  static_assert(static_cast<int>(DateField::kYear) == static_cast<int>(vm::DatePart::kYear) &&
                static_cast<int>(DateField::kEpoch) == static_cast<int>(vm::DatePart::kEpoch));
  for (const FieldRow& row : kFields) {
    if (row.name == name) return row.field;
  }
  return std::nullopt;
}

bool IsAggregateName(std::string_view name) {
  return std::any_of(std::begin(kAggregates), std::end(kAggregates),
                     [&](const AggregateRow& r) { return r.name == name; });
}

std::optional<AggregateRule> FindAggregate(std::string_view name, const SqlType& argument) {
  for (const AggregateRow& row : kAggregates) {
    if (row.name == name && Fits(ClassOf(argument), row.argument))
      return AggregateRule{row.function, ResultOfOne(row.result, argument)};
  }
  return std::nullopt;
}

CastContext FindCast(const SqlType& from, const SqlType& to) {
  if (from == to) return CastContext::kImplicit;
  const TypeClass f = ClassOf(from), t = ClassOf(to);
  for (const CastRow& row : kCasts) {
    if (!Fits(f, row.from) || !Fits(t, row.to)) continue;
    if (f == kClassInteger && t == kClassInteger && from.id > to.id) return CastContext::kAssignment;
    if (f == kClassDouble && t == kClassReal) return CastContext::kAssignment;
    if (f == kClassDecimal && t == kClassDecimal &&
        (from.scale > to.scale || from.precision - from.scale > to.precision - to.scale)) {
      return CastContext::kAssignment;
    }
    return row.context;
  }
  return CastContext::kNone;
}

std::optional<TypeId> FindTypeName(std::string_view name) {
  for (const TypeNameRow& row : kTypeNames) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

const std::vector<std::string_view>& TypeNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const TypeNameRow& row : kTypeNames) all.push_back(row.name);
    return all;
  }();
  return names;
}

SqlType AsDecimal(const SqlType& type) {
  switch (type.id) {
    case TypeId::kSmallint:
      return SqlType::Decimal(5, 0);
    case TypeId::kInteger:
      return SqlType::Decimal(10, 0);
    case TypeId::kBigint:
      return SqlType::Decimal(19, 0);
    default:
      return type;
  }
}

std::optional<SqlType> CommonDecimal(const SqlType& a, const SqlType& b) {
  const SqlType x = AsDecimal(a), y = AsDecimal(b);
  const int scale = std::max(x.scale, y.scale);
  const int precision = std::max(x.precision - x.scale, y.precision - y.scale) + scale;
  if (precision > kMaxDigits) return std::nullopt;
  return SqlType::Decimal(precision, scale);
}

std::optional<SqlType> UnifyTypes(const SqlType& a, const SqlType& b) {
  if (a == b) return a;
  if (a.id == TypeId::kNull) return b;
  if (b.id == TypeId::kNull) return a;
  const TypeClass x = ClassOf(a), y = ClassOf(b);
  if (x == kClassText && y == kClassText)
    return SqlType::Text(a.length == 0 || b.length == 0 ? 0 : std::max(a.length, b.length));
  if (x == kClassInteger && y == kClassInteger) return a.id > b.id ? a : b;
  if (Fits(x, kClassExact) && Fits(y, kClassExact)) {
    if (const auto common = CommonDecimal(a, b)) return common;
    return SqlType::Of(TypeId::kDouble);
  }
  if (Fits(x, kClassNumber) && Fits(y, kClassNumber)) return SqlType::Of(TypeId::kDouble);
  if (Fits(x, kClassDateTime) && Fits(y, kClassDateTime)) return SqlType::Of(TypeId::kTimestamp);
  return std::nullopt;
}

IntegerRange RangeOf(const SqlType& type) {
  switch (type.id) {
    case TypeId::kBoolean:
      return {0, 1};
    case TypeId::kSmallint:
      return {INT16_MIN, INT16_MAX};
    case TypeId::kInteger:
      return {INT32_MIN, INT32_MAX};
    case TypeId::kDate:
      return {vm::kFirstDay, vm::kLastDay};
    case TypeId::kTimestamp:
      return {vm::kFirstDay * vm::kMicrosPerDay, (vm::kLastDay + 1) * vm::kMicrosPerDay - 1};
    case TypeId::kDecimal: {
      const int128_t bound = PowerOf10(type.precision) - 1;
      return {-bound, bound};
    }
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

}  // namespace tessera
