// The options of EXPLAIN. Private to compiler/.
//
// Start at: BindExplainOptions. Pure functions; any thread.
#pragma once

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"

namespace tessera {

/// The options of an EXPLAIN. `summarize`: whether SUMMARIZE became this EXPLAIN. Errors: kUnsupported, an option
/// that there is not; kSql, a value that it does not take.
Status BindExplainOptions(const ParseNode& explain, ExplainRequest* out, bool* summarize);

}  // namespace tessera
