// The launch plan: what a launch over some tablets and join tables needs. Which columns go through the ring, where
// registers live, how groups are kept, which kernel runs it. Decided on the host; no CUDA here. Private to kernels/; any
// thread.
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
#include "vm/section_encoder.h"

namespace tessera::kernels {

/// What depends on the tablets of a launch, too.
struct LaunchPlan {
  Layout layout;
  struct OnDemand {
    uint32_t slot;
    double touched;  ///< fraction of its 32-byte sectors that are read, as estimated
  };
  std::vector<StagedSlot> staged;
  std::vector<OnDemand> on_demand;
  std::vector<uint32_t> stage_of_slot;         ///< per slot: offset in a stage, kNowhere
  std::vector<uint32_t> registers;             ///< per register: where it lies, see kInScratch
  std::vector<DeviceInstruction> code, folds;  ///< with register offsets and private arrays
  uint64_t scratch_bytes = 0;                  ///< per block
  uint32_t record_bytes = 0;
  bool record_staged = false;
  uint32_t private_groups = 0;
  bool direct = false;
  uint32_t direct_groups = 0;        ///< all there can be; in device memory if private_groups is 0
  Variant variant = Variant::kFull;  ///< the least instantiation that can run it
  std::vector<JoinRecord> joins;     ///< of the whole program, by number
  struct Probe {
    uint32_t join, slot;
  };
  uint32_t resume[kQueues] = {};  ///< as in Launch, as what follows
  std::vector<uint32_t> carried_from, carried_to[kQueues];
  std::vector<Probe> probes;  ///< with a slot as key, in the order of their ProbeRecords
  DirectKey direct_keys[kMaxDirectKeys];
  /// What is measured, by number of the mark: what lies behind the look-ups in a join table, or kBegin, kEnd: of the
  /// slice. Empty: nothing.
  static constexpr int kBegin = -1, kEnd = -2;
  std::vector<int> marks;
};
/// `joins` has an entry for each join table of the program, nullptr for those that are not on the device. `measure`:
/// with marks, if there are joins.
Result<LaunchPlan> PlanLaunch(const vm::Section& section, const LoweredProgram& lowered,
                              const std::vector<const vm::TabletEncoding*>& tablets,
                              const std::vector<const JoinShape*>& joins, const DeviceLimits& limits, bool measure);

/// A look-up in the code of a plan, in the order in which rows come to them.
struct ProbeStep {
  uint16_t join = 0;
  double live = 1;  ///< fraction of the source's rows that get there, as an estimate
};
std::vector<ProbeStep> ProbeSteps(const vm::Section& section, const LoweredProgram& lowered, const LaunchPlan& plan,
                                  const std::vector<const vm::TabletEncoding*>& tablets,
                                  const std::vector<const JoinShape*>& joins);

}  // namespace tessera::kernels
