// functions.def as arrays.
#include "compiler/query/functions.h"

#include <cassert>
#include <iterator>
#include <optional>
#include <utility>

#include "vm/meaning/meaning.h"
#include "vm/program/math_function.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

using vm::Opcode;

/// Opcodes as functions.def names them.
namespace op {
using enum vm::Opcode;
constexpr Opcode None = kNoOpcode;
}  // namespace op

constexpr FunctionInfo kFunctions[] = {
#define FUNCTION(Name, Group, Form, Text, Binding, Translated, I, IX, F, W, T, Operands, Range, Errors, Nulls, \
                 Entries, Description, ...)                                                                    \
  {Notation::k##Form,                                                                                          \
   Text,                                                                                                       \
   Binding,                                                                                                    \
   Translation::k##Translated,                                                                                 \
   {op::I, op::IX, op::F, op::W, op::T},                                                                       \
   OperandOrder::k##Operands,                                                                                  \
   RangeRule::k##Range,                                                                                        \
   ErrorRule::k##Errors,                                                                                       \
   NullRule::k##Nulls,                                                                                         \
   EntryRule::k##Entries},
#include "compiler/query/functions.def"
};

constexpr const char* kDateFields[] = {
#define DATE_FIELD(Name, text, Description) text,
#include "compiler/query/functions.def"
};
// vm::DatePart numbers the same fields.
#define DATE_FIELD(Name, ...) \
  static_assert(static_cast<int>(DateField::k##Name) == static_cast<int>(vm::DatePart::k##Name));
#include "compiler/query/functions.def"

// Flags of the rows of AGGREGATE.
constexpr bool kCounted = true, kUncounted = false, kDuplicatesIgnored = true, kDuplicatesCount = false,
               kEmptyZero = true, kEmptyNull = false;

constexpr AggregateInfo kAggregates[] = {
#define AGGREGATE(Name, Text, I, F, W, T, State, Count, Final, Duplicates, Empty, Description, ...) \
  {Text,                                                                                            \
   {op::I, op::None, op::F, op::W, op::T},                                                          \
   StateRule::k##State,                                                                             \
   k##Count,                                                                                        \
   FinalRule::k##Final,                                                                             \
   kDuplicates##Duplicates,                                                                         \
   kEmpty##Empty},
#include "compiler/query/functions.def"
};

static_assert(kNoOpcode == Opcode::End);

// A reversible operation is followed in opcodes.def by the one with its operands swapped.
constexpr bool Follows(Opcode reversed, Opcode op) { return static_cast<int>(reversed) == static_cast<int>(op) + 1; }
static_assert(Follows(Opcode::RSubI, Opcode::SubI) && Follows(Opcode::RSubIX, Opcode::SubIX) &&
              Follows(Opcode::RSubF, Opcode::SubF) && Follows(Opcode::RSubW, Opcode::SubW));

constexpr std::pair<Function, vm::MathFunction> kMathFunctions[] = {
#define MATH_FUNCTION(Name, ...) {Function::k##Name, vm::MathFunction::k##Name},
#define MATH_PAIR MATH_FUNCTION
#include "vm/program/math_functions.def"
};
constexpr std::optional<vm::MathFunction> FindMath(Function function) {
  for (const auto& [of, math] : kMathFunctions) {
    if (of == function) return math;
  }
  return std::nullopt;
}
constexpr bool AllMathIsFound() {
  for (size_t i = 0; i < std::size(kFunctions); ++i) {
    if (kFunctions[i].translation == Translation::kMath && !FindMath(static_cast<Function>(i))) return false;
  }
  return true;
}
static_assert(AllMathIsFound(), "a Math row of functions.def is not in math_functions.def");

}  // namespace

const FunctionInfo& Info(Function function) { return kFunctions[static_cast<size_t>(function)]; }
const AggregateInfo& Info(AggregateFunction function) { return kAggregates[static_cast<size_t>(function)]; }
const char* NameOf(DateField field) { return kDateFields[static_cast<size_t>(field)]; }

vm::MathFunction MathOf(Function function) { return FindMath(function).value(); }

Function Mirrored(Function f) {
  switch (f) {
    case Function::kLt:
      return Function::kGt;
    case Function::kLe:
      return Function::kGe;
    case Function::kGt:
      return Function::kLt;
    case Function::kGe:
      return Function::kLe;
    default:
      return f;
  }
}

Function Negated(Function f) {
  switch (f) {
    case Function::kEq:
      return Function::kNe;
    case Function::kNe:
      return Function::kEq;
    case Function::kLt:
      return Function::kGe;
    case Function::kLe:
      return Function::kGt;
    case Function::kGt:
      return Function::kLe;
    case Function::kGe:
      return Function::kLt;
    default:
      assert(false);
      return f;
  }
}

}  // namespace tessera
