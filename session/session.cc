// A session's life, and one statement after the other: compiled against the newest snapshot, then run.

#include "session/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <unordered_set>

#include "base/clock.h"
#include "base/exception_status.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "base/processors.h"
#include "base/user_name.h"
#include "compiler/compiler.h"
#include "compiler/parse/prepared_text.h"
#include "compiler/query/schema_text.h"
#include "mpi/cluster.h"
#include "session/activity.h"
#include "session/foreign_keys.h"
#include "session/no_result.h"
#include "session/program_run.h"
#include "session/same_snapshot.h"
#include "session/session_state.h"
#include "session/statement_timer.h"
#include "session/statements.h"
#include "session/table_rights.h"
#include "session/temporary_tables.h"
#include "session/transaction.h"
#include "tablet/catalog/database_directory.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/files/unpacked_chunks.h"

namespace tessera {
namespace {

/// Whether it may change the database.
bool Changes(const Statement& s) {
  if (s.explain.wanted && !s.explain.analyze) return false;
  switch (s.kind) {
    case Statement::Kind::kSelect:
    case Statement::Kind::kCopyTo:
    case Statement::Kind::kSet:
    case Statement::Kind::kShow:
    case Statement::Kind::kNotice:
    case Statement::Kind::kSetVariable:
    case Statement::Kind::kPrepare:
    case Statement::Kind::kExecute:
    case Statement::Kind::kDeallocate:
      return false;
    case Statement::Kind::kInsert:
    case Statement::Kind::kDelete:
    case Statement::Kind::kUpdate:
    case Statement::Kind::kMerge:
    case Statement::Kind::kCreateTable:
    case Statement::Kind::kDropTable:
    case Statement::Kind::kCopyFrom:
    case Statement::Kind::kCreateType:
    case Statement::Kind::kDropType:
    case Statement::Kind::kCreateMacro:
    case Statement::Kind::kDropMacro:
    case Statement::Kind::kVacuum:
    case Statement::Kind::kTruncate:
    case Statement::Kind::kAlterTable:
    case Statement::Kind::kRefreshView:
      break;
    // (A temporary one is the session's.)
    case Statement::Kind::kCreateView:
      return !s.definition.view->temporary;
    case Statement::Kind::kDropView:
    case Statement::Kind::kCreateSequence:
    case Statement::Kind::kAlterSequence:
    case Statement::Kind::kDropSequence:
    case Statement::Kind::kCreateSchema:
    case Statement::Kind::kDropSchema:
    case Statement::Kind::kComment:
    case Statement::Kind::kChangeRole:
    case Statement::Kind::kGrant:
      break;
  }
  return true;
}

Session::TransactionState TransactionOf(const SessionState& state) {
  using enum Session::TransactionState;
  const SessionTransaction& t = state.transaction;
  if (!t.is_open && !t.timed_out) return kNone;
  return t.has_failed || t.timed_out ? kFailed : kOpen;
}

}  // namespace

class Session::Impl {
 public:
  ~Impl() {
    (void)idle_.Stop();
    if (state_.options.activity == nullptr && state_.activity != nullptr) state_.activity->Disconnect();
    RollBack(&state_);
    if (state_.cluster != nullptr) state_.engine->CloseOnRanks(state_.cluster);
  }

  Status Open(const SessionOptions& options) {
    state_.options = options;
    state_.engine = options.engine != nullptr ? options.engine : std::make_shared<Engine>();
    SetActivity();
    SetSpoolOfFiles(&state_);
    const int local_ranks = options.cluster != nullptr ? options.cluster->local_ranks() : 1;
    state_.defaults.threads = ProcessorsOfRank(local_ranks);
    state_.defaults.memory_limit = options.memory_limit != 0 ? options.memory_limit : MemoryOfRank(local_ranks);
    TESSERA_ASSIGN(state_.database, Database::Open(options.directory, options.mode, state_.engine->files()));
    is_new_ = !IsWritten();
    TESSERA_TRY(TellRanks());
    Settings settings = state_.engine->IsFirst() ? Settings() : state_.CurrentSettings();
    settings.threads = std::clamp(options.threads, 0, kMaxThreads);
    settings.device = options.device;
    return state_.ChangeSettings(settings);
  }

