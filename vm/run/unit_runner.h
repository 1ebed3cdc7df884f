// Workers that run the units of a scan. Private to vm/.
//
// Start at: RunUnits. Called by the thread of the run, one call at a time; it is one of the workers.
#pragma once

#include <deque>
#include <memory>

#include "vm/run/scan.h"

namespace tessera::vm {

/// Most units that run at a time where they are many: what they made is put together in between.
inline constexpr size_t kWindowUnits = 1 << 14;

/// Where the rows of one unit go, and how far it is.
struct UnitOutput {
  RowSet rows;
  std::unique_ptr<TileMachine> suspended;  ///< in the midst of a tile; nullptr: it is not
  uint32_t at = 0;                         ///< first row of that tile, from the first of the block
  bool done = false;

  /// Whether it has nothing to do before its rows are taken.
  bool MustWait() const { return done || (suspended != nullptr && rows.rows > 0); }
};

/// Units [begin, end) of a scan, and when to stop early.
struct UnitWindow {
  size_t begin = 0, end = 0;
  uint64_t wanted = UINT64_MAX;  ///< rows: enough when the first units have made them; UINT64_MAX: all
  size_t suspend_at = SIZE_MAX;  ///< rows of a unit, which then waits until they are taken; SIZE_MAX: it does not

  size_t size() const { return end - begin; }
  bool streams() const { return suspend_at != SIZE_MAX; }
};

/// Runs the window's units. kGroups: into scan->groups, and `outputs` is nullptr; otherwise into `outputs`, one entry
/// per unit. Those that are done, or are suspended and still have rows, stay as they are, and of a stream the last may
/// not run if the first have made very many rows. Errors: the earliest unit's; kCancelled; kResource.
Status RunUnits(RunState* state, Scan* scan, const UnitWindow& window, std::deque<UnitOutput>* outputs);

}  // namespace tessera::vm
