#include "kernels/run/section_run.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace tessera::kernels {
namespace {

/// The most rows for which room is taken although they may not come: CUDA takes a millisecond to map a gigabyte.
constexpr uint64_t kMostExpectedRows = uint64_t{1} << 26;

}  // namespace

SectionRun::SectionRun(GpuDevice* gpu, const vm::SectionContext& context, DeviceJoins* joins, const RowSource* rows,
                       int build)
    : gpu_(*gpu),
      context_(context),
      joins_(*joins),
      build_(build),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      lowered_(
          LowerProgram(*context.program, context.section, context.traits->section(context.section), context.strings)),
      passes_(joins, context_),
      feed_(gpu, context_, lowered_, joins->key_ranges(), rows),
      grid_(gpu, context_, lowered_, *joins, rows),
      builder_(gpu, context_, lowered_, *joins, feed_.encoder(), &grid_),
      sink_(gpu, context_, lowered_, *joins),
      launcher_(gpu, context_, build, &sink_, &grid_) {}

SectionRun::~SectionRun() {
  for (Batch& b : batches_) {
    gpu_.cache.Abandon(&b.input.copies);
    gpu_.cache.Unpin(&b.input.pinned);
    gpu_.encodings.KeepAll(&b.input.tablets);
  }
}

// ---- Passes ---------------------------------------------------------------------------------------------------------

Status SectionRun::AllTablets() {
  TESSERA_TRY(passes_.Plan());
  TESSERA_TRY(sink_.Open());
  for (uint64_t pass = 0; pass < passes_.count() && !sink_.has_enough(); ++pass) {
    TESSERA_TRY(StartPass(pass));
    TESSERA_TRY(RunPass());
  }
  if (launches_ > 1) context_.statistics->device_plan += ", " + std::to_string(launches_) + " launches";
  return sink_.End();
}

Status SectionRun::StartPass(uint64_t pass) {
  TESSERA_TRY(passes_.LoadPass(pass, &lowered_));
  feed_.StartPass(pass, passes_.any());
  return Status::Ok();
}

Status SectionRun::RunPass() {
  if (context_.table != nullptr) context_.statistics->tablets = context_.table->tablets.size();
  size_t number = 0;
  while (!feed_.AtEnd() && !sink_.has_enough()) {
    Batch& batch = batches_[number % kBatches];
    TESSERA_ASSIGN(const bool collected, Collect(&batch.input));
    if (!collected) {
      TESSERA_TRY(FinishFirst());
      continue;
    }
    if (batch.input.tablets.empty()) continue;
    if (grid_.is_needed()) TESSERA_TRY(FinishAll());  // they share the lists of units
    if (sink_.has_enough()) break;
    TESSERA_TRY(BuildLaunch(number % kBatches));
    in_flight_.push_back(&batch);
    ++number;
    ++launches_;
    TESSERA_TRY(StartFirst());
    if (in_flight_.size() == kBatches || (in_flight_.size() > 1 && first_started_ && !gpu_.IsBusy())) {
      TESSERA_TRY(FinishFirst());
      TESSERA_TRY(StartFirst());
    }
  }
  return FinishAll();
}

Status SectionRun::StartFirst() {
  if (first_started_ || in_flight_.empty() || sink_.has_enough()) return Status::Ok();
  // Where columns are on their way, those of the next tablets get in line before a launch waits for its own.
  if (!gpu_.cache.AreIssued(in_flight_.front()->input.copies)) return Status::Ok();
  first_started_ = true;
  return launcher_.Start(in_flight_.front());
}

ColumnBudget SectionRun::budget() const {
  return {builder_.MayPartition(), sink_.has_groups() || sink_.is_build(), sink_.reserved_bytes()};
}

tessera::Result<bool> SectionRun::Collect(TabletBatch* batch) {
  const auto find_sparse = [&](const vm::TabletEncoding& tablet) { return builder_.SparseSlots(tablet); };
  const auto may_cut = [&](const std::vector<vm::TabletEncoding>& tablets) { return builder_.MayCut(tablets); };
  const UnderWay others = in_flight_.empty() ? UnderWay::kNone
                          : first_started_   ? UnderWay::kRunning
                                             : UnderWay::kWaiting;
  return feed_.Collect(budget(), others, find_sparse, may_cut, batch);
}

