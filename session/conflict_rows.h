// ON CONFLICT of an INSERT: which of the new rows are stored, and which of the old ones change.
//
// Start at: InsertOrChange. The thread of the session.
#pragma once

#include "base/status.h"
#include "compiler/compiler.h"
#include "session/returned_rows.h"
#include "session/session_state.h"
#include "tablet/catalog/table_info.h"
#include "tablet/load/table_writer.h"

namespace tessera {

/// Writes the rows, without Commit(). `snapshot`: the tables as they are while `writer` lives, with numbers of the target's
/// rows. `rows` gets how many were inserted or changed. Errors: a row is changed twice.
Status InsertOrChange(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableWriter* writer,
                      ReturnedRows* returned, uint64_t* rows);

}  // namespace tessera
