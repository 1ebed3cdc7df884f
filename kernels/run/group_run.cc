#include "kernels/run/group_run.h"

#include <algorithm>

#include "kernels/launch/vm_kernel.h"
#include "kernels/ranks/exchange_groups.h"
#include "kernels/ranks/group_parts.h"

namespace tessera::kernels {
namespace {

/// Groups in device memory that are numbered by their keys have copies as long as all together are no more than that.
constexpr uint32_t kCopiedGroups = 1 << 16, kMaxCopies = 16;
/// Rows whose halves sums have room for.
constexpr uint64_t kRowsOfHalves = uint64_t{1} << 32;

}  // namespace

GroupRun::GroupRun(GpuDevice* gpu, const vm::SectionContext& context, const vm::Section& section,
                   const LoweredProgram& lowered)
    : gpu_(*gpu), section_(section), lowered_(lowered), store_(gpu, context, section, lowered) {}

void GroupRun::SetUsed(uint32_t groups) {
  store_.set_used(std::min(groups, max_groups()));
  if (lowered_.repeats) rows_since_normalise_ = kRowsOfHalves;  // until the next launch
}

Status GroupRun::MakeReady(uint64_t rows, const LaunchPlan& plan) {
  if (rows_since_normalise_ + rows > kRowsOfHalves) {
    TESSERA_TRY(store_.Normalise());
    rows_since_normalise_ = 0;
  }
  rows_since_normalise_ += rows;
  // Direct groups enter the table when a block ends: there must be room for all of them.
  const uint64_t direct = plan.direct ? plan.direct_groups : 0, spills = store_.spills();
  while (max_groups() < used() + direct) {
    TESSERA_TRY(store_.Reserve(used() + direct));
    if (store_.spills() > spills && max_groups() < direct)
      return {ErrorCode::kResource, "groups that are numbered by their keys do not fit the GPU", "Use --device host."};
  }
  return Status::Ok();
}

Status GroupRun::FillLaunch(Launch* launch) {
  const uint64_t* initial = launch->groups.initial_state;
  launch->groups = store_.table();
  launch->groups.initial_state = initial;
  if (!AreFar(*launch)) return Status::Ok();
  launch->direct_copies = std::clamp(kCopiedGroups / launch->direct_groups, 1u, kMaxCopies);
  const uint64_t numbers = uint64_t{launch->direct_groups} * launch->direct_copies;
  const uint64_t states = numbers * lowered_.state_words * 8;
  TESSERA_TRY(direct_.Renew(&gpu_, states + numbers));
  launch->groups.states = direct_.As<uint64_t>();
  launch->touched = direct_.As<uint8_t>() + states;
  return Status::Ok();
}

Status GroupRun::ClearDirectGroups(const Launch& launch) {
  if (AreFar(launch)) CUDA_TRY(StartClearDirectGroups(launch, gpu_.stream));
  return Status::Ok();
}

Status GroupRun::EnterDirectGroups(const Launch& launch) {
  if (!AreFar(launch)) return Status::Ok();
  DeviceGroups table = store_.table();
  table.initial_state = launch.groups.initial_state;
  CUDA_TRY(StartEnterDirectGroups(launch, table, gpu_.stream));
  return Status::Ok();
}

Status GroupRun::StartSendBack(const Launch& launch, const SmallCopy& counters, uint64_t* to) {
  const DeviceGroups& table = store_.table();
  const uint64_t most = launch.direct ? uint64_t{used()} + launch.direct_groups : table.max_groups;
  eager_.n = std::min<uint64_t>(most, kEagerBytes / 8 / std::max(table.record_words, table.state_words));
  eager_.record_step = table.record_words;
  eager_.state_step = table.state_words;
  uint64_t* const states = to + eager_.n * table.record_words;
  eager_.records = to;
  eager_.states = states;
  const uint64_t record_bytes = table.record_words * 8, state_bytes = table.state_words * 8;
  const uint32_t* made = &launch.control->groups;
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

Status GroupRun::NormaliseRepeats() { return lowered_.repeats ? store_.Normalise() : Status::Ok(); }

bool GroupRun::CanExchange(int ranks) const {
  // Beside the table there are the groups that leave and those that come, and then a new table.
  const uint64_t bytes = uint64_t{used()} * (lowered_.record_words + lowered_.state_words) * 8;
  return ranks <= static_cast<int>(kMaxParts) && store_.AllHere() && CanExchangeGroups(section_, lowered_) &&
         4 * bytes <= gpu_.Room();
}

Status GroupRun::Exchange(RankLinks* links, vm::Exchange* exchange, Status mine) {
  eager_.n = 0;
  if (mine.ok()) mine = store_.Normalise();
  TESSERA_TRY(ExchangeGroups(&gpu_, links, exchange, std::move(mine), section_, lowered_, &store_));
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
