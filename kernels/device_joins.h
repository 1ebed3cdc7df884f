// The join tables of one run of a program, on the device. Private to kernels/.
//
// A table is built in two steps: the VM kernel emits its rows (keys, then payload), then a kernel puts each row into
// its place. Between them the host learns how many rows there are and what ranges their columns have, for all tables
// that are built together at once: that decides how they are laid out, and later the order of look-ups and the
// numbering of groups.
//
// Start at: DeviceJoins::Build.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/gpu_device.h"
#include "kernels/join_kernels.h"
#include "kernels/lower.h"
#include "kernels/product_kernels.h"
#include "vm/bind.h"
#include "vm/vm.h"

namespace tessera::kernels {

/// Device memory of one run, taken from the cache's pool and counted against its budget. Work on the device's stream
/// may use it until it is freed, and what is freed may be taken again at once: the stream keeps the order.
class RunBuffer {
 public:
  RunBuffer() = default;
  ~RunBuffer() { Free(); }
  RunBuffer(const RunBuffer&) = delete;
  RunBuffer& operator=(const RunBuffer&) = delete;

  /// REQUIRES: empty.
  Status Allocate(GpuDevice* gpu, uint64_t bytes);
  void Free();
  template <class T>
  T* As() const {
    return static_cast<T*>(data_);
  }
  friend void swap(RunBuffer& a, RunBuffer& b) {
    std::swap(a.gpu_, b.gpu_);
    std::swap(a.data_, b.data_);
    std::swap(a.bytes_, b.bytes_);
  }

 private:
  GpuDevice* gpu_ = nullptr;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// Rows as Emit writes them: columns of 64 bits, upper halves of the wide ones, NULL bytes; each with room for
/// `capacity`.
class JoinRows {
 public:
  /// REQUIRES: empty.
  Status Allocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity);
  /// The first `rows` rows of another object with the same columns.
  Status CopyFrom(const JoinRows& from, uint64_t rows, cudaStream_t stream);
  uint64_t capacity() const { return capacity_; }
  uint64_t rows() const { return rows_; }
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
  RunBuffer buffer_;
  size_t columns_ = 0, wide_ = 0;
  uint64_t capacity_ = 0, rows_ = 0;
};

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

  /// Builds the tables of sections that do not need each other's. `meanwhile` is called while the device makes their
  /// rows. Errors: those of the sections; kUnsupported, kResource: a table cannot be here.
  Status Build(const std::vector<vm::SectionContext>& contexts, const std::function<void()>& meanwhile);
  /// A table whose rows were made elsewhere, from a table of `source_rows` rows.
  Status Put(const vm::Program& program, int join, const vm::RowSet& rows, uint64_t source_rows);
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
  };
  /// Takes the rows of a table and lays it out. `source_keys`: the range of the first key in the whole table that the
  /// rows come from.
  tessera::Result<Making> Make(const vm::Program& program, int join, JoinRows* rows, const ColumnSummary* summaries,
                               uint64_t source_rows, const vm::KeyRange& source_keys);
  /// Brings rows into the order of one of their columns.
  Status Sort(JoinRows* rows, const std::vector<SqlType>& columns, size_t by, const ColumnSummary* summaries);
  /// `outer`: some section keeps rows without a match, which then point at no row.
  tessera::Result<Making> LayOut(Table* table, const vm::Section& builder, bool unique, bool outer,
                                 const ColumnSummary* summaries);
  /// Takes memory for the tables and starts the kernel that fills them.
  Status Fill(std::vector<Making>* tables);

  GpuDevice& gpu_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::deque<RunBuffer> memory_;  ///< of tables
  std::vector<const JoinShape*> shapes_;
  std::vector<vm::KeyRange> key_ranges_;
};

}  // namespace tessera::kernels
