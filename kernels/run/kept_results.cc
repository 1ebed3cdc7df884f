#include "kernels/run/kept_results.h"

#include <algorithm>

#include "kernels/join/join_kernels.h"
#include "kernels/join/table_layout.h"

namespace tessera::kernels {

Status KeptResults::Keep(int section, const std::vector<SqlType>& columns, DeviceRows* rows) {
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
  Kept& kept = results_[section];
  swap(kept.rows, *rows);
  kept.source = {kept.rows.rows(), ShapesOf(kept.rows, columns, summaries.data()), kept.rows.columns()};
  return Status::Ok();
}

tessera::Result<bool> KeptResults::PutBefore(int before, const std::vector<SqlType>& columns, DeviceRows* rows) {
  const DeviceRows& first = results_.at(before).rows;
  const uint64_t count = first.rows() + rows->rows();
  DeviceRows all;
  if (count > kMostKeptRows || !all.TryAllocate(&gpu_, columns, count)) return false;
  const auto all_columns = static_cast<uint32_t>(columns.size() + CountWide(columns));
  const auto nulls = static_cast<uint32_t>(columns.size());
  uint64_t at = 0;
  for (const DeviceRows* from : {&first, static_cast<const DeviceRows*>(rows)}) {
    const RowColumns to = all.columns();
    CUDA_TRY(StartGather(from->columns(), {to.low + at, to.null + at, to.capacity}, all_columns, nulls, nullptr,
                         static_cast<uint32_t>(from->rows()), gpu_.stream));
    at += from->rows();
  }
  all.set_rows(count);
  swap(all, *rows);
  Drop(before);
  return true;
}

Status KeptResults::Put(int section, const std::vector<SqlType>& columns, const vm::RowSet& rows) {
  DeviceRows there;
  TESSERA_TRY(UploadRows(&gpu_, columns, rows, 0, rows.rows, &there));
  return Keep(section, columns, &there);
}

tessera::Result<vm::RowSet> KeptResults::Fetch(int section, const std::vector<SqlType>& columns) {
  const DeviceRows& rows = results_.at(section).rows;
  return DownloadRows(&gpu_, columns, rows, rows.rows());
}

}  // namespace tessera::kernels
