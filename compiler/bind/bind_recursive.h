// Binding WITH RECURSIVE: a query that reads what it has made so far. Private to compiler/.
//
//   Query                 the first rows: the left arm of UNION
//     union_all[0]        the step, the right arm, over the working table
//     working             the working table: the rows of the last turn
//
// Start at: BindRecursive. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// Whether `body` reads a table of this name, somewhere in it.
bool ReadsTable(const ParseNode& body, std::string_view name);

/// Binds a query of WITH that reads itself as `name`. `columns`: its column names; the first ones may be given, the others
/// are added. Errors: it is no UNION whose right arm alone reads it; types of the arms that do not fit.
Result<std::unique_ptr<Query>> BindRecursive(const ParseNode& body, const std::string& name, int position,
                                             std::vector<std::string>* columns, QueryBlock* block);

}  // namespace tessera
