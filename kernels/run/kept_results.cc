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
  kept.source = {kept.rows.rows(), ShapesOf(kept.rows, columns, summaries.data())};
  return Status::Ok();
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
