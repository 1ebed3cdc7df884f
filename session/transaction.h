// The transaction of a session: which one is open, and what a statement within it sees.
//
// A transaction sees the database as it was at its first statement, and its own changes: snapshot isolation. Its first
// change takes the writer lock, which it keeps. Of the rows that other sessions have changed between, it may change none: it
// fails and is to be tried again (older_tables.h). Under SERIALIZABLE it fails if they have changed anything, so that such
// transactions are serialisable, in the order of their commits.
//
// Start at: RunTransactionCommand, SnapshotOf, BeginChange. The thread of the session.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/parse/transaction_command.h"
#include "session/older_tables.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"

namespace tessera {

struct Compiled;
struct SessionState;
struct Statement;
class ResultWriter;

/// Rows of INSERTs of a few rows each, which become tablets together: a tablet a row would take ten times as long.
struct WaitingRows {
  std::string table;
  RowBatch rows;
};

struct SessionTransaction {
  bool is_open = false;
  bool is_implicit = false;  ///< it has no BEGIN: it ends with the text whose statements it holds
  bool has_failed = false;   ///< all is refused up to its end, or up to ROLLBACK TO
  bool timed_out = false;    ///< as it was idle; the next statement says so
  bool reads_only = false;
  IsolationLevel isolation = IsolationLevel::kReadCommitted;
  /// Before its first change, if a foreign key was deferred then.
  std::shared_ptr<const Snapshot> before;
  /// Of the database at its first statement, until its first change; nullptr: none yet.
  std::shared_ptr<const Snapshot> snapshot;
  OlderTables older;      ///< since its first change: what it sees of tables that others had changed then
  bool has_read = false;  ///< a statement has seen the snapshot
  /// The attached databases at its first statement; nothing: there was none yet.
  std::optional<std::vector<std::shared_ptr<const AttachedDatabase>>> attached;
  struct Savepoint {
    std::string name;
    Views temporary_views;  ///< of the session then
  };
  std::vector<Savepoint> savepoints;  ///< from the first on; each is a mark of the database once that has changed
  Views temporary_views;              ///< of the session when it began
  WaitingRows waiting;
};

/// Errors: the transaction has failed before, and `command` (kNone: any other statement) does not end it.
Status CheckTransaction(SessionState* state, const TransactionCommand& command);
/// Runs BEGIN, COMMIT, ROLLBACK, SAVEPOINT and their kin: true, and it is done. false: `sql` is another statement. Errors:
/// the transaction has failed before, and this does not end it.
Result<bool> RunTransactionCommand(SessionState* state, std::string_view sql, ResultWriter* out);

/// Begins a transaction without BEGIN, unless one is open: BEGIN makes it one of its own, COMMIT and ROLLBACK end it.
void BeginImplicit(SessionState* state);
/// Commits what BeginImplicit has begun, or rolls it back if it has failed, or not `commits`. No effect if it has ended, or become one with
/// BEGIN. Errors: those of COMMIT; then it is rolled back.
Status EndImplicit(SessionState* state, bool commits);

/// What a statement sees.
Result<std::shared_ptr<const Snapshot>> SnapshotOf(SessionState* state);

/// Before the change by a statement (nullptr: one that is to come) that was compiled against `seen`, within a transaction or
/// not. Returns what the statement sees now: if that is another snapshot, it is to be compiled anew. Errors: kBusy; READ ONLY.
Result<std::shared_ptr<const Snapshot>> BeginChange(SessionState* state, const Statement* statement,
                                                    const std::shared_ptr<const Snapshot>& seen);

/// Whether `sql` begins with INSERT, or EXECUTE of what may be one: no other statement adds to the rows that wait.
bool MayAddToWaiting(std::string_view sql);
/// Whether it is an INSERT of values that does nothing else: no query, no look at other rows but for keys, no rows to return.
bool InsertsValuesAlone(const Compiled& compiled);
/// Whether the rows of an INSERT may wait: a transaction is open, they are few, and no key of theirs has to be looked for,
/// because there is none, or each is an integer that is greater than those before.
bool MayWait(const SessionState& state, const Compiled& compiled);
/// Takes rows that may wait. Errors: kConstraint.
Status LetWait(SessionState* state, const Statement& insert, const RowBatch& rows);
/// Stores the rows that wait.
Status StoreWaiting(SessionState* state);

/// Undoes what is open, which has then failed.
void TimeOutTransaction(SessionState* state) noexcept;

/// Runs a statement as a transaction of its own. What it returns is handed to `out` after the commit.
Status RunAlone(SessionState* state, ResultWriter* out, const std::function<Status(ResultWriter*)>& run);

/// Undoes what is open. The end of a session does that.
void RollBack(SessionState* state) noexcept;

}  // namespace tessera
