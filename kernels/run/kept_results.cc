#include "kernels/run/kept_results.h"

#include <algorithm>
#include <cstring>

#include "kernels/join/join_kernels.h"
#include "kernels/join/table_layout.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {
namespace {

/// Fewer rows are read in less time than it takes to pack them; and packed rows take at most this part of their bytes.
constexpr uint64_t kPackedFrom = 2048;
constexpr double kPackedShare = 0.75;
/// Where rows come after others, there is room for this part of them once more, so that the next ones need no copy of all.
constexpr uint64_t kRoomForMore = 8;

}  // namespace

Status KeptResults::Keep(int section, const std::vector<SqlType>& columns, DeviceRows* rows) {
  TESSERA_TRY(KeepUnpacked(section, columns, rows));
  return Pack(columns, &results_.at(section));
}

Status KeptResults::KeepUnpacked(int section, const std::vector<SqlType>& columns, DeviceRows* rows) {
  std::vector<ColumnSummary> summaries(std::min<size_t>(columns.size(), kMaxSummaries));
  const uint64_t bytes = summaries.size() * sizeof(ColumnSummary);
  if (bytes > 0) {
    RunBuffer found;
    TESSERA_TRY(found.Allocate(&gpu_, bytes));
    // (Pageable memory: these copies are done when the calls return.)
    CUDA_TRY(cudaMemcpyAsync(found.As<void>(), summaries.data(), bytes, cudaMemcpyHostToDevice, gpu_.stream));
    const RowsToSummarize all = ToSummarize(*rows, columns.size(), found.As<ColumnSummary>());
    CUDA_TRY(StartSummarize(&all, 1, gpu_.stream));
    CUDA_TRY(cudaMemcpyAsync(summaries.data(), found.As<void>(), bytes, cudaMemcpyDeviceToHost, gpu_.stream));
    TESSERA_TRY(rows->ClearPadding(gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  }
  results_.erase(section);
  Kept& kept = results_[section];
  swap(kept.rows, *rows);
  kept.source = {kept.rows.rows(), ShapesOf(kept.rows, columns, summaries.data()), kept.rows.columns()};
  kept.summaries = std::move(summaries);
  return Status::Ok();
}

Status KeptResults::Pack(const std::vector<SqlType>& columns, Kept* kept) {
  if (kept->source.rows < kPackedFrom) return Status::Ok();
  const PackedRows packed(columns, kept->summaries, kept->source.rows);
  if (static_cast<double>(packed.bytes()) > static_cast<double>(kept->rows.bytes()) * kPackedShare ||
      !kept->packed.TryAllocate(&gpu_, packed.bytes()))
    return Status::Ok();
  CUDA_TRY(StartPack(packed, kept->source.at, kept->packed.As<void>(), gpu_.stream));
  SetPacked(packed, kept);
  return Status::Ok();
}

void KeptResults::KeepPacked(int section, const std::vector<SqlType>& columns, std::vector<ColumnSummary> summaries,
                             const PackedRows& packed, RunBuffer* memory) {
  results_.erase(section);
  Kept& kept = results_[section];
  kept.source.rows = packed.rows();
  kept.source.columns = ShapesOf(kept.rows, columns, summaries.data());
  kept.summaries = std::move(summaries);
  swap(kept.packed, *memory);
  SetPacked(packed, &kept);
}

void KeptResults::SetPacked(const PackedRows& packed, Kept* kept) {
  kept->source.packed_at = kept->packed.As<uint8_t>();
  kept->source.packed = packed;
  DeviceRows none;
  swap(kept->rows, none);
  kept->source.at = {};
  for (PayloadShape& shape : kept->source.columns) shape.column = shape.column_high = shape.nulls = 0;
}

Status KeptResults::CopyTo(const Kept& kept, DeviceRows* rows) {
  if (kept.source.packed_at == nullptr) return rows->Put(kept.rows, 0, gpu_.stream);
  CUDA_TRY(StartUnpack(kept.source.packed, kept.source.packed_at, rows->columns(), 0, gpu_.stream));
  return Status::Ok();
}

tessera::Result<bool> KeptResults::KeepAfter(int before, int section, const std::vector<SqlType>& columns,
                                             const DeviceRows& rows) {
  Kept& kept = results_.at(before);
  const uint64_t first = kept.source.rows, count = first + rows.rows();
  if (count > kMostKeptRows) return false;
  if (kept.columns.empty() || kept.rows.capacity() < count) {
    // (Summaries, packing and a copy for each of a few rows took longer than to make them.)
    DeviceRows all;
    if (!all.TryAllocate(&gpu_, columns, count + count / kRoomForMore) && !all.TryAllocate(&gpu_, columns, count))
      return false;
    TESSERA_TRY(CopyTo(kept, &all));
    all.set_rows(first);
    swap(kept.rows, all);
    kept.packed.Free();
    kept.source = {};
    kept.source.rows = first;
    kept.columns = columns;
  }
  TESSERA_TRY(kept.rows.Put(rows, first, gpu_.stream));
  kept.rows.set_rows(count);
  kept.source.rows = count;
  auto moved = results_.extract(before);
  moved.key() = section;
  results_.insert(std::move(moved));
  return true;
}

Status KeptResults::Finish(int section) {
  Kept& kept = results_.at(section);
  if (kept.columns.empty()) return Status::Ok();
  const std::vector<SqlType> columns = kept.columns;
  DeviceRows rows;
  swap(rows, kept.rows);
  Status status = Keep(section, columns, &rows);
  if (!status.ok() && rows.rows() > 0) swap(rows, results_.at(section).rows);
  return status;
}

tessera::Result<vm::RowSet> KeptResults::UnpackOnHost(const Kept& kept, const std::vector<SqlType>& columns) const {
  const PackedRows& packed = kept.source.packed;
  const uint64_t rows = kept.source.rows;
  std::vector<uint8_t> bytes(packed.bytes());
  CUDA_TRY(cudaMemcpyAsync(bytes.data(), kept.source.packed_at, bytes.size(), cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  vm::RowSet out = vm::MakeRowSet(columns);
  out.rows = rows;
  size_t column = 0;
  for (const PackedColumn& c : packed.columns()) {
    if (!c.is_high) column = c.column;  // upper halves come after the lower ones
    vm::RowColumn& to = out.columns[column];
    std::vector<int64_t>& values = c.is_high ? to.high : to.low;
    values.resize(rows);
    std::vector<uint8_t> null(c.is_high ? 0 : rows);
    for (uint64_t i = 0; i < rows; ++i) {
      uint64_t code = 0;
      memcpy(&code, bytes.data() + c.at + i * c.width, c.width);
      const bool is_null = c.has_null_code && (c.width == 0 || code == c.null_code);
      values[i] = is_null ? 0 : static_cast<int64_t>(c.base + code);
      if (!c.is_high) null[i] = c.has_null_bytes ? bytes[c.null_at + i] : is_null ? 1 : 0;
    }
    if (std::find(null.begin(), null.end(), uint8_t{1}) != null.end()) to.null.assign(null.begin(), null.end());
  }
  return out;
}

tessera::Result<vm::RowSet> KeptResults::Fetch(int section, const std::vector<SqlType>& columns) {
  const Kept& kept = results_.at(section);
  if (kept.source.packed_at == nullptr) return DownloadRows(&gpu_, columns, kept.rows, kept.rows.rows());
  DeviceRows rows;
  const Status allocated = rows.Allocate(&gpu_, columns, kept.source.rows);
  // (The host often asks because the device has no memory left.)
  if (!allocated.ok() && allocated.code() == ErrorCode::kResource) return UnpackOnHost(kept, columns);
  TESSERA_TRY(allocated);
  TESSERA_TRY(CopyTo(kept, &rows));
  return DownloadRows(&gpu_, columns, rows, kept.source.rows);
}

}  // namespace tessera::kernels
