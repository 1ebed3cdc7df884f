#include "kernels/run/group_store.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "kernels/launch/vm_kernel.h"
#include "vm/aggregate.h"
#include "vm/lane_error.h"
#include "vm/meaning.h"
#include "vm/row_set.h"

namespace tessera::kernels {
namespace {

constexpr uint64_t kFirstGroups = 1 << 15, kLeastGroups = 1 << 9;
constexpr uint64_t kMaxGroups = 0xF0000000u;
/// Groups that come to the host at a time.
constexpr uint64_t kGroupsPerCopy = 1 << 17;
/// Partitions of the host's groups: one of 50 M groups has 200,000, some 10 MB.
constexpr uint32_t kParts = 256;
/// Words of groups that wait on the host to be merged: the more wait, the more of them are merged into a partition's
/// table while it is in cache.
constexpr uint64_t kPendingWords = (uint64_t{256} << 20) / 8;
/// Groups that are merged at a time: the rows that they become first are few and stay in cache.
constexpr uint64_t kMergedGroups = 4096;

using vm::Section;

void SetNull(vm::RowColumn* c, uint64_t row, uint64_t rows) {
  c->null.resize(rows);
  c->null[row] = 1;
}

/// The sum of four parts of 32 bits and more each, the last one signed. false: it does not fit.
bool SumOfParts(const uint64_t* s, int128_t* sum) {
  // Carry upward first: then the lower three parts have 32 bits, and the last one must, too.
  const uint64_t p1 = s[1] + (s[0] >> 32);
  const uint64_t p2 = s[2] + (p1 >> 32);
  const int64_t top = static_cast<int64_t>(s[3]) + static_cast<int64_t>(p2 >> 32);
  if (top != static_cast<int32_t>(top)) return false;
  const uint64_t low = (p1 << 32) | (s[0] & 0xFFFFFFFFu);
  const int64_t high = static_cast<int64_t>(static_cast<uint64_t>(top) << 32 | (p2 & 0xFFFFFFFFu));
  *sum = Make128(high, static_cast<int64_t>(low));
  return true;
}

/// The words of a State, from how the device keeps it. false: a sum that does not fit.
template <class M>
bool StateWords(const uint64_t* s, uint64_t* words) {
  using vm::GroupState;
  if constexpr (M::kGroupState == GroupState::kHalves) {
    const int128_t sum =
        static_cast<int128_t>(static_cast<int64_t>(s[1])) * (int128_t{1} << 32) + static_cast<int128_t>(s[0]);
    vm::ToWords(sum, words);
  } else if constexpr (M::kGroupState == GroupState::kParts) {
    int128_t sum = 0;
    const bool fits = SumOfParts(s, &sum);
    vm::ToWords(sum, words);
    return fits;
  } else if constexpr (M::kGroupState == GroupState::kLeastFloat || M::kGroupState == GroupState::kGreatestFloat) {
    vm::ToWords(FromOrderedFloat(s[0]), words);
  } else if constexpr (M::kGroupState == GroupState::kLocked) {
    std::copy_n(s, vm::kStateWords<typename M::State>, words);
  } else {
    static_assert(vm::GroupStateWords(M::kGroupState, 0) == 1);
    words[0] = s[0];
  }
  return true;
}

/// Groups become rows of `out` from row `first` on.
Status Decode(const Section& section, const LoweredProgram& lowered, const GroupWords& groups, uint64_t first,
              vm::RowSet* out) {
  size_t word = 1;
  for (size_t k = 0; k < static_cast<size_t>(section.keys); ++k) {
    vm::RowColumn& c = out->columns[k];
    const bool wide = IsWide(c.type);
    for (uint64_t g = 0; g < groups.n; ++g) {
      const uint64_t* r = groups.records + g * groups.record_step;
      c.low[first + g] = static_cast<int64_t>(r[word]);
      if (wide) c.high[first + g] = static_cast<int64_t>(r[word + 1]);
      if ((r[0] >> k & 1) != 0) SetNull(&c, first + g, out->rows);
    }
    word += wide ? 2 : 1;
  }
  const std::vector<size_t> columns = vm::AggregateColumns(section);
  for (size_t k = 0; k < lowered.folds.size(); ++k) {
    bool fits = true;
    vm::WithAggregate(section.aggregates[k].op, [&]<class M>() {
      for (uint64_t g = 0; g < groups.n; ++g) {
        const uint64_t* group = groups.states + g * groups.state_step;
        const bool null = M::kGroupState != vm::GroupState::kCount && (group[k / 64] >> (k % 64) & 1) == 0;
        uint64_t words[3] = {};
        fits &= StateWords<M>(group + lowered.folds[k].state, words);
        SetAggregate(&out->columns[columns[k]], columns[k + 1] - columns[k], first + g, words, null, out->rows);
      }
    });
    if (!fits) return vm::LaneErrorStatus(vm::LaneError::kWideOverflow, {});
  }
  return Status::Ok();
}

/// What of `unwanted` the device can tell from its records and states.
GroupTests GroupTestsOf(const std::vector<vm::UnwantedGroups>& unwanted, const Section& section,
                        const LoweredProgram& lowered) {
  using Value = GroupTest::Value;
  GroupTests out;
  std::vector<std::optional<GroupTest>> of_column(section.columns.size());
  GroupTest key;
  key.word = 1;
  for (; key.bit < static_cast<uint32_t>(section.keys); ++key.bit) {
    const bool wide = IsWide(section.columns[key.bit]);
    key.value = wide ? Value::kWideKey : Value::kKey;
    of_column[key.bit] = key;
    key.word += wide ? 2 : 1;
  }
  const std::vector<size_t> columns = vm::AggregateColumns(section);
  for (size_t k = 0; k < lowered.folds.size(); ++k) {
    GroupTest test;
    test.word = lowered.folds[k].state;
    test.bit = static_cast<uint32_t>(k);
    vm::WithAggregate(section.aggregates[k].op, [&]<class M>() {
      using vm::GroupState;
      constexpr GroupState kKept = M::kGroupState;
      if constexpr (kKept == GroupState::kCount || kKept == GroupState::kHalves || kKept == GroupState::kLeast ||
                    kKept == GroupState::kGreatest) {
        test.value = kKept == GroupState::kCount    ? Value::kCount
                     : kKept == GroupState::kHalves ? Value::kHalves
                                                    : Value::kInteger;
        of_column[columns[k]] = test;
      }
    });
  }
  for (const vm::UnwantedGroups& u : unwanted) {
    std::optional<GroupTest>& test = of_column[static_cast<size_t>(u.column)];
    if (!test || out.count == kMaxGroupTests) continue;
    test->low = u.low;
    test->high = u.high;
    out.tests[out.count++] = *test;
  }
  return out;
}

/// Threads that write rows at the same time write their NULL bytes, too: all bytes have to be there before.
void ReserveNulls(vm::RowSet* out) {
  for (vm::RowColumn& c : out->columns) c.null.resize(out->rows);
}
/// Columns without NULL have no bytes for it.
void DropUnusedNulls(vm::RowSet* out) {
  for (vm::RowColumn& c : out->columns) {
    if (!c.null.empty() && memchr(c.null.data(), 1, c.null.size()) == nullptr) c.null = {};
  }
}

/// The partition of a group, by its key words and NULL bits.
uint32_t PartOf(const uint64_t* record, uint32_t words) {
  uint64_t hash = vm::kHashSeed;
  for (uint32_t w = 0; w < words; ++w) hash = vm::HashWord(hash, static_cast<int64_t>(record[w]));
  // Other bits than those that address the partition's table.
  return static_cast<uint32_t>(hash * 0x9E3779B97F4A7C15u >> 32) % kParts;
}

}  // namespace

void ResizeColumns(uint64_t rows, vm::RowSet* out) {
  out->rows = rows;
  for (vm::RowColumn& c : out->columns) {
    ThrowIfInterrupted();  // 800 MB of new pages for 10^8 rows
    c.low.resize(rows);
    if (IsWide(c.type)) c.high.resize(rows);
  }
}

void SetAggregate(vm::RowColumn* columns, size_t count, uint64_t row, const uint64_t* words, bool null, uint64_t rows) {
  for (vm::RowColumn* c = columns; c != columns + count; ++c) {
    c->low[row] = static_cast<int64_t>(*words++);
    if (IsWide(c->type)) c->high[row] = static_cast<int64_t>(*words++);
    if (null) SetNull(c, row, rows);
  }
}

// ---- On the host ----------------------------------------------------------------------------------------------------

HostGroups::HostGroups(const vm::SectionContext& context, const Section& section, const LoweredProgram& lowered)
    : context_(context), section_(section), lowered_(lowered), tables_(kParts) {
  pending_.resize(Workers(context.pool));
  for (auto& parts : pending_) parts.resize(kParts);
}

Status HostGroups::Add(const GroupWords& groups) {
  const uint32_t record_words = lowered_.record_words, words = record_words + lowered_.state_words;
  TESSERA_TRY(ForWorkers(context_.pool, [&](size_t worker) {
    for (uint64_t g = groups.n * worker / workers(); g < groups.n * (worker + 1) / workers(); ++g) {
      const uint64_t* record = groups.records + g * groups.record_step;
      const uint64_t* state = groups.states + g * groups.state_step;
      std::vector<uint64_t>& to = pending_[worker][PartOf(record, record_words)];
      to.insert(to.end(), record, record + record_words);
      to.insert(to.end(), state, state + lowered_.state_words);
    }
    return Status::Ok();
  }));
  pending_words_ += groups.n * words;
  return pending_words_ < kPendingWords ? Status::Ok() : MergePending();
}

Status HostGroups::MergePending() {
  const uint64_t words = lowered_.record_words + lowered_.state_words;
  pending_words_ = 0;
  return ForEach(context_.pool, kParts, [&](size_t part) -> Status {
    for (auto& parts : pending_) {
      std::vector<uint64_t>& from = parts[part];
      if (from.empty()) continue;
      if (tables_[part] == nullptr) tables_[part] = std::make_unique<vm::GroupTable>(section_, context_.strings);
      const uint64_t n = from.size() / words;
      for (uint64_t first = 0; first < n; first += kMergedGroups) {
        GroupWords groups;
        groups.n = std::min(kMergedGroups, n - first);
        groups.records = from.data() + first * words;
        groups.states = groups.records + lowered_.record_words;
        groups.record_step = groups.state_step = words;
        vm::RowSet rows = vm::MakeRowSet(section_.columns);
        ResizeColumns(groups.n, &rows);
        TESSERA_TRY(Decode(section_, lowered_, groups, 0, &rows));
        TESSERA_TRY(tables_[part]->Merge(rows));
      }
      from.clear();
    }
    return Status::Ok();
  });
}

tessera::Result<vm::RowSet> HostGroups::Rows() {
  TESSERA_TRY(MergePending());
  for (auto& parts : pending_) parts = {};
  std::vector<uint64_t> first(kParts + 1);
  for (uint32_t part = 0; part < kParts; ++part)
    first[part + 1] = first[part] + (tables_[part] == nullptr ? 0 : tables_[part]->groups());
  vm::RowSet out = vm::MakeRowSet(section_.columns);
  ResizeColumns(first[kParts], &out);
  ReserveNulls(&out);
  TESSERA_TRY(ForEach(context_.pool, kParts, [&](size_t part) {
    if (tables_[part] == nullptr) return Status::Ok();
    const vm::RowSet rows = tables_[part]->Rows();
    tables_[part] = nullptr;
    const auto to = static_cast<std::ptrdiff_t>(first[part]);
    for (size_t c = 0; c < out.columns.size(); ++c) {
      std::copy(rows.columns[c].low.begin(), rows.columns[c].low.end(), out.columns[c].low.begin() + to);
      std::copy(rows.columns[c].high.begin(), rows.columns[c].high.end(), out.columns[c].high.begin() + to);
      std::copy(rows.columns[c].null.begin(), rows.columns[c].null.end(), out.columns[c].null.begin() + to);
    }
    return Status::Ok();
  }));
  DropUnusedNulls(&out);
  return out;
}

// ---- On the device --------------------------------------------------------------------------------------------------

uint64_t GroupStore::BytesFor(uint64_t groups) const {
  return (std::bit_ceil(2 * groups) + groups * (lowered_.record_words + lowered_.state_words)) * 8;
}

uint64_t GroupStore::Budget() const { return (gpu_.Room() + held_) / 2; }

uint64_t GroupStore::Limit() const {
  uint64_t groups = std::max<uint64_t>(table_.max_groups, kLeastGroups);
  while (groups < kMaxGroups / 2 && BytesFor(2 * groups) <= Budget()) groups *= 2;
  return groups;
}

Status GroupStore::Open() {
  table_.record_words = lowered_.record_words;
  table_.state_words = lowered_.state_words;
  table_.lock_word = lowered_.lock_word;
  uint64_t groups = kFirstGroups;
  while (groups > kLeastGroups && BytesFor(groups) > Budget()) groups /= 2;
  return Allocate(groups);
}

Status GroupStore::Allocate(uint64_t max_groups) {
  const uint64_t slots = std::bit_ceil(2 * max_groups);
  slots_.Free();
  held_ = records_.bytes() + states_.bytes();
  Status status = slots_.Allocate(&gpu_, slots * 8);
  if (status.ok()) status = Extend(&records_, table_.record_words, max_groups);
  if (status.ok()) status = Extend(&states_, table_.state_words, max_groups);
  held_ = slots_.bytes() + records_.bytes() + states_.bytes();
  if (!status.ok()) return status;
  table_.max_groups = static_cast<uint32_t>(max_groups);
  table_.slot_mask = slots - 1;
  table_.slots = slots_.As<uint64_t>();
  table_.records = records_.As<uint64_t>();
  table_.states = states_.As<uint64_t>();
  return ClearSlots();
}

Status GroupStore::ClearSlots() {
  CUDA_TRY(cudaMemsetAsync(table_.slots, 0, (table_.slot_mask + 1) * 8, gpu_.stream));
  return Status::Ok();
}

Status GroupStore::Extend(RunBuffer* buffer, uint64_t words, uint64_t groups) {
  RunBuffer larger;
  TESSERA_TRY(larger.Allocate(&gpu_, groups * words * 8));
  if (used_ > 0) {
    CUDA_TRY(cudaMemcpyAsync(larger.As<void>(), buffer->As<void>(), used_ * words * 8, cudaMemcpyDeviceToDevice,
                             gpu_.stream));
  }
  swap(larger, *buffer);
  return Status::Ok();
}

Status GroupStore::Grow() {
  const uint64_t had = table_.max_groups;
  // Slots are made anew, records and states copied: for a while there are both.
  const uint64_t kept = records_.bytes() + states_.bytes();
  bool whole = true;
  for (uint64_t groups = 8 * had; groups > had; groups /= 2) {
    if (groups >= kMaxGroups || BytesFor(groups) + kept > Budget()) continue;
    whole = false;
    const Status status = Allocate(groups);
    if (status.ok()) {
      CUDA_TRY(StartRehash(table_, used_, gpu_.stream));
      return Status::Ok();
    }
    if (status.code() != ErrorCode::kResource) return status;
  }
  TESSERA_TRY(Spill());
  // The old table may have been in the way of a larger one. It is incomplete if a larger one could not be allocated.
  uint64_t groups = Limit();
  if (whole && groups == had) return ClearSlots();
  for (Status status;; groups /= 2) {
    for (RunBuffer* buffer : {&slots_, &records_, &states_}) buffer->Free();
    held_ = 0;
    status = Allocate(groups);
    if (status.ok() || status.code() != ErrorCode::kResource) return status;
    if (groups <= kLeastGroups) {
      return {ErrorCode::kResource, "the group table does not fit the GPU (" + status.message() + ")",
              "Give --gpu-memory more, or use --device host."};
    }
  }
}

template <class F>
Status GroupStore::Fetch(F f) {
  for (uint64_t first = 0; first < used_; first += kGroupsPerCopy) {
    if (Interrupted()) return Cancelled();
    GroupWords groups;
    groups.n = std::min(kGroupsPerCopy, used_ - first);
    groups.record_step = table_.record_words;
    groups.state_step = table_.state_words;
    const uint64_t record_bytes = groups.n * table_.record_words * 8, state_bytes = groups.n * table_.state_words * 8;
    TESSERA_TRY(gpu_.host_rows.Reserve(record_bytes + state_bytes));
    uint8_t* to = gpu_.host_rows.As<uint8_t>();
    CUDA_TRY(cudaMemcpyAsync(to, records_.As<uint64_t>() + first * table_.record_words, record_bytes,
                             cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaMemcpyAsync(to + record_bytes, states_.As<uint64_t>() + first * table_.state_words, state_bytes,
                             cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    groups.records = reinterpret_cast<const uint64_t*>(to);
    groups.states = reinterpret_cast<const uint64_t*>(to + record_bytes);
    TESSERA_TRY(f(groups, first));
  }
  return Status::Ok();
}

Status GroupStore::Spill() {
  if (host_ == nullptr) host_ = std::make_unique<HostGroups>(context_, section_, lowered_);
  TESSERA_TRY(Fetch([&](const GroupWords& groups, uint64_t) { return host_->Add(groups); }));
  ++spills_;
  ++context_.statistics->group_spills;
  context_.statistics->spilled_groups += used_;
  used_ = 0;
  return Status::Ok();
}

Status GroupStore::Normalise() {
  if (used_ == 0 || (lowered_.narrow_sums.empty() && lowered_.wide_sums.empty())) return Status::Ok();
  std::vector<uint32_t> words = lowered_.narrow_sums;
  words.insert(words.end(), lowered_.wide_sums.begin(), lowered_.wide_sums.end());
  RunBuffer device_words;
  TESSERA_TRY(device_words.Allocate(&gpu_, words.size() * sizeof(uint32_t)));
  CUDA_TRY(cudaMemcpyAsync(device_words.As<void>(), words.data(), words.size() * sizeof(uint32_t),
                           cudaMemcpyHostToDevice, gpu_.stream));
  CUDA_TRY(StartNormalise(table_, used_, device_words.As<uint32_t>(), static_cast<uint32_t>(words.size()),
                          static_cast<uint32_t>(lowered_.narrow_sums.size()), gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return Status::Ok();
}

Status GroupStore::LeaveOutUnwanted() {
  const GroupTests tests = GroupTestsOf(context_.unwanted, section_, lowered_);
  if (tests.count == 0 || used_ == 0) return Status::Ok();
  // Nobody looks for a key any more: the slots, 16 bytes a group, have room for the list of groups and its length.
  uint32_t* const count = slots_.As<uint32_t>();
  uint32_t* const list = count + 1;
  CUDA_TRY(cudaMemsetAsync(count, 0, sizeof *count, gpu_.stream));
  CUDA_TRY(StartListGroups(table_, used_, tests, list, count, gpu_.stream));
  uint32_t listed = 0;
  CUDA_TRY(cudaMemcpyAsync(&listed, count, sizeof listed, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  RunBuffer records, states;
  if (listed > used_ / 2 || !records.TryAllocate(&gpu_, uint64_t{listed} * table_.record_words * 8) ||
      !states.TryAllocate(&gpu_, uint64_t{listed} * table_.state_words * 8))
    return Status::Ok();
  if (listed > 0) {
    CUDA_TRY(StartGatherGroups(table_, list, listed, records.As<uint64_t>(), states.As<uint64_t>(), gpu_.stream));
  }
  swap(records, records_);
  swap(states, states_);
  context_.statistics->device_plan +=
      ", " + std::to_string(used_ - listed) + " of " + std::to_string(used_) + " groups left on the device";
  used_ = listed;
  return Status::Ok();
}

tessera::Result<vm::RowSet> GroupStore::Rows(const GroupWords& eager) {
  if (host_ != nullptr) {
    TESSERA_TRY(Fetch([&](const GroupWords& groups, uint64_t) { return host_->Add(groups); }));
    return host_->Rows();
  }
  if (eager.n == 0) TESSERA_TRY(LeaveOutUnwanted());
  vm::RowSet out = vm::MakeRowSet(section_.columns);
  ResizeColumns(used_, &out);
  if (eager.n > 0) {
    TESSERA_TRY(Decode(section_, lowered_, eager, 0, &out));
  } else {
    ReserveNulls(&out);
    TESSERA_TRY(Fetch([&](const GroupWords& groups, uint64_t first) {
      const size_t workers = Workers(context_.pool);
      return ForWorkers(context_.pool, [&](size_t worker) {
        const uint64_t begin = groups.n * worker / workers;
        GroupWords some = groups;
        some.records += begin * groups.record_step;
        some.states += begin * groups.state_step;
        some.n = groups.n * (worker + 1) / workers - begin;
        return Decode(section_, lowered_, some, first + begin, &out);
      });
    }));
    DropUnusedNulls(&out);
  }
  return out;
}

}  // namespace tessera::kernels
