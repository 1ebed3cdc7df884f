// vm/program/types.def and the calls of functions.def as arrays, and the arithmetic of precision and scale.
#include "compiler/query/type_rules.h"

#include <algorithm>
#include <iterator>

#include "tablet/values/enum_type.h"
#include "tablet/values/interval.h"
#include "tablet/values/value_parser.h"
#include "vm/meaning/meaning.h"

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
  kTimestamp,
  kText,
  kInterval,
  kBytea,
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
#include "vm/program/types.def"
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
#include "vm/program/types.def"
};

struct ComparisonRow {
  TypeClass left, right;
  OperandRule operands;
};
constexpr ComparisonRow kComparisons[] = {
#define TESSERA_COMPARISON(left, right, operands) {kClass##left, kClass##right, OperandRule::k##operands},
#include "vm/program/types.def"
};

constexpr size_t kMostCalls = 8;  // rows of one function or aggregate; unused ones have no name

struct CallRow {
  std::string_view name;
  size_t least = 0, most = 0;
  TypeClass first = kClassNone, second = kClassNone, others = kClassNone;
  ResultRule result = ResultRule::kFirst;

  TypeClass Argument(size_t index) const { return index == 0 ? first : index == 1 ? second : others; }
};
struct FunctionRow {
  Function function;
  CallRow calls[kMostCalls];
};
constexpr FunctionRow kFunctions[] = {
#define CALL(name, least, most, first, others, result) \
  {name, least, most, kClass##first, kClass##others, kClass##others, ResultRule::k##result},
#define CALL3(name, least, most, first, second, third, result) \
  {name, least, most, kClass##first, kClass##second, kClass##third, ResultRule::k##result},
#define FUNCTION(Name, Group, Form, Text, Binding, Translated, I, IX, F, W, T, Operands, Range, Errors, Nulls, \
                 Entries, Description, ...)                                                                    \
  {Function::k##Name, {__VA_ARGS__}},
#include "compiler/query/functions.def"
};

constexpr std::string_view kSyntaxNames[] = {
#define SYNTAX(name, ...) name,
#include "compiler/query/functions.def"
};

constexpr std::string_view kStatisticNames[] = {
#define STATISTIC(name, ...) name,
#include "compiler/query/functions.def"
};

constexpr std::string_view kFields[] = {
#define DATE_FIELD(Name, name, Description) name,
#include "compiler/query/functions.def"
};
constexpr std::string_view kMadeFields[] = {
#define MADE_FIELD(name, Description) name,
#include "compiler/query/functions.def"
};

struct AggregateCallRow {
  std::string_view name;
  TypeClass argument = kClassNone;
  ResultRule result = ResultRule::kFirst;
};
struct AggregateRow {
  AggregateFunction function;
  AggregateCallRow calls[kMostCalls];
};
constexpr AggregateRow kAggregates[] = {
#define OF(name, argument, result) {name, kClass##argument, ResultRule::k##result},
#define AGGREGATE(Name, Text, I, F, W, T, State, Count, Final, Duplicates, Empty, Description, ...) \
  {AggregateFunction::k##Name, {__VA_ARGS__}},
#include "compiler/query/functions.def"
};

struct CastRow {
  TypeClass from, to;
  CastContext context;
};
constexpr CastRow kCasts[] = {
#define TESSERA_CAST(from, to, context) {kClass##from, kClass##to, CastContext::k##context},
#include "vm/program/types.def"
};

struct TypeNameRow {
  std::string_view name;
  TypeId type;
};
constexpr TypeNameRow kTypeNames[] = {
#define TESSERA_TYPE_NAME(name, type) {#name, TypeId::k##type},
#include "vm/program/types.def"
};

SqlType CappedDecimal(int precision, int scale) { return SqlType::Decimal(std::min(precision, kMaxDigits), scale); }

bool Fits(TypeClass type, TypeClass allowed) { return (type & allowed) != 0; }

/// Results that depend on at most one operand.
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
    case ResultRule::kTimestamp:
      return SqlType::Of(TypeId::kTimestamp);
    case ResultRule::kText:
      return SqlType::Text();
    case ResultRule::kBytea:
      return SqlType::Of(TypeId::kBytea);
    case ResultRule::kInterval:
      return SqlType::Of(TypeId::kInterval);
    case ResultRule::kFirst:
    case ResultRule::kRounded:  // depends on the number of digits, which the binder knows
    case ResultRule::kWider:    // these three and the remainder have two operands
    case ResultRule::kDecimalSum:
    case ResultRule::kDecimalProduct:
    case ResultRule::kDecimalRemainder:
      break;
  }
  return type;
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
    case TypeId::kTime:
      return kClassTime;
    case TypeId::kUuid:
      return kClassUuid;
    case TypeId::kBytea:
      return kClassBytea;
    case TypeId::kTimestampTz:
      return kClassTimestampTz;
    case TypeId::kEnum:
      return kClassEnum;
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
  if (l == kClassEnum && r == kClassEnum && left != right) return std::nullopt;
  for (const ComparisonRow& row : kComparisons) {
    if (Fits(l, row.left) && Fits(r, row.right)) return row.operands;
  }
  return std::nullopt;
}

FunctionMatch FindFunction(std::string_view name, std::span<const SqlType> arguments, FunctionRule* out) {
  bool named = false;
  for (const FunctionRow& row : kFunctions) {
    for (const CallRow& call : row.calls) {
      if (call.name.empty() || call.name != name) continue;
      named = true;
      if (arguments.size() < call.least || arguments.size() > call.most) continue;
      bool fits = true;
      for (size_t i = 0; i < arguments.size() && fits; ++i) {
        const TypeClass c = ClassOf(arguments[i]);
        fits = c == kClassNone || Fits(c, call.Argument(i));
      }
      if (!fits) continue;
      SqlType type = arguments[0];
      if (call.result == ResultRule::kWider) {
        for (const SqlType& a : arguments) type = a.id > type.id ? a : type;  // TypeId orders them by width
      }
      *out = {row.function, ResultOfOne(call.result, type)};
      return FunctionMatch::kFound;
    }
  }
  // The binder has looked for calls of these.
  named = named || std::find(std::begin(kSyntaxNames), std::end(kSyntaxNames), name) != std::end(kSyntaxNames);
  return named ? FunctionMatch::kWrongArguments : FunctionMatch::kNoSuchName;
}

TypeClass ArgumentClass(std::string_view name, size_t index) {
  int all = kClassNone;
  for (const FunctionRow& row : kFunctions) {
    for (const CallRow& call : row.calls) {
      if (call.name == name && index < call.most) all |= call.Argument(index);
    }
  }
  return static_cast<TypeClass>(all);
}

const std::vector<std::string_view>& FunctionNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all(std::begin(kSyntaxNames), std::end(kSyntaxNames));
    all.insert(all.end(), std::begin(kFields), std::end(kFields));
    all.insert(all.end(), std::begin(kMadeFields), std::end(kMadeFields));
    for (const FunctionRow& row : kFunctions) {
      for (const CallRow& call : row.calls) all.push_back(call.name);
    }
    for (const AggregateRow& row : kAggregates) {
      for (const AggregateCallRow& call : row.calls) all.push_back(call.name);
    }
    all.insert(all.end(), std::begin(kStatisticNames), std::end(kStatisticNames));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.front().empty()) all.erase(all.begin());
    return all;
  }();
  return names;
}

