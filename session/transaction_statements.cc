// BEGIN, COMMIT, ROLLBACK and their kin.
#include <algorithm>
#include <utility>

#include "base/exception_status.h"
#include "compiler/compiler.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/parse/transaction_command.h"
#include "session/foreign_keys.h"
#include "session/held_result.h"
#include "session/older_tables.h"
#include "session/same_snapshot.h"
#include "session/session_state.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "session/transaction.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/load/table_writer.h"

namespace tessera {
namespace {

using Kind = TransactionCommand::Kind;

/// As many rows as this do not wait for more.
constexpr size_t kMostWaiting = size_t{1} << 16;

/// One without BEGIN's modes.
void Open(SessionState* state) {
  SessionTransaction& t = state->transaction;
  t = {};
  t.is_open = true;
  t.isolation = state->settings.default_transaction_isolation;
  t.temporary_views = state->temporaries.views;
}

/// Of the open transaction, before it has seen anything.
Status SetIsolation(SessionState* state, IsolationLevel level) {
  SessionTransaction& t = state->transaction;
  if (level != t.isolation && (t.has_read || state->database->InTransaction()))
    return SqlError(ErrorKind::kActiveTransaction, "SET TRANSACTION ISOLATION LEVEL must be called before any query",
                    -1, "Enter ROLLBACK, then BEGIN ISOLATION LEVEL and the level.");
  t.isolation = level;
  return Status::Ok();
}

Status Begin(SessionState* state, const TransactionCommand& command) {
  SessionTransaction& t = state->transaction;
  // (What the text did before belongs to it.)
  if (std::exchange(t.is_implicit, false)) {
    t.reads_only = command.reads_only;
    if (command.isolation) TESSERA_TRY(SetIsolation(state, *command.isolation));
    return command.locks_now ? BeginChange(state, nullptr, nullptr).status() : Status::Ok();
  }
  if (t.is_open) {
    state->running.warning = "there is already a transaction in progress";
    return Status::Ok();
  }
  Open(state);
  t.reads_only = command.reads_only;
  t.isolation = command.isolation.value_or(t.isolation);
  if (!command.locks_now) return Status::Ok();
  Status locked = BeginChange(state, nullptr, nullptr).status();
  if (!locked.ok()) RollBack(state);  // there is no transaction then, as in SQLite
  return locked;
}

/// Calls f(database) for the session's databases that are in a transaction.
template <class F>
Status ForEachChanged(SessionState* state, F f) {
  for (Database* const database : {state->database.get(), state->temporaries.database.get()}) {
    if (database != nullptr && database->InTransaction()) TESSERA_TRY(f(database));
  }
  return Status::Ok();
}

/// Of the database first: that of the session is in memory, and what it loses is gone with the process anyway.
Status Commit(SessionState* state) {
  Status prepared = RunOnCommit(state);
  // (Tablets that were kept until now would become ever more.)
  for (const OlderTable& table : state->transaction.older.tables) {
    if (prepared.ok() && table.rows != nullptr) prepared = state->database->MergeTablets(table.before->schema.name);
  }
  const Status status = prepared.ok()
                            ? ForEachChanged(state, [](Database* database) { return database->CommitTransaction(); })
                            : prepared;
  if (!status.ok()) {
    RollBack(state);
    return status;
  }
  state->transaction = {};
  return Status::Ok();
}

/// Foreign keys that wait for the end.
Status CheckDeferred(SessionState* state) {
  if (!state->database->InTransaction()) return {};
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state->Read());
  if (!HasDeferredKeys(*now)) return {};
  return Caught([&] { return CheckDeferredKeys(state, state->transaction.before.get()); });
}

/// With the rows that wait and the foreign keys that were deferred. An error rolls back.
Status CommitAll(SessionState* state) {
  Status stored = StoreWaiting(state);
  if (stored.ok()) stored = CheckDeferred(state);
  if (stored.ok()) return Commit(state);
  RollBack(state);
  return stored;
}

/// COMMIT and ROLLBACK. A transaction that has failed is rolled back by either.
Status End(SessionState* state, const TransactionCommand& command, ResultWriter* out) {
  SessionTransaction& t = state->transaction;
  const bool commits = command.kind == Kind::kCommit && !t.has_failed;
  const bool reads_only = t.reads_only;
  const IsolationLevel isolation = t.isolation;
  if (!t.is_open || t.is_implicit) {
    if (command.chains)
      return SqlError(ErrorKind::kNoActiveTransaction, "AND CHAIN can only be used in transaction blocks", -1,
                      "Enter BEGIN first.");
    state->running.warning = "there is no transaction in progress";
  }
  if (t.is_open && commits) {
    TESSERA_TRY(CommitAll(state));
  } else if (t.is_open) {
    RollBack(state);
  }
  if (command.chains) {
    Open(state);
    t.reads_only = reads_only;
    t.isolation = isolation;
  }
  return out->Done(commits ? "COMMIT" : "ROLLBACK");
}

/// The mark of a savepoint's name, the last of that name. Errors: there is none.
Result<size_t> MarkOf(const SessionTransaction& t, const std::string& name) {
  const auto found =
      std::find_if(t.savepoints.rbegin(), t.savepoints.rend(), [&](const auto& s) { return s.name == name; });
  if (found != t.savepoints.rend()) return static_cast<size_t>(t.savepoints.rend() - found);
  return SqlError(ErrorKind::kInvalidSavepoint, "savepoint \"" + name + "\" does not exist");
}

Status Divide(SessionState* state, const TransactionCommand& command) {
  SessionTransaction& t = state->transaction;
  if (command.kind == Kind::kSavepoint) {
    TESSERA_TRY(StoreWaiting(state));
    TESSERA_TRY(ForEachChanged(state, [](Database* database) { return database->PushMark(); }));
    t.savepoints.push_back({command.savepoint, state->temporaries.views});
    return Status::Ok();
  }
  TESSERA_ASSIGN(const size_t mark, MarkOf(t, command.savepoint));
  if (command.kind == Kind::kRelease) {
    TESSERA_TRY(ForEachChanged(state, [&](Database* database) { return database->DropMark(mark); }));
    t.savepoints.resize(mark - 1);
    return Status::Ok();
  }
  t.waiting = {};
  TESSERA_TRY(ForEachChanged(state, [&](Database* database) { return database->ReturnToMark(mark); }));
  t.savepoints.resize(mark);
  state->temporaries.views = t.savepoints.back().temporary_views;
  t.has_failed = false;
  return Status::Ok();
}

const char* TagOf(Kind kind) {
  switch (kind) {
    case Kind::kBegin:
      return "BEGIN";
    case Kind::kSavepoint:
      return "SAVEPOINT";
    case Kind::kRelease:
      return "RELEASE";
    case Kind::kRollbackTo:
      return "ROLLBACK";
    case Kind::kSetModes:
    case Kind::kSetSessionModes:
      return "SET";
    case Kind::kNone:
    case Kind::kCommit:
    case Kind::kRollback:
      break;  // End
  }
  return "";
}

Status RunCommand(SessionState* state, const TransactionCommand& command) {
  SessionTransaction& t = state->transaction;
  if (command.kind == Kind::kBegin) return Begin(state, command);
  if (command.kind == Kind::kSetSessionModes && command.isolation)
    state->settings.default_transaction_isolation = *command.isolation;
  if (command.kind == Kind::kSetSessionModes && !command.reads_only) return Status::Ok();
  const bool in_block = t.is_open && !t.is_implicit;
  const bool sets = command.kind == Kind::kSetModes || command.kind == Kind::kSetSessionModes;
  if (!in_block && sets) {
    state->running.warning = "SET TRANSACTION can only be used in transaction blocks";
    return Status::Ok();
  }
  if (!in_block) {
    const std::string words = command.kind == Kind::kSavepoint ? "" : std::string(TagOf(command.kind)) + " ";
    return SqlError(ErrorKind::kNoActiveTransaction,
                    (command.kind == Kind::kRollbackTo ? words + "TO " : words) +
                        "SAVEPOINT can only be used in transaction blocks",
                    -1, "Enter BEGIN first.");
  }
  if (sets) {
    t.reads_only |= command.reads_only;
    return command.kind == Kind::kSetModes && command.isolation ? SetIsolation(state, *command.isolation)
                                                                : Status::Ok();
  }
  return Divide(state, command);
}

/// INSERT, UPDATE, DELETE, MERGE and COPY FROM, which a read-only transaction may do with temporary tables.
bool ChangesRowsAlone(const Statement& s) {
  return ChangesRows(s) || s.kind == Statement::Kind::kInsert || s.kind == Statement::Kind::kCopyFrom;
}

/// Rows that wait become tablets.
Status Store(SessionState* state) {
  const WaitingRows waiting = std::exchange(state->transaction.waiting, {});
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, waiting.table));
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database->Write(waiting.table));
  TESSERA_TRY(writer->Append(waiting.rows, 1));
  return writer->Commit();
}

}  // namespace

