// Where the rows of a section go: groups, totals, rows of the result, or rows of a join table. What launches are told
// of it, what they send back, and room for more. kernels/README.md, Sinks. Private to kernels/.
//
// Start at: SectionSink::FillLaunch, MakeRoom. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/groups/totals.h"
#include "kernels/join/device_joins.h"
#include "kernels/launch/launch.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/small_copies.h"
#include "kernels/plan/lower.h"
#include "kernels/run/batch.h"
#include "kernels/run/build_rows.h"
#include "kernels/run/group_run.h"
#include "kernels/run/kept_results.h"
#include "kernels/run/row_output.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"

namespace tessera::kernels {

class SectionSink {
 public:
  SectionSink(GpuDevice* gpu, const vm::SectionContext& context, const LoweredProgram& lowered,
              const DeviceJoins& joins);

  /// Takes memory for the first groups, or rows of the result. REQUIRES: called first; the section builds no join
  /// table.
  Status Open();
  bool is_build() const { return section_.sink == vm::Section::Sink::kJoin; }
  bool has_groups() const { return section_.sink == vm::Section::Sink::kGroups && section_.keys > 0; }
  bool has_totals() const { return section_.sink == vm::Section::Sink::kGroups && section_.keys == 0; }
  /// Whether a LIMIT is reached: no more rows are needed.
  bool has_enough() const { return enough_reached_; }
  /// Bytes of the budget that columns must leave to rows that are ordered.
  uint64_t reserved_bytes() const { return row_output_.reserved_bytes(); }
  GroupRun& groups() { return groups_; }
  BuildRows& build() { return build_; }

  /// The counters of a launch before it starts.
  void FillControl(Control* control) const;
  /// Before a launch: what it needs room for beforehand.
  Status MakeReady(Batch* batch);
  /// What the launch has to know.
  Status FillLaunch(Launch* launch);
  /// After a launch: sends the counters to the host, and the results that come with them, to `results` there.
  /// `used_blocks`: on the device, how many blocks have a partial state; nullptr: all.
  Status StartSendBack(const Batch& batch, const SmallCopy& counters, const uint32_t* used_blocks, uint8_t* results);
  /// Takes over the counters of a launch that has ended. `partials`: [block][aggregate], if there are totals.
  Status TakeCounters(const Control& control, const Partial* partials, uint32_t blocks);
  /// Room for `wanted` more rows. REQUIRES: no launch is under way; there are no groups.
  Status MakeRoom(uint64_t wanted);

  /// Takes over the number of rows of a build that could not run full.
  void SetBuilt(uint64_t rows) { rows_used_ = rows; }
  /// Rows of a join table, as the counters left them: no more come.
  Status FinishBuild() { return build_.Finish(rows_used_); }
  /// See BuildRows::GiveBackUnused.
  Status GiveBackUnused() { return build_.GiveBackUnused(rows_used_); }
  /// Room for `rows` rows of a join table.
  Status AllocateBuild(uint64_t rows) { return build_.Allocate(rows, rows_used_); }
  /// No more comes. REQUIRES: before MoveTo and Rows; the section builds no join table.
  Status End();
  /// All that came, if it is much and there is room for it on the device. false: it is still here. REQUIRES, as Rows:
  /// the section builds no join table.
  tessera::Result<bool> MoveTo(DeviceRows* rows);
  /// All that came; for EXPLAIN ANALYZE, how.
  tessera::Result<vm::RowSet> Rows();

 private:
  /// For EXPLAIN ANALYZE: how the rows were ordered.
  void DescribeRows() const;
  /// Where rows go.
  Output output() const;

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const uint64_t state_bytes_;  ///< of the partial states of a block
  GroupRun groups_;
  Totals totals_;
  RowOutput row_output_;
  BuildRows build_;
  uint64_t rows_used_ = 0;        ///< of the output, or of the join table's rows on the device
  uint64_t enough_ = UINT64_MAX;  ///< rows after which the section may end
  bool enough_reached_ = false;
};

}  // namespace tessera::kernels
