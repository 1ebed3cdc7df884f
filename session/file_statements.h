// Statements that read files: compiled, and the files read for them. Internal to session/.
//
// Start at: CompileStatement. The thread of the session.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "compiler/compiler.h"
#include "session/session_state.h"
#include "tablet/catalog/table_info.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"

namespace tessera {

/// Compile(), and if the statement reads files, reads of them the columns that it needs and compiles it again with what they
/// hold. Then *snapshot becomes one that has them, too. Errors: also those of the files.
Result<Compiled> CompileStatement(SessionState* state, std::string_view sql, const PlanOptions& options,
                                  std::shared_ptr<const Snapshot>* snapshot);

/// If the statement stores the rows of one file as they are (CREATE TABLE t AS SELECT * FROM 'a.csv', INSERT INTO t SELECT *
/// FROM 'a.csv'): the reader of these, which saves storing them twice; else nullptr. Sets the threads and the like.
std::unique_ptr<FileReader> WholeFile(SessionState* state, const Statement& statement, CopyFromOptions* options);
/// Lets statements of the session read standard input and pipes: each is read once, into a temporary file that stays to the
/// end of the session.
void SetSpoolOfFiles(SessionState* state);
/// What is said of records that were left out.
void WarnOfIgnored(SessionState* state, uint64_t ignored);

}  // namespace tessera