void BeginImplicit(SessionState* state) {
  SessionTransaction& t = state->transaction;
  if (t.is_open || t.timed_out) return;
  Open(state);
  t.is_implicit = true;
}

Status EndImplicit(SessionState* state, bool commits) {
  const SessionTransaction& t = state->transaction;
  if (!t.is_open || !t.is_implicit) return Status::Ok();
  if (commits && !t.has_failed) return CommitAll(state);
  RollBack(state);
  return Status::Ok();
}

Status CheckTransaction(SessionState* state, const TransactionCommand& command) {
  SessionTransaction& t = state->transaction;
  const bool ends = command.kind == Kind::kCommit || command.kind == Kind::kRollback;
  if (std::exchange(t.timed_out, false) && command.kind != Kind::kRollback) {
    if (ends) t = {};
    return SqlError(ErrorKind::kIdleInTransaction,
                    "the transaction has been rolled back: it was idle for longer than "
                    "idle_in_transaction_session_timeout",
                    -1, ends ? "Run it again from its BEGIN." : kTryAgain);
  }
  if (t.has_failed && !ends && command.kind != Kind::kRollbackTo) {
    return SqlError(
        ErrorKind::kInFailedTransaction,
        "current transaction is aborted, commands ignored until end of transaction block", -1,
        t.savepoints.empty() ? "Enter ROLLBACK." : "Enter ROLLBACK, or ROLLBACK TO " + t.savepoints.back().name + ".");
  }
  return Status::Ok();
}

