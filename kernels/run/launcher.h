// Launches of a section: starts the VM kernel over a batch, waits, sees to what the launch asks for (a larger group
// table, room for rows) and launches the same grid again, until the batch is done. kernels/README.md, Suspend and resume.
// Private to kernels/.
//
// Start at: Launcher::Start, Finish. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/launch/launch.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/run/batch.h"
#include "kernels/run/grid_launch.h"
#include "kernels/run/join_profile.h"
#include "kernels/run/section_sink.h"
#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::kernels {

class Launcher {
 public:
  /// `build`: the number of the section among the builds that run together; -1 if it builds no join table.
  Launcher(GpuDevice* gpu, const vm::SectionContext& context, int build, SectionSink* sink, GridLaunch* grid);

  /// The first launch of a batch. REQUIRES: LaunchBuilder::Build; the batches before it are finished.
  Status Start(Batch* batch);
  /// Sees a started batch through to its end. `added_code`: instructions before the section's own in this pass.
  Status Finish(uint32_t added_code, Batch* batch);

  /// A build whose rows have a bound, so that nothing can run full: Start does not send or clear counters, which the
  /// caller does for all builds, and Finish is not called.
  void Defer() { deferred_ = true; }
  bool is_deferred() const { return deferred_; }
  /// Instead of Finish. REQUIRES: the launch has ended, and its counters are on the host.
  Status FinishDeferred(uint32_t added_code, Batch* batch);
  /// The counters of this section's launches on the host.
  Control* HostControl(const Batch& batch) const;

  /// On the device, the counters of the latest launch, which may be under way; nullptr: there was none.
  Control* launched() const { return launched_; }
  const JoinProfile& profile() const { return profile_; }

 private:
  Control* DeviceControl(const Batch& batch) const;
  /// Sets the counters before a launch, where they are sent from.
  void SetCounters(Batch* batch);
  /// Sends them alone.
  Status SendCounters(Batch* batch);
  /// From where the blocks stand.
  Status StartAgain(Batch* batch);
  /// The kernels, and the copies of what they made.
  Status StartLaunch(Batch* batch);
  Status StartKernel(Batch* batch);
  /// Waits for the launch and adds its time up.
  Status Wait();
  /// The error of the row that failed, if one did.
  Status RowError(const Control& control, uint32_t added_code) const;
  /// Room for what the launch has asked for.
  Status MakeRoom(const Control& control, Batch* batch);
  /// Room for more groups. The table may have been emptied for that; then as many blocks run at a time as it has room
  /// for the groups of a tile each.
  Status GrowGroups(Batch* batch);
  /// The batch is done: what it read can go.
  Status ReleaseInput(Batch* batch);

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const int build_;
  SectionSink& sink_;
  GridLaunch& grid_;
  JoinProfile profile_;
  Control* launched_ = nullptr;
  bool deferred_ = false;
};

}  // namespace tessera::kernels
