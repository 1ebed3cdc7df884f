// What a rank's portion of a section reads in rounds, in which all ranks take part: the rows of a source that ranks
// exchange by key, or a join table that comes in pieces. Private to vm/.
//
// Start at: SourceRounds. The thread of the run; all ranks make the same calls.
#pragma once

#include "base/status.h"
#include "vm/run/scan.h"

namespace tessera::vm {

class SourceRounds {
 public:
  virtual ~SourceRounds() = default;

  /// To be called before the section is prepared. Errors are those of this rank.
  virtual Status Begin() = 0;
  /// Puts what the next round brings in place of what the one before did. `last`: no other follows; the same on all ranks.
  /// An error is that of one of the ranks, and all have it.
  virtual Status Next(bool* last) = 0;
  /// In place of Next, if this rank has failed: so have all then. Returns the error that counts.
  virtual Status Fail(const Status& status) = 0;
  /// Makes the units of the round. Errors are those of this rank.
  virtual Status Cut(Scan* scan) = 0;
  /// Whether the section's source comes again in each round.
  virtual bool RepeatsSource() const = 0;
};

}  // namespace tessera::vm
