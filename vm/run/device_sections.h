// The sections of one run that the device runs. Private to vm/.
//
// Start at: DeviceSections::Run. The thread of the run. REQUIRES, for everything: RunOptions::gpu is not nullptr.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "vm/run/placement.h"
#include "vm/run/row_stream.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

class DeviceSections {
 public:
  DeviceSections(RunState* state, const Placement* placement)
      : state_(*state), placement_(*placement), run_(state->options.gpu ? state->options.gpu->Begin() : nullptr) {}

  /// Whether the device runs the section: it was placed there, and if it reads rows of an earlier section, the device
  /// has them. If it has not, because they were few, the host runs the section, unless only the device has a join table
  /// that the section probes, or many rows to which those of the section are appended.
  bool Takes(int number) const;
  /// Whether the device has the rows of a section.
  bool Keeps(int number) const { return run_ != nullptr && run_->Keeps(number); }
  /// Copies the rows of a section to the host. REQUIRES: Keeps(number).
  Result<RowSet> Fetch(int number);
  void Drop(int number) {
    if (run_ != nullptr) run_->DropRows(number);
  }

  /// The table that the section scans, or this rank's portion of it. nullptr: it reads rows.
  const TableInfo* TableOf(int number);
  /// Runs the section over its table or rows. The device may keep what it makes, see DeviceRun::RunSection. REQUIRES, as
  /// Stream: Takes(number). Errors: as DeviceRun::RunSection.
  Result<RowSet> Run(int number, SectionStatistics* stats);
  /// The same, but the rows go to `stream`, in the device's order or that of ORDER BY.
  Status Stream(int number, RowStream* stream, SectionStatistics* stats);
  /// With other ranks, for groups with keys: as the functions of DeviceRun with these names.
  Result<uint64_t> FindGroups(int number, SectionStatistics* stats);
  Result<GroupOffer> OfferGroups() { return run_->OfferGroups(state_.options.exchange->ranks()); }
  Result<uint64_t> ExchangeGroups(const std::vector<GroupOffer>& offers) {
    return run_->ExchangeGroups(offers, state_.options.exchange);
  }
  /// `whole`: no other rank has groups with their keys, so that the device may keep them.
  Result<RowSet> TakeGroups(bool whole);
  /// Builds the join table of section `first` together with those of the following sections, see
  /// Placement::BuiltTogether. `built` gets the statistics of each. `ready`, errors: as of DeviceRun::BuildJoins.
  Status BuildJoins(int first, const Status& ready, std::vector<SectionStatistics>* built);
  /// As DeviceRun::ExchangeJoin, for the rows of section `number` and the join that they probe. `mine`: these rows, or none
  /// if the device keeps them, or an error.
  Result<bool> ExchangeJoin(int number, const Result<RowSet>& mine, SectionStatistics* stats);
  /// This rank's rows of a join table that waits to be exchanged.
  Result<RowSet> TakeJoin(int join);
  /// Gives the device the rows of a join table that were made elsewhere.
  Status PutJoin(const Section& s, const RowSet& rows);

 private:
  /// Gives the device the rows that the section reads, if they are on the host.
  Status PutSource(int number);
  /// Gives texts that were handed on their identifiers.
  Status Resolve(RowSet* rows) const;
  SectionContext ContextOf(int number, SectionStatistics* stats);
  /// Whether a join table is made of the rows of all ranks, which build it together.
  bool Gathers(const Section& s) const;
  /// SectionContext::keep_from of a section whose readers are on the device.
  uint64_t KeepFrom(int number) const;

  RunState& state_;
  const Placement& placement_;
  const std::unique_ptr<DeviceRun> run_;  // nullptr: everything runs on the host
  std::map<int, TableInfo> portions_;     // by section: the table with this rank's tablets
};

}  // namespace tessera::vm
