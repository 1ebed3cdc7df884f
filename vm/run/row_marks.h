// Which rows of a table a program finds, where nothing else is asked of them.
//
// Start at: RowMarks.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace tessera::vm {

/// Takes the result of a program whose only column numbers rows (NumberRows of live_tablet.h), instead of a RowConsumer.
/// A row may come more than once, in any order. An error ends the run and is returned by it. The thread of the run, but for
/// TakeShare.
class RowMarks {
 public:
  virtual ~RowMarks() = default;
  /// All numbers are less.
  virtual int64_t end() const = 0;
  virtual Status Take(std::span<const int64_t> numbers) = 0;
  /// The same by any thread of the run, several at a time: the host's threads hand over the rows of a tile as they find them.
  virtual Status TakeShare(std::span<const int64_t> numbers) = 0;
  /// Bit i of the words: whether row `first` + i is one. `first` is that of a tablet.
  virtual Status TakeBits(int64_t first, std::span<const uint64_t> words) = 0;
};

}  // namespace tessera::vm
