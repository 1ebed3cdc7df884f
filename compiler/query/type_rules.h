// Finds what vm/program/types.def and functions.def say of types: which function an SQL operator is for operands of given
// types, how the operands are converted first, and the type of the result. Private to compiler/.
//
// Start at: FindOperator, FindFunction, CastContext. Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/query/bound_query.h"
#include "tablet/values/types.h"

namespace tessera {

/// Sets of types, as in the head of types.def.
enum TypeClass : uint16_t {
  kClassNone = 0,
  kClassBoolean = 1 << 0,
  kClassInteger = 1 << 1,
  kClassDecimal = 1 << 2,
  kClassReal = 1 << 3,
  kClassDouble = 1 << 4,
  kClassDate = 1 << 5,
  kClassTimestamp = 1 << 6,
  kClassText = 1 << 7,
  kClassInterval = 1 << 8,
  kClassFloat = kClassReal | kClassDouble,
  kClassExact = kClassInteger | kClassDecimal,
  kClassNumber = kClassExact | kClassFloat,
  kClassDateTime = kClassDate | kClassTimestamp,
  kClassTime = 1 << 9,
  kClassUuid = 1 << 10,
  kClassTimestampTz = 1 << 11,
  kClassMoment = kClassDateTime | kClassTimestampTz,
  kClassBytea = 1 << 12,
  kClassEnum = 1 << 13,
  kClassAny = 0x3FFF,
};

/// The class of one type; kClassNone for a type that is not known yet (NULL, a quoted literal).
TypeClass ClassOf(const SqlType& type);

enum class OperandRule : uint8_t {
  kAsIs,
  kSameScale,
  kDecimals,
  kDoubles,
  kTimestamps,
  kMoments,
  kLengths,
  kParts,
  kMoment,
  kTexts,
  kSwapped,
  kSpan
};

struct OperatorRule {
  Function function;
  OperandRule operands;
  int row;  ///< its row in the table, for ResultOfOperator
};

/// The operator for operands of these types, both known; nullopt if there is none.
std::optional<OperatorRule> FindOperator(std::string_view symbol, const SqlType& left, const SqlType& right);
/// The type of the operator's result. The operands' types are those after the conversion that the rule demands. Errors:
/// a scale above 38.
Result<SqlType> ResultOfOperator(const OperatorRule& rule, const SqlType& left, const SqlType& right);

std::optional<Function> FindPrefix(std::string_view symbol, const SqlType& operand);

/// The operand rule of a comparison; nullopt if the two cannot be compared.
std::optional<OperandRule> FindComparison(const SqlType& left, const SqlType& right);

struct FunctionRule {
  Function function;
  SqlType result;
};
enum class FunctionMatch : uint8_t { kFound, kNoSuchName, kWrongArguments };
/// A function by name and argument types; an unknown type (kNull) fits any class.
FunctionMatch FindFunction(std::string_view name, std::span<const SqlType> arguments, FunctionRule* out);
/// The class of types that argument `index` of function `name` may have, over all its rows; kClassNone if there is no
/// such function.
TypeClass ArgumentClass(std::string_view name, size_t index);
/// All names that may be called, for hints.
const std::vector<std::string_view>& FunctionNames();

std::optional<DateField> FindDateField(std::string_view name);
const std::vector<std::string_view>& DateFieldNames();
/// Whether it is a field of EXTRACT that the binder makes of others.
bool IsMadeField(std::string_view name);

struct AggregateRule {
  AggregateFunction function;
  SqlType result;
};
/// The class of types that the argument of aggregate `name` may have; kClassNone if there is no such aggregate.
TypeClass AggregateArgumentClass(std::string_view name);
inline bool IsAggregateName(std::string_view name) { return AggregateArgumentClass(name) != kClassNone; }
/// Whether it is an aggregate that the binder makes of others.
bool IsStatisticName(std::string_view name);
std::optional<AggregateRule> FindAggregate(std::string_view name, const SqlType& argument);

enum class CastContext : uint8_t { kImplicit, kAssignment, kExplicit, kNone };
/// The least context in which `from` becomes `to`; kNone if it never does.
CastContext FindCast(const SqlType& from, const SqlType& to);

/// The type of that name, without lengths and digits; nullopt if there is none.
std::optional<TypeId> FindTypeName(std::string_view name);
const std::vector<std::string_view>& TypeNames();

/// An integer type as a decimal: DECIMAL(5|10|19,0). Decimals stay. REQUIRES: an integer or a decimal.
SqlType AsDecimal(const SqlType& type);
/// The decimal with all digits of both before and after the point; nullopt if that is more than 38.
std::optional<SqlType> CommonDecimal(const SqlType& a, const SqlType& b);
/// The type that both become as branches of one CASE (PostgreSQL's rules for UNION); nullopt if they do not fit
/// together.
std::optional<SqlType> UnifyTypes(const SqlType& a, const SqlType& b);

/// Least and greatest value of an integer type, or of the integer that stores a decimal. REQUIRES: one of these, a date or a
/// boolean.
struct IntegerRange {
  int128_t least, greatest;
};
IntegerRange RangeOf(const SqlType& type);

}  // namespace tessera
