// Feeds the launches of a section: encodes the tablets of its source for the program, brings their columns to the device,
// and collects as many as a launch takes. Rows that are on the device, of a join table or of an earlier section, are one
// tablet. Private to kernels/.
//
// Start at: TabletFeed::Collect. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/plan/lower.h"
#include "kernels/rows/row_source.h"
#include "kernels/run/batch.h"
#include "kernels/run/row_tablet.h"
#include "kernels/run/tablet_encoder.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/tablet.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// What a launch may take of the device's memory for its columns.
struct ColumnBudget {
  bool may_partition = false;   ///< its rows may have to be there once more, in another order
  bool sink_grows = false;      ///< groups, or the rows of a join table
  uint64_t reserved_bytes = 0;  ///< for rows that are ordered
  /// `room`: as GpuDevice::Room gives it.
  uint64_t Bytes(uint64_t room) const;
};

/// Whether launches of the section may be cut after such tablets.
using MayCut = std::function<bool(const std::vector<vm::TabletEncoding>& tablets)>;

/// The launches before the one that is collected.
enum class UnderWay : uint8_t {
  kNone,
  kRunning,  ///< the first of them has started
  kWaiting,  ///< the first of them waits for its columns
};

class TabletFeed {
 public:
  /// `key_ranges`: of the join tables, as they are whenever a tablet is encoded. `rows`: the source, if that is no
  /// stored table.
  TabletFeed(GpuDevice* gpu, const vm::SectionContext& context, const LoweredProgram& lowered,
             const std::vector<vm::KeyRange>& key_ranges, const RowSource* rows);

  const vm::SectionEncoder& encoder() const { return encoder_.encoder(); }
  /// Takes tablets of the same section and table over. REQUIRES: called first; none of the join tables is in
  /// partitions.
  Status UseTablets(TabletsAhead ahead) { return encoder_.Use(std::move(ahead)); }
  /// Begins with the first tablet again. `encode_again`: the ranges of keys have changed since.
  void StartPass(uint64_t pass, bool encode_again);
  /// Whether all tablets of the pass have been collected.
  bool AtEnd() const;
  /// Collects tablets until the launch is large enough, or the device has nothing to do and they are enough to start with.
  /// Their copies start while others are collected. false: the next one does not fit beside the batches that are under way,
  /// and `batch` is empty; to be called again once these are finished. An empty batch at the end: the last tablets were
  /// skipped, or there are no rows.
  tessera::Result<bool> Collect(const ColumnBudget& budget, UnderWay others, const FindSparseSlots& find_sparse,
                                const MayCut& may_cut, TabletBatch* batch);

  /// Has codes copied and unpacked that were to be read where they are packed.
  Status UnpackBits(TabletBatch* batch);

  /// If the section builds a join table: the range of the first key in the tablets so far; not known if that is no
  /// plain column.
  vm::KeyRange source_keys() const { return source_keys_; }

 private:
  struct Needs {
    bool codes = false, nulls = false;
  };
  /// What a launch has so far.
  struct Collected {
    uint64_t bytes = 0, rows = 0;
    uint64_t started = 0;  ///< bytes whose copies are on their way
  };
  /// What the tablet uploaded last has, see SectionStatistics.
  struct Uploaded {
    uint64_t decoded = 0, in_place = 0, read_in_place = 0;
  };
  enum class Taken : uint8_t {
    kYes,
    kSkipped,
    kNoRoom,  ///< it is still the next one
  };
  /// Memory of the host for the tablets that may come.
  void MakeRoom(TabletBatch* batch) const;
  /// Takes the next tablet.
  tessera::Result<Taken> TakeNext(const ColumnBudget& budget, bool any_under_way, const FindSparseSlots& find_sparse,
                                  Collected* so_far, TabletBatch* batch);
  /// The last tablet of the batch was not uploaded.
  void TakeBack(vm::TabletEncoding* encoded, TabletBatch* batch) const;
  void AddStatistics(const vm::TabletEncoding& encoded) const;
  /// Widens source_keys_ by a tablet's.
  void NoteKeys(const vm::TabletEncoding& encoded);
  /// Whether a launch should begin with the tablets of the batch, which have `rows` rows: the device has nothing to do, and
  /// there are as many rows after them.
  bool ShouldStart(const TabletBatch& batch, uint64_t rows, UnderWay others, const MayCut& may_cut);
  size_t tablets() const { return row_tablet_.reads_rows() ? 1 : context_.table->tablets.size(); }
  /// Collects the rows that are one tablet.
  void CollectRows(TabletBatch* batch);
  /// Finds out which streams of the slots' chunks the section reads in this tablet, for Upload. Returns their bytes.
  uint64_t FindNeeds(const vm::TabletEncoding& encoded);
  Status Upload(size_t at, const FindSparseSlots& find_sparse, TabletBatch* batch);
  /// A column of a file as the cache has it.
  struct StoredPieces {
    TabletPieces* pieces;
    int column;
  };
  /// Where the cache has a column of the tablet: stored ones stay there when rows are deleted, or other columns are updated.
  tessera::Result<StoredPieces> PiecesOf(const std::shared_ptr<const Tablet>& tablet, int column);
  /// Whether codes of a slot of tablet `at` of the batch are read where they are mapped. The batch knows where, then.
  bool ReadInPlace(size_t at, size_t slot, const FindSparseSlots& find_sparse, const StoredPieces& stored,
                   TabletBatch* batch);
  /// What a launch reads of `bytes` bytes of a slot's codes in place.
  uint64_t ReadOf(size_t slot, uint64_t bytes) const;
  /// Starts the copies of what was uploaded.
  Status StartCopies(TabletBatch* batch);

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const LoweredProgram& lowered_;
  TabletEncoder encoder_;
  RowTablet row_tablet_;
  bool first_pass_ = true;
  size_t next_ = 0;           ///< tablet to be collected
  std::vector<Needs> needs_;  ///< per slot
  std::optional<std::vector<SparseSlot>>
      sparse_;                              ///< of the batch, once a column might be read in place; empty: none is
  std::optional<bool> may_cut_;             ///< of the section, once there are tablets
  std::optional<vm::TabletEncoding> last_;  ///< of the launch before: the next one shares its maps and sets
  bool fits_ = false;                       ///< all columns that are read, in the budget
  uint64_t copied_ = 0;                     ///< bytes whose copies are to be started
  Uploaded uploaded_;
  vm::KeyRange source_keys_;
};

}  // namespace tessera::kernels
