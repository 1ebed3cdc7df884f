// Writes a large file made of blocks: several threads make blocks at the same time, one writes them in order. The bytes
// do not depend on the number of threads, and memory is bounded by two blocks for each thread.
//
// The file appears under its name only when it is complete: until then it is NAME.<process>.partial in the same
// directory, which is removed if anything fails. A name that exists and is no regular file (a pipe, /dev/stdout) is
// written to directly.
//
// Start at: WriteInOrder(), CatchInterrupts().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/status.h"
#include "data_gen/row_buffer.h"

namespace tessera {

/// A file and how its blocks are made.
struct OrderedFile {
  std::string path;
  std::string header;   ///< written before the first block; empty if none
  uint64_t blocks = 0;  ///< 0 gives a file that holds only the header
  /// Appends block number `block` to `rows` and returns how many rows that were. Called from several threads at once,
  /// for every block exactly once unless the writing fails; must not depend on the order of the calls. May throw
  /// bad_alloc.
  std::function<uint64_t(uint64_t block, RowBuffer& rows)> make_block;
};

/// What was written.
struct WrittenFile {
  uint64_t rows = 0;
  uint64_t bytes = 0;
};

/// Writes `file` with `jobs` (at least 1) threads that make blocks, and this one that writes. Advances `progress` by
/// the rows written. Fails with kIo (message: which file, what the system says), kResource (memory or threads), or
/// kCancelled after a signal that CatchInterrupts() catches. Nothing is synchronised to the disk: a generated file that
/// a power failure damages can be generated again.
Result<WrittenFile> WriteInOrder(const OrderedFile& file, unsigned jobs, ProgressBar& progress);

/// Lets SIGINT, SIGTERM and SIGHUP end WriteInOrder() with kCancelled, so that it removes its unfinished file, and a
/// file size limit end it with kIo; a second signal ends the process at once. Call it once, from main().
void CatchInterrupts();

/// The signal that came, 0 if none did.
int CaughtSignal();

}  // namespace tessera
