#include "kernels/run/launcher.h"

#include <algorithm>
#include <cstring>

#include "kernels/launch/vm_kernel.h"
#include "vm/meaning/lane_error.h"

namespace tessera::kernels {

Launcher::Launcher(GpuDevice* gpu, const vm::SectionContext& context, int build, SectionSink* sink, GridLaunch* grid)
    : gpu_(*gpu),
      context_(context),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      build_(build),
      sink_(*sink),
      grid_(*grid) {}

// ---- Counters -------------------------------------------------------------------------------------------------------

Control* Launcher::DeviceControl(const Batch& batch) const {
  return build_ < 0 ? batch.arena->Device<Control>(batch.control)
                    : &gpu_.buffers.build_states.As<BuildState>()[build_].control;
}

Control* Launcher::HostControl(const Batch& batch) const {
  return build_ < 0 ? reinterpret_cast<Control*>(gpu_.buffers.host_results.As<uint8_t>() + batch.control)
                    : &gpu_.buffers.host_build_states.As<BuildState>()[build_].control;
}

void Launcher::SetCounters(Batch* batch) {
  if (deferred_) return;  // they are cleared with those of the other builds
  sink_.FillControl(sink_.is_build() ? HostControl(*batch)
                                     : reinterpret_cast<Control*>(batch->arena->Host(batch->control)));
}

Status Launcher::SendCounters(Batch* batch) {
  const void* from = sink_.is_build() ? HostControl(*batch) : static_cast<void*>(batch->arena->Host(batch->control));
  CUDA_TRY(StartSmallCopies({{DeviceControl(*batch), from, sizeof(Control)}}, gpu_.stream));
  return Status::Ok();
}

// ---- Starting -------------------------------------------------------------------------------------------------------

Status Launcher::Start(Batch* batch) {
  TESSERA_TRY(sink_.MakeReady(batch));
  TESSERA_TRY(gpu_.ReserveEvicting(&gpu_.buffers.scratch, batch->blocks * batch->plan.scratch_bytes));
  TESSERA_TRY(gpu_.buffers.host_results.Reserve(batch->control + sizeof(Control) + 2 * kEagerBytes));
  TESSERA_TRY(gpu_.cache.Finish(&batch->input.copies, gpu_.stream, &context_.statistics->transfer_milliseconds));
  SetCounters(batch);
  TESSERA_TRY(profile_.ClearMarks(&gpu_, batch->plan, &batch->launch));
  TESSERA_TRY(batch->arena->Send(batch->control, gpu_.stream));
  if (sink_.is_build() && !deferred_) TESSERA_TRY(SendCounters(batch));
  return StartLaunch(batch);
}

Status Launcher::StartAgain(Batch* batch) {
  if (batch->turns.active()) TESSERA_TRY(batch->turns.SendTurn(batch->launch, grid_.Tiles(batch->launch), gpu_.stream));
  SetCounters(batch);
  TESSERA_TRY(SendCounters(batch));
  return StartLaunch(batch);
}

Status Launcher::StartLaunch(Batch* batch) {
  Launch& launch = batch->launch;
  launched_ = launch.state.control = DeviceControl(*batch);
  launch.state.scratch = gpu_.buffers.scratch.As<uint8_t>();
  launch.state.scratch_bytes = batch->plan.scratch_bytes;
  TESSERA_TRY(sink_.FillLaunch(&launch));
  if (!deferred_) TESSERA_TRY(gpu_.clock.Begin(gpu_.stream));
  TESSERA_TRY(sink_.groups().ClearDirectGroups(launch));
  if (RadixPartition& radix = batch->partition.radix; radix.rows > 0) {
    CUDA_TRY(StartRadixPartition(radix, gpu_.info.multiprocessors, gpu_.stream));
    radix.rows = 0;
  }
  if (TextFilter& filter = batch->text_filter; filter.count > 0) {
    CUDA_TRY(StartTextFilter(filter, gpu_.stream));
    filter.count = 0;
  }
  TESSERA_TRY(StartKernel(batch));
  TESSERA_TRY(sink_.groups().EnterDirectGroups(launch));
  if (deferred_) return Status::Ok();
  TESSERA_TRY(gpu_.clock.End(gpu_.stream));
  // Not every block that there is room for has been launched, if these are those of child grids.
  const uint32_t* used_blocks = IsDp(batch->plan.variant) ? grid_.child_block_count() : nullptr;
  TESSERA_TRY(sink_.StartSendBack(*batch, {HostControl(*batch), launch.state.control, sizeof(Control)}, used_blocks,
                                  gpu_.buffers.host_results.As<uint8_t>()));
  return grid_.FetchReport();
}

Status Launcher::StartKernel(Batch* batch) {
  if (IsDp(batch->plan.variant)) return grid_.StartGenerations(batch->launch);
  void* arguments[] = {&batch->launch};
  CUDA_TRY(cudaLaunchKernel(VmKernelFor(batch->plan.variant), dim3(batch->blocks), dim3(kThreads + 32), arguments,
                            batch->plan.layout.bytes, gpu_.stream));
  return Status::Ok();
}

// ---- Finishing ------------------------------------------------------------------------------------------------------

Status Launcher::Wait() {
  TESSERA_TRY(gpu_.WaitForStream(&launched_->stop, context_.cancel));
  TESSERA_ASSIGN(const double milliseconds, gpu_.clock.KernelMilliseconds());
  context_.statistics->kernel_milliseconds += milliseconds;
  return Status::Ok();
}

Status Launcher::RowError(const Control& control, uint32_t added_code) const {
  if ((control.reasons & kFailed) == 0) return Status::Ok();
  if (control.error_claimed == 0)
    return {ErrorCode::kInternal, "the GPU had no room for what a launch made", "Use --device host."};
  return vm::LaneErrorStatus(static_cast<vm::LaneError>(control.error_code),
                             section_.code[control.error_address - added_code]);
}

Status Launcher::Finish(uint32_t added_code, Batch* batch) {
  const bool dp = IsDp(batch->plan.variant);
  // What a launch needs of them is in its arena, and to free them takes as long as a short one.
  gpu_.encodings.KeepAll(&batch->input.tablets);
  for (;;) {
    TESSERA_TRY(Wait());
    const Control& control = *HostControl(*batch);
    TESSERA_TRY(RowError(control, added_code));
    if (batch->turns.active()) TESSERA_TRY(batch->turns.FetchCursors(batch->launch, gpu_.stream));
    const BucketProgress progress = dp ? grid_.progress() : BucketProgress();
    CUDA_TRY(static_cast<cudaError_t>(progress.error));
    TESSERA_TRY(
        sink_.TakeCounters(control, gpu_.buffers.host_results.As<Partial>(), dp ? progress.blocks : batch->blocks));
    if (sink_.has_enough()) break;
    if (control.reasons == 0 && dp && grid_.HasBucketsLeft())
      return {ErrorCode::kInternal, "the GPU did not go on with a join", "Use another join_strategy."};
    if (control.reasons == 0 && !batch->turns.HasUnfinished(grid_.Tiles(batch->launch))) break;
    TESSERA_TRY(MakeRoom(control, batch));
    TESSERA_TRY(StartAgain(batch));
  }
  TESSERA_TRY(ReleaseInput(batch));
  grid_.AddStatistics();
  return Status::Ok();
}

Status Launcher::FinishDeferred(uint32_t added_code, Batch* batch) {
  const Control& control = *HostControl(*batch);
  TESSERA_TRY(RowError(control, added_code));
  sink_.SetBuilt(control.rows);
  return ReleaseInput(batch);
}

Status Launcher::ReleaseInput(Batch* batch) {
  gpu_.cache.Unpin(&batch->input.pinned);
  batch->partitioned.Free();
  batch->text_sets.Free();
  return profile_.AddMarks(&gpu_, batch->plan);
}

Status Launcher::MakeRoom(const Control& control, Batch* batch) {
  const uint64_t wanted = control.rows_wanted;
  if ((control.reasons & kGrow) != 0) TESSERA_TRY(GrowGroups(batch));
  if (sink_.has_groups()) TESSERA_TRY(sink_.groups().NormaliseRepeats());
  if ((control.reasons & kOutputFull) != 0) TESSERA_TRY(sink_.MakeRoom(wanted));
  return Status::Ok();
}

Status Launcher::GrowGroups(Batch* batch) {
  bool spilled = false;
  TESSERA_TRY(sink_.groups().Grow(&spilled));
  if (!spilled) return Status::Ok();
  if (batch->launch.spare > sink_.groups().max_groups())
    return {ErrorCode::kResource, "the groups of a launch do not fit the GPU", "Use --device host."};
  BlockTurns& turns = batch->turns;
  if (!IsDp(batch->plan.variant) && !turns.active()) {
    const uint32_t turn = std::clamp(sink_.groups().max_groups() / kTileRows, 1u, batch->blocks);
    return turns.Begin(batch->launch, batch->blocks, turn, gpu_.stream);
  }
  // (A child grid's cursors are not those of its blocks.)
  if (!IsDp(batch->plan.variant) && turns.Shrink()) return Status::Ok();
  return {ErrorCode::kResource, "the groups of a join's product do not fit the GPU",
          "Give --gpu-memory more, or use SET join_strategy = auto or --device host."};
}

}  // namespace tessera::kernels
