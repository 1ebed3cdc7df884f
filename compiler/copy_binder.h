// COPY. Private to compiler/.
//
// Start at: BindCopy. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/bound_query.h"
#include "compiler/dialect.h"
#include "compiler/parse_tree.h"
#include "tablet/tablet.h"

namespace tessera {

/// `position` is where the statement starts, because the tree has no position for COPY.
Status BindCopy(const ParseNode& copy, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                int position, Statement* out);

}  // namespace tessera