Status SectionRun::BuildLaunch(size_t number) {
  const uint64_t most_groups = sink_.has_groups() ? sink_.groups().MostNumbers() : UINT64_MAX;
  Arena& arena = gpu_.arena(kBatches * static_cast<size_t>(build_ + 1) + number);
  TESSERA_ASSIGN(const bool built, builder_.Build(most_groups, &arena, &batches_[number]));
  if (built) return Status::Ok();
  for (;;) {
    const Status unpacked = feed_.UnpackBits(&batches_[number].input);
    if (unpacked.ok()) break;
    // What others hold may be what is missing. What has been done is not done again.
    if (unpacked.code() != ErrorCode::kResource || in_flight_.empty()) return unpacked;
    TESSERA_TRY(FinishFirst());
  }
  return builder_.Build(most_groups, &arena, &batches_[number]).status();
}

Status SectionRun::FinishFirst() {
  Batch* batch = in_flight_.front();
  in_flight_.pop_front();
  if (!std::exchange(first_started_, false)) TESSERA_TRY(launcher_.Start(batch));
  return launcher_.Finish(passes_.added_code(), batch);
}

Status SectionRun::FinishAll() {
  while (!in_flight_.empty() && !sink_.has_enough()) TESSERA_TRY(FinishFirst());
  in_flight_.clear();
  first_started_ = false;
  return Status::Ok();
}

tessera::Result<bool> SectionRun::MoveTo(DeviceRows* rows) {
  if (context_.keep_from == UINT64_MAX) return false;
  TESSERA_ASSIGN(const bool moved, sink_.MoveTo(rows));
  if (moved) AddJoinStatistics();
  return moved;
}

tessera::Result<vm::RowSet> SectionRun::Result() {
  AddJoinStatistics();
  return sink_.Rows();
}

// ---- Rows of a join table -------------------------------------------------------------------------------------------

Status SectionRun::StartBuild() {
  TESSERA_TRY(passes_.Plan());
  TESSERA_TRY(StartPass(0));
  if (context_.table != nullptr) context_.statistics->tablets = context_.table->tablets.size();
  Batch& batch = batches_[0];
  TESSERA_TRY(Collect(&batch.input).status());
  const uint64_t rows = batch.input.rows();
  BuildRows& build = sink_.build();
  const bool once = feed_.AtEnd() && passes_.count() <= 1, all = once && !lowered_.machine.repeats;
  if (!all || rows > gpu_.options().deferred_build_rows || rows * build.row_bytes() > build.most_bytes()) {
    const uint64_t expected = lowered_.machine.repeats ? RowsWithMatches() : rows;
    return RunBuild(once && rows > 0 ? expected : 0);
  }
  // No row more than there are can come: nothing can run full, and nothing has to be waited for here.
  TESSERA_TRY(sink_.AllocateBuild(std::max<uint64_t>(rows, 1)));
  memset(launcher_.HostControl(batch), 0, sizeof(Control));
  if (batch.input.tablets.empty()) return Status::Ok();
  TESSERA_TRY(BuildLaunch(0));
  launcher_.Defer();
  return launcher_.Start(&batch);
}

uint64_t SectionRun::RowsWithMatches() const {
  uint64_t rows = 0;
  for (const vm::ProbeTrait& p : context_.traits->section(context_.section).probes) {
    if (p.HasLoop() && joins_.shapes()[static_cast<size_t>(p.join)] != nullptr)
      rows = std::max<uint64_t>(rows, joins_.rows(p.join).rows());
  }
  return rows > gpu_.options().first_build_rows ? std::min(rows, kMostExpectedRows) : 0;
}

Status SectionRun::RunBuild(uint64_t room) {
  Batch& batch = batches_[0];
  BuildRows& build = sink_.build();
  if (room == 0 || !build.TryAllocate(room)) {
    const uint64_t most = std::max<uint64_t>(gpu_.options().first_build_rows, kSliceRows);
    TESSERA_TRY(sink_.AllocateBuild(std::clamp<uint64_t>(build.most_bytes() / build.row_bytes(), kSliceRows, most)));
  }
  for (uint64_t pass = 0;;) {
    if (!batch.input.tablets.empty()) {
      TESSERA_TRY(BuildLaunch(0));
      TESSERA_TRY(launcher_.Start(&batch));
      TESSERA_TRY(launcher_.Finish(passes_.added_code(), &batch));
    }
    if (feed_.AtEnd()) {
      if (++pass == passes_.count()) return sink_.GiveBackUnused();
      TESSERA_TRY(StartPass(pass));
    }
    TESSERA_TRY(Collect(&batch.input).status());
  }
}

Status SectionRun::FinishBuild() {
  if (launcher_.is_deferred()) TESSERA_TRY(launcher_.FinishDeferred(passes_.added_code(), &batches_[0]));
  if (const int growths = sink_.build().growths(); growths > 0)
    context_.statistics->device_plan += ", room for rows grew " + std::to_string(growths) + " times";
  return sink_.FinishBuild();
}

}  // namespace tessera::kernels