Result<bool> RunTransactionCommand(SessionState* state, std::string_view sql, ResultWriter* out) {
  TESSERA_ASSIGN(const TransactionCommand command, ReadTransactionCommand(sql));
  TESSERA_TRY(CheckTransaction(state, command));
  if (command.kind == Kind::kNone) return false;
  if (command.kind == Kind::kCommit || command.kind == Kind::kRollback) {
    TESSERA_TRY(End(state, command, out));
  } else {
    TESSERA_TRY(RunCommand(state, command));
    TESSERA_TRY(out->Done(TagOf(command.kind)));
  }
  return true;
}

Result<std::shared_ptr<const Snapshot>> SnapshotOf(SessionState* state) {
  SessionTransaction& t = state->transaction;
  if (!t.is_open) return state->Read();
  if (state->database->InTransaction()) {
    TESSERA_ASSIGN(std::shared_ptr<const Snapshot> now, state->database->Read());
    TESSERA_ASSIGN(now, WithOlder(std::move(now), &t.older));
    return state->WithTemporary(std::move(now));
  }
  if (t.snapshot == nullptr) {
    TESSERA_ASSIGN(t.snapshot, state->database->Read());
  }
  return state->WithTemporary(t.snapshot);
}

namespace {

/// Whether the statement (nullptr: one that is to come) may change the state `now`, of which the transaction sees another one.
Status CheckStatement(const Statement* statement, const Snapshot& now, const OlderTables& older) {
  // (A query takes values of sequences.)
  if (statement == nullptr || statement->kind == Statement::Kind::kSelect || older.empty()) return {};
  // (What is no change of rows may be of any table.)
  if (!ChangesRowsAlone(*statement))
    return CannotSerialize("table \"" + ShownName(older.tables[0].before->schema.name) + "\"");
  return CheckConflict(statement->table, now, older);
}

/// The lock is had: what the transaction goes on to see of tables that others have changed since its first statement.
Result<OlderTables> SeenSince(const SessionTransaction& t, const Statement* statement, const std::string& directory,
                              const Snapshot& now) {
  if (!t.has_read || IsSame(now, *t.snapshot)) return OlderTables();
  if (t.isolation == IsolationLevel::kSerializable) return CannotSerialize("the database");
  TESSERA_ASSIGN(OlderTables older, TablesOfBefore(directory, *t.snapshot, now));
  TESSERA_TRY(CheckStatement(statement, now, older));
  return older;
}

}  // namespace

