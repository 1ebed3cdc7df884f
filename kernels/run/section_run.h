// Running a section on the GPU: its tablets are fed to launches of the VM kernel, some of which are prepared while
// another one runs, and its sink is asked for what they made. kernels/README.md, Suspend and resume. Private to kernels/.
//
// Start at: SectionRun::AllTablets. The pieces, in the order in which a tablet meets them: join_passes.h,
// tablet_feed.h, launch_builder.h (with grid_launch.h), launcher.h (with block_turns.h, join_profile.h),
// section_sink.h.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "base/status.h"
#include "kernels/join/device_joins.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/plan/launch_plan.h"
#include "kernels/run/batch.h"
#include "kernels/run/grid_launch.h"
#include "kernels/run/join_passes.h"
#include "kernels/run/launch_builder.h"
#include "kernels/run/launcher.h"
#include "kernels/run/section_sink.h"
#include "kernels/run/tablet_feed.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// One section. REQUIRES: the device's mutex is held.
class SectionRun {
 public:
  /// `build`: the section's number among the builds that run together; -1 if it builds no join table.
  /// `rows`: what it reads, if that is no stored table.
  SectionRun(GpuDevice* gpu, const vm::SectionContext& context, DeviceJoins* joins, const RowSource* rows,
             int build = -1);
  ~SectionRun();
  SectionRun(const SectionRun&) = delete;
  SectionRun& operator=(const SectionRun&) = delete;

  /// Takes tablets over that are encoded already. REQUIRES: of the same section and table; called first; none of the join
  /// tables is in partitions.
  Status UseTablets(TabletsAhead ahead) { return feed_.UseTablets(std::move(ahead)); }
  /// All tablets of the table, launch by launch.
  Status AllTablets();
  /// What they made. REQUIRES: AllTablets; the sink is no join table.
  tessera::Result<vm::RowSet> Result();
  /// The same, before Result: leaves it on the device if SectionContext::keep_from says so and there is room.
  tessera::Result<bool> MoveTo(DeviceRows* rows);

  /// The groups, after AllTablets. REQUIRES: the section makes some, with keys.
  GroupRun& groups() { return sink_.groups(); }

  /// The rows of a join table: in one launch that this does not wait for, if all of them fit, else as AllTablets does.
  Status StartBuild();
  /// The launch of StartBuild is done and its counters are back.
  Status FinishBuild();
  /// REQUIRES: StartBuild; rows may still be on their way. After FinishBuild: all of them, here or on the host.
  BuildRows& build_rows() { return sink_.build(); }
  /// The first key's least and greatest value in the table that the rows come from; not known if it is no plain column.
  vm::KeyRange source_keys() const { return feed_.source_keys(); }
  /// Fills the statistics of single joins, if they were asked for. REQUIRES: the section's times are filled.
  void AddJoinStatistics() const { launcher_.profile().AddStatistics(context_); }
  /// On the device, the counters of the latest launch, which may be under way; nullptr: there was none.
  Control* launched() const { return launcher_.launched(); }

 private:
  /// Brings the partitions for a pass to the device, and begins with the first tablet.
  Status StartPass(uint64_t pass);
  /// Over all of the source, launch by launch.
  Status RunPass();
  ColumnBudget budget() const;
  /// See TabletFeed::Collect.
  tessera::Result<bool> Collect(TabletBatch* batch);
  /// Builds the launch of batches_[number].
  Status BuildLaunch(size_t number);
  /// Starts the first of the batches in flight, if its columns are there or on their way.
  Status StartFirst();
  /// The first of the batches in flight is done: what it read can go. REQUIRES: there is one.
  Status FinishFirst();
  Status FinishAll();
  /// How many rows may come where a row comes once for each of its matches: as many as the table has that gives them, if each
  /// of those matches one row, but not very many. 0: no more than there is room for anyway.
  uint64_t RowsWithMatches() const;
  /// Makes the rows of a join table one launch after the other, the first one over what was collected. `room`: for this
  /// many rows from the start, if there is that; 0: for some, and for more when they come.
  Status RunBuild(uint64_t room);

  GpuDevice& gpu_;
  const vm::SectionContext context_;
  DeviceJoins& joins_;
  const int build_;
  const vm::Section& section_;
  LoweredProgram lowered_;  ///< of this pass; the pieces below refer to it
  JoinPasses passes_;
  TabletFeed feed_;
  GridLaunch grid_;
  LaunchBuilder builder_;
  SectionSink sink_;
  Launcher launcher_;
  Batch batches_[kBatches];
  std::deque<Batch*> in_flight_;  ///< they wait for their copies; the first may be under way
  bool first_started_ = false;
  size_t launches_ = 0;
};

}  // namespace tessera::kernels
