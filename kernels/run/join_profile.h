// What single joins of a section cost, for EXPLAIN ANALYZE: marks in the program count the rows that get there and the
// cycles that went by since the mark before. Private to kernels/.
//
// Start at: JoinProfile::ClearMarks, AddMarks. REQUIRES, of both: the device's mutex is held.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/launch/launch.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/plan/launch_plan.h"
#include "vm/run/device.h"

namespace tessera::kernels {

class JoinProfile {
 public:
  /// Before a launch: clears its marks, if the plan has some.
  Status ClearMarks(GpuDevice* gpu, const LaunchPlan& plan, Launch* launch);
  /// After it: adds them to the joins' rows and cycles.
  Status AddMarks(GpuDevice* gpu, const LaunchPlan& plan);
  /// Fills the statistics of single joins, if they were asked for. REQUIRES: the section's times are filled.
  void AddStatistics(const vm::SectionContext& context) const;

 private:
  RunBuffer marks_;                           ///< of the launch
  std::vector<std::pair<int, Mark>> joined_;  ///< by join table, in the order of their first launch
  uint64_t cycles_ = 0;                       ///< all that was measured
};

}  // namespace tessera::kernels
