// This rank's portion of a section that all ranks share: produces its rows in shipments of some units. Private to vm/.
//
// Start at: RankPortion. The thread of the run.
#pragma once

#include <memory>

#include "base/status.h"
#include "vm/ranks/source_rounds.h"
#include "vm/run/device_sections.h"
#include "vm/run/run_state.h"
#include "vm/run/scan.h"

namespace tessera::vm {

class RankPortion {
 public:
  /// `device`: nullptr if the section runs on the host. An error during preparation is returned only when rows are
  /// asked for, because the rank must take part in the exchange in any case.
  /// `ready`: an error that this rank has met before. `rounds`: what it reads in rounds, or nullptr.
  RankPortion(RunState* state, DeviceSections* device, const Status& ready, int number, SectionStatistics* stats,
              std::unique_ptr<SourceRounds> rounds);

  bool on_device() const { return device_ != nullptr; }
  /// Whether the rows are on the device: then a shipment has their number and no columns.
  bool is_kept() const { return on_device() && device_->Keeps(number_); }
  /// Brings such rows to the host.
  Status Fetch(Shipment* all);
  /// Whether what it reads comes in rounds, in which all ranks take part.
  bool in_rounds() const { return rounds_ != nullptr; }
  /// The next rows of the portion. Not to be called after an error or the last shipment. If in_rounds(): those of the
  /// next round, and so all ranks make as many calls.
  Result<Shipment> Next(size_t window);
  /// All rows of the portion. Stops the other ranks if there is an error.
  Result<Shipment> All();
  /// Finds the groups of the portion. REQUIRES, here and below: the section makes groups.
  Status FindGroups();
  /// How many were found, at most. REQUIRES, here and below: FindGroups succeeded.
  uint64_t groups() const;
  /// All of them in one table.
  Result<std::unique_ptr<GroupTable>> Groups();
  /// All of them as rows, made by all threads.
  Result<RowSet> GroupRows();
  /// What the other ranks must know before they go from device to device.
  Result<GroupOffer> OfferGroups() {
    if (!has_device_groups_) return GroupOffer{groups()};
    return device_->OfferGroups();
  }
  /// The same of groups that no other rank has; none if the device keeps them.
  Result<RowSet> OwnGroups();
  /// All ranks, if all can: the groups of this rank's keys, which the device may keep. `offers`: of all ranks.
  Result<RowSet> ExchangeGroups(const std::vector<GroupOffer>& offers);
  /// Adds what the host has scanned to the statistics.
  void AddStatistics();

 private:
  Result<Shipment> NextOfRound();
  Status GroupRounds();
  bool HasSource() const;
  Result<Shipment> NextOfDevice(size_t window);
  Result<Shipment> NextOfHost(size_t window);

  RunState& state_;
  DeviceSections* const device_;
  const int number_;
  const Section& section_;
  SectionStatistics* const stats_;
  Status status_;  ///< the error, if there are no rows
  Scan scan_;      ///< host
  const std::unique_ptr<SourceRounds> rounds_;
  uint64_t round_ = 0;  ///< the next one
  RowSet device_rows_;
  bool has_device_groups_ = false;  ///< the device has found groups, which are to be taken
  uint64_t device_groups_ = 0;
  size_t next_ = 0;    ///< unit, or row of device_rows_
  uint64_t made_ = 0;  ///< rows, by the host
};

}  // namespace tessera::vm
