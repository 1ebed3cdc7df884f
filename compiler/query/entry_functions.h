// Functions of texts that the entries of a dictionary can stand for: they are evaluated once for each entry, not for each
// row. Private to compiler/.
//
// Start at: ColumnOfEntries. Pure functions; any thread.
#pragma once

#include "compiler/query/bound_query.h"

namespace tessera {

/// The column, if `e` is a function of one TEXT column and constants that gives NULL for NULL and never fails; or nullptr.
const Expr* ColumnOfEntries(const Expr& e);

}  // namespace tessera
