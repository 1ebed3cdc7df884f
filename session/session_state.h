// What the statements of one session share. Internal to session/: others see session.h alone.
//
// Start at: SessionState. One thread, but `cancel` may be set by any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_budget.h"
#include "base/status.h"
#include "compiler/query/random_calls.h"
#include "session/attached_databases.h"
#include "session/engine.h"
#include "session/prepared_statements.h"
#include "session/program_cache.h"
#include "session/result_writer.h"
#include "session/session_options.h"
#include "session/session_sequences.h"
#include "session/settings.h"
#include "session/transaction.h"
#include "tablet/database.h"
#include "tablet/file_tables.h"
#include "tablet/values/row_batch.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace tessera {

class UpdatedKeys;

/// What holds where no setting says otherwise.
struct SessionDefaults {
  uint64_t memory_limit = UINT64_MAX;  ///< bytes
  int threads = 1;                     ///< as many as the process may use
};

/// What is gone with the session.
struct TemporaryObjects {
  std::unique_ptr<Database> database;  ///< of the tables; nullptr: there has been none
  Views views;
  /// Rows of the program around the session, which can only be read: by qualified names, no two of them the same.
  std::vector<std::shared_ptr<const TableInfo>> frames;
  /// By the identifiers of tables with ON COMMIT: whether they are dropped, and not only emptied.
  std::map<int64_t, bool> on_commit;
};

/// Of the running or the last statement.
struct RunningStatement {
  const std::vector<Value>* parameters = nullptr;  ///< what $1 and so on stand for; nullptr: there may be none
  bool has_turn = false;                           ///< among large queries, see Engine
  std::unique_ptr<vm::Executor> executor;          ///< while it runs, from its first query on
  std::shared_ptr<vm::StringPool> strings;         ///< of the query that runs, if its program was kept
  bool is_query = false;
  UpdatedKeys* updated_keys = nullptr;  ///< while foreign keys are to follow what it changes
  std::string warning;                  ///< of what the user should know though it is no error; "": nothing
  Timing timing;
  vm::RunStatistics statistics;
};

struct SessionState {
  int threads() const { return settings.threads > 0 ? static_cast<int>(settings.threads) : defaults.threads; }
  uint64_t memory_limit() const {
    return settings.memory_limit > 0 ? static_cast<uint64_t>(settings.memory_limit) : defaults.memory_limit;
  }
  /// Between statements nothing of the engine is taken.
  void GiveBackExecutor() { engine->GiveBack(std::move(running.executor)); }
  /// SET session_memory, or else what the options say; UINT64_MAX: any.
  uint64_t session_memory() const;
  Status OpenGpu();
  /// The settings, and those that are the process's as another session may have set them.
  Settings CurrentSettings() const;
  /// The committed state now, and what is temporary.
  Result<std::shared_ptr<const Snapshot>> Read();
  /// A state of the database, what is temporary now, and the attached databases: as they are now, or were when the
  /// transaction first read them.
  Result<std::shared_ptr<const Snapshot>> WithTemporary(std::shared_ptr<const Snapshot> snapshot);
  /// Of the attached databases alone.
  Result<AttachedDatabases::List> ReadAttached();
  /// Takes the settings and does what follows from them. Errors: kDevice, there is no GPU although they ask for one; then
  /// nothing changes.
  Status ChangeSettings(const Settings& changed);

  SessionOptions options;
  std::unique_ptr<Database> database;
  AttachedDatabases attached;  ///< that statements may read
  TemporaryObjects temporaries;
  Cluster* cluster = nullptr;  ///< nullptr if there are no other ranks, or they have not been told the database yet
  Settings settings;
  SessionDefaults defaults;
  std::shared_ptr<Engine> engine;             ///< of this session or of several
  std::shared_ptr<SessionActivity> activity;  ///< what others see of it; never nullptr
  std::function<void(const Progress&)> progress;
  std::map<std::string, Value, std::less<>> variables;  ///< of SET VARIABLE
  std::vector<std::string> search_path;                 ///< as SET has it; empty: the default schema alone
  mutable FileTables files;                             ///< that statements read; the compiler looks for them
  RandomState random{std::random_device()(), 0};
  SessionTransaction transaction;
  ProgramCache programs;  ///< of queries that have run
  std::unique_ptr<SessionSequences> sequences = std::make_unique<SessionSequences>(this);
  PreparedStatements prepared;
  RunningStatement running;
  MemoryAccount memory;             ///< of the running statement
  std::atomic<bool> cancel{false};  ///< also set by signal handlers
};

}  // namespace tessera
