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
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/plan/lower.h"
#include "kernels/run/batch.h"
#include "kernels/run/kept_results.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/tablet.h"
#include "vm/encode/read_ahead.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// Tablets of a section, from the first one on, encoded before its join tables were there.
struct TabletsAhead {
  int section = -1;  ///< -1: none
  const TableInfo* table = nullptr;
  std::vector<tessera::Result<vm::TabletEncoding>> tablets;
  bool slow = false;  ///< the last one took long
};
/// Encodes tablets until there are enough for a launch to start with and the device has nothing more to do, or one takes so long
/// that several threads should do it.
TabletsAhead EncodeAhead(GpuDevice* gpu, const vm::SectionContext& context,
                         const std::vector<vm::KeyRange>& key_ranges);

/// What a launch may take of the device's memory for its columns.
struct ColumnBudget {
  bool may_partition = false;   ///< its rows may have to be there once more, in another order
  bool sink_grows = false;      ///< groups, or the rows of a join table
  uint64_t reserved_bytes = 0;  ///< for rows that are ordered
  /// `room`: as GpuDevice::Room gives it.
  uint64_t Bytes(uint64_t room) const;
};

/// Whether launches of the section may be cut behind such tablets.
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

  const vm::SectionEncoder& encoder() const { return encoder_; }
  /// Takes tablets of the same section and table over. REQUIRES: called first; none of the join tables is in
  /// partitions.
  Status UseTablets(TabletsAhead ahead);
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
  /// Tablet `number`, encoded. If encoding takes long, several threads encode others behind it at the same time. The tablet
  /// is moved from once it has its place in a launch.
  tessera::Result<vm::TabletEncoding>& Encode(size_t number, const vm::TabletEncoding* like);
  /// Up to `count` tablets from `number` on, by several threads: as many as were begun before one took long, if none had.
  void EncodeShared(size_t number, size_t count, size_t workers, const vm::TabletEncoding* like);
  /// Leaves encoded_ empty.
  void ForgetEncoded();
  /// Widens source_keys_ by a tablet's.
  void NoteKeys(const vm::TabletEncoding& encoded);
  /// Whether a launch should begin with the tablets of the batch, which have `rows` rows: the device has nothing to do, and
  /// there are as many rows behind them.
  bool ShouldStart(const TabletBatch& batch, uint64_t rows, UnderWay others, const MayCut& may_cut);
  size_t tablets() const { return rows_ != nullptr ? 1 : context_.table->tablets.size(); }
  /// Collects rows_.
  void CollectRows(TabletBatch* batch);
  /// Lets a slot read a column of packed rows. Returns where its upper halves are, if it is wide.
  const int64_t* ReadPacked(size_t column, Chunk* chunk, vm::SlotEncoding* b) const;
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
  /// Tablets from `number` on that several threads encode before the copies of the first of them start.
  size_t SharedTablets(size_t number, size_t workers) const;
  /// What a launch reads of `bytes` bytes of a slot's codes in place.
  uint64_t ReadOf(size_t slot, uint64_t bytes) const;
  /// Starts the copies of what was uploaded.
  Status StartCopies(TabletBatch* batch);

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const LoweredProgram& lowered_;
  vm::SectionEncoder encoder_;
  std::unique_ptr<vm::ReadAhead> ahead_;  ///< nullptr: the source is no stored table
  bool first_pass_ = true;
  size_t next_ = 0;                                           ///< tablet to be collected
  std::vector<tessera::Result<vm::TabletEncoding>> encoded_;  ///< tablets from encoded_from_ on, encoded together
  size_t encoded_from_ = 0;
  bool encoding_is_slow_ = false;
  uint64_t tablet_bytes_ = 0;  ///< that the section reads of the tablet collected last
  std::vector<Needs> needs_;   ///< per slot
  std::optional<std::vector<SparseSlot>>
      sparse_;                              ///< of the batch, once a column might be read in place; empty: none is
  std::optional<bool> may_cut_;             ///< of the section, once there are tablets
  std::optional<vm::TabletEncoding> last_;  ///< of the launch before: the next one shares its maps and sets
  bool fits_ = false;                       ///< all columns that are read, in the budget
  uint64_t copied_ = 0;                     ///< bytes whose copies are to be started
  uint64_t decoded_ = 0, in_place_ = 0, read_in_place_ = 0;  ///< of the tablet uploaded last, see SectionStatistics
  const RowSource* const rows_;                              ///< nullptr: the source is a stored table
  std::vector<Chunk> row_chunks_;                            ///< what planning has to know of their columns
  vm::KeyRange source_keys_;
};

}  // namespace tessera::kernels
