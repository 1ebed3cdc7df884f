// The temporary tables of a session: a database of its own, which lives as long as the session, in any other or in none.
//
// Each transaction of the session is one of both databases: the changes of each are kept or undone together.
//
// Start at: DatabaseOf. The thread of the session.
#pragma once

#include <string_view>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/database.h"
#include "vm/program/program.h"

namespace tessera {

struct SessionState;
struct Statement;

/// The database that has, or gets, the table of that qualified name. The session's is made by the first who asks for it.
/// Errors: kIo, kResource.
Result<Database*> DatabaseOf(SessionState* state, std::string_view table);
/// The same of the table, or the tables, that the statement changes. Errors: also if it is both.
Result<Database*> ChangedDatabase(SessionState* state, const Statement& statement);
/// Before the session's database gets such a table: the types of its columns are there, too. Errors: as CreateType.
Status CopyTypes(SessionState* state, const TableSchema& schema);
/// Notes what ON COMMIT of a CREATE TABLE, which has been run, asks for.
Status NoteOnCommit(SessionState* state, const Statement& create);
/// ... and does it: at the end of a transaction, or of a statement without one.
Status RunOnCommit(SessionState* state);
/// Whether it reads temporary tables or attached databases, which no other rank sees.
bool ReadsTemporary(const vm::Program& program);

}  // namespace tessera
