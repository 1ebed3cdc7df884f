// Views: CREATE and DROP. Private to compiler/.
//
// A view's query is bound anew at each use, as a derived table that sees nothing of the query around it: that is
// FromBinder::ViewRelation.
//
// Start at: BindCreateView. Pure functions; any thread.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"
#include "tablet/catalog/view.h"

namespace tessera {

Status BindCreateView(const ParseNode& create, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                      Statement* out);
Status BindDropView(const ParseNode& drop, const Snapshot& snapshot, Statement* out);

/// SELECT of these columns (a list of names, or nullptr: all) of a view: what COPY view TO writes.
Result<std::unique_ptr<Query>> ViewQuery(const ViewSchema& view, const ParseNode* columns, int position,
                                         std::string_view sql, const Dialect& dialect, const Snapshot& snapshot);

}  // namespace tessera