  /// `parameters`: nullptr if the statement may have none.
  Status Execute(std::string_view sql, const std::vector<Value>* parameters, ResultWriter* out) {
    return Guarded(sql, parameters, [&] { return Run(sql, out); });
  }

  Result<StatementDescription> Describe(std::string_view sql, std::vector<SqlType> declared) {
    return BesideExecute<StatementDescription>([&] { return DescribeStatement(&state_, sql, std::move(declared)); });
  }

  Result<uint64_t> Register(const std::string& name, FileReader* rows) {
    return BesideExecute<uint64_t>([&] { return RegisterRows(&state_, name, rows); });
  }

  Status RegisterFrame(const std::string& name, std::shared_ptr<TableInfo> frame) {
    return BesideExecute<bool>([&]() -> Result<bool> {
             TESSERA_TRY(tessera::RegisterFrame(&state_, name, std::move(frame)));
             return true;
           })
        .status();
  }
  bool ForgetFrame(const std::string& name) { return tessera::ForgetFrame(&state_, name); }

  /// As the end of the statement before it.
  Status EndImplicit(bool commits) {
    if (!state_.transaction.is_implicit) return Status::Ok();
    return Guarded("", nullptr, [&] { return tessera::EndImplicit(&state_, commits); });
  }

  void Cancel() {
    ++cancels_under_way_;
    if (running_) state_.cancel = true;
    --cancels_under_way_;
  }

  SessionState& state() { return state_; }
  /// (A destructor may call it: it allocates nothing.)
  void SetProgress(std::function<void(const Progress&)> progress) noexcept { progress_ = std::move(progress); }
  bool is_new() const { return is_new_; }

 private:
  /// A session alone is that of the one who runs the program.
  void SetActivity() {
    state_.activity = state_.options.activity;
    if (state_.activity == nullptr) {
      SessionReport own;
      own.pid = getpid();
      own.user = UserOfProcess();
      state_.activity = std::make_shared<SessionActivity>(state_.engine->activity(), std::move(own), true);
      state_.activity->Connect([this] { Cancel(); }, {});
    }
    state_.progress = [this](const Progress& p) {
      state_.activity->Tell(p.what, p.done, p.total, p.unit);
      if (progress_) progress_(p);
    };
  }

  /// What run() gives, as a statement of its own that has no text. An error within a transaction is its end.
  template <class T, class F>
  Result<T> BesideExecute(const F& run) {
    T out{};
    const auto runs = [&]() -> Status {
      TESSERA_TRY(TellRanks());
      TESSERA_ASSIGN(out, run());
      return Status::Ok();
    };
    const Status status = Guarded("", nullptr, [&] {
      Status done = Caught(runs);
      if (!done.ok()) state_.transaction.has_failed = state_.transaction.is_open;
      return done;
    });
    if (!status.ok()) return status;
    return out;
  }

  /// run() as one statement: it may be cancelled and timed out, is measured, and no exception leaves it.
  template <class F>
  Status Guarded(std::string_view sql, const std::vector<Value>* parameters, const F& run) {
    // A Cancel() that began while the last statement ran must not reach this one: wait until none is under way, then
    // clear the flag. The wait is as long as two instructions of a signal handler.
    while (cancels_under_way_.load() != 0) std::this_thread::yield();
    EndIdle();
    state_.cancel = false;
    running_ = true;
    state_.running.parameters = parameters;
    state_.running.timing = Timing{};
    state_.running.is_query = false;
    state_.running.warning.clear();
    state_.running.statistics = vm::RunStatistics{};
    state_.files.BeginStatement();
    state_.activity->Begin(sql);
    const auto start = Clock::now();
    PhaseClock clock(Phase::kCompile);
    if (state_.options.trace) clock.KeepSpans();
    Status status = timer_.Start(state_.settings.statement_timeout, [this] { state_.cancel = true; });
    if (status.ok()) {
      const InterruptScope interrupt(&state_.cancel);
      state_.memory.Begin(state_.session_memory());
      const MemoryAccountScope account(&state_.memory);
      try {
        status = run();
      } catch (...) {
        status = StatusOfException();
      }
    }
    const bool timed_out = timer_.Stop();
    state_.GiveBackExecutor();
    if (const Status waits = WaitIdle(); status.ok()) status = waits;
    FinishStatistics(&clock);
    state_.running.timing.total = MillisecondsSince(start);
    if (!state_.running.statistics.ranks.empty())
      state_.running.statistics.ranks[0].total = state_.running.timing.total;
    running_ = false;
    const TransactionState transaction = TransactionOf(state_);
    state_.activity->End(transaction != TransactionState::kNone, transaction == TransactionState::kFailed);
    state_.running.warning = ShownName(state_.running.warning);
    if (!status.ok())
      status = {status.kind(), ShownName(status.message()), ShownName(status.hint()), status.position()};
    if (status.ok() || status.code() != ErrorCode::kCancelled) return status;
    // One text, wherever the flag was noticed.
    return timed_out ? TimedOut() : Cancelled();
  }

