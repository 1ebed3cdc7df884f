// A section that all ranks share: each runs its portion, then the results are put together at the master (join tables:
// on every rank), or stay distributed, exchanged by key where one rank must have all rows with equal values. The messages are in mpi/PROTOCOL.md. Private to vm/.
//
// Start at: SharedSection::Run. The thread of the run. REQUIRES: there are ranks (RunOptions::exchange).
#pragma once

#include <optional>

#include "base/status.h"
#include "vm/ranks/rank_portion.h"
#include "vm/run/row_stream.h"
#include "vm/run/run_options.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

class SharedSection {
 public:
  /// `device`: nullptr if it runs on the host. `ready`: an error that this rank has met before. `on_devices`: it was
  /// placed on the devices of all ranks, although some may have too few rows. `exchanger`: the device, if devices exchange
  /// its rows (Placement::IsExchangedByDevices); else nullptr.
  SharedSection(RunState* state, DeviceSections* device, const Status& ready, bool on_devices,
                DeviceSections* exchanger, int number, SectionStatistics* stats);

  /// Rows of a result without order go to `consume` as they come. Errors are those of this rank only. Even then all
  /// messages of the section have been sent and received; the other ranks learn of the error at the next Agree.
  Result<RowSet> Run(const RowConsumer& consume);

 private:
  /// Whether the ranks keep what they have made, `rows` of this rank's among them; the same on all ranks. `mine`: an
  /// error of this rank, which is that of all unless its rows cannot stay.
  Result<bool> StaysDistributed(const Status& mine, uint64_t rows);
  bool MayStayDistributed() const { return state_.may_stay_distributed[static_cast<size_t>(number_)]; }
  /// The same once it is known how many rows all ranks have made.
  bool NoteStays(uint64_t rows_of_all);
  Result<RowSet> MergeGroups();
  Result<RowSet> KeepOwnGroups();
  /// Groups of all ranks' devices.
  Result<RowSet> MergeDeviceGroups(Status status);
  Result<RowSet> ExchangeGroups();
  /// Merges groups up a binary tree; they end at the master.
  Result<RowSet> MergeUpTree(Status status);
  Result<RowSet> MergePartialGroups(RowSet partial);
  /// Every rank gets the rows of its keys.
  Result<RowSet> KeepExchangedRows();
  /// The same, from device to device.
  Result<RowSet> KeepRowsOfDevices();
  Result<RowSet> KeepOwnRows();
  Result<RowSet> GatherJoin();
  Result<RowSet> GatherRows();
  Result<RowSet> GatherOrderedRows();
  /// Every rank gets all rows with equal keys, in the section's order.
  Result<RowSet> ExchangeOrderedRows(Result<Shipment> mine, const Section& with_unit);
  /// Sends all ranks' shipments to the master. `all`, by rank, stays empty on other ranks, and if any rank failed.
  Status GatherAtMaster(Result<Shipment> mine, const std::vector<SqlType>& types, std::vector<Shipment>* all);
  Result<RowSet> StreamOut();
  Result<RowSet> StreamIn(const RowConsumer& consume);
  RowSet NoRows() const;
  /// OK for a rank that stopped because another rank told it to: that one reports the error.
  Status OwnError(const Status& status) const;

  RunState& state_;
  const Section& section_;
  const int number_;
  SectionStatistics* const stats_;
  Exchange& exchange_;
  DeviceSections* const portion_device_;
  const bool on_devices_;
  DeviceSections* const exchanger_;
  std::optional<RankPortion> portion_;  ///< unless its rows are exchanged in rounds
};

}  // namespace tessera::vm
