#include "kernels/ranks/exchange_groups.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/ranks/group_parts.h"
#include "vm/meaning/meaning.h"
#include "vm/shares/tell_ranks.h"

namespace tessera::kernels {
namespace {

AddedStates AddedStatesOf(const vm::Section& section, const LoweredProgram& lowered) {
  AddedStates states;
  for (size_t k = 0; k < lowered.folds.size(); ++k) {
    states.op[k] = section.aggregates[k].op;
    states.word[k] = lowered.folds[k].state;
  }
  states.count = static_cast<uint32_t>(lowered.folds.size());
  return states;
}

/// Whether other ranks' states can be added to these. (Identifiers of texts are each rank's own.)
bool CanAddStates(const vm::Section& section, const LoweredProgram& lowered) {
  const auto is_text = [](const SqlType& type) { return type.storage() == StorageClass::kText; };
  if (std::any_of(section.columns.begin() + section.keys, section.columns.end(), is_text)) return false;
  if (lowered.folds.size() > kMaxAddedStates) return false;
  return std::all_of(section.aggregates.begin(), section.aggregates.end(), [](const vm::AggregateSpec& a) {
    bool can = false;
    vm::WithAggregate(a.op, [&]<class M>() { can = M::kGroupState != vm::GroupState::kLocked; });
    return can;
  });
}

/// Groups of all ranks on their way, and the memory that they are in.
class GroupExchange {
 public:
  GroupExchange(GpuDevice* gpu, size_t ranks, size_t own, const GroupsToExchange& what)
      : gpu_(*gpu),
        ranks_(ranks),
        own_(own),
        groups_(*what.groups),
        texts_(*what.texts),
        text_keys_(TextKeysOf(what.section)),
        table_(what.groups->table()),
        counts_(ranks) {}

  /// How many groups each rank gets from this one.
  const std::vector<uint32_t>& counts() const { return counts_; }
  /// Cuts this rank's groups into parts.
  Status Cut();
  /// Room for what comes: from[r] groups of rank r.
  Status MakeRoom(const std::vector<uint32_t>& from);
  std::vector<std::vector<DeviceBytes>> outgoing() const { return Bytes(sent_, counts_); }
  std::vector<std::vector<DeviceBytes>> incoming() const { return Bytes(came_, from_); }
  /// Makes one group of those with the same key.
  Status Merge(const LoweredProgram& lowered, const AddedStates& states);

 private:
  struct Buffer {
    RunBuffer records, states;
  };
  uint64_t Sum(const std::vector<uint32_t>& counts) const {
    return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  }
  Status Allocate(uint64_t groups, Buffer* out) {
    TESSERA_TRY(out->records.Allocate(&gpu_, std::max<uint64_t>(groups, 1) * table_.record_words * 8));
    return out->states.Allocate(&gpu_, std::max<uint64_t>(groups, 1) * table_.state_words * 8);
  }
  LooseGroups At(const Buffer& buffer, uint64_t first, uint64_t n) const {
    return {buffer.records.As<uint64_t>() + first * table_.record_words,
            buffer.states.As<uint64_t>() + first * table_.state_words, n};
  }
  GroupRecords RecordsOf(const LooseGroups& groups) const { return {groups.records, groups.n, table_.record_words}; }
  /// This rank's groups that stay here.
  LooseGroups Kept() const {
    return At(sent_, std::accumulate(counts_.begin(), counts_.begin() + static_cast<ptrdiff_t>(own_), uint64_t{0}),
              counts_[own_]);
  }
  /// Where the groups are that go to each rank, or come from it.
  std::vector<std::vector<DeviceBytes>> Bytes(const Buffer& buffer, const std::vector<uint32_t>& counts) const;