Result<std::shared_ptr<const Snapshot>> BeginChange(SessionState* state, const Statement* statement,
                                                    const std::shared_ptr<const Snapshot>& seen) {
  SessionTransaction& t = state->transaction;
  if (!t.is_open) return seen;
  Database* changed = state->database.get();
  if (statement != nullptr) {
    TESSERA_ASSIGN(changed, ChangedDatabase(state, *statement));
  }
  Database& database = *changed;
  const bool temporary = changed != state->database.get();
  if (t.reads_only && !(temporary && ChangesRowsAlone(*statement)))
    return SqlError(ErrorKind::kReadOnlyTransaction, "cannot change anything in a read-only transaction", -1,
                    "Enter COMMIT first.");
  if (database.InTransaction()) {
    if (temporary || t.older.empty()) return seen;
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, database.Read());
    TESSERA_TRY(CheckStatement(statement, *now, t.older));
    return seen;
  }
  TESSERA_TRY(database.BeginTransaction());
  if (temporary) {
    for (size_t i = 0; i < t.savepoints.size(); ++i) TESSERA_TRY(database.PushMark());
    return seen;
  }
  TESSERA_ASSIGN(std::shared_ptr<const Snapshot> now, database.Read());
  Result<OlderTables> older = SeenSince(t, statement, database.real_path(), *now);
  if (!older.ok()) {
    database.RollBackTransaction();
    return older.status();
  }
  t.older = std::move(*older);
  if (!t.older.empty()) database.KeepTablets();
  t.snapshot.reset();
  if (HasDeferredKeys(*now)) t.before = now;
  for (size_t i = 0; i < t.savepoints.size(); ++i) TESSERA_TRY(database.PushMark());
  TESSERA_ASSIGN(now, WithOlder(std::move(now), &t.older));
  return state->WithTemporary(std::move(now));
}

bool MayAddToWaiting(std::string_view sql) {
  const Token blanks = NextToken(sql, 0);
  const Token t = blanks.kind == Token::Kind::kSpace ? NextToken(sql, blanks.end) : blanks;
  const std::string_view first = sql.substr(t.begin, t.end - t.begin);
  const auto is = [&](std::string_view word) {
    return std::ranges::equal(first, word, [](char a, char b) { return (a | 0x20) == b; });
  };
  return is("insert") || is("execute");
}

