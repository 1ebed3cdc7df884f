#include "kernels/groups/totals.h"

#include "kernels/groups/group_store.h"
#include "vm/meaning/aggregate.h"
#include "vm/meaning/lane_error.h"
#include "vm/meaning/meaning.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {
namespace {

template <class M>
void MergeState(const Partial& from, Partial* to, vm::Lane* lane) {
  using State = typename M::State;
  const auto state_of = [](const Partial& p) {
    const uint64_t words[] = {static_cast<uint64_t>(p.low), static_cast<uint64_t>(p.high), p.third};
    return vm::FromWords<State>(words);
  };
  State state = state_of(*to);
  M::Merge(state, state_of(from), *lane);
  uint64_t words[3] = {};
  vm::ToWords(state, words);
  to->low = static_cast<int64_t>(words[0]);
  to->high = static_cast<int64_t>(words[1]);
  to->third = words[2];
}

}  // namespace

Totals::Totals(const vm::Section& section, const LoweredProgram& lowered)
    : section_(section), totals_(lowered.folds.size()) {
  for (size_t k = 0; k < totals_.size(); ++k) totals_[k] = {lowered.folds[k].low, lowered.folds[k].high, 0, 0};
}

Status Totals::Merge(const Partial* partials, uint32_t blocks) {
  for (size_t k = 0; k < totals_.size(); ++k) {
    vm::Lane lane;
    for (uint32_t b = 0; b < blocks; ++b) {
      const Partial& p = partials[b * totals_.size() + k];
      if (p.count == 0) continue;
      totals_[k].count += p.count;
      vm::WithFold(section_.aggregates[k].op, [&]<class M>() { MergeState<M>(p, &totals_[k], &lane); });
    }
    if (lane.error != vm::LaneError::kNone) return vm::LaneErrorStatus(lane.error, {});
  }
  return Status::Ok();
}

vm::RowSet Totals::Rows() const {
  vm::RowSet rows = vm::MakeRowSet(section_.columns);
  ResizeColumns(1, &rows);
  const std::vector<size_t> columns = vm::AggregateColumns(section_);
  for (size_t k = 0; k < totals_.size(); ++k) {
    const Partial& t = totals_[k];
    uint64_t words[] = {static_cast<uint64_t>(t.low), static_cast<uint64_t>(t.high), t.third};
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
