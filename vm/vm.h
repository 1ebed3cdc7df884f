// The virtual machine: runs verified programs over tablets. The public header of vm/.
//
// The machine, per tile of rows: a selection mask (one bit a row), accumulator A (64 bits and a NULL bit a row),
// accumulator W (128 bits and a NULL bit a row), mask registers, registers, one cursor a row for each join table that
// was probed, one group ordinal a row. An instruction is decoded once per tile. A tile is applied wholly or not at all.
// opcodes.def lists the instructions, meaning.h says what they do to one row, OPCODES.md is the manual.
//
// The host interpreter is here; a GPU is another SectionBackend that runs the same sections.
//
// Start at: Executor::Run. An Executor runs one program at a time; cancel may be set from any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"
#include "vm/run/run_options.h"
#include "vm/run/statistics.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

class Executor {
 public:
  /// `threads` workers, at least 1, the calling thread among them.
  explicit Executor(int threads);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs a verified program. Tables are found in `snapshot` by their id. Errors: SQL errors of live rows (overflow,
  /// bad text ...), kCorrupt and kIo from tablets, kCancelled, kDevice.
  Status Run(const Program& program, const Snapshot& snapshot, const RunOptions& options, const RowConsumer& consume,
             RunStatistics* statistics);
  int threads() const;
  /// The workers. They are idle while the calling thread waits for other ranks.
  ThreadPool* pool();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::vm
