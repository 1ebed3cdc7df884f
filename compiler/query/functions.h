// The functions of bound expressions and what functions.def says of each. Plain data; any thread.
//
// Start at: Function, Info.
#pragma once

#include <array>
#include <cstdint>

#include "tablet/values/types.h"

namespace tessera {

namespace vm {
enum class Opcode : uint16_t;
enum class MathFunction : uint8_t;
}  // namespace vm

/// Functions of a bound expression: see the rows of functions.def.
enum class Function : uint8_t {
#define FUNCTION(Name, ...) k##Name,
#include "compiler/query/functions.def"
};

/// What EXTRACT gives.
enum class DateField : uint8_t {
#define DATE_FIELD(Name, ...) k##Name,
#include "compiler/query/functions.def"
};

enum class AggregateFunction : uint8_t {
#define AGGREGATE(Name, ...) k##Name,
#include "compiler/query/functions.def"
};

// ---- The columns of functions.def

enum class Notation : uint8_t { kInfix, kPrefix, kPostfix, kCall, kOwn };
enum class Translation : uint8_t {
  kOpcode,
  kRounding,
  kCase,
  kCast,
  kSubstring,
  kExtract,
  kAddMonths,
  kMath,
  kCharacter,
  kRegex,
  kZone,
  kFormat,
  kRandom,
  kInterval,
  // Conditions: they narrow the mask, and their value is made from that.
  kComparison,
  kJunction,
  kNegation,
  kNullTest,
  kInList,
  kLike,
};
enum class OperandOrder : uint8_t { kFixed, kCommutative, kReversible, kMirrored };
enum class RangeRule : uint8_t {
  kType,
  kSum,
  kMomentSum,
  kDifference,
  kProduct,
  kNegation,
  kEither,
  kEitherFirst,
  kRemainder,
  kBranches,
  kCast,
};
enum class ErrorRule : uint8_t { kNever, kOutOfRange, kIfExact, kCast, kPossible };
enum class NullRule : uint8_t { kStrict, kMaybe, kDivision, kNever, kBranches, kOwn };
enum class EntryRule : uint8_t { kNo, kYes, kOwn };

/// None in functions.def: vm::Opcode::End, which no function is.
inline constexpr vm::Opcode kNoOpcode{0};

/// The opcodes of a row by class.
struct OpcodesByClass {
  vm::Opcode integer, checked_integer, real, wide, text;

  /// The opcode for arguments of that class, or kNoOpcode.
  vm::Opcode For(StorageClass storage) const {
    switch (storage) {
      case StorageClass::kFloat:
        return real;
      case StorageClass::kWide:
        return wide;
      case StorageClass::kText:
        return text;
      case StorageClass::kInt:
        break;
    }
    return integer;
  }
};

struct FunctionInfo {
  Notation notation;
  const char* text;
  int binding;
  Translation translation;
  OpcodesByClass opcodes;
  OperandOrder operands;
  RangeRule range;
  ErrorRule errors;
  NullRule nulls;
  EntryRule entries;

  /// NULL in one argument makes the result NULL.
  bool IsStrict() const {
    return nulls == NullRule::kStrict || nulls == NullRule::kMaybe || nulls == NullRule::kDivision;
  }
};
const FunctionInfo& Info(Function function);

/// The function of doubles of that name. REQUIRES: Translation::kMath.
vm::MathFunction MathOf(Function function);

/// EXTRACT's name of a field, in lower case.
const char* NameOf(DateField field);

// ---- Comparisons

inline bool IsComparison(Function f) { return Info(f).translation == Translation::kComparison; }
/// a f b is b Mirrored(f) a. REQUIRES: a comparison.
Function Mirrored(Function f);
/// The comparison that is true where `f` is false, for values that are not NULL. REQUIRES: a comparison.
Function Negated(Function f);

// ---- Aggregates

enum class StateRule : uint8_t { kArgument, kSum, kCount, kWords, kValues };
enum class FinalRule : uint8_t {
  kState,
  kSum,
  kCount,
  kQuotient,
  kDeviations,
  kSampleVariance,
  kPopulationVariance,
  kSampleDeviation,
  kPopulationDeviation,
};

struct AggregateInfo {
  const char* text;
  OpcodesByClass opcodes;
  StateRule state;
  bool counted;  ///< the values that are not NULL are counted beside the state
  FinalRule final_value;
  bool ignores_duplicates;  ///< DISTINCT makes no difference
  bool zero_if_empty;       ///< 0 of no rows, not NULL

  /// Whether it is of the sum of squared differences from the mean: var_samp and its kin.
  bool HasMoments() const { return state == StateRule::kWords; }
  /// Whether one value, too, gives NULL.
  bool NeedsTwoValues() const {
    return final_value == FinalRule::kSampleVariance || final_value == FinalRule::kSampleDeviation;
  }
};
const AggregateInfo& Info(AggregateFunction function);

}  // namespace tessera
