#include "kernels/run/group_run.h"

#include <algorithm>

#include "kernels/launch/vm_kernel.h"

namespace tessera::kernels {
namespace {

/// Groups in device memory that are numbered by their keys have copies as long as all together are no more than that.
constexpr uint32_t kCopiedGroups = 1 << 16, kMaxCopies = 16;
/// Up to this many, the table gets room for all of them; if there may be more, for those that have a row.
constexpr uint32_t kUncountedGroups = 1 << 20;
/// Rows whose halves sums have room for.
constexpr uint64_t kRowsOfHalves = uint64_t{1} << 32;

}  // namespace

GroupRun::GroupRun(GpuDevice* gpu, const vm::SectionContext& context, const vm::Section& section,
                   const LoweredProgram& lowered)
    : gpu_(*gpu), context_(context), section_(section), lowered_(lowered), store_(gpu, context, section, lowered) {}

void GroupRun::SetUsed(uint32_t groups) {
  store_.set_used(std::min(groups, max_groups()));
  if (lowered_.machine.repeats) rows_since_normalise_ = kRowsOfHalves;  // until the next launch
}

Status GroupRun::MakeReady(uint64_t rows, const LaunchPlan& plan, uint32_t spare) {
  if (rows_since_normalise_ + rows > kRowsOfHalves) {
    TESSERA_TRY(store_.Normalise());
    rows_since_normalise_ = 0;
  }
  rows_since_normalise_ += rows;
  if (AreFar(plan)) return plan.groups.domain <= kUncountedGroups ? TryReserve(plan.groups.domain) : Status::Ok();
  // Private groups enter the table when a block ends: there must be room for all of them.
  return Reserve(plan.groups.direct ? plan.groups.domain : spare);
}

Status GroupRun::Reserve(uint64_t more) {
  const uint64_t spills = store_.spills();
  while (!HasRoomFor(more)) {
    TESSERA_TRY(store_.Reserve(used() + more));
    if (store_.spills() > spills && max_groups() < more)
      return {ErrorCode::kResource, "the groups of a launch do not fit the GPU", "Use --device host."};
  }
  return Status::Ok();
}

Status GroupRun::TryReserve(uint64_t more) {
  const Status status = Reserve(more);
  // (Without any room there is no table.)
  return status.ok() || status.code() != ErrorCode::kResource || max_groups() == 0 ? status : Status::Ok();
}

Status GroupRun::FillLaunch(Launch* launch) {
  const uint64_t* initial = launch->groups.initial_state;
  if (launch->keys.of_groups != 0 && !AreFar(*launch)) TESSERA_TRY(store_.Index());
  launch->groups = store_.table();
  launch->groups.initial_state = initial;
  if (!AreFar(*launch)) return Status::Ok();
  launch->direct.copies = std::clamp(kCopiedGroups / launch->direct.groups, 1u, kMaxCopies);
  const uint64_t numbers = uint64_t{launch->direct.groups} * launch->direct.copies;
  const uint64_t states = numbers * lowered_.groups.state_words * 8;
  TESSERA_TRY(direct_.Renew(&gpu_, states + numbers));
  launch->groups.states = direct_.As<uint64_t>();
  launch->direct.touched = direct_.As<uint8_t>() + states;
  return Status::Ok();
}

Status GroupRun::ClearDirectGroups(const Launch& launch) {
  if (AreFar(launch)) CUDA_TRY(StartClearDirectGroups(launch, gpu_.stream));
  return Status::Ok();
}

tessera::Result<uint32_t> GroupRun::CountDirectGroups(const Launch& launch) {
  RunBuffer count;
  TESSERA_TRY(count.Allocate(&gpu_, sizeof(uint32_t)));
  CUDA_TRY(cudaMemsetAsync(count.As<void>(), 0, sizeof(uint32_t), gpu_.stream));
  CUDA_TRY(StartCountDirectGroups(launch, count.As<uint32_t>(), gpu_.stream));
  TESSERA_TRY(gpu_.WaitForStream(&launch.state.control->stop, context_.cancel));
  uint32_t groups = 0;
  CUDA_TRY(cudaMemcpyAsync(&groups, count.As<void>(), sizeof groups, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return groups;
}

Status GroupRun::SetCounter(const Launch& launch) {
  const uint32_t groups = used();
  CUDA_TRY(cudaMemcpyAsync(&launch.state.control->groups, &groups, sizeof groups, cudaMemcpyHostToDevice, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return Status::Ok();
}

Status GroupRun::EnterDirectGroups(const Launch& launch) {
  if (!AreFar(launch)) return Status::Ok();
  if (!HasRoomFor(launch.direct.groups)) {
    TESSERA_ASSIGN(const uint32_t groups, CountDirectGroups(launch));
    const uint32_t before = used();
    TESSERA_TRY(TryReserve(groups));
    if (!HasRoomFor(groups)) return EnterPieces(launch);
    if (used() != before) TESSERA_TRY(SetCounter(launch));  // they have gone to the host
  }
  // These groups are known to be different. If the table has no others, their keys need not be looked up.
  const bool are_first = used() == 0;
  if (!are_first) TESSERA_TRY(store_.Index());
  DeviceGroups table = store_.table();
  table.initial_state = launch.groups.initial_state;
  CUDA_TRY(are_first ? StartListDirectGroups(launch, table, 0, launch.direct.groups, gpu_.stream)
                     : StartEnterDirectGroups(launch, table, gpu_.stream));
  return Status::Ok();
}

Status GroupRun::EnterPieces(const Launch& launch) {
  for (uint64_t first = 0; first < launch.direct.groups; first += max_groups()) {
    if (used() > 0) TESSERA_TRY(store_.Spill());
    TESSERA_TRY(SetCounter(launch));
    DeviceGroups table = store_.table();
    table.initial_state = launch.groups.initial_state;
    const uint64_t end = std::min<uint64_t>(first + max_groups(), launch.direct.groups);
    CUDA_TRY(
        StartListDirectGroups(launch, table, static_cast<uint32_t>(first), static_cast<uint32_t>(end), gpu_.stream));
    uint32_t groups = 0;
    CUDA_TRY(
        cudaMemcpyAsync(&groups, &launch.state.control->groups, sizeof groups, cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    store_.set_used(groups);
  }
  return Status::Ok();
}

Status GroupRun::StartSendBack(const Launch& launch, const SmallCopy& counters, uint64_t* to) {
  const DeviceGroups& table = store_.table();
  const uint64_t most = launch.direct.active ? uint64_t{used()} + launch.direct.groups : table.max_groups;
  eager_.n = std::min<uint64_t>(most, kEagerBytes / 8 / std::max(table.record_words, table.state_words));
  eager_.record_step = table.record_words;
  eager_.state_step = table.state_words;
  uint64_t* const states = to + eager_.n * table.record_words;
  eager_.records = to;
  eager_.states = states;
  const uint64_t record_bytes = table.record_words * 8, state_bytes = table.state_words * 8;
  const uint32_t* made = &launch.state.control->groups;
  CUDA_TRY(StartSmallCopies({counters,
                             {to, table.records, eager_.n * record_bytes, made, record_bytes},
                             {states, table.states, eager_.n * state_bytes, made, state_bytes}},
                            gpu_.stream));
  return Status::Ok();
}

Status GroupRun::Grow(bool* spilled) {
  const uint64_t spills = store_.spills();
  TESSERA_TRY(store_.Grow());
  *spilled = store_.spills() > spills;
  return Status::Ok();
}

Status GroupRun::NormaliseRepeats() { return lowered_.machine.repeats ? store_.Normalise() : Status::Ok(); }

tessera::Result<vm::GroupOffer> GroupRun::Offer(GroupTexts* texts, int ranks) {
  return OfferGroups(&gpu_, ToExchange(texts), static_cast<uint64_t>(ranks));
}

Status GroupRun::Exchange(RankLinks* links, GroupTexts* texts, vm::Exchange* exchange,
                          const std::vector<vm::GroupOffer>& offers) {
  eager_.n = 0;
  TESSERA_TRY(ExchangeGroups(&gpu_, links, exchange, offers, store_.Normalise(), ToExchange(texts)));
  store_.set_parts(false);
  return Status::Ok();
}

tessera::Result<bool> GroupRun::MoveTo(DeviceRows* rows) {
  eager_.n = 0;  // other groups are the first ones once some have been left out
  return store_.MoveTo(rows);
}

tessera::Result<vm::RowSet> GroupRun::Rows() {
  GroupWords eager;
  if (used() <= eager_.n) {
    eager = eager_;
    eager.n = used();
  }
  return store_.Rows(eager);
}

}  // namespace tessera::kernels
