// A session: one open database, one device choice, statements in, results out. The shell, the SQL tests and the
// benchmarks are callers of this one class, so all of them run the same path.
//
//   SQL text --compiler--> program --vm::Executor (host threads, or a GPU)--> rows --ResultWriter
//
// Results and statistics are handed over as values; shell/ makes text of them.
//
// Start at: Session::Open, Session::Execute. One thread at a time, but Cancel() may come from any thread or a signal
// handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/database.h"
#include "tablet/values/row_batch.h"
#include "vm/program/program.h"
#include "vm/run/statistics.h"

namespace tessera {

class ThreadPool;

class Cluster;
class CopyClient;
class Engine;
class FileReader;
class SessionActivity;
struct TableRights;
struct ExplainForm;
struct PlanNode;

enum class DeviceChoice {
  kAuto,  ///< a GPU if there is one and the section can run there, else the host
  kHost,
  kGpu,  ///< no GPU, or a section over a stored table that it cannot run, is an error
};

struct SessionOptions {
  std::string directory;  ///< "" for a database that lives until the session ends
  OpenMode mode = OpenMode::kReadWrite;
  DeviceChoice device = DeviceChoice::kAuto;
  int threads = 0;            ///< 0: as many as the process may use
  uint64_t memory_limit = 0;  ///< bytes that the process may allocate; 0: 80 % of what it may use
  uint64_t gpu_memory = 0;    ///< bytes; 0: most of what the device has free
  /// What it shares with other sessions of the process (session/engine.h); nullptr: nothing.
  std::shared_ptr<Engine> engine;
  /// Where it says what it does, made by the one who knows its user; nullptr: the session makes one.
  std::shared_ptr<SessionActivity> activity;
  Cluster* cluster = nullptr;  ///< this is rank 0 of it; nullptr: one process. It outlives the session.
  bool trace = false;          ///< keep the spans of each statement's phases, on all ranks
  bool scatter = false;        ///< ranks get their tablets from this one, even if they see the directory
  /// Whether COPY ... FROM STDIN may read standard input: not if the statements themselves come from there.
  bool standard_input_is_free = false;
  /// Where COPY FROM STDIN and TO STDOUT go instead; it outlives the session. nullptr: the standard streams.
  CopyClient* copy_client = nullptr;
  /// Whether statements may name files: COPY, FROM 'file', EXPORT, IMPORT, VACUUM INTO. Not if they are those of others.
  bool files = true;
  /// Where these must be, and names that are relative begin; "": anywhere.
  std::string files_folder;
  /// What it may do with tables (session/table_rights.h); nullptr: all.
  std::shared_ptr<const TableRights> rights;
};

/// Where the time of a statement went, in milliseconds.
struct Timing {
  double total = 0;    ///< from text to the last row
  double compile = 0;  ///< from text to verified program
  bool kept = false;   ///< the program is that of an earlier statement with this text: `compile` only found it
  double execute = 0;
  double kernel = 0;        ///< GPU kernels
  uint64_t rows = 0;        ///< returned, or inserted
  uint64_t bytes_read = 0;  ///< encoded bytes of the chunks that were read
};

/// How far the running statement is. A query does one pass after another, so `done` starts again with each.
struct Progress {
  const char* what = "";  ///< a few words
  uint64_t done = 0;
  uint64_t total = 0;  ///< 0 if unknown
  ProgressUnit unit = ProgressUnit::kRows;
};

/// What EXPLAIN ANALYZE measured. The pointers are valid during the call that hands it over.
struct Analysis {
  const vm::RunStatistics* statistics = nullptr;
  /// Rows that the planner expected of each section of the program, by its number; below 0 if it expected nothing.
  const std::vector<double>* estimates = nullptr;
  const Timing* timing = nullptr;
  double bandwidth = 0;  ///< of the GPU's memory, in bytes a second; 0 if no section ran on one
};

/// What EXPLAIN shows. The pointers are valid during the call that hands it over.
struct Explanation {
  const PlanNode* plan = nullptr;
  const ExplainForm* form = nullptr;
  bool analyzed = false;  ///< it has run, as `analysis` says
  Analysis analysis;
};

/// What a statement takes and returns, known before it runs.
struct StatementDescription {
  /// Of $1, $2 and so on, or ?; kNull: it cannot be told from where the parameter stands.
  std::vector<SqlType> parameters;
  /// None: it returns no rows. EXPLAIN has one of text, the lines that a writer makes of what it is handed.
  std::vector<vm::ResultColumn> columns;
};

/// Takes what a statement returns; how that looks is the writer's matter. Calls come in this order, from the thread of
/// Execute: Begin, Rows*, End, and behind them Done where rows were changed; or only Done; or Text*, and behind it Analyzed for EXPLAIN
/// (ANALYZE, PROGRAM); or Explained for EXPLAIN, and Text behind it.
class ResultWriter {
 public:
  virtual ~ResultWriter() = default;
  /// Threads that have nothing to do while Rows runs, and may help it. Called before Begin, and again with nullptr when they
  /// are no longer there.
  virtual void SetHelpers(ThreadPool*) {}
  virtual Status Begin(const std::vector<vm::ResultColumn>& columns) = 0;
  virtual Status Rows(RowBatch&& batch) = 0;
  virtual Status End() = 0;
  /// A statement without rows: "CREATE TABLE", "INSERT 0 3", "COPY 6001171".
  virtual Status Done(const std::string& command_tag) = 0;
  /// Text that is the result itself, in every format as it stands: EXPLAIN (PROGRAM), and pieces of a COPY TO STDOUT.
  virtual Status Text(const std::string& text) = 0;
  /// By default nothing is shown of it.
  virtual Status Analyzed(const Analysis&) { return Status::Ok(); }
  virtual Status Explained(const Explanation&) { return Status::Ok(); }
};

class Session {
 public:
  /// Errors: those of Database::Open (exit status 3 of the shell), kDevice if kGpu was asked for and there is none.
  static Result<std::unique_ptr<Session>> Open(const SessionOptions& options);
  ~Session();

