// ON CONFLICT, INSERT OR REPLACE and OR IGNORE -> joins of the new rows with the table. Private to compiler/.
//
// Start at: BindOnConflict. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// RowChange::on_conflict of the INSERT, if it says what to do about conflicts; then the rows of `out->target` get numbers.
/// Errors: no key has the columns that are named.
Status BindOnConflict(const ParseNode& insert, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                      Statement* out);

}  // namespace tessera
