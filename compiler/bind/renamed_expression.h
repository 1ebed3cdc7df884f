// The stored text of a CHECK or of a generated column where the table or its columns get other names. Private to compiler/.
//
// Start at: RenamedExpression. Pure functions; any thread.
#pragma once

#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"

namespace tessera {

/// The text of the same expression over `after`, which differs from `before` in names alone. `type`: as for
/// ReadRowExpression. Errors: the text cannot be changed so that it means the same.
Result<std::string> RenamedExpression(const std::string& text, const TableSchema& before, const TableSchema& after,
                                      const SqlType& type);

}  // namespace tessera
