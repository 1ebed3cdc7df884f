// EXPLAIN: the plan of a statement, or its program; with ANALYZE it runs first, as it does without EXPLAIN.
//
// Start at: Explain. The thread of the session.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/compiler.h"
#include "session/session.h"
#include "session/session_state.h"

namespace tessera {

/// `sql` was compiled to `compiled`, which is compiled anew if a change finds other tables. Errors: those of the statement.
Status Explain(SessionState* state, std::string_view sql, Compiled* compiled,
               const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out);

/// "EXPLAIN (ANALYZE, VERBOSE) ": what to write before the text of a prepared statement; "" if it is not explained.
std::string ExplainWords(const Statement& statement);

}  // namespace tessera
