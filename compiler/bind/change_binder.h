// DELETE and UPDATE -> the query that finds their rows. Private to compiler/.
//
// Start at: BindDelete, BindUpdate. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// `out->query` has one output, the row's number (NumberRows of tablet/catalog/live_tablet.h): its first relation is `out->target`.
/// With RETURNING the row's values come before, in the order of the table's columns, and then what RETURNING needs of other
/// relations. Where these are joined, a row may come more than once.
Status BindDelete(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                  Statement* out);
/// The same; the values are the row's new ones, and always there, or only those of `out->change.set_columns`.
Status BindUpdate(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                  Statement* out);

}  // namespace tessera