  /// Runs one statement (no semicolon needed). On an error nothing is changed. BEGIN is an error, and so is what follows it
  /// up to COMMIT or ROLLBACK. FormatError (compiler/compiler.h) prints
  /// it. No exception leaves it. Errors: kCancelled after Cancel() or statement_timeout; those of the statement.
  Status Execute(std::string_view sql, ResultWriter* out);
  /// The same with values for the parameters $1, $2 and so on, or ?. A value of type kNull is NULL or has characters in
  /// `text`: it takes the type of the place where the parameter stands, as a literal in quotes does; the others have their
  /// own. Errors: also a parameter without a value.
  Status Execute(std::string_view sql, std::span<const Value> parameters, ResultWriter* out);
  /// What the statement takes and returns; it does not run. `declared`: types of its first parameters, kNull where they are to
  /// be told from their places. An error in a transaction is its end, as one of Execute is. Errors: those of parsing and
  /// binding the statement.
  Result<StatementDescription> Describe(std::string_view sql, std::vector<SqlType> declared = {});
  /// A temporary table of that name with the rows of a reader; it takes the place of one of that name. Returns the number of
  /// its rows. Errors: those of the reader; the columns are none that a table can have.
  Result<uint64_t> Register(const std::string& name, FileReader* rows);
  /// Makes the statements up to EndImplicit() one transaction, as those of one text of PostgreSQL's simple queries are:
  /// after an error nothing of them is left, BEGIN makes it a transaction of its own, COMMIT ends it. No effect in one.
  void BeginImplicit();
  /// `commits`: else they are undone. Errors: those of COMMIT.
  Status EndImplicit(bool commits);
  /// Whether BEGIN came and neither COMMIT nor ROLLBACK; also if the transaction has failed since.
  bool in_transaction() const;
  /// Stops the running statement, which then returns kCancelled "canceling statement due to user request".
  /// Async-signal-safe. No effect if none runs.
  void Cancel();

  /// Where COPY FROM STDIN and TO STDOUT go from now on; it outlives its use. nullptr: the standard streams.
  void SetCopyClient(CopyClient* client);

  /// `progress` is told how far the running statement is; it may be empty. It is called from any thread, also while
  /// another call runs.
  void SetProgress(std::function<void(const Progress&)> progress);

  enum class TransactionState : uint8_t {
    kNone,
    kOpen,
    kFailed,  ///< it is open, and takes nothing but its end
  };
  TransactionState transaction() const;
  /// SET idle_session_timeout, in milliseconds: the one who holds the session sees to it. 0: none.
  int64_t idle_session_timeout() const;

  const Timing& last_timing() const;
  /// Whether it was a query, which can be run again and changes nothing.
  bool last_was_query() const;
  const vm::RunStatistics& last_statistics() const;

  DeviceChoice device() const;
  Status SetDevice(DeviceChoice device);
  int threads() const;
  /// One line: "host, 2 threads" or "NVIDIA H100 80GB HBM3 (0), 79.1 GiB; host, 16 threads".
  std::string DeviceDescription() const;
  /// One line for each thing that queries can run on: the host, the GPU or why there is none. Makes a CUDA context.
  std::vector<std::string> Devices();
  /// Forgets the columns that the caches of this process hold.
  Status DropCaches();
  /// One line on the memory of the GPU; empty if no query has used one.
  std::string GpuMemoryDescription() const;
  /// What is in doubt about the last statement though it succeeded, for the user: lines, or "". It is told once.
  std::string TakeWarning();
  /// Whether nothing was there when the database was opened. Its first change writes it.
  bool is_new() const;
  Result<std::shared_ptr<const Snapshot>> Tables();
  Database& database();

 private:
  Session();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
