// Values of operations on constants, by the functions of vm/meaning/meaning.h, so that a constant in a query means what the
// same value in a column would. Private to compiler/.
//
// Start at: EvaluateFunction. Pure functions; any thread.
#pragma once

#include <span>

#include "base/status.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// The value of `function` with result type `type`. Errors: those that the machine raises (overflow, ...), without a
/// position. REQUIRES: the arguments have the types that functions.def demands.
Result<Value> EvaluateFunction(Function function, const SqlType& type, DateField field, std::span<const ExprPtr> args);

/// CAST. Errors: out of range, a text that is no literal of the type.
Result<Value> EvaluateCast(const Value& v, const SqlType& type);

/// An exact number as an integer: `value * 10^scale`. REQUIRES: not NULL, StorageClass kInt or kWide.
int128_t IntegerOf(const Value& v);
/// The value of `type` that this integer represents. REQUIRES: it fits.
Value FromInteger(const SqlType& type, int128_t v);

}  // namespace tessera
