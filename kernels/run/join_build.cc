#include "kernels/run/join_build.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/run/section_run.h"

namespace tessera::kernels {
namespace {

const vm::Section& SectionOf(const vm::SectionContext& context) {
  return context.program->sections[static_cast<size_t>(context.section)];
}

/// Clears the counters and summaries of `count` builds, here and on the device.
Status ClearBuildStates(GpuDevice* gpu, size_t count) {
  TESSERA_TRY(gpu->build_states.Reserve(count * sizeof(BuildState)));
  TESSERA_TRY(gpu->host_build_states.Reserve(count * sizeof(BuildState)));
  BuildState* states = gpu->host_build_states.As<BuildState>();
  for (size_t i = 0; i < count; ++i) {
    memset(&states[i].control, 0, sizeof(Control));
    for (ColumnSummary& s : states[i].columns) s = ColumnSummary();
  }
  CUDA_TRY(StartSmallCopies({{gpu->build_states.As<BuildState>(), states, count * sizeof(BuildState)}}, gpu->stream));
  return Status::Ok();
}

}  // namespace

Status BuildJoins(GpuDevice* gpu, DeviceJoins* joins, const KeptResults& results,
                  const std::vector<vm::SectionContext>& contexts, const std::function<void()>& meanwhile) {
  const size_t n = contexts.size();
  const vm::Program& program = *contexts[0].program;
  joins->SetPartitioning(contexts[0].join_partitioning);
  TESSERA_TRY(ClearBuildStates(gpu, n));
  BuildState* const states = gpu->host_build_states.As<BuildState>();
  BuildState* const device_states = gpu->build_states.As<BuildState>();
  CUDA_TRY(cudaEventRecord(gpu->begin, gpu->stream));
  std::vector<std::unique_ptr<SectionRun>> runs;
  std::vector<RowsToSummarize> to_summarize;
  for (size_t i = 0; i < n; ++i) {
    const vm::Section& section = SectionOf(contexts[i]);
    const bool of_table = section.source_kind == vm::Section::Source::kTable;
    runs.push_back(std::make_unique<SectionRun>(
        gpu, contexts[i], joins, of_table ? nullptr : &results.source(section.source), static_cast<int>(i)));
    TESSERA_TRY(runs[i]->StartBuild());
    to_summarize.push_back(
        ToSummarize(runs[i]->build_rows().on_device(), section.columns.size(), device_states[i].columns));
    to_summarize.back().control = &device_states[i].control;  // it may not have run yet
  }
  CUDA_TRY(StartSummarize(to_summarize.data(), n, gpu->stream));
  CUDA_TRY(cudaEventRecord(gpu->end, gpu->stream));
  CUDA_TRY(StartSmallCopies({{states, device_states, n * sizeof(BuildState)}}, gpu->stream));
  meanwhile();
  TESSERA_TRY(gpu->WaitForStream(&device_states[n - 1].control.stop, contexts[0].cancel));
  TESSERA_ASSIGN(const double milliseconds, gpu->KernelMilliseconds());
  uint64_t rows_in = 0;
  for (const vm::SectionContext& c : contexts) rows_in += c.statistics->rows_in;
  TableBatch batch;
  for (size_t i = 0; i < n; ++i) {
    const vm::SectionContext& c = contexts[i];
    SectionRun& run = *runs[i];
    TESSERA_TRY(run.FinishBuild());
    BuildRows& rows = run.build_rows();
    c.statistics->rows_out = rows.count();
    // They ran as one: each gets its part of the time by the rows that it read.
    c.statistics->kernel_milliseconds =
        milliseconds * static_cast<double>(c.statistics->rows_in + 1) / static_cast<double>(rows_in + n);
    run.AddJoinStatistics();
    const int join = SectionOf(c).join;
    const uint64_t source_rows = c.table != nullptr ? c.table->rows : c.statistics->rows_in;
    if (rows.on_host().empty()) {
      TESSERA_TRY(
          joins->LayOut(program, {join, &rows.on_device(), states[i].columns, source_rows, run.source_keys()}, &batch));
    } else {
      batch.on_host.push_back({join, source_rows, std::move(rows.on_host())});
    }
  }
  return joins->FillTables(program, &batch, contexts[0].pool);
}

}  // namespace tessera::kernels
