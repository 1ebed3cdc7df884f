// Foreign keys: what a change of a table means for others, by queries over the rows that changed. Internal to session/.
//
// The statement has made its change, in a transaction, and its result is held back. Two states of the database are
// compared: the rows that are new in a table look for theirs in the table that they refer to, by an anti-join; the keys
// that are gone from a table look for rows that refer to them, by a semi-join. Where a key says CASCADE, SET NULL or SET
// DEFAULT, a statement changes these rows, and what that changes is looked at in the same way, until nothing changes.
//
// Start at: ChangeWithForeignKeys, CheckDeferredKeys. The thread of the session.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"

namespace tessera {

class ResultWriter;
class Snapshot;
struct SessionState;
struct Statement;

/// Whether foreign keys are to be looked at after the statement.
bool TouchesForeignKeys(const Statement& statement, const Snapshot& snapshot);

/// Runs a statement's `change` of the state `before`, and what foreign keys make of it; its result is shown when all of it
/// holds. `alone`: the transaction of the database, in which this is, was begun for this statement, and is committed. Errors:
/// kForeignKeyViolation, and those of the change; the caller undoes it.
Status ChangeWithForeignKeys(SessionState* state, const Statement& statement,
                             const std::shared_ptr<const Snapshot>& before, bool alone, ResultWriter* out,
                             const std::function<Status(ResultWriter*)>& change);

/// Checks the keys that are DEFERRED, at the end of a transaction. `before`: when it began to change; nullptr: no key was
/// deferred then.
Status CheckDeferredKeys(SessionState* state, const Snapshot* before);

/// Whether a table has a key that is checked at the end of the transaction.
bool HasDeferredKeys(const Snapshot& snapshot);

}  // namespace tessera
