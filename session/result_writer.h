// What a session tells of its statements: their results, how far they are, what they take and return, and where their time
// went.
//
// Start at: ResultWriter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/run/statistics.h"

namespace tessera {

class ThreadPool;

struct ExplainForm;
struct PlanNode;

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
/// Execute: Begin, Rows*, End, and after them Done where rows were changed; or only Done; or Text*, and after it Analyzed for EXPLAIN
/// (ANALYZE, PROGRAM); or Explained for EXPLAIN, and Text after it.
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

}  // namespace tessera
