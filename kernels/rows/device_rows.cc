#include "kernels/rows/device_rows.h"

#include <algorithm>
#include <cstring>

#include "tablet/values/types.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {

size_t CountWide(const std::vector<SqlType>& columns) {
  return static_cast<size_t>(std::count_if(columns.begin(), columns.end(), IsWide));
}

uint64_t RowBytes(const std::vector<SqlType>& columns) { return columns.size() * 9 + CountWide(columns) * 8; }

void DeviceRows::SetShape(const std::vector<SqlType>& columns, uint64_t capacity) {
  columns_ = columns.size();
  wide_ = CountWide(columns);
  capacity_ = (capacity + 15) / 16 * 16;
}

Status DeviceRows::Allocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity) {
  SetShape(columns, capacity);
  return buffer_.Allocate(gpu, capacity_ * RowBytes(columns));
}

bool DeviceRows::TryAllocate(GpuDevice* gpu, const std::vector<SqlType>& columns, uint64_t capacity) {
  SetShape(columns, capacity);
  return buffer_.TryAllocate(gpu, capacity_ * RowBytes(columns));
}

Status DeviceRows::CopyFrom(const DeviceRows& from, uint64_t rows, cudaStream_t stream) {
  if (rows == 0) return Status::Ok();
  for (size_t c = 0; c < columns_ + wide_; ++c) {
    CUDA_TRY(cudaMemcpyAsync(low(c), from.low(c), rows * 8, cudaMemcpyDeviceToDevice, stream));
  }
  for (size_t c = 0; c < columns_; ++c) {
    CUDA_TRY(cudaMemcpyAsync(null(c), from.null(c), rows, cudaMemcpyDeviceToDevice, stream));
  }
  return Status::Ok();
}

Status DeviceRows::Put(const DeviceRows& from, uint64_t first, cudaStream_t stream) {
  CUDA_TRY(StartGather(from.columns(), {low(0) + first, null(0) + first, capacity_},
                       static_cast<uint32_t>(columns_ + wide_), static_cast<uint32_t>(columns_), nullptr,
                       static_cast<uint32_t>(from.rows()), stream));
  return Status::Ok();
}

Status DeviceRows::ClearPadding(cudaStream_t stream) {
  const uint64_t padding = (rows_ + 15) / 16 * 16 - rows_;
  if (padding == 0) return Status::Ok();
  for (size_t c = 0; c < columns_ + wide_; ++c) CUDA_TRY(cudaMemsetAsync(low(c) + rows_, 0, padding * 8, stream));
  for (size_t c = 0; c < columns_; ++c) CUDA_TRY(cudaMemsetAsync(null(c) + rows_, 0, padding, stream));
  return Status::Ok();
}

tessera::Result<vm::RowSet> DownloadRows(GpuDevice* gpu, const std::vector<SqlType>& columns, const DeviceRows& rows,
                                         uint64_t count) {
  vm::RowSet out = vm::MakeRowSet(columns);
  out.rows = count;
  if (count == 0) return out;
  // The host asks for rows when the device has no memory left: if there is no pinned memory either, copies are slower.
  const bool pinned = gpu->buffers.host_rows.Reserve(count * 8).ok();
  auto fetch = [&](const void* from, void* to, uint64_t bytes) -> Status {
    void* const arrives = pinned ? gpu->buffers.host_rows.As<void>() : to;
    CUDA_TRY(cudaMemcpyAsync(arrives, from, bytes, cudaMemcpyDeviceToHost, gpu->stream));
    CUDA_TRY(cudaStreamSynchronize(gpu->stream));
    if (pinned) memcpy(to, arrives, bytes);
    return Status::Ok();
  };
  size_t wide = 0;
  for (size_t c = 0; c < columns.size(); ++c) {
    vm::RowColumn& to = out.columns[c];
    to.low.resize(count);
    TESSERA_TRY(fetch(rows.low(c), to.low.data(), count * 8));
    if (IsWide(to.type)) {
      to.high.resize(count);
      TESSERA_TRY(fetch(rows.high(wide++), to.high.data(), count * 8));
    }
    to.null.resize(count);
    TESSERA_TRY(fetch(rows.null(c), to.null.data(), count));
    if (std::find(to.null.begin(), to.null.end(), uint8_t{1}) == to.null.end()) to.null = {};
  }
  return out;
}

Status UploadRows(GpuDevice* gpu, const std::vector<SqlType>& columns, const vm::RowSet& from, uint64_t first,
                  uint64_t count, DeviceRows* to) {
  TESSERA_TRY(to->Allocate(gpu, columns, std::max<uint64_t>(count, 1)));
  to->set_rows(count);
  size_t wide = 0;
  for (size_t c = 0; c < columns.size() && count > 0; ++c) {
    const vm::RowColumn& column = from.columns[c];
    // (Pageable memory: the copies are done when the calls return.)
    CUDA_TRY(cudaMemcpyAsync(to->low(c), column.low.data() + first, count * 8, cudaMemcpyHostToDevice, gpu->stream));
    if (IsWide(column.type)) {
      CUDA_TRY(cudaMemcpyAsync(to->high(wide++), column.high.data() + first, count * 8, cudaMemcpyHostToDevice,
                               gpu->stream));
    }
    if (column.null.empty()) {
      CUDA_TRY(cudaMemsetAsync(to->null(c), 0, count, gpu->stream));
    } else {
      CUDA_TRY(cudaMemcpyAsync(to->null(c), column.null.data() + first, count, cudaMemcpyHostToDevice, gpu->stream));
    }
  }
  CUDA_TRY(cudaStreamSynchronize(gpu->stream));
  return Status::Ok();
}

}  // namespace tessera::kernels
