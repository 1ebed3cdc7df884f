// Parameters that a program holds as constants of their own, so that it also answers for other values of them.
//
// A parameter is held where WHERE compares a column with it. There its value is an Expr of kind kParameter, into which no
// part of the compiler looks, but for estimates. What the binder makes of a value (the column's type, a bound that is
// rounded) is made again of the next value, see FillHeld (compiler/compiler.h).
//
// Start at: HeldParameter. Plain data.
#pragma once

#include <cstddef>

#include "compiler/query/functions.h"
#include "tablet/values/types.h"

namespace tessera {

struct HeldParameter {
  size_t number = 0;                  ///< of the parameter; the first is 1
  Function written = Function::kEq;   ///< the column `written` the parameter
  SqlType column;                     ///< the column's type
  bool nullable = true;               ///< whether it may be NULL
  Function compared = Function::kEq;  ///< the column `compared` the constant: what was made of that
  SqlType type;                       ///< of the constant
  int constant = -1;                  ///< its number in the program; -1: the program does not need it
};

}  // namespace tessera