  /// Between statements a transaction may last as long as idle_in_transaction_session_timeout says.
  Status WaitIdle() {
    const int64_t timeout = state_.settings.idle_in_transaction_session_timeout;
    if (timeout == 0 || !state_.transaction.is_open || state_.transaction.timed_out) return Status::Ok();
    // What other sessions wait for is given back at once; the rest is done with the next statement.
    return idle_.Start(timeout, [this] {
      if (state_.database->InTransaction()) state_.database->RollBackTransaction();
    });
  }
  void EndIdle() {
    if (idle_.Stop()) TimeOutTransaction(&state_);
  }

  /// A temporary database is there from the start.
  bool IsWritten() const {
    return state_.options.directory.empty() || DatabaseDirectory::IsWritten(state_.database->directory());
  }

  /// Tells the other ranks the database as soon as they can see it: not before the first change, if it is new.
  Status TellRanks() {
    const SessionOptions& options = state_.options;
    if (state_.cluster != nullptr || options.cluster == nullptr || options.cluster->ranks() == 1) return Status::Ok();
    const std::string& directory = state_.database->directory();
    if (!IsWritten()) return Status::Ok();
    std::error_code error;
    const std::string path = std::filesystem::canonical(directory, error).string();
    TESSERA_TRY(state_.engine->OpenOnRanks(options.cluster, error ? directory : path, options.directory.empty(),
                                           options.scatter));
    state_.cluster = options.cluster;
    return Status::Ok();
  }

  /// The master's part of them ends with the statement.
  void FinishStatistics(PhaseClock* clock) {
    vm::RunStatistics& statistics = state_.running.statistics;
    if (statistics.ranks.empty()) {
      statistics.mine.rows_out = state_.running.timing.rows;
      statistics.ranks.push_back(statistics.mine);
    }
    TakeAccounts(clock, &statistics.ranks[0]);
  }

  /// An error within a transaction is its end, but for ROLLBACK.
  Status Run(std::string_view sql, ResultWriter* out) {
    const auto run = [&]() -> Status {
      TESSERA_ASSIGN(const bool done, RunTransactionCommand(&state_, sql, out));
      if (done) return Status::Ok();
      TESSERA_ASSIGN(DatabaseCommand command, ReadDatabaseCommand(sql));
      if (command.kind == DatabaseCommand::Kind::kNone) return RunOther(sql, out);
      TESSERA_TRY(CheckMayEverything(&state_));
      if (command.NamesFiles()) {
        TESSERA_ASSIGN(command.directory, AllowedFile(state_, command.directory));
      }
      const auto other = [this](std::string_view part, ResultWriter* none) { return RunOther(part, none); };
      return RunDatabaseCommand(&state_, command, other, out);
    };
    Status status = run();
    if (!status.ok()) state_.sequences->Forget();
    if (!status.ok()) state_.transaction.has_failed = state_.transaction.is_open;
    return status;
  }

  /// A statement that neither begins nor ends a transaction.
  Status RunOther(std::string_view sql, ResultWriter* out) {
    TESSERA_TRY(TellRanks());
    // Rows that wait are stored before what may read them.
    if (!MayAddToWaiting(sql)) TESSERA_TRY(StoreWaiting(&state_));
    TESSERA_ASSIGN(std::shared_ptr<const Snapshot> snapshot, SnapshotOf(&state_));
    TESSERA_TRY(RunText(sql, snapshot, Clock::now(), out));
    TESSERA_TRY(state_.sequences->Store());
    return state_.transaction.is_open ? Status::Ok() : RunOnCommit(&state_);
  }

