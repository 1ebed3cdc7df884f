// The join tables of one run of a program, on the device. Private to kernels/.
//
// A table is built in two steps: the VM kernel emits its rows (keys, then payload), then a kernel puts each row into
// its place. Between them the host learns how many rows there are and what ranges their columns have, for all tables
// that are built together at once: that decides how they are laid out, and later the order of look-ups and the
// numbering of groups.
//
// Start at: DeviceJoins::Build.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/join/join_kernels.h"
#include "kernels/join/join_parts.h"
#include "kernels/join/probe_partition.h"
#include "kernels/join/product_kernels.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/plan/join_shape.h"
#include "vm/bind.h"
#include "vm/vm.h"

namespace tessera::kernels {

/// Rows as Emit writes them: columns of 64 bits, upper halves of the wide ones, NULL bytes; each with room for
/// `capacity`.
class JoinRows {
 public:
  /// REQUIRES: empty.
  Status Allocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity);
  /// As RunBuffer::TryAllocate.
  bool TryAllocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity);
  /// The first `rows` rows of another object with the same columns.
  Status CopyFrom(const JoinRows& from, uint64_t rows, cudaStream_t stream);
  /// Zeros behind rows() up to a multiple of 16: somebody may read them.
  Status ClearPadding(cudaStream_t stream);
  uint64_t capacity() const { return capacity_; }
  uint64_t rows() const { return rows_; }
  uint64_t bytes() const { return buffer_.bytes(); }
  void set_rows(uint64_t rows) { rows_ = rows; }
  uint64_t* low(size_t column) const { return buffer_.As<uint64_t>() + column * capacity_; }
  RowColumns columns() const { return {low(0), null(0), capacity_}; }
  /// Of the n-th wide column.
  uint64_t* high(size_t n) const { return low(columns_ + n); }
  uint8_t* null(size_t column) const { return reinterpret_cast<uint8_t*>(low(columns_ + wide_)) + column * capacity_; }
  friend void swap(JoinRows& a, JoinRows& b) {
    swap(a.buffer_, b.buffer_);
    std::swap(a.columns_, b.columns_);
    std::swap(a.wide_, b.wide_);
    std::swap(a.capacity_, b.capacity_);
    std::swap(a.rows_, b.rows_);
  }

 private:
  void SetShape(const std::vector<SqlType>& columns, uint64_t capacity);

  RunBuffer buffer_;
  size_t columns_ = 0, wide_ = 0;
  uint64_t capacity_ = 0, rows_ = 0;
};

/// Whether rows of a join table can wait on the host and be joined in parts: those of a product, or in order, cannot.
bool CanPart(const vm::Program& program, int join);
/// Bytes of a row.
uint64_t RowBytes(const std::vector<SqlType>& columns);
/// Brings rows to the host.
tessera::Result<vm::RowSet> Download(GpuDevice* gpu, const std::vector<SqlType>& columns, const JoinRows& rows,
                                     uint64_t count);

class DeviceJoins {
 public:
  explicit DeviceJoins(GpuDevice* gpu) : gpu_(*gpu) {}

  /// By number of the join table; nullptr: it is not here.
  const std::vector<const JoinShape*>& shapes() const { return shapes_; }
  const std::vector<vm::KeyRange>& key_ranges() const { return key_ranges_; }
  /// The rows of a table without keys, columns in order. REQUIRES: it is here.
  const JoinRows& rows(int join) const { return tables_[static_cast<size_t>(join)]->rows; }
  /// ... cut into pieces whose ranges are to be found.
  PieceRanges Pieces(const vm::Program& program, int join, uint32_t piece_rows) const;

