#include "kernels/groups/group_store.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "kernels/launch/group_value.h"
#include "kernels/launch/vm_kernel.h"
#include "kernels/rows/row_source.h"
#include "vm/meaning/aggregate.h"
#include "vm/meaning/lane_error.h"
#include "vm/meaning/meaning.h"
#include "vm/program/section_traits.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {
namespace {

constexpr uint64_t kFirstGroups = 1 << 15, kLeastGroups = 1 << 9, kMostFirstGroups = 1 << 24;
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

/// Where the groups have the values of the section's columns.
std::vector<GroupValue> ValuesOf(const Section& section, const LoweredProgram& lowered) {
  using Kind = GroupValue::Kind;
  std::vector<GroupValue> values;
  GroupValue v;
  v.word = 1;
  for (; v.bit < static_cast<uint32_t>(section.keys); ++v.bit) {
    v.kind = IsWide(section.columns[v.bit]) ? Kind::kWideKey : Kind::kKey;
    values.push_back(v);
    v.word += v.kind == Kind::kWideKey ? 2 : 1;
  }
  const std::vector<size_t> columns = vm::AggregateColumns(section);
  for (size_t k = 0; k < lowered.folds.size(); ++k) {
    v.word = lowered.folds[k].state;
    v.bit = static_cast<uint32_t>(k);
    vm::WithAggregate(section.aggregates[k].op, [&]<class M>() {
      using vm::GroupState;
      constexpr GroupState kKept = M::kGroupState;
      constexpr bool kCounted = kKept == GroupState::kMomentWindows;
      constexpr bool kOrdered = kKept == GroupState::kLeastFloat || kKept == GroupState::kGreatestFloat;
      // (A State of several columns has their words one after the other.)
      for (size_t c = columns[k]; c < columns[k + 1]; ++c) {
        const bool wide = IsWide(section.columns[c]);
        v.kind = kKept == GroupState::kCount         ? Kind::kCount
                 : kKept == GroupState::kHalves      ? Kind::kHalves
                 : kKept == GroupState::kParts       ? Kind::kParts
                 : kKept == GroupState::kFloatWindow ? Kind::kFloatSum
                 : kCounted && c > columns[k]        ? Kind::kFloatSum
                 : kOrdered                          ? Kind::kOrderedFloat
                 : wide                              ? Kind::kWideWord
                                                     : Kind::kWord;
        const size_t part = c - columns[k] - (kCounted ? 1 : 0);
        v.part = static_cast<uint8_t>(part % vm::kStateWords<vm::FloatSum>);
        values.push_back(v);
        if (v.kind != Kind::kFloatSum) v.word += wide ? 2 : 1;
        if (kCounted && v.kind == Kind::kFloatSum && v.part + 1 == vm::kStateWords<vm::FloatSum>)
          v.word += vm::FloatWindow::kAllWords;
      }
    });
  }
  return values;
}

Status SumOverflow() { return vm::LaneErrorStatus(vm::LaneError::kWideOverflow, {}); }

/// Groups become rows of `out` from row `first` on.
Status Decode(const Section& section, const LoweredProgram& lowered, const GroupWords& groups, uint64_t first,
              vm::RowSet* out) {
  const std::vector<GroupValue> values = ValuesOf(section, lowered);
  bool fits = true;
  for (size_t c = 0; c < values.size(); ++c) {
    vm::RowColumn& column = out->columns[c];
    const bool wide = IsWide(column.type);
    for (uint64_t g = 0; g < groups.n; ++g) {
      bool null = false;
      const int128_t value = ReadValue(values[c], groups.records + g * groups.record_step,
                                       groups.states + g * groups.state_step, &null, &fits);
      column.low[first + g] = Low64(value);
      if (wide) column.high[first + g] = High64(value);
      if (null) SetNull(&column, first + g, out->rows);
    }
  }
  return fits ? Status::Ok() : SumOverflow();
}

/// The tests that leave out `unwanted`, or some of it; none if there are more sums than can be looked at.
GroupTests GroupTestsOf(const std::vector<vm::UnwantedGroups>& unwanted, const std::vector<GroupValue>& values) {
  GroupTests out;
  for (const GroupValue& v : values) {
    if (v.kind != GroupValue::Kind::kParts) continue;
    if (out.sum_count == kMaxGroupTests) return {};
    out.sums[out.sum_count++] = v;
  }
  for (const vm::UnwantedGroups& u : unwanted) {
    if (out.count == kMaxGroupTests) break;
    out.tests[out.count++] = {values[static_cast<size_t>(u.column)], u.low, u.high};
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

// ---- On the host ----------------------------------------------------------------------------------------------------

HostGroups::HostGroups(const vm::SectionContext& context, const Section& section, const LoweredProgram& lowered)
    : context_(context), section_(section), lowered_(lowered), tables_(kParts) {
  pending_.resize(Workers(context.pool));
  for (auto& parts : pending_) parts.resize(kParts);
}

Status HostGroups::Add(const GroupWords& groups) {
  const uint32_t record_words = lowered_.groups.record_words, words = record_words + lowered_.groups.state_words;
  TESSERA_TRY(ForWorkers(context_.pool, [&](size_t worker) {
    for (uint64_t g = groups.n * worker / workers(); g < groups.n * (worker + 1) / workers(); ++g) {
      const uint64_t* record = groups.records + g * groups.record_step;
      const uint64_t* state = groups.states + g * groups.state_step;
      std::vector<uint64_t>& to = pending_[worker][PartOf(record, record_words)];
      to.insert(to.end(), record, record + record_words);
      to.insert(to.end(), state, state + lowered_.groups.state_words);
    }
    return Status::Ok();
  }));
  pending_words_ += groups.n * words;
  return pending_words_ < kPendingWords ? Status::Ok() : MergePending();
}

Status HostGroups::MergePending() {
  const uint64_t words = lowered_.groups.record_words + lowered_.groups.state_words;
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
        groups.states = groups.records + lowered_.groups.record_words;
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

namespace {

/// How many groups the section makes if all rows of its table get to them and their keys are columns of it, of which the
/// statistics know the different values; else 0.
uint64_t ExpectedGroups(const vm::SectionContext& context, const Section& section) {
  if (context.table == nullptr || !section.predicates.empty()) return 0;
  const TableInfo& table = *context.table;
  const vm::SectionTraits& traits = context.traits->section(context.section);
  if (!traits.takes_all || section.code[traits.feed].op != vm::Opcode::Group) return 0;
  const vm::Instruction& group = section.code[traits.feed];
  const vm::Operand first = vm::Operand::Unpack(group.p2);
  double groups = 1;
  for (int32_t k = 0; k < group.p3; ++k) {
    const int slot = traits.SlotOfKey(first, group.p3, static_cast<size_t>(k));
    if (slot < 0 || section.slots[static_cast<size_t>(slot)].map >= 0) return 0;
    const int32_t column = section.slots[static_cast<size_t>(slot)].column;
    groups *= static_cast<double>(table.statistics[static_cast<size_t>(column)].distinct);
  }
  return static_cast<uint64_t>(std::min(groups, static_cast<double>(table.rows)));
}

}  // namespace

uint64_t GroupStore::BytesFor(uint64_t groups) const {
  return (std::bit_ceil(2 * groups) + groups * (lowered_.groups.record_words + lowered_.groups.state_words)) * 8;
}

uint64_t GroupStore::Budget() const { return (gpu_.Room() + Held()) / 2; }

uint64_t GroupStore::MostNumbers() const {
  return std::min(Budget() / 2 / (uint64_t{lowered_.groups.state_words} * 8 + 1), kMaxGroups - 1);
}

uint64_t GroupStore::Limit() const {
  uint64_t groups = std::max<uint64_t>(table_.max_groups, kLeastGroups);
  while (groups < kMaxGroups / 2 && BytesFor(2 * groups) <= Budget()) groups *= 2;
  return groups;
}

Status GroupStore::Open() {
  table_.record_words = lowered_.groups.record_words;
  table_.state_words = lowered_.groups.state_words;
  table_.lock_word = lowered_.groups.lock_word;
  // (Statistics may be off by some per cent. Sizes are the powers of two that a table grows to: their memory is there from
  // the run before. On an H100 50 M groups at once took 13 ms more for memory than 16 M that grew.)
  const uint64_t expected = ExpectedGroups(context_, section_);
  uint64_t groups = std::clamp(std::bit_ceil(expected + expected / 8), kFirstGroups, kMostFirstGroups);
  while (groups > kLeastGroups && BytesFor(groups) > Budget()) groups /= 2;
  return Allocate(groups, false);
}

Status GroupStore::Index() {
  if (indexed_) return Status::Ok();
  if (table_.slots == nullptr) TESSERA_TRY(AllocateSlots(table_.max_groups));
  CUDA_TRY(cudaMemsetAsync(table_.slots, 0, (table_.slot_mask + 1) * 8, gpu_.stream));
  if (used_ > 0) CUDA_TRY(StartRehash(table_, used_, gpu_.stream));
  indexed_ = true;
  return Status::Ok();
}

Status GroupStore::Allocate(uint64_t max_groups, bool slots) {
  whole_ = false;
  FreeSlots();
  if (slots) TESSERA_TRY(AllocateSlots(max_groups));
  TESSERA_TRY(Extend(&records_, table_.record_words, max_groups));
  TESSERA_TRY(Extend(&states_, table_.state_words, max_groups));
  table_.max_groups = static_cast<uint32_t>(max_groups);
  table_.records = records_.As<uint64_t>();
  table_.states = states_.As<uint64_t>();
  whole_ = true;
  return Status::Ok();
}

Status GroupStore::AllocateSlots(uint64_t max_groups) {
  const uint64_t slots = std::bit_ceil(2 * max_groups);
  TESSERA_TRY(slots_.Allocate(&gpu_, slots * 8));
  table_.slot_mask = slots - 1;
  table_.slots = slots_.As<uint64_t>();
  return Status::Ok();
}

void GroupStore::FreeSlots() {
  slots_.Free();
  table_.slots = nullptr;
  indexed_ = false;
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

Status GroupStore::Enlarge(uint64_t max_groups) {
  const bool was_indexed = indexed_;
  TESSERA_TRY(Allocate(max_groups, was_indexed));
  return was_indexed ? Index() : Status::Ok();
}

Status GroupStore::Grow() {
  const uint64_t had = table_.max_groups;
  // Slots are made anew, records and states copied: for a while there are both.
  const uint64_t kept = records_.bytes() + states_.bytes();
  for (uint64_t groups = 8 * had; groups > had; groups /= 2) {
    if (groups >= kMaxGroups || BytesFor(groups) + kept > Budget()) continue;
    const Status status = Enlarge(groups);
    if (status.ok() || status.code() != ErrorCode::kResource) return status;
  }
  const bool slots = table_.slots != nullptr;
  TESSERA_TRY(Spill());
  // The old table may have been in the way of a larger one. It is incomplete if a larger one could not be allocated.
  uint64_t groups = Limit();
  if (whole_ && groups == had) return Status::Ok();
  for (Status status;; groups /= 2) {
    Free();
    status = Allocate(groups, slots);
    if (status.ok() || status.code() != ErrorCode::kResource) return status;
    if (groups <= kLeastGroups) {
      return {ErrorCode::kResource, "the group table does not fit the GPU (" + status.message() + ")",
              "Give --gpu-memory more, or use --device host."};
    }
  }
}

Status GroupStore::Empty(uint64_t groups) {
  if (groups >= kMaxGroups)
    return {ErrorCode::kResource, "a rank has too many groups for its GPU", "Use --device host."};
  used_ = 0;
  Free();
  TESSERA_TRY(Allocate(std::max(groups, kLeastGroups), true));
  return Index();
}

void GroupStore::Free() {
  FreeSlots();
  records_.Free();
  states_.Free();
  table_.max_groups = 0;
}

Status GroupStore::Reserve(uint64_t groups) {
  if (groups <= table_.max_groups) return Status::Ok();
  if (groups < kMaxGroups && BytesFor(groups) + records_.bytes() + states_.bytes() <= Budget()) {
    const Status status = Enlarge(groups);
    if (status.ok() || status.code() != ErrorCode::kResource) return status;
  }
  return Grow();
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
    TESSERA_TRY(gpu_.buffers.host_rows.Reserve(record_bytes + state_bytes));
    uint8_t* to = gpu_.buffers.host_rows.As<uint8_t>();
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
  indexed_ = false;
  return Status::Ok();
}

Status GroupStore::Normalise() {
  if (used_ == 0 || (lowered_.groups.narrow_sums.empty() && lowered_.groups.wide_sums.empty())) return Status::Ok();
  std::vector<uint32_t> words = lowered_.groups.narrow_sums;
  words.insert(words.end(), lowered_.groups.wide_sums.begin(), lowered_.groups.wide_sums.end());
  RunBuffer device_words;
  TESSERA_TRY(device_words.Allocate(&gpu_, words.size() * sizeof(uint32_t)));
  CUDA_TRY(cudaMemcpyAsync(device_words.As<void>(), words.data(), words.size() * sizeof(uint32_t),
                           cudaMemcpyHostToDevice, gpu_.stream));
  CUDA_TRY(StartNormalise(table_, used_, device_words.As<uint32_t>(), static_cast<uint32_t>(words.size()),
                          static_cast<uint32_t>(lowered_.groups.narrow_sums.size()), gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return Status::Ok();
}

Status GroupStore::LeaveOutUnwanted() {
  const GroupTests tests = GroupTestsOf(context_.unwanted, ValuesOf(section_, lowered_));
  if (parts_ || tests.count == 0 || used_ == 0) return Status::Ok();
  FreeSlots();  // keys are not looked up any more
  RunBuffer numbers;
  if (!numbers.TryAllocate(&gpu_, (uint64_t{used_} + 1) * sizeof(uint32_t))) return Status::Ok();
  uint32_t* const count = numbers.As<uint32_t>();
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
  table_.records = records_.As<uint64_t>();
  table_.states = states_.As<uint64_t>();
  context_.statistics->device_plan +=
      ", " + std::to_string(used_ - listed) + " of " + std::to_string(used_) + " groups left on the device";
  used_ = listed;
  return Status::Ok();
}

tessera::Result<bool> GroupStore::MoveTo(DeviceRows* rows) {
  if (host_ != nullptr) return false;
  TESSERA_TRY(LeaveOutUnwanted());
  DeviceRows made;
  RunBuffer overflow;
  if (!Stay(context_, used_) || !made.TryAllocate(&gpu_, section_.columns, used_)) return false;
  TESSERA_TRY(overflow.Allocate(&gpu_, sizeof(uint32_t)));
  CUDA_TRY(cudaMemsetAsync(overflow.As<void>(), 0, sizeof(uint32_t), gpu_.stream));
  const std::vector<GroupValue> values = ValuesOf(section_, lowered_);
  size_t wide = 0;
  for (size_t first = 0; first < values.size(); first += kMaxGroupColumns) {
    GroupColumns columns;
    for (size_t c = first; c < std::min(values.size(), first + kMaxGroupColumns); ++c) {
      uint64_t* const high = IsWide(section_.columns[c]) ? made.high(wide++) : nullptr;
      columns.columns[columns.count++] = {values[c], made.low(c), high, made.null(c)};
    }
    CUDA_TRY(StartWriteGroups(table_, used_, columns, overflow.As<uint32_t>(), gpu_.stream));
  }
  uint32_t overflows = 0;
  CUDA_TRY(cudaMemcpyAsync(&overflows, overflow.As<void>(), sizeof overflows, cudaMemcpyDeviceToHost, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  if (overflows != 0) return SumOverflow();
  made.set_rows(used_);
  swap(made, *rows);
  return true;
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