  /// What was compiled was looked at for rights that a role may not have any more.
  void ForgetOtherRights(const Snapshot& snapshot) {
    if (state_.options.role.empty()) return;
    if (seen_roles_ == snapshot.names.roles && seen_grants_ == snapshot.names.grants) return;
    seen_roles_ = snapshot.names.roles;
    seen_grants_ = snapshot.names.grants;
    state_.programs.SetLimit(0);
    state_.programs.SetLimit(static_cast<uint64_t>(state_.settings.program_cache));
  }

  struct ProgramKeys {
    std::string values;  ///< see ProgramKey; the text alone, if it has no parameters
    std::string types;   ///< see ProgramKeyOfTypes; "" if it has none
  };

  /// The program of the statement that was kept; nullptr: there is none. Then `options` says whether it is to hold its
  /// parameters.
  std::shared_ptr<const vm::Program> FindKept(std::string_view sql, const Snapshot& snapshot, PlanOptions* options,
                                              ProgramKeys* keys) {
    const std::vector<Value>* const values = state_.running.parameters;
    if (values == nullptr || values->empty()) {
      keys->values = sql;
      return state_.programs.Find(keys->values, snapshot, *options);
    }
    keys->types = ProgramKeyOfTypes(sql, *values);
    if (const auto of_others = state_.programs.Find(keys->types, snapshot, *options); of_others != nullptr) {
      auto filled = std::make_shared<vm::Program>(*of_others);
      if (FillParameters(state_.programs.Held(), *values, options->zone, filled.get())) return filled;
    } else {
      options->hold_parameters = !compiled_for_values_.contains(keys->types);
    }
    keys->values = ProgramKey(sql, *values);
    return state_.programs.Find(keys->values, snapshot, *options);
  }

  /// A program that holds its parameters is kept for all values, another one for these. Then the next values are compiled
  /// without an attempt to hold them.
  void Keep(const std::shared_ptr<const vm::Program>& program, Compiled* compiled, const Snapshot& snapshot,
            const PlanOptions& options, const ProgramKeys& keys) {
    const bool holds = !compiled->held.empty();
    if (options.hold_parameters && !holds) {
      constexpr size_t kMost = 1024;
      if (compiled_for_values_.size() >= kMost) compiled_for_values_.clear();
      compiled_for_values_.insert(keys.types);
    }
    state_.programs.Keep(holds ? keys.types : keys.values, program, std::move(compiled->dependencies), snapshot,
                         options, std::move(compiled->held));
  }

  /// `start`: when its compilation began.
  Status RunText(std::string_view sql, const std::shared_ptr<const Snapshot>& snapshot, Clock::time_point start,
                 ResultWriter* out) {
    ForgetOtherRights(*snapshot);
    PlanOptions options = PlanOptionsOf(state_);
    Compiled compiled;
    std::shared_ptr<const Snapshot> seen = snapshot;  // with the files that the statement reads
    ProgramKeys keys;
    std::shared_ptr<const vm::Program> query = FindKept(sql, *snapshot, &options, &keys);
    state_.running.strings = query != nullptr ? state_.programs.Strings() : nullptr;
    Timing& timing = state_.running.timing;
    timing.kept = query != nullptr;
    if (query == nullptr) {
      bool asked = false;  // rows that the compiler asks for are not among what is noted
      options.run_query = [&](const std::string& text) {
        asked = true;
        return FirstColumn(&state_, text, *snapshot);
      };
      if (const size_t at = PreparedTextAt(sql); at > 0) {
        TESSERA_TRY(state_.prepared.Prepare(sql, at, *snapshot, options));
        timing.compile = MillisecondsSince(start);
        return out->Done("PREPARE");
      }
      TESSERA_ASSIGN(compiled, CompileStatement(&state_, sql, options, &seen));
      if (compiled.statement.kind == Statement::Kind::kExecute)
        return ExecutePrepared(compiled.statement, snapshot, start, out);
      const Statement& s = compiled.statement;
      if (s.kind == Statement::Kind::kSelect && !s.explain.wanted && !s.finish) {
        query = std::move(compiled.program);
        if (!asked) Keep(query, &compiled, *snapshot, options, keys);
      }
    }
    timing.compile = MillisecondsSince(start);
    if (state_.cancel) return Cancelled();
    const bool is_select = compiled.statement.kind == Statement::Kind::kSelect && !compiled.statement.explain.wanted;
    state_.running.is_query = query != nullptr || is_select;
    const auto execution = Clock::now();
    const PhaseScope phase(Phase::kExecute);
    state_.transaction.has_read |= state_.running.is_query;
    const Status status =
        query != nullptr ? Select(&state_, *query, *seen, out) : RunCompiled(sql, std::move(compiled), seen, out);
    timing.execute = MillisecondsSince(execution);
    return status;
  }

