// Where each section of a program runs: on the host or on the device. Private to vm/.
//
// Start at: Placement::Choose. The thread of the run.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

class Placement {
 public:
  explicit Placement(const RunState& state);

  /// Decides for all sections. All ranks get the same result. Errors: a section cannot run where it must.
  Status Choose();
  bool OnDevice(int section) const { return on_device_[static_cast<size_t>(section)]; }
  /// Whether the section is on the devices of all ranks; the same on all ranks.
  bool OnAllDevices(int section) const { return all_have_device_ && OnDevice(section); }
  /// Whether a section placed there probes the join table or scans it.
  bool IsUsedOnDevice(int join) const;
  bool IsUsedOnHost(int join) const;
  /// Whether the device adds the columns of the section's windows. (With other ranks the master does, from all their rows.)
  bool AddsWindows(int section) const;
  /// Whether the rows of a section that the device runs are read there, by all sections that read them.
  bool AreReadOnDevice(int section) const;
  /// Whether the section's rows and the table of the join that they probe are exchanged by the devices of all ranks. The
  /// same on all ranks.
  bool IsExchangedByDevices(int section) const;
  /// `first` builds a join table on the device. Returns it and the following sections that can build theirs at the same
  /// time, because none needs another's table. Fewer steps make the host wait less often. `next`: the section after
  /// them.
  std::vector<int> BuiltTogether(int first, size_t* next) const;

  /// Called when the device cannot run a section, for the reason `why`. The host runs the rest of the program, unless
  /// the user required the device. Errors: `why`, or the reason why the host cannot run it either.
  Status FallBackToHost(const Status& why);

 private:
  Status Place();
  Status PlaceSection(size_t number);
  /// Whether devices can exchange both sides of the join, if the sections that make and read them are there.
  bool CanExchange(int join) const;
  /// Whether the section needs a table of a join that is exchanged, which is not built on the device.
  bool MissesExchanged(size_t number) const;
  /// Whether the section's rows, which the device makes, can stay there.
  bool MayStay(int section) const;
  /// Keeps the sections on the host that read rows or exchanged join tables which the device will not have. true: there were
  /// some.
  bool BarReaders();
  /// Whether the section reads values of TEXT columns that have very many different entries.
  bool ReadsLargeDictionaries(size_t number) const;
  bool RunsAgain(size_t number) const;
  /// Whether the section probes the join table or scans it.
  bool Uses(size_t number, int join) const;
  /// The strategy of a join that the section probes in a way for that place alone.
  std::optional<JoinStrategy> ProbesAt(JoinPlace place, size_t number) const;

  const RunState& state_;
  bool all_have_device_ = false;
  std::vector<bool> on_device_;              ///< by section
  std::vector<bool> barred_;                 ///< by section: it reads rows that the device will not have
  std::vector<std::vector<int>> followers_;  ///< by section: those that read its rows, come after them or replace them
};

}  // namespace tessera::vm