  /// A table that is too large for the device, as rows on the host; nullptr: it is none. A section that probes it does
  /// so with one part after the other.
  const JoinParts* parts(int join) const {
    const std::unique_ptr<Parted>& parted = parted_[static_cast<size_t>(join)];
    return parted == nullptr ? nullptr : &parted->parts;
  }
  bool AnyInParts() const {
    return std::any_of(parted_.begin(), parted_.end(), [](const auto& p) { return p != nullptr; });
  }
  /// Brings a part of such a table to the device, in place of another one. REQUIRES: no work with that is under way.
  Status LoadPart(const vm::Program& program, int join, size_t part);
  /// Frees the part that is there. REQUIRES: as LoadPart.
  void DropPart(int join);
  /// Bytes that the rows of a join table may have on the device while it is built.
  uint64_t MostRowBytes() const { return Share() / 2; }

  /// Builds the tables of sections that do not need each other's. `meanwhile` is called while the device makes their
  /// rows. Errors: those of the sections; kUnsupported, kResource: a table cannot be here.
  Status Build(const std::vector<vm::SectionContext>& contexts, const std::function<void()>& meanwhile);
  /// A table whose rows were made elsewhere, from a table of `source_rows` rows.
  Status Put(const vm::Program& program, int join, const vm::RowSet& rows, uint64_t source_rows,
             vm::JoinPartitioning partitioning);
  /// Makes room for the program's tables. REQUIRES: called before the others.
  void Resize(size_t joins);

 private:
  struct Table {
    JoinShape shape;
    JoinRows rows;  ///< kept if payload is read from them
  };
  /// A table that is being made: what its kernel gets, once it is known where bits, values and chains lie, and how many
  /// bytes these have.
  struct Making {
    Table* table = nullptr;
    JoinBuild build;
    uint64_t bits = 0, values = 0, next = 0;
    uint64_t bytes() const { return bits + values + next; }
  };
  struct Parted {
    JoinParts parts;
    uint64_t bytes = 0;  ///< of the largest one, with all that is made of it
    uint64_t source_rows = 0;
    RunBuffer memory;  ///< of the part that is on the device
  };
  /// Bytes that tables may have beyond those that there are: all together half of the budget.
  uint64_t Share() const;
  /// Bytes of so many rows of a table and of what is made of them, at most.
  uint64_t BytesFor(const vm::Section& builder, uint64_t rows) const;
  /// Cuts a table's rows into parts.
  Status Part(const vm::Program& program, int join, std::vector<vm::RowSet> rows, uint64_t source_rows,
              vm::ThreadPool* pool);
  /// Rows [first, first + count) of `from`.
  Status Upload(const vm::Section& builder, const vm::RowSet& from, uint64_t first, uint64_t count, JoinRows* to);
  /// Takes the rows of a table and lays it out. `source_keys`: the range of the first key in the whole table that the
  /// rows come from.
  tessera::Result<Making> Make(const vm::Program& program, int join, JoinRows* rows, const ColumnSummary* summaries,
                               uint64_t source_rows, const vm::KeyRange& source_keys);
  /// Brings rows into the order of one of their columns.
  Status Sort(JoinRows* rows, const std::vector<SqlType>& columns, size_t by, const ColumnSummary* summaries);
  /// `outer`: some section keeps rows without a match, which then point at no row.
  tessera::Result<Making> LayOut(Table* table, const vm::Section& builder, bool unique, bool outer,
                                 const ColumnSummary* summaries);
  /// Brings the rows of a table that was laid out into the order of the parts of its places, if these outgrow the cache
  /// and point to rows. (How many rows will look in it is not known here.) false: they stay as they are.
  tessera::Result<bool> OrderByPlaces(Table* table, const vm::Section& builder, const ColumnSummary* summaries);
  /// Takes memory for the tables and starts the kernel that fills them.
  Status Fill(std::vector<Making>* tables, RunBuffer* memory);

  GpuDevice& gpu_;
  vm::JoinPartitioning partitioning_ = vm::JoinPartitioning::kAuto;
  std::vector<std::unique_ptr<Table>> tables_;
  std::deque<RunBuffer> memory_;  ///< of tables
  std::vector<std::unique_ptr<Parted>> parted_;
  std::vector<const JoinShape*> shapes_;
  std::vector<vm::KeyRange> key_ranges_;
};

}  // namespace tessera::kernels