  Status ExecutePrepared(const Statement& execute, std::shared_ptr<const Snapshot> snapshot, Clock::time_point start,
                         ResultWriter* out) {
    TESSERA_ASSIGN(const PreparedStatement* const prepared, state_.prepared.Find(execute.prepared.name));
    TESSERA_ASSIGN(const std::vector<Value> values,
                   PreparedStatements::ValuesOf(*prepared, execute, state_.settings.timezone));
    const std::string text = ExplainWords(execute.explain) + prepared->text;
    if (!MayAddToWaiting(text)) {
      TESSERA_TRY(StoreWaiting(&state_));
      TESSERA_ASSIGN(snapshot, SnapshotOf(&state_));
    }
    state_.running.parameters = &values;
    const Status status = RunText(text, snapshot, start, out);
    state_.running.parameters = nullptr;
    if (status.ok() || status.position() < 0) return status;
    // The position is one of another text than the user's.
    return {status.kind(), fmt::format("{} (in prepared statement \"{}\")", status.message(), execute.prepared.name),
            status.hint()};
  }

  /// A statement that is no query.
  Status RunCompiled(std::string_view sql, Compiled compiled, std::shared_ptr<const Snapshot> snapshot,
                     ResultWriter* out) {
    const bool needs_sequences = NeedsSequences(compiled.statement);
    if (!needs_sequences && !Changes(compiled.statement)) return RunBound(sql, &compiled, snapshot, out);
    if (needs_sequences && !state_.transaction.is_open) {
      return RunAlone(&state_, out, [&](ResultWriter* held) {
        return RunCompiled(sql, std::move(compiled), std::move(snapshot), held);
      });
    }
    TESSERA_ASSIGN(std::shared_ptr<const Snapshot> now, BeginChange(&state_, &compiled.statement, snapshot));
    const bool alone = !state_.transaction.is_open && TouchesForeignKeys(compiled.statement, *snapshot);
    if (alone) {
      TESSERA_TRY(state_.database->BeginTransaction());
      TESSERA_ASSIGN(now, state_.Read());
    }
    const Status status = Caught([&]() -> Status {
      // (What is compiled anew may not wait any more.)
      for (int turn = 0; turn < 2; ++turn) {
        if (state_.transaction.is_open && !MayWait(state_, compiled)) {
          TESSERA_TRY(StoreWaiting(&state_));
          TESSERA_ASSIGN(now, SnapshotOf(&state_));
        }
        if (IsSame(*now, *snapshot)) break;
        snapshot = now;
        PlanOptions options = PlanOptionsOf(state_);
        options.run_query = [&](const std::string& query) { return FirstColumn(&state_, query, *snapshot); };
        TESSERA_ASSIGN(compiled, CompileStatement(&state_, sql, options, &snapshot));
      }
      if (!alone && !TouchesForeignKeys(compiled.statement, *snapshot)) {
        TESSERA_TRY(RunBound(sql, &compiled, snapshot, out));
        return CheckOlder(compiled.statement);
      }
      std::shared_ptr<const Snapshot> before = snapshot;  // of the database, whose keys hold
      if (!state_.transaction.older.empty()) {
        TESSERA_ASSIGN(before, state_.Read());
      }
      return ChangeWithForeignKeys(&state_, compiled.statement, before, alone, out,
                                   [&](ResultWriter* to) { return RunBound(sql, &compiled, snapshot, to); });
    });
    if (state_.database->InTransaction() && alone) state_.database->RollBackTransaction();
    return status;
  }

