// Rows on their way to the consumer of a run's result. Private to vm/.
//
// Start at: RowStream::Add, Flush. The thread of the run.
#pragma once

#include "base/status.h"
#include "vm/rows/row_set.h"
#include "vm/run/run_options.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

/// Rows in a batch for the consumer, if they have few columns.
inline constexpr size_t kBatchRows = 1 << 14;

/// Passes the rows within a section's OFFSET and LIMIT to the consumer, in batches.
class RowStream {
 public:
  /// All arguments must outlive it.
  RowStream(const RunState& state, const Section& s, const RowConsumer& consume);

  /// The next rows of the section: [first, first + count) of `rows`. Errors: the consumer's; kCancelled.
  Status Add(const RowSet& rows, size_t first, uint64_t count);
  /// Passes on the rest of the last batch. Errors: as Add.
  Status Flush();

  /// `count` rows have gone to RunOptions::marks without it.
  void Count(uint64_t count) { streamed_ += count; }

  /// `count` rows of the section come no more, because its OFFSET leaves them out. REQUIRES: count <= skip().
  void Skip(uint64_t count) { skip_ -= count; }

  /// How many of the section's next rows its OFFSET leaves out.
  uint64_t skip() const { return skip_; }
  bool full() const { return left_ == 0; }
  /// How many more rows of the section are needed, OFFSET included; UINT64_MAX: all.
  uint64_t wanted() const { return left_ > UINT64_MAX - skip_ ? UINT64_MAX : left_ + skip_; }
  uint64_t streamed() const { return streamed_; }
  /// Time that the consumer took.
  double milliseconds() const { return milliseconds_; }

 private:
  Status Forward(const RowSet& rows, size_t first, size_t count);

  const RunState& state_;
  const Section& section_;
  const RowConsumer& consume_;
  const size_t batch_rows_;
  uint64_t skip_, left_;
  uint64_t streamed_ = 0;
  double milliseconds_ = 0;
  RowSet batch_;
};

}  // namespace tessera::vm
