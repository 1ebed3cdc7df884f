// MERGE -> the query that finds what is to be done. Private to compiler/.
//
// Start at: BindMerge. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// `out->query` joins the source with `out->target`, its first relation. Its outputs are the values of the row that is to be
/// stored, in the order of the table's columns; which of Statement::merge_actions is to be done, from 1, or 0 for nothing;
/// and the number of the target's row, NULL where none matches. A row that matches twice comes twice.
/// With WHEN NOT MATCHED BY SOURCE rows of the target without a match are among them; then the query is over those of both.
Status BindMerge(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                 Statement* out);

}  // namespace tessera
