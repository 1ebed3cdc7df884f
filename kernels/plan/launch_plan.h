// The launch plan: what a launch over some tablets and join tables needs. It decides which columns go through the ring,
// where registers are, how groups are kept and which kernel runs. Made on the host; no CUDA here. Private to kernels/;
// any thread.
//
// Start at: PlanLaunch, LaunchPlan.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/launch/launch.h"
#include "kernels/memory/device_limits.h"
#include "kernels/plan/join_shape.h"
#include "kernels/plan/lower.h"
#include "vm/encode/section_encoder.h"

namespace tessera::kernels {

/// How the columns are read.
struct PlannedColumns {
  struct OnDemand {
    uint32_t slot;
    double touched;  ///< estimated fraction of its 32-byte sectors that are read
  };
  std::vector<StagedSlot> staged;  ///< through the ring
  std::vector<OnDemand> on_demand;
  std::vector<uint32_t> prefetched;  ///< slots; as in LaunchInput
  std::vector<uint32_t> stage_of_slot;  ///< per slot: offset in a stage, kNowhere
};

/// The record of a tablet.
struct PlannedRecord {
  struct Probe {
    uint32_t join, slot;
  };
  uint32_t bytes = 0;
  bool staged = false;
  std::vector<Probe> probes;  ///< with a slot as key, in the order of their ProbeRecords
};

/// Groups in shared memory, and those that their keys number.
struct PlannedGroups {
  uint32_t private_groups = 0;
  bool direct = false;
  uint32_t domain = 0;  ///< direct: size of the keys' domain; the groups are in device memory if private_groups is 0
  DirectKey keys[kMaxDirectKeys];
};

/// Rows that wait.
struct PlannedQueues {
  uint32_t spare = 0;             ///< as in Launch, about
  uint32_t entries = 0;           ///< as in LaunchQueues; so are the next three
  uint32_t resume[kQueues] = {};
  std::vector<uint32_t> carried_from, carried_to[kQueues];
};

/// Everything that depends on the tablets and join tables of a launch.
struct LaunchPlan {
  Variant variant = Variant::kFull;  ///< the least instantiation that can run it
  Layout layout;
  std::vector<DeviceInstruction> code, folds;  ///< with register offsets and private arrays
  std::vector<uint32_t> registers;             ///< per register: where it is, see kInScratch
  uint64_t scratch_bytes = 0;                  ///< per block
  PlannedColumns columns;
  PlannedRecord record;
  PlannedGroups groups;
  PlannedQueues queues;
  std::vector<JoinRecord> joins;  ///< of the whole program, by number
  std::vector<int> marks;         ///< what each mark measures, see AddMarks; empty: nothing is measured
};
/// `joins` has an entry for each join table of the program, nullptr if it is not on the device. `measure`: add marks,
/// if there are joins.
Result<LaunchPlan> PlanLaunch(const vm::Section& section, const LoweredProgram& lowered,
                              const std::vector<const vm::TabletEncoding*>& tablets,
                              const std::vector<const JoinShape*>& joins, const DeviceLimits& limits, bool measure);

/// Whether rows of queues alone read a slot, and nothing of it but values: then its codes may be streams of bits.
bool MayBeBits(const vm::Section& section, const LaunchPlan& plan, uint32_t slot);

/// A probe in the code of a plan.
struct ProbeStep {
  uint16_t join = 0;
  double live = 1;  ///< estimated fraction of the source's rows that get there
};
/// The probes, in the order in which rows come to them.
std::vector<ProbeStep> ProbeSteps(const vm::Section& section, const LoweredProgram& lowered, const LaunchPlan& plan,
                                  const std::vector<const vm::TabletEncoding*>& tablets,
                                  const std::vector<const JoinShape*>& joins);

}  // namespace tessera::kernels
