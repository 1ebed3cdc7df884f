// A join table without keys that has no room on every rank: each rank keeps the rows that it has made. As the source of
// a section they are its portion; as a build side they come to all ranks in pieces, and each rank joins every piece with
// its own portion of the source, so that none holds more than a piece beside its share. Private to vm/.
//
// Start at: StaysInShares, BuildPieces. The thread of the run; all ranks make the same calls.
#pragma once

#include <memory>

#include "base/status.h"
#include "vm/ranks/source_rounds.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

/// Decides, when all rows of a join table are made, whether the ranks keep their shares; the same on all ranks.
bool StaysInShares(RunState* state, int join);

class BuildPieces : public SourceRounds {
 public:
  /// Of the build side that the section takes in pieces; nullptr if there is none.
  static std::unique_ptr<BuildPieces> Of(RunState* state, int number);

  /// Makes the join table, with no row. Errors are those of this rank.
  Status Begin() override { return PutPiece({}); }
  /// Puts the next piece in place of the one before.
  Status Next(bool* last) override;
  Status Fail(const Status& status) override;
  Status Cut(Scan* scan) override;
  bool RepeatsSource() const override { return true; }

 private:
  BuildPieces(RunState* state, int join) : state_(*state), join_(join), share_(state->joins.Take(join)) {}
  Status PutPiece(std::vector<Shipment> shipments);

  RunState& state_;
  const int join_;
  const RowSet share_;
  size_t next_ = 0;  ///< row of the share
};

}  // namespace tessera::vm
