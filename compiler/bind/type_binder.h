// CREATE TYPE ... AS ENUM and DROP TYPE. Private to compiler/.
//
// Start at: BindCreateType. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// `position` is where the statement starts, because the tree has no positions of the names.
Status BindCreateType(const ParseNode& create, int position, const Snapshot& snapshot, Statement* out);
Status BindDropType(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out);

}  // namespace tessera
