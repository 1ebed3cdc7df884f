// Rows on the device as Emit writes them, and their ways between host and device. Private to kernels/.
//
// Start at: DeviceRows, DownloadRows, UploadRows. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/rows/sort_rows.h"
#include "tablet/values/types.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {

/// Columns of 64 bits, then the upper halves of the wide columns, then NULL bytes; each has room for `capacity` rows.
class DeviceRows {
 public:
  DeviceRows() = default;
  DeviceRows(DeviceRows&& other) noexcept { swap(*this, other); }
  DeviceRows& operator=(DeviceRows&& other) noexcept {
    DeviceRows taken(std::move(other));
    swap(*this, taken);
    return *this;
  }
  /// REQUIRES: empty.
  Status Allocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity);
  /// As RunBuffer::TryAllocate.
  bool TryAllocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity);
  /// The first `rows` rows of another object with the same columns.
  Status CopyFrom(const DeviceRows& from, uint64_t rows, cudaStream_t stream);
  /// All rows of another object with the same columns, from row `first` of this one on.
  Status Put(const DeviceRows& from, uint64_t first, cudaStream_t stream);
  /// Zeros after rows() up to a multiple of 16: kernels may read them.
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
  friend void swap(DeviceRows& a, DeviceRows& b) {
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

/// How many of the columns are wide.
size_t CountWide(const std::vector<SqlType>& columns);
/// Bytes of a row in DeviceRows.
uint64_t RowBytes(const std::vector<SqlType>& columns);
/// The first `count` rows, on the host.
tessera::Result<vm::RowSet> DownloadRows(GpuDevice* gpu, const std::vector<SqlType>& columns, const DeviceRows& rows,
                                         uint64_t count);
/// Rows [first, first + count) of `from`, on the device. REQUIRES: `to` is empty.
Status UploadRows(GpuDevice* gpu, const std::vector<SqlType>& columns, const vm::RowSet& from, uint64_t first,
                  uint64_t count, DeviceRows* to);

}  // namespace tessera::kernels
