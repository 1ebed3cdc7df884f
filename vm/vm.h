// The virtual machine: runs verified programs over tablets. The public header of vm/.
//
// The machine, per tile of rows: a selection mask (one bit a row), accumulator A (64 bits and a NULL bit a row), accumulator
// W (128 bits and a NULL bit a row), mask registers, registers, one cursor a row for each join table that was probed, one
// group ordinal a row. An instruction is decoded once per tile. A tile is applied wholly or not at all. opcodes.def lists the
// instructions, meaning.h says what they do to one row, OPCODES.md is the manual made from both.
//
// The host interpreter is here; a GPU is another SectionBackend that runs the same sections.
//
// Start at: Executor::Run. An Executor runs one program at a time; cancel may be set from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/tablet.h"
#include "vm/program.h"
#include "vm/string_pool.h"

namespace tessera::vm {

/// Rows in the machine's form: what a section made. Text is identifiers of the query's pool.
struct RowColumn {
  SqlType type;
  std::vector<int64_t> low;   ///< the value, the double's bits, the identifier; kWide: the low half
  std::vector<int64_t> high;  ///< kWide: the high half; else empty
  std::vector<uint8_t> null;  ///< 1 for NULL, one byte a row; empty if no row is NULL
};
struct RowSet {
  size_t rows = 0;
  std::vector<RowColumn> columns;
};

/// What one section did.
struct SectionStatistics {
  std::string label;
  bool on_gpu = false;
  uint64_t rows_in = 0, rows_out = 0;
  uint64_t tablets = 0, tablets_skipped = 0;  ///< skipped: a predicate was bound to none
  uint64_t bytes_read = 0;                    ///< encoded bytes of the bound columns of tablets that were not skipped
  uint64_t bytes_transferred = 0;             ///< to the GPU in this run
  double milliseconds = 0;                    ///< wall time
  double kernel_milliseconds = 0;             ///< GPU: sum over its kernels
};

struct RunStatistics {
  std::vector<SectionStatistics> sections;
};

/// What a section needs besides the program.
struct SectionContext {
  const Program* program = nullptr;
  int section = 0;
  const TableInfo* table = nullptr;  ///< the stored table that it scans
  StringPool* strings = nullptr;
  const std::atomic<bool>* cancel = nullptr;  ///< may be nullptr
  SectionStatistics* statistics = nullptr;
};

/// A device that runs sections over stored tables.
class SectionBackend {
 public:
  virtual ~SectionBackend() = default;
  /// OK, or kUnsupported with the reason why this section cannot run here.
  virtual Status CanRun(const Program& program, int section) const = 0;
  /// Runs a section with sink kRows or kGroups. Rows of kRows come in any order of tiles but complete; order, limit and offset are
  /// applied by the caller. kGroups: `columns` are the keys, then the aggregates' final values (SUM, MIN, MAX without a value: NULL).
  /// Without keys there is exactly one group.
  virtual Result<RowSet> RunSection(const SectionContext& context) = 0;
};

struct RunOptions {
  SectionBackend* gpu = nullptr;               ///< nullptr: everything on the host
  bool gpu_required = false;                   ///< a section over a stored table that the GPU cannot run is an error
  const std::atomic<bool>* cancel = nullptr;   ///< set by another thread; the run ends with kCancelled within some milliseconds
  std::function<void(double)> progress;        ///< fraction done, 0..1, from any thread; may be empty
};

/// Takes result rows, batch by batch, in order. An error ends the run and is returned by it.
using RowConsumer = std::function<Status(RowBatch&&)>;

class Executor {
 public:
  /// `threads` workers, at least 1, the calling thread among them.
  explicit Executor(int threads);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs a verified program. Tables are found in `snapshot` by their id. Errors: SQL errors of live rows (overflow, bad
  /// text ...), kCorrupt and kIo from tablets, kCancelled, kDevice.
  Status Run(const Program& program, const Snapshot& snapshot, const RunOptions& options, const RowConsumer& consume,
             RunStatistics* statistics);
  int threads() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::vm
