// Where each section of a program runs: on the host or on the device. Private to vm/.
//
// Start at: Placement::Choose. The thread of the run.
#pragma once

#include <vector>

#include "base/status.h"
#include "vm/run/run_state.h"

namespace tessera::vm {

class Placement {
 public:
  explicit Placement(const RunState& state) : state_(state), on_device_(state.program.sections.size()) {}

  /// Decides for all sections. All ranks come to the same answer. Errors: a section cannot run where it must.
  Status Choose();
  bool OnDevice(int section) const { return on_device_[static_cast<size_t>(section)]; }
  /// Whether a section there probes the join table or scans it.
  bool IsUsedOnDevice(int join) const;
  bool IsUsedOnHost(int join) const;
  /// The sections from `first` on, which builds a join table on the device, that can be built together with it because
  /// they need none of each other's tables: the fewer steps, the less often the host waits. `next`: the section behind
  /// them.
  std::vector<int> BuiltTogether(int first, size_t* next) const;

  /// The device cannot do what was asked, for the reason given: the host does the rest of the program, unless the user
  /// asked for the device. Errors: `why`, or why the host cannot either.
  Status FallBackToHost(const Status& why);

 private:
  Status Place();
  Status PlaceSection(size_t number, bool all_have_device);
  /// Whether values of TEXT columns with very many different entries are read.
  bool ReadsLargeDictionaries(const Section& s) const;
  bool ProbesBy(const Section& s, JoinStrategy strategy) const;

  const RunState& state_;
  std::vector<bool> on_device_;  ///< by section
};

}  // namespace tessera::vm
