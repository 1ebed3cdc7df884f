// Parse tree -> bound statement: name resolution, types, constant folding. Private to compiler/.
//
// Start at: Bind. Pure functions; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/parse/parser.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// Binds the statement `parsed` of the text `sql`. Subqueries in expressions stay in the tree as Expr::Kind::kSubquery,
/// for Unnest. Errors carry the byte offset in `sql`. Unknown names hint at the nearest one (`Perhaps you meant column
/// "lo_revenue".`). Whatever the text, however long or deep, the result is an error, never a crash.
Result<Statement> Bind(const ParsedStatement& parsed, std::string_view sql, const Snapshot& snapshot);

}  // namespace tessera
