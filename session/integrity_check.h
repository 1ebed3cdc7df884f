// PRAGMA integrity_check: whether the files of the database are as they were written, and its rows as its tables ask.
//
// Start at: CheckIntegrity. The thread of the session.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "session/result_writer.h"

namespace tessera {

struct DatabaseCommand;
struct SessionState;

/// The columns of its result.
std::vector<vm::ResultColumn> ColumnsOfIntegrityCheck(const DatabaseCommand& command);
/// Reads every file of the committed state anew, and counts the rows that break a constraint. Returns one row "ok", or a row
/// for each damage. Errors: no such table; the transaction has changed something.
Status CheckIntegrity(SessionState* state, const DatabaseCommand& command, ResultWriter* out);

}  // namespace tessera
