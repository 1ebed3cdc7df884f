// Builds the launch of a batch: plans it, decides how many blocks run, and puts everything that the kernel reads
// besides columns and join tables (code, tablet records, maps, sets, cursors) into one arena, which travels in one
// copy. Private to kernels/.
//
// Start at: LaunchBuilder::Build. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/join/device_joins.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/plan/launch_plan.h"
#include "kernels/run/batch.h"
#include "kernels/run/grid_launch.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::kernels {

class LaunchBuilder {
 public:
  LaunchBuilder(GpuDevice* gpu, const vm::SectionContext& context, const LoweredProgram& lowered,
                const DeviceJoins& joins, const vm::SectionEncoder& encoder, GridLaunch* grid);

  /// Whether the rows of a launch may be partitioned for their probes, as far as the section says: then launches leave
  /// room for that. (Where a LIMIT ends the section most rows may not be probed at all.)
  bool MayPartition() const;
  /// Whether the section's launches may be cut anywhere, as far as the tablets of the first one say.
  bool MayCut(const std::vector<vm::TabletEncoding>& tablets) const;
  /// What the launch of such tablets reads here and there; empty: nothing.
  std::vector<SparseSlot> SparseSlots(const vm::TabletEncoding& tablet) const;
  /// Plans the launch and fills `arena`. `most_groups`: numbers of groups that there is room for. Other batches may be in
  /// flight, unless the section has a grid join. REQUIRES: no copy from the arena is under way.
  /// false: it cannot read codes where they are packed, as a batch of one tablet could; nothing has been done yet.
  tessera::Result<bool> Build(uint64_t most_groups, Arena* arena, Batch* batch);

 private:
  struct Offsets;

  /// Sets the plan, the partition of the tablets if that is faster, the number of tiles and of blocks.
  Status PlanBatch(uint64_t most_groups, Batch* batch);
  /// Puts the tablets together as one whose rows are in the order of a join table's slots, if that is faster.
  /// `tablets`: the batch's own.
  Status PartitionRows(const std::vector<const vm::TabletEncoding*>& tablets, Batch* batch);
  /// Takes a place in the arena for all that it is to hold.
  Offsets LayOutArena(Arena* arena, const Batch& batch) const;
  void FillArena(const Offsets& at, Batch* batch) const;
  bool CanReadBits(const Batch& batch) const;
  void FillRecords(const Offsets& at, Batch* batch) const;
  /// Memory for the sets of predicates that are decided from texts on the device.
  Status AllocateTextSets(Batch* batch) const;
  void FillTextFilter(const Offsets& at, Batch* batch) const;
  void FillLaunch(const Offsets& at, Batch* batch) const;
  void FillColumns(const Offsets& at, Batch* batch) const;
  void AddStatistics(const Batch& batch) const;

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const LoweredProgram& lowered_;
  const DeviceJoins& joins_;
  const vm::SectionEncoder& encoder_;
  GridLaunch& grid_;
  int per_multiprocessor_ = 0;  ///< blocks of the latest launch
};

}  // namespace tessera::kernels