  /// The rows that a transaction has added to a table that others have changed.
  Status CheckOlder(const Statement& s) {
    if (state_.transaction.older.Find(s.table) == nullptr) return Status::Ok();
    TESSERA_TRY(SnapshotOf(&state_).status());
    return CheckOlderKeys(s.table, state_.transaction.older);
  }

  Status RunBound(std::string_view sql, Compiled* compiled, const std::shared_ptr<const Snapshot>& snapshot,
                  ResultWriter* out) {
    const Statement& s = compiled->statement;
    // (A setting reads nothing of the database.)
    state_.transaction.has_read |= s.kind != Statement::Kind::kSet && s.kind != Statement::Kind::kShow;
    if (s.explain.wanted) return Explain(&state_, sql, compiled, snapshot, out);
    if (s.kind == Statement::Kind::kAlterTable) return Alter(&state_, sql, *compiled, snapshot, out);
    if (ChangesRows(s)) return Change(&state_, sql, compiled, snapshot, out);
    if (s.kind == Statement::Kind::kInsert) return Insert(&state_, sql, compiled, snapshot, out);
    return RunStatement(&state_, *compiled, *snapshot, out);
  }

  SessionState state_;
  std::unordered_set<std::string> compiled_for_values_;  ///< ProgramKeyOfTypes of what cannot hold its parameters
  CatalogRoles seen_roles_;  ///< with which programs were compiled, if the session has a role
  TableGrants seen_grants_;
  std::function<void(const Progress&)> progress_;  ///< of the program around the session; may be empty
  StatementTimer timer_;
  bool is_new_ = false;
  StatementTimer idle_;  ///< while a transaction waits for its next statement
  // Both, and state_.cancel, are touched by signal handlers.
  std::atomic<bool> running_{false};
  std::atomic<int> cancels_under_way_{0};
  static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
};

namespace {

/// CREATE, ALTER and DROP of what is no table, and comments.
Status RunDefinition(SessionState* state, const Statement& s, ResultWriter* out) {
  using Kind = Statement::Kind;
  if (s.kind == Kind::kCreateType) {
    TESSERA_TRY(state->database->CreateType(s.definition.type));
    return out->Done("CREATE TYPE");
  }
  if (s.kind == Kind::kDropType) {
    TESSERA_TRY(state->database->DropType(s.definition.type.name, s.definition.if_exists));
    return out->Done("DROP TYPE");
  }
  if (s.kind == Kind::kCreateMacro) {
    TESSERA_TRY(state->database->CreateMacro(s.definition.macro, s.definition.or_replace, s.definition.if_exists));
    return out->Done("CREATE MACRO");
  }
  if (s.kind == Kind::kDropMacro) {
    TESSERA_TRY(
        state->database->DropMacro(s.definition.macro.name, s.definition.macro.of_rows, s.definition.if_exists));
    return out->Done("DROP MACRO");
  }
  if (s.kind == Kind::kCreateView) {
    TESSERA_TRY(CreateView(state, s));
    return out->Done(s.tables.empty() ? "CREATE VIEW" : "ALTER VIEW");
  }
  if (s.kind == Kind::kDropView) {
    TESSERA_TRY(DropViews(state, s));
    return out->Done("DROP VIEW");
  }
  if (s.kind == Kind::kRefreshView) {
    TESSERA_TRY(RefreshView(state, s));
    return out->Done("REFRESH MATERIALIZED VIEW");
  }
  if (s.kind == Kind::kCreateSequence || s.kind == Kind::kAlterSequence || s.kind == Kind::kDropSequence) {
    return ChangeSequence(state, s, out);
  }
  if (s.kind == Kind::kCreateSchema || s.kind == Kind::kDropSchema) {
    return ChangeSchemaNames(state, s, out);
  }
  if (s.kind == Kind::kComment) {
    return SetComment(state, s.definition.comment, out);
  }
  if (s.kind == Kind::kChangeRole) return ChangeRole(state, s.definition.role, out);
  if (s.kind == Kind::kGrant) return ChangeGrants(state, s.definition.role, out);
  return {ErrorCode::kInternal, "a definition of an unknown kind"};
}

}  // namespace

Status RunStatement(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
  const Statement& s = compiled.statement;
  switch (s.kind) {
    case Statement::Kind::kSelect:
      return Select(state, compiled, snapshot, out);
    case Statement::Kind::kInsert:
    case Statement::Kind::kDelete:
    case Statement::Kind::kUpdate:
    case Statement::Kind::kMerge:
    case Statement::Kind::kAlterTable:
      break;  // Insert, Change, Alter
    case Statement::Kind::kCreateTable: {
      std::string tag = s.definition.schema.materialized ? "CREATE MATERIALIZED VIEW" : "CREATE TABLE";
      tag.reserve(kTagBytes);
      TESSERA_TRY(CreateTable(state, compiled, snapshot));
      if (compiled.program != nullptr) tag = fmt::format("SELECT {}", state->running.timing.rows);
      return out->Done(tag);
    }
    case Statement::Kind::kDropTable: {
      TESSERA_ASSIGN(Database* const database, ChangedDatabase(state, s));
      TESSERA_TRY(ChangeSchemas(state, s.definition.dependents));
      TESSERA_TRY(database->DropTable(s.table, s.definition.if_exists));
      return out->Done(s.notice.empty() ? "DROP TABLE" : s.notice);
    }
    case Statement::Kind::kTruncate: {
      TESSERA_ASSIGN(Database* const database, ChangedDatabase(state, s));
      TESSERA_TRY(database->Truncate(s.tables));
      TESSERA_TRY(ChangeSequencesOf(state, s));
      return out->Done("TRUNCATE TABLE");
    }
    case Statement::Kind::kCreateType:
    case Statement::Kind::kDropType:
    case Statement::Kind::kCreateMacro:
    case Statement::Kind::kDropMacro:
    case Statement::Kind::kCreateView:
    case Statement::Kind::kDropView:
    case Statement::Kind::kRefreshView:
    case Statement::Kind::kCreateSequence:
    case Statement::Kind::kAlterSequence:
    case Statement::Kind::kDropSequence:
    case Statement::Kind::kCreateSchema:
    case Statement::Kind::kDropSchema:
    case Statement::Kind::kComment:
    case Statement::Kind::kChangeRole:
    case Statement::Kind::kGrant:
      return RunDefinition(state, s, out);
    case Statement::Kind::kCopyFrom:
      return CopyFrom(state, s, out);
    case Statement::Kind::kCopyTo:
      return CopyTo(state, compiled, snapshot, out);
    case Statement::Kind::kSet:
      TESSERA_TRY(Set(state, s));
      return out->Done("SET");
    case Statement::Kind::kNotice:
      return out->Done(s.notice);
    case Statement::Kind::kVacuum:
      TESSERA_TRY(Vacuum(state, s.tables, s.value));
      return out->Done("VACUUM");
    case Statement::Kind::kSetVariable:
      TESSERA_TRY(SetVariable(state, compiled, snapshot));
      return out->Done(s.query != nullptr ? "SET" : "RESET");
    case Statement::Kind::kShow:
      return Show(state, s.setting, out);
    case Statement::Kind::kDeallocate:
      TESSERA_TRY(state->prepared.Deallocate(s.prepared.name));
      return out->Done(s.prepared.name.empty() ? "DEALLOCATE ALL" : "DEALLOCATE");
    case Statement::Kind::kPrepare:
    case Statement::Kind::kExecute:
      break;  // Session::Impl::RunText
  }
  return {ErrorCode::kInternal, "a statement of an unknown kind"};
}

namespace {

/// "host, 2 threads"
std::string HostText(int threads) { return fmt::format("host, {} thread{}", threads, threads == 1 ? "" : "s"); }

/// "NVIDIA H100 80GB HBM3 (0), 79.1 GiB"
std::string GpuText(const Gpu& gpu) {
  return fmt::format("{} (0), {:.1f} GiB", gpu.info().name, static_cast<double>(gpu.info().memory_bytes) / (1 << 30));
}

}  // namespace

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Open(const SessionOptions& options) {
  try {
    std::unique_ptr<Session> session(new Session());
    TESSERA_TRY(session->impl_->Open(options));
    return session;
  } catch (...) {
    return StatusOfException();
  }
}

Status Session::Execute(std::string_view sql, ResultWriter* out) { return impl_->Execute(sql, nullptr, out); }
Status Session::Execute(std::string_view sql, std::span<const Value> parameters, ResultWriter* out) {
  const std::vector<Value> values(parameters.begin(), parameters.end());
  return impl_->Execute(sql, &values, out);
}
Result<StatementDescription> Session::Describe(std::string_view sql, std::vector<SqlType> declared) {
  return impl_->Describe(sql, std::move(declared));
}
Result<uint64_t> Session::Register(const std::string& name, FileReader* rows) { return impl_->Register(name, rows); }
Status Session::RegisterFrame(const std::string& name, std::shared_ptr<TableInfo> frame) {
  return impl_->RegisterFrame(name, std::move(frame));
}
Status Session::Unregister(const std::string& name) {
  if (impl_->ForgetFrame(name)) return {};
  NoResult none;
  return Execute("DROP TABLE pg_temp." + QuotedName(name), &none);
}
void Session::BeginImplicit() { tessera::BeginImplicit(&impl_->state()); }
Status Session::EndImplicit(bool commits) { return impl_->EndImplicit(commits); }
bool Session::in_transaction() const { return impl_->state().transaction.is_open; }
void Session::Cancel() { impl_->Cancel(); }
void Session::SetCopyClient(CopyClient* client) { impl_->state().options.copy_client = client; }
void Session::SetProgress(std::function<void(const Progress&)> progress) { impl_->SetProgress(std::move(progress)); }

Session::TransactionState Session::transaction() const { return TransactionOf(impl_->state()); }

int64_t Session::idle_session_timeout() const { return impl_->state().settings.idle_session_timeout; }
const Timing& Session::last_timing() const { return impl_->state().running.timing; }
bool Session::last_was_query() const { return impl_->state().running.is_query; }
const vm::RunStatistics& Session::last_statistics() const { return impl_->state().running.statistics; }
DeviceChoice Session::device() const { return impl_->state().settings.device; }
int Session::threads() const { return impl_->state().threads(); }
Result<std::shared_ptr<const Snapshot>> Session::Tables() { return impl_->state().Read(); }
std::string Session::TakeWarning() {
  std::string all = std::exchange(impl_->state().running.warning, {});
  const std::string change = impl_->state().database->TakeWarning();
  if (!all.empty() && !change.empty()) all += '\n';
  return all + change;
}
bool Session::is_new() const { return impl_->is_new(); }
Database& Session::database() { return *impl_->state().database; }

Status Session::SetDevice(DeviceChoice device) {
  Settings settings = impl_->state().settings;
  settings.device = device;
  return impl_->state().ChangeSettings(settings);
}

Status Session::DropCaches() {
  DropUnpacked();
  const SessionState& state = impl_->state();
  Gpu* const gpu = state.engine->gpu();
  if (gpu == nullptr) return Status::Ok();
  TESSERA_ASSIGN(const Engine::GpuTurn turn, state.engine->WaitForGpu(0, state.cancel));
  return gpu->DropCache();
}

std::string Session::GpuMemoryDescription() const {
  const Gpu* const gpu = impl_->state().engine->gpu();
  if (gpu == nullptr) return "";
  const GpuMemory m = gpu->memory();
  return fmt::format("{:.1f} MB of columns cached, budget {:.1f} MB", static_cast<double>(m.cached_bytes) / 1e6,
                     static_cast<double>(m.budget_bytes) / 1e6);
}

std::vector<std::string> Session::Devices() {
  SessionState& state = impl_->state();
  Status opened = state.OpenGpu();
  return {HostText(state.threads()), opened.ok() ? GpuText(*state.engine->gpu()) : "no GPU: " + opened.message()};
}

std::string Session::DeviceDescription() const {
  const SessionState& state = impl_->state();
  const int ranks = state.options.cluster != nullptr ? state.options.cluster->ranks() : 1;
  std::string text = ranks > 1 ? fmt::format("{} ranks; of rank 0: ", ranks) : std::string();
  if (state.settings.device != DeviceChoice::kHost && state.engine->gpu() != nullptr)
    text += GpuText(*state.engine->gpu()) + "; ";
  return text + HostText(state.threads());
}

}  // namespace tessera
