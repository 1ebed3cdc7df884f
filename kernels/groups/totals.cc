#include "kernels/groups/totals.h"

#include "kernels/groups/group_store.h"
#include "vm/meaning/aggregate.h"
#include "vm/meaning/lane_error.h"
#include "vm/meaning/meaning.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {
namespace {

template <class M>
void MergeState(const Partial* from, Partial* to, vm::Lane* lane) {
  using State = typename M::State;
  State state = FromPartials<State>(to);
  M::Merge(state, FromPartials<State>(from), *lane);
  ToPartials(state, to);
}

}  // namespace

Totals::Totals(const vm::Section& section, const LoweredProgram& lowered)
    : section_(section), totals_(lowered.partials) {
  if (section.keys > 0) return;
  for (const DeviceInstruction& fold : lowered.folds) {
    firsts_.push_back(fold.state);
    totals_[fold.state] = {fold.low, fold.high, 0, 0};
  }
}

Status Totals::Merge(const Partial* partials, uint32_t blocks) {
  for (size_t k = 0; k < firsts_.size(); ++k) {
    vm::Lane lane;
    Partial* const to = totals_.data() + firsts_[k];
    for (uint32_t b = 0; b < blocks; ++b) {
      const Partial* const from = partials + b * totals_.size() + firsts_[k];
      if (from->count == 0) continue;
      to->count += from->count;
      vm::WithFold(section_.aggregates[k].op, [&]<class M>() { MergeState<M>(from, to, &lane); });
    }
    if (lane.error != vm::LaneError::kNone) return vm::LaneErrorStatus(lane.error, {});
  }
  return Status::Ok();
}

vm::RowSet Totals::Rows() const {
  vm::RowSet rows = vm::MakeRowSet(section_.columns);
  ResizeColumns(1, &rows);
  const std::vector<size_t> columns = vm::AggregateColumns(section_);
  for (size_t k = 0; k < firsts_.size(); ++k) {
    const Partial& t = totals_[firsts_[k]];
    uint64_t words[vm::kMostStateWords] = {static_cast<uint64_t>(t.low), static_cast<uint64_t>(t.high)};
    vm::WithFold(section_.aggregates[k].op,
                 [&]<class M>() { vm::ToWords(FromPartials<typename M::State>(&t), words); });
    const bool count = vm::Info(section_.aggregates[k].op).role == vm::Role::Count;
    if (count) words[0] = t.count;
    const uint64_t* word = words;
    for (size_t c = columns[k]; c < columns[k + 1]; ++c) {
      vm::RowColumn& column = rows.columns[c];
      column.low[0] = static_cast<int64_t>(*word++);
      if (IsWide(column.type)) column.high[0] = static_cast<int64_t>(*word++);
      if (!count && t.count == 0) column.null = {1};
    }
  }
  return rows;
}

}  // namespace tessera::kernels
