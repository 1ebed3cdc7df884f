// Nested-loop joins that are run as a grid: cuts the work of a launch into units (a tile of the source and a range of
// rows of the join table), leaves out those that cannot hold a match, and under dp divides them into buckets whose
// grids the device launches. join/README.md, Nested-loop joins. Private to kernels/.
//
// Start at: GridLaunch::CutUnits. One launch at a time uses it. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/join/device_joins.h"
#include "kernels/launch/dp_kernel.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/plan/launch_plan.h"
#include "kernels/rows/row_source.h"
#include "kernels/run/batch.h"
#include "vm/run/device.h"

namespace tessera::kernels {

class GridLaunch {
 public:
  /// `rows`: the source, if that is no stored table.
  GridLaunch(GpuDevice* gpu, const vm::SectionContext& context, const LoweredProgram& lowered, const DeviceJoins& joins,
             const RowSource* rows);

  /// Whether the section has such a join.
  bool is_needed() const { return lowered_.joins.grid >= 0; }
  /// Whether the join is to be launched from the device, as the program says.
  bool WantsDp() const;

  /// Forgets the last batch, and cuts this one's tiles and the join table into units. Sets what the launch has to know,
  /// and batch->blocks under dp. REQUIRES: batch->plan, and batch->blocks as the device can run at a time; nothing that
  /// uses this is under way.
  Status CutUnits(uint32_t tiles, Batch* batch);

  /// Under dp, starts the generations of buckets from where they are. REQUIRES: CutUnits.
  Status StartGenerations(const Launch& launch);
  /// After a launch: brings to the host what the device has found, if it searched.
  Status FetchReport();
  /// Tiles, or units that were found, of the launch. REQUIRES: it has ended.
  uint32_t Tiles(const Launch& launch) const;
  /// Under dp, how far the buckets are. REQUIRES: the launch has ended.
  BucketProgress progress() const { return report().progress; }
  bool HasBucketsLeft() const { return progress().first < buckets_.buckets; }
  /// Where the device counts the blocks of all child grids. REQUIRES: dp.
  const uint32_t* child_block_count() const { return &buckets_.progress->blocks; }
  /// Adds what the search has found to the section's statistics. REQUIRES: the batch is done.
  void AddStatistics();

 private:
  /// What the device reports of its search and of its buckets.
  struct Report {
    UnitTotals totals = {};
    BucketProgress progress = {};
  };
  const Report& report() const { return *gpu_.buffers.host_grid_report.As<Report>(); }
  /// Lists the units that can hold a match, as the ranges of the columns on both sides say.
  Status FindUnits(Batch* batch);
  /// Finds the ranges of both sides for the search.
  Status FindRanges(uint32_t range_rows, UnitSearch* search);
  /// Takes memory for the list of units and starts the search.
  Status ListUnits(UnitSearch* search, Launch* launch);
  /// Divides the units into buckets.
  Status CutBuckets(const UnitSearch& search, Batch* batch);

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const LoweredProgram& lowered_;
  const DeviceJoins& joins_;
  const RowSource* const rows_;  ///< nullptr: the source is a stored table
  RunBuffer steps_, ranges_, units_, report_, grids_;
  BucketLaunch buckets_;      ///< dp
  bool finds_units_ = false;  ///< the device searches for the units
};

}  // namespace tessera::kernels
