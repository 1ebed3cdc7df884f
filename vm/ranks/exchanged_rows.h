// The rows of a section that ranks exchange by key, in rounds: the section that probes with them works on those of one
// round and drops them, so a rank never holds all that come to it. Private to vm/.
//
// Start at: ExchangedRows::Next, RoundsOf. The thread of the run; all ranks make the same calls.
#pragma once

#include <memory>

#include "base/status.h"
#include "vm/ranks/rank_portion.h"
#include "vm/ranks/source_rounds.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

class ExchangedRows {
 public:
  /// `device`: nullptr if the section runs on the host.
  ExchangedRows(RunState* state, DeviceSections* device, int number, SectionStatistics* stats);

  /// The rows of this rank's keys that the next round has brought. `last`: no round follows; the same on all ranks.
  /// An error is that of one of the ranks, and all have it.
  Result<RowSet> Next(bool* last);
  /// In place of Next, if this rank has failed: so have all then. Returns the error that counts.
  Status Fail(const Status& status);

 private:
  RunState& state_;
  const int number_;
  const Section& section_;
  SectionStatistics* const stats_;
  Exchange& exchange_;
  RankPortion portion_;
  bool made_all_ = false;  ///< by this rank
  uint64_t round_ = 0;     ///< the last one
};

/// What the section reads in rounds, or nullptr. `device`: nullptr if it runs on the host.
std::unique_ptr<SourceRounds> RoundsOf(RunState* state, const DeviceSections* device, int number);

}  // namespace tessera::vm
