// CREATE MACRO and DROP MACRO -> Statement. Private to compiler/.
//
// Start at: BindCreateMacro. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// Binds the body once, so that what no call could bind is refused. REQUIRES: dialect.macro.
Status BindCreateMacro(const Dialect& dialect, const Snapshot& snapshot, Statement* out);
Status BindDropMacro(const Dialect& dialect, const ParseNode& drop, int position, const Snapshot& snapshot,
                     Statement* out);

}  // namespace tessera
