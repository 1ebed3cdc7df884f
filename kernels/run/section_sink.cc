#include "kernels/run/section_sink.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace tessera::kernels {

using vm::Section;

SectionSink::SectionSink(GpuDevice* gpu, const vm::SectionContext& context, const LoweredProgram& lowered,
                         const DeviceJoins& joins)
    : gpu_(*gpu),
      context_(context),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      state_bytes_(lowered.partials * sizeof(Partial)),
      groups_(gpu, context, section_, lowered),
      totals_(section_, lowered),
      row_output_(gpu, context),
      build_(gpu, context, joins) {
  if (section_.sink == Section::Sink::kRows && section_.after.order.empty() && section_.after.limit >= 0)
    enough_ = section_.after.Needed();
}

Status SectionSink::Open() {
  if (section_.sink == Section::Sink::kRows) return row_output_.Open();
  return has_groups() ? groups_.Open() : Status::Ok();
}

void SectionSink::FillControl(Control* control) const {
  memset(control, 0, sizeof *control);
  control->groups = groups_.used();
  control->rows = rows_used_;
  control->rows_valid = UINT64_MAX;
}

Status SectionSink::MakeReady(Batch* batch) {
  uint32_t& spare = batch->launch.spare;
  if (has_groups()) return groups_.MakeReady(batch->input.rows(), batch->plan, spare);
  const uint64_t room = output().capacity - rows_used_;
  if (room >= batch->input.rows()) spare = 0;  // each row makes one at most
  // (Twice: with no more than the spare room, the first row would end the launch.)
  return room < 2 * uint64_t{spare} ? MakeRoom(2 * uint64_t{spare}) : Status::Ok();
}

Output SectionSink::output() const { return is_build() ? build_.output() : row_output_.output(); }

Status SectionSink::FillLaunch(Launch* launch) {
  TESSERA_TRY(groups_.FillLaunch(launch));
  const Output output = this->output();
  launch->output.low = output.low;
  launch->output.high = output.high;
  launch->output.null = output.null;
  launch->output.capacity = output.capacity;
  launch->output.columns = static_cast<uint32_t>(section_.columns.size());
  launch->enough = enough_ == UINT64_MAX ? ~0ull : enough_ - row_output_.drained();
  return Status::Ok();
}

Status SectionSink::StartSendBack(const Batch& batch, const SmallCopy& counters, const uint32_t* used_blocks,
                                  uint8_t* results) {
  if (has_groups())
    return groups_.StartSendBack(batch.launch, counters,
                                 reinterpret_cast<uint64_t*>(results + batch.control + sizeof(Control)));
  if (is_build()) {
    CUDA_TRY(StartSmallCopies({counters}, gpu_.stream));
  } else {
    CUDA_TRY(StartSmallCopies(
        {counters, {results, batch.launch.aggregates.partials, batch.blocks * state_bytes_, used_blocks, state_bytes_}},
        gpu_.stream));
  }
  return Status::Ok();
}

Status SectionSink::TakeCounters(const Control& control, const Partial* partials, uint32_t blocks) {
  groups_.SetUsed(control.groups);
  rows_used_ = std::min<uint64_t>(control.rows, control.rows_valid);
  if (has_totals()) TESSERA_TRY(totals_.Merge(partials, blocks));
  enough_reached_ = (control.reasons & kEnough) != 0;
  return Status::Ok();
}

Status SectionSink::MakeRoom(uint64_t wanted) {
  return is_build() ? build_.Grow(wanted, &rows_used_) : row_output_.MakeRoom(&rows_used_, wanted);
}

Status SectionSink::End() { return context_.add_windows ? row_output_.AddWindows(rows_used_) : Status::Ok(); }

tessera::Result<bool> SectionSink::MoveTo(DeviceRows* rows) {
  if (has_groups()) return Stay(context_, groups_.used()) ? groups_.MoveTo(rows) : false;
  if (has_totals()) return false;
  TESSERA_ASSIGN(const bool moved, row_output_.MoveTo(rows_used_, rows));
  if (moved) DescribeRows();
  return moved;
}

void SectionSink::DescribeRows() const {
  std::string& plan = context_.statistics->device_plan;
  const std::string order = row_output_.Describe();
  if (!plan.empty() && !order.empty()) plan += ", " + order;
}

tessera::Result<vm::RowSet> SectionSink::Rows() {
  if (has_groups()) return groups_.Rows();
  if (has_totals()) return totals_.Rows();
  TESSERA_ASSIGN(vm::RowSet rows, row_output_.Finish(rows_used_));
  DescribeRows();
  return rows;
}

}  // namespace tessera::kernels
