#include "kernels/run/join_profile.h"

#include <algorithm>

namespace tessera::kernels {

Status JoinProfile::ClearMarks(GpuDevice* gpu, const LaunchPlan& plan, Launch* launch) {
  if (plan.marks.empty()) return Status::Ok();
  const size_t bytes = plan.marks.size() * sizeof(Mark);
  TESSERA_TRY(marks_.Renew(gpu, bytes));
  CUDA_TRY(cudaMemsetAsync(marks_.As<void>(), 0, bytes, gpu->stream));
  launch->joins.marks = marks_.As<Mark>();
  launch->joins.mark_count = static_cast<uint32_t>(plan.marks.size());
  return Status::Ok();
}

Status JoinProfile::AddMarks(GpuDevice* gpu, const LaunchPlan& plan) {
  if (plan.marks.empty()) return Status::Ok();
  std::vector<Mark> marks(plan.marks.size());
  CUDA_TRY(cudaMemcpyAsync(marks.data(), marks_.As<void>(), marks.size() * sizeof(Mark), cudaMemcpyDeviceToHost,
                           gpu->stream));
  CUDA_TRY(cudaStreamSynchronize(gpu->stream));
  for (size_t m = 0; m < marks.size(); ++m) {
    cycles_ += marks[m].cycles;
    const int join = plan.marks[m];
    if (join < 0) continue;
    auto at = std::find_if(joined_.begin(), joined_.end(), [&](const auto& j) { return j.first == join; });
    if (at == joined_.end()) at = joined_.insert(at, {join, Mark()});
    at->second.rows += marks[m].rows;
    at->second.cycles += marks[m].cycles;
  }
  return Status::Ok();
}

void JoinProfile::AddStatistics(const vm::SectionContext& context) const {
  const vm::Program& program = *context.program;
  vm::SectionStatistics& stats = *context.statistics;
  for (const auto& [join, mark] : joined_) {
    const double fraction = static_cast<double>(mark.cycles) / static_cast<double>(std::max<uint64_t>(cycles_, 1));
    const int builder = program.joins[static_cast<size_t>(join)].section;
    stats.joined.push_back(
        {program.sections[static_cast<size_t>(builder)].label, mark.rows, fraction * stats.kernel_milliseconds});
  }
}

}  // namespace tessera::kernels