const std::vector<std::string_view>& DateFieldNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all(std::begin(kFields), std::end(kFields));
    all.insert(all.end(), std::begin(kMadeFields), std::end(kMadeFields));
    return all;
  }();
  return names;
}

bool IsMadeField(std::string_view name) {
  return std::find(std::begin(kMadeFields), std::end(kMadeFields), name) != std::end(kMadeFields);
}

std::optional<DateField> FindDateField(std::string_view name) {
  const auto at = std::find(std::begin(kFields), std::end(kFields), name);
  if (at == std::end(kFields)) return std::nullopt;
  return static_cast<DateField>(at - std::begin(kFields));
}

TypeClass AggregateArgumentClass(std::string_view name) {
  int all = kClassNone;
  for (const AggregateRow& row : kAggregates) {
    for (const AggregateCallRow& call : row.calls) {
      if (call.name == name) all |= call.argument;
    }
  }
  return static_cast<TypeClass>(all);
}

bool IsStatisticName(std::string_view name) {
  return std::find(std::begin(kStatisticNames), std::end(kStatisticNames), name) != std::end(kStatisticNames);
}

std::optional<AggregateRule> FindAggregate(std::string_view name, const SqlType& argument) {
  for (const AggregateRow& row : kAggregates) {
    for (const AggregateCallRow& call : row.calls) {
      if (call.name == name && Fits(ClassOf(argument), call.argument))
        return AggregateRule{row.function, ResultOfOne(call.result, argument)};
    }
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
  // Clients of PostgreSQL cast names of its catalog to that. (It is no name to suggest.)
  if (name == "name") return TypeId::kText;
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
  if (Fits(x, kClassMoment) && Fits(y, kClassMoment)) return SqlType::Of(TypeId::kTimestampTz);
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
    case TypeId::kTimestampTz:
      return {kFirstMoment, kLastMoment};
    case TypeId::kTimestamp:
      return {vm::kFirstDay * vm::kMicrosPerDay, (vm::kLastDay + 1) * vm::kMicrosPerDay - 1};
    case TypeId::kTime:
      return {0, vm::kMicrosPerDay - 1};
    case TypeId::kUuid:
      return {kInt128Min, kInt128Max};
    case TypeId::kInterval:
      return {-kIntervalBound, kIntervalBound};
    case TypeId::kEnum:
      return {0, static_cast<int64_t>(kMostLabels) - 1};
    case TypeId::kDecimal: {
      const int128_t bound = PowerOf10(type.precision) - 1;
      return {-bound, bound};
    }
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

}  // namespace tessera