  GpuDevice& gpu_;
  const size_t ranks_, own_;
  GroupStore& groups_;
  const GroupTexts& texts_;
  const TextKeys text_keys_;
  const DeviceGroups table_;
  std::vector<uint32_t> counts_, from_;  // by rank
  Buffer sent_, came_;
};

Status GroupExchange::Cut() {
  RunBuffer counts;
  const uint64_t bytes = ranks_ * sizeof(uint32_t);
  TESSERA_TRY(counts.Allocate(&gpu_, bytes));
  TESSERA_TRY(Allocate(groups_.used(), &sent_));
  TESSERA_TRY(texts_.ToNumbers(&gpu_, text_keys_, {table_.records, groups_.used(), table_.record_words}));
  const auto parts = static_cast<uint32_t>(ranks_);
  CUDA_TRY(cudaMemsetAsync(counts.As<void>(), 0, bytes, gpu_.stream));
  CUDA_TRY(StartCountParts(table_, groups_.used(), parts, counts.As<uint32_t>(), gpu_.stream));
  CUDA_TRY(cudaMemcpyAsync(counts_.data(), counts.As<void>(), bytes, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  std::vector<uint32_t> places(ranks_);
  std::exclusive_scan(counts_.begin(), counts_.end(), places.begin(), 0u);
  CUDA_TRY(cudaMemcpyAsync(counts.As<void>(), places.data(), bytes, cudaMemcpyHostToDevice, gpu_.stream));
  const LooseGroups all = At(sent_, 0, groups_.used());
  CUDA_TRY(StartCutParts(table_, groups_.used(), parts, counts.As<uint32_t>(), all, gpu_.stream));
  return Status::Ok();
}

Status GroupExchange::MakeRoom(const std::vector<uint32_t>& from) {
  from_ = from;
  from_[own_] = 0;  // they are where they were sent from
  return Allocate(Sum(from_), &came_);
}

std::vector<std::vector<DeviceBytes>> GroupExchange::Bytes(const Buffer& buffer,
                                                           const std::vector<uint32_t>& counts) const {
  std::vector<std::vector<DeviceBytes>> out(ranks_);
  uint64_t first = 0;
  for (size_t r = 0; r < ranks_; first += counts[r++]) {
    if (r == own_) continue;
    const LooseGroups groups = At(buffer, first, counts[r]);
    out[r] = {{groups.records, groups.n * table_.record_words * 8}, {groups.states, groups.n * table_.state_words * 8}};
  }
  return out;
}

Status GroupExchange::Merge(const LoweredProgram& lowered, const AddedStates& states) {
  TESSERA_TRY(groups_.Empty(counts_[own_] + Sum(from_)));
  RunBuffer buffer;  // the counters, then the initial state
  const uint64_t initial_bytes = lowered.groups.initial_state.size() * 8;
  TESSERA_TRY(buffer.Allocate(&gpu_, sizeof(Control) + initial_bytes));
  auto* const control = buffer.As<Control>();
  CUDA_TRY(cudaMemsetAsync(control, 0, sizeof(Control), gpu_.stream));
  // (Pageable memory: the copies are done when the calls return.)
  CUDA_TRY(cudaMemcpyAsync(control + 1, lowered.groups.initial_state.data(), initial_bytes, cudaMemcpyHostToDevice,
                           gpu_.stream));
  DeviceGroups table = groups_.table();
  table.initial_state = reinterpret_cast<const uint64_t*>(control + 1);
  TESSERA_TRY(texts_.ToIdentifiers(&gpu_, text_keys_, {RecordsOf(Kept()), RecordsOf(At(came_, 0, Sum(from_)))}));
  CUDA_TRY(StartEnterGroups(Kept(), table, states, control, gpu_.stream));
  uint64_t first = 0;
  for (size_t r = 0; r < ranks_; first += from_[r++])  // rank by rank: a key stands once in each one's groups
    CUDA_TRY(StartEnterGroups(At(came_, first, from_[r]), table, states, control, gpu_.stream));
  Control counters;
  CUDA_TRY(cudaMemcpyAsync(&counters, control, sizeof counters, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  if (counters.reasons != 0) return {ErrorCode::kInternal, "exchanged groups do not fit the table made for them"};
  groups_.set_used(counters.groups);
  return Status::Ok();
}

}  // namespace

tessera::Result<vm::GroupOffer> OfferGroups(GpuDevice* gpu, const GroupsToExchange& what, uint64_t ranks) {
  vm::GroupOffer offer;
  offer.groups = what.groups->used();
  if (ranks > kMaxParts || !what.groups->AllHere() || !CanAddStates(what.section, what.lowered)) return offer;
  // Beside the table there are the groups that leave and those that come, and then a new table.
  const uint64_t identifiers = what.strings->count();
  uint64_t bytes = 4 * offer.groups * (what.lowered.groups.record_words + what.lowered.groups.state_words) * 8;
  const TextKeys keys = TextKeysOf(what.section);
  if (keys.count > 0) bytes += what.texts->MostBytes(identifiers, ranks);
  if (bytes > gpu->Room()) return offer;
  if (keys.count > 0) {
    if (identifiers > GroupTexts::kMostIdentifiers) return offer;
    const DeviceGroups& table = what.groups->table();
    TESSERA_ASSIGN(const bool few,
                   what.texts->Mark(gpu, keys, {table.records, offer.groups, table.record_words}, *what.strings));
    if (!few) return offer;
    offer.text_bytes = what.texts->untold_bytes();
  }
  offer.can = 1;
  return offer;
}

Status ExchangeGroups(GpuDevice* gpu, RankLinks* links, vm::Exchange* exchange,
                      const std::vector<vm::GroupOffer>& offers, Status mine, const GroupsToExchange& what) {
  const auto ranks = static_cast<size_t>(exchange->ranks()), own = static_cast<size_t>(exchange->rank());
  GroupExchange moved(gpu, ranks, own, what);
  std::vector<uint64_t> text_bytes;
  for (const vm::GroupOffer& offer : offers) text_bytes.push_back(offer.text_bytes);
  const Status told = what.texts->Tell(text_bytes, exchange, what.strings, what.pool);
  if (mine.ok()) mine = told;
  if (mine.ok()) mine = moved.Cut();
  TESSERA_ASSIGN(const std::vector<std::vector<uint32_t>> all, vm::TellRanks(exchange, mine, moved.counts()));
  std::vector<uint32_t> from;
  for (const std::vector<uint32_t>& of_rank : all) from.push_back(of_rank[own]);
  TESSERA_TRY(links->Agree(moved.MakeRoom(from), exchange));
  TESSERA_TRY(links->Move(moved.outgoing(), moved.incoming(), exchange, gpu->stream));
  return moved.Merge(what.lowered, AddedStatesOf(what.section, what.lowered));
}

}  // namespace tessera::kernels
