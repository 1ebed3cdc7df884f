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

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "session/result_writer.h"
#include "session/session_options.h"
#include "tablet/catalog/table_info.h"
#include "tablet/database.h"
#include "tablet/values/row_batch.h"
#include "vm/run/statistics.h"

namespace tessera {

class CopyClient;
class FileReader;

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
  /// The same of rows that are read where they are, and stay unchanged there: a temporary table that can only be read.
  Status RegisterFrame(const std::string& name, std::shared_ptr<TableInfo> frame);
  /// Takes back what one of the two has registered. Errors: there is no such table.
  Status Unregister(const std::string& name);
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