namespace {

/// Whether the values of a key are greater than all that the table has or waits for: none of them can be there.
bool Ascends(const Statement& insert, const std::vector<int>& key, const WaitingRows& waiting) {
  if (key.size() != 1) return false;
  const auto c = static_cast<size_t>(key[0]);
  const ColumnVector& values = insert.change.values.columns[c];
  const ColumnStatistics& stored = insert.target->statistics[c];
  if (values.type.storage() != StorageClass::kInt) return false;
  std::optional<int128_t> last;
  if (stored.has_range) last = stored.max;
  // (The last one that waits is the greatest.)
  if (waiting.table == insert.table && waiting.rows.rows > 0)
    last = std::max<int128_t>(last.value_or(INT64_MIN), waiting.rows.columns[c].fixed.back());
  for (size_t row = 0; row < insert.change.values.rows; ++row) {
    if (values.IsNull(row) || (last && values.fixed[row] <= *last)) return false;
    last = values.fixed[row];
  }
  return true;
}

}  // namespace

bool InsertsValuesAlone(const Compiled& compiled) {
  const Statement& s = compiled.statement;
  return s.kind == Statement::Kind::kInsert && !s.explain.wanted && compiled.program == nullptr &&
         s.change.on_conflict == nullptr && s.change.returning == nullptr && s.change.values.rows > 0;
}

bool MayWait(const SessionState& state, const Compiled& compiled) {
  if (!state.transaction.is_open || !InsertsValuesAlone(compiled)) return false;
  const Statement& s = compiled.statement;
  const TableSchema& schema = s.target->schema;
  if (state.transaction.older.Find(s.table) != nullptr) return false;
  if (s.change.values.rows >= kMostWaiting || !schema.foreign_keys.empty()) return false;
  const auto ascends = [&](const std::vector<int>& key) { return Ascends(s, key, state.transaction.waiting); };
  return (schema.primary_key.empty() || ascends(schema.primary_key)) &&
         std::ranges::all_of(schema.unique_keys, ascends, &UniqueKey::columns);
}

Status LetWait(SessionState* state, const Statement& insert, const RowBatch& rows) {
  TESSERA_TRY(CheckConstraints(insert.target->schema, rows, 1));
  WaitingRows& waiting = state->transaction.waiting;
  if (waiting.table != insert.table || waiting.rows.columns.empty()) {
    TESSERA_TRY(StoreWaiting(state));
    waiting.table = insert.table;
    for (const ColumnVector& column : rows.columns) waiting.rows.columns.emplace_back().type = column.type;
  }
  for (size_t c = 0; c < rows.columns.size(); ++c) {
    for (size_t row = 0; row < rows.rows; ++row) waiting.rows.columns[c].AppendFrom(rows.columns[c], row);
  }
  waiting.rows.rows += rows.rows;
  return waiting.rows.rows < kMostWaiting ? Status::Ok() : Store(state);
}

Status StoreWaiting(SessionState* state) {
  return state->transaction.waiting.rows.rows == 0 ? Status::Ok() : Store(state);
}

void TimeOutTransaction(SessionState* state) noexcept {
  RollBack(state);
  SessionTransaction& t = state->transaction;
  t.is_open = t.has_failed = t.timed_out = true;
  t.temporary_views = state->temporaries.views;
}

Status RunAlone(SessionState* state, ResultWriter* out, const std::function<Status(ResultWriter*)>& run) {
  Open(state);
  HeldResult held;
  Status status = Caught([&] { return run(&held); });
  if (status.ok()) status = StoreWaiting(state);
  if (status.ok()) status = state->sequences->Store();
  if (status.ok()) status = CheckDeferred(state);
  if (!status.ok()) {
    RollBack(state);
    return status;
  }
  TESSERA_TRY(Commit(state));
  return held.Show(out);
}

void RollBack(SessionState* state) noexcept {
  state->sequences->Forget();
  if (state->transaction.is_open) state->temporaries.views.swap(state->transaction.temporary_views);
  state->transaction = {};
  for (Database* const database : {state->database.get(), state->temporaries.database.get()}) {
    if (database != nullptr && database->InTransaction()) database->RollBackTransaction();
  }
}

}  // namespace tessera
