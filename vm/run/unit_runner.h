// Workers that run the units of a scan. Private to vm/.
//
// Start at: RunUnits. Called by the thread of the run, one call at a time; it is one of the workers.
#pragma once

#include <deque>
#include <memory>

#include "vm/run/scan.h"

namespace tessera::vm {

class RowMarks;

/// If there are many units, at most this many run at a time; in between their rows are put together.
inline constexpr size_t kWindowUnits = 1 << 14;

/// The rows of one unit, and its progress.
struct UnitOutput {
  RowSet rows;
  std::unique_ptr<TileMachine> suspended;  ///< nullptr unless stopped in a tile
  uint32_t at = 0;                         ///< first row of that tile, from the first of the block
  bool done = false;

  /// Whether the unit is done, or cannot go on before its rows are taken.
  bool MustWait() const { return done || (suspended != nullptr && rows.rows > 0); }
};

/// Units [begin, end) of a scan, and the conditions to stop early.
struct UnitWindow {
  size_t begin = 0, end = 0;
  uint64_t wanted = UINT64_MAX;  ///< rows that the first units have to make; UINT64_MAX: all
  size_t suspend_at = SIZE_MAX;  ///< a unit waits when it has this many rows; SIZE_MAX: never
  RowMarks* marks =
      nullptr;  ///< takes the rows of a stream from each tile, so that no unit has any; nullptr: they are kept

  size_t size() const { return end - begin; }
  bool streams() const { return suspend_at != SIZE_MAX; }
};

/// Runs the window's units. kGroups: into scan->groups, and `outputs` is nullptr; otherwise into `outputs`, one entry
/// per unit. Units that are done, or are suspended and still have rows, stay as they are. The last units of a stream
/// may not run if the first have made very many rows. Errors: the earliest unit's; kCancelled; kResource.
Status RunUnits(RunState* state, Scan* scan, const UnitWindow& window, std::deque<UnitOutput>* outputs);

}  // namespace tessera::vm
