// The parameters $1, $2 and so on of a statement while it is bound.
//
// EXECUTE gives them values, which are constants then. PREPARE has none yet, and asks for their types: as in PostgreSQL the
// first place where a parameter without a type stands decides, by the rules for literals in quotes.
//
// Start at: Parameters. Plain data, of one thread. Private to compiler/.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/query/bound_query.h"
#include "compiler/query/held_parameter.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {

struct Parameters {
  /// By number, $1 first. A value of type kNull takes the type of its place: it is NULL or has its characters in `text`.
  /// nullptr: there are no values, and types are to be found.
  const std::vector<Value>* values = nullptr;
  /// Those that were declared, then those that were found; kNull: none yet.
  std::vector<SqlType> types = {};
  /// Where each stands first; -1: nowhere.
  std::vector<int> positions = {};
  std::vector<int> places = {};          ///< where any stands
  bool inconsistent = false;             ///< two places want different types of one
  bool holds = false;                    ///< values that WHERE compares columns with are held, see held_parameter.h
  size_t bound = 0;                      ///< how many places have got a value
  std::vector<HeldParameter> held = {};  ///< those of them that are held, by Expr::index
};

/// A parameter without a type, while types are looked for, is a NULL with its number as `index`.
inline bool IsParameter(const Expr& e) {
  return e.kind == Expr::Kind::kConstant && e.constant.null && e.type.id == TypeId::kNull && e.index > 0;
}

/// $65535 is the last one, as in PostgreSQL.
inline constexpr size_t kMostParameters = 65535;

}  // namespace tessera
