// A section that all ranks share: this rank's portion of it, then what the ranks made, put together at the master (join
// tables: everywhere). mpi/PROTOCOL.md has the messages. Private to vm/.
//
// Start at: SharedSection::Run. The thread of the run. REQUIRES: there are ranks (RunOptions::exchange).
#pragma once

#include "base/status.h"
#include "vm/run/rank_portion.h"
#include "vm/run/row_stream.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

class SharedSection {
 public:
  /// `device`: nullptr if it runs on the host.
  SharedSection(RunState* state, DeviceSections* device, int number, SectionStatistics* stats);

  /// Rows of a result without order go to `consume` as they come. An error here is one of this rank; all have sent and
  /// received what the section asks for when it returns, and learn of the error when they agree the next time.
  Result<RowSet> Run(const RowConsumer& consume);

 private:
  Result<RowSet> MergeGroups();
  Result<RowSet> GatherJoin();
  Result<RowSet> GatherRows();
  Result<RowSet> GatherOrderedRows();
  /// All ranks' shipments, by rank, to the master. `all` stays empty on others, and if this rank has nothing to tell.
  Status GatherAtMaster(Result<Shipment> mine, std::vector<Shipment>* all);
  Result<RowSet> StreamOut();
  Result<RowSet> StreamIn(const RowConsumer& consume);
  /// OK for a rank that stopped because another one said so: it is that one which has something to tell.
  Status OwnError(const Status& status) const;

  RunState& state_;
  const Section& section_;
  const int number_;
  SectionStatistics* const stats_;
  Exchange& exchange_;
  RankPortion portion_;
};

}  // namespace tessera::vm
