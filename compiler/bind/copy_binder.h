// COPY. Private to compiler/.
//
// Start at: BindCopy. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// `position` is where the statement starts, because the tree has no position for COPY.
Status BindCopy(const ParseNode& copy, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                int position, Statement* out);

}  // namespace tessera
