// Which tablets a writer writes anew beside its change, because many of their rows have been deleted, or because they are
// small and stand beside others that are.
//
// A commit does no more of it than it writes anyway, or than a small bound, so a small one stays fast. What rows cost over
// time: a tablet is written anew for its deleted rows once an eighth of them were, seven rows for one that was deleted; and
// small ones are written together where none has more than half of the rows, so a row lies in a tablet of twice the size
// then, and is written anew as often as the size can double.
//
// Start at: RangesToCompact. A pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// A tablet of a table that is being changed.
struct TabletFill {
  uint32_t rows = 0;
  uint32_t live = 0;          ///< with this change; 0: it does not stay
  uint32_t dead_earlier = 0;  ///< before this change: what a DELETE leaves is the work of commits after it
};

/// Adjacent tablets whose live rows become new ones in their place.
struct TabletRange {
  size_t begin = 0, end = 0;
  bool operator==(const TabletRange&) const = default;
};

/// In order, without overlap. `tablet_rows`: of a full tablet. `rows_written`: by the change itself. `merges`: whether tablets
/// may be written together.
std::vector<TabletRange> RangesToCompact(std::span<const TabletFill> tablets, uint32_t tablet_rows,
                                         uint64_t rows_written, bool merges);

}  // namespace tessera
