// What ends a tile before its code does: an error, the user, a sink that is full. Private to vm/machine/.
//
// Start at: TileStops. One machine's; the flag may be set by any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/status.h"
#include "vm/meaning/lane_error.h"
#include "vm/meaning/meaning.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {

/// The first error of a tile's rows.
class TileError {
 public:
  bool any() const { return error_ != LaneError::kNone; }
  void Note(LaneError error) {
    if (error_ == LaneError::kNone) error_ = error;
  }
  /// One with a text of its own: it names the value, or the tablet.
  void Note(const Status& status) {
    if (error_ == LaneError::kNone) status_ = status;
    Note(LaneError::kBadText);
  }
  /// The error, of instruction `in`; there is none then. REQUIRES: any().
  Status Take(const Instruction& in) {
    Status error = status_.ok() ? LaneErrorStatus(error_, in) : status_;
    error_ = LaneError::kNone;
    status_ = Status::Ok();
    return error;
  }

 private:
  LaneError error_ = LaneError::kNone;
  Status status_;
};

/// Asked at backward jumps: the loops of nested-loop joins of large tables can take minutes.
struct TileStops {
  const std::atomic<bool>* cancel = nullptr;  ///< set: the tile ends with kCancelled
  std::function<bool()> stop;                 ///< true: likewise
  size_t suspend_at = SIZE_MAX;               ///< rows of the sink
  bool cancelled = false;
  bool suspended = false;  ///< the tile ends for now, and goes on from the next instruction

  /// `made`: the sink's rows so far, or nullptr.
  void Ask(const RowSet* made) {
    cancelled = cancel != nullptr && cancel->load(std::memory_order_relaxed);
    suspended = made != nullptr && made->rows >= suspend_at;
  }
  /// Whether the tile is to end now. `went_back`: by a jump.
  bool EndsTile(bool went_back) {
    if (!cancelled && !(went_back && stop && stop())) return false;
    cancelled = false;
    return true;
  }
};

}  // namespace tessera::vm
