// The join tables of one run of a program, on the device. Private to kernels/. README.md beside this file describes
// them.
//
// A table is built in two steps: the VM kernel emits its rows (keys, then payload), which is run/'s part, then a kernel
// puts each row into its slot. Between them the host learns how many rows there are and which ranges their columns
// have, for all tables that are built together at once. That decides how they are laid out, and later the order of
// probes and the numbering of groups.
//
// Start at: DeviceJoins::LayOut, FillTables. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/join/join_kernels.h"
#include "kernels/join/join_partitions.h"
#include "kernels/join/table_layout.h"
#include "kernels/launch/unit_search.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/plan/join_shape.h"
#include "kernels/rows/device_rows.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// Whether rows of a join table can wait on the host and be joined partition by partition. Those of a grid join, or in
/// order, cannot.
bool CanPart(const vm::Program& program, int join);
/// This many rows of a join table, cut into pieces whose ranges are to be found.
PieceRanges CutPieces(const vm::Program& program, int join, uint64_t rows, uint32_t piece_rows);

/// The rows that a section has made for a join table, on the device.
struct BuiltRows {
  int join = 0;
  DeviceRows* rows = nullptr;                ///< taken from there
  const ColumnSummary* summaries = nullptr;  ///< of its first kMaxSummaries columns
  uint64_t source_rows = 0;                  ///< of the whole table that the rows come from
  vm::KeyRange source_keys = {};             ///< the range of the first key in that table
};

/// Join tables that are built together: those that are laid out on the device, and the rows of those that do not fit.
struct TableBatch {
  struct Entry {
    int join = 0;
    uint64_t source_rows = 0;
    TableLayout layout;
  };
  struct HostEntry {
    int join = 0;
    uint64_t source_rows = 0;
    std::vector<vm::RowSet> rows;
  };
  std::vector<Entry> on_device;
  std::vector<HostEntry> on_host;
  uint64_t bytes = 0;  ///< of on_device, beyond their rows
};

class DeviceJoins {
 public:
  explicit DeviceJoins(GpuDevice* gpu) : gpu_(*gpu) {}

  /// By number of the join table; nullptr: it is not here.
  const std::vector<const JoinShape*>& shapes() const { return shapes_; }
  const std::vector<vm::KeyRange>& key_ranges() const { return key_ranges_; }
  /// The rows of a table without keys, columns in order; of another one only their number. REQUIRES: it is here.
  const DeviceRows& rows(int join) const { return tables_[static_cast<size_t>(join)]->rows; }

  /// A table that is too large for the device, as rows on the host; nullptr if it fits. A section that probes it does
  /// so with one partition after the other.
  const JoinPartitions* parts(int join) const {
    const std::unique_ptr<Parted>& parted = parted_[static_cast<size_t>(join)];
    return parted == nullptr ? nullptr : &parted->parts;
  }
  bool AnyInParts() const {
    return std::any_of(parted_.begin(), parted_.end(), [](const auto& p) { return p != nullptr; });
  }
  /// Brings a partition of such a table to the device, in place of another one. REQUIRES: no work with that is under
  /// way.
  Status LoadPart(const vm::Program& program, const vm::ProgramTraits& traits, int join, size_t part);
  /// Frees the partition that is there. REQUIRES: as LoadPart.
  void DropPart(int join);
  /// Bytes that the rows of a join table may have on the device while it is built.
  uint64_t MostRowBytes() const { return FreeBytes() / 2; }

  /// Makes room for the program's tables. REQUIRES: called before the others.
  void Resize(size_t joins);
  /// What scans take for the keys of a table of which other ranks have rows, too.
  void SetKeyRange(int join, const vm::KeyRange& range) { key_ranges_[static_cast<size_t>(join)] = range; }
  /// Of the tables that come next.
  void SetPartitioning(vm::JoinPartitioning partitioning) { partitioning_ = partitioning; }
  /// Lays a table out and adds it to the batch; if it does not fit, its rows go to the host. Errors: kUnsupported,
  /// kResource: the table cannot be here.
  Status LayOut(const vm::Program& program, const vm::ProgramTraits& traits, const BuiltRows& built, TableBatch* batch);
  /// Fills the tables of a batch by one kernel, and cuts those on the host into partitions. Errors: as LayOut.
  Status FillTables(const vm::Program& program, TableBatch* batch, ThreadPool* pool);
  /// A table whose rows were made elsewhere, from a table of `source_rows` rows. Errors: as LayOut.
  Status Put(const vm::Program& program, const vm::ProgramTraits& traits, int join, const vm::RowSet& rows,
             uint64_t source_rows, vm::JoinPartitioning partitioning);

 private:
  /// A table that is cut into spill partitions.
  struct Parted {
    JoinPartitions parts;
    uint64_t bytes = 0;  ///< of the largest one, with all that is made of it
    uint64_t source_rows = 0;
    RunBuffer memory;  ///< of the partition that is on the device
  };
  uint64_t direct_bytes() const { return MostDirectBytes(gpu_.cache.budget()); }
  /// Bytes that tables may have beyond those that there are: all together half of the budget.
  uint64_t FreeBytes() const;
  /// Cuts a table's rows into partitions.
  Status CutTable(const vm::Program& program, int join, std::vector<vm::RowSet> rows, uint64_t source_rows,
                  ThreadPool* pool);
  /// Takes the rows of a table and lays it out.
  Result<TableLayout> MakeTable(const vm::Program& program, const vm::ProgramTraits& traits, const BuiltRows& built);
  /// Sets what planning knows of the rows: their fraction of the source, and how its keys lie among theirs.
  void EstimateShares(const vm::Section& builder, const BuiltRows& built, DeviceTable* table);
  /// Moves the rows of a table that was laid out to the host.
  Status MoveToHost(const vm::Program& program, int join, uint64_t source_rows, TableBatch* batch);
  /// Takes memory for the tables and starts the kernel that fills them.
  Status Fill(const std::vector<TableLayout*>& layouts, RunBuffer* memory);
  /// Whether different keys of a table have the same hash; such tables get another one.
  Result<bool> HashAgain(const std::vector<TableLayout*>& layouts);

  GpuDevice& gpu_;
  vm::JoinPartitioning partitioning_ = vm::JoinPartitioning::kAuto;
  std::vector<std::unique_ptr<DeviceTable>> tables_;
  std::deque<RunBuffer> memory_;  ///< of tables
  std::vector<std::unique_ptr<Parted>> parted_;
  std::vector<const JoinShape*> shapes_;
  std::vector<vm::KeyRange> key_ranges_;
};

}  // namespace tessera::kernels
