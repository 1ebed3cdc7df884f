#include "vm/sinks/group_partitions.h"

#include <algorithm>
#include <bit>

#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"

namespace tessera::vm {
namespace {

/// A table of this many groups, of all workers, is looked at: more do not fit the caches.
constexpr size_t kManyGroups = 1 << 20, kLeastLooked = 1 << 16;
/// ... and this many of a worker are put aside at a time from then on.
constexpr size_t kPutAside = 1 << 15;
/// Rows that share a group where putting aside does not pay.
constexpr uint64_t kManyRows = 4;
/// What is aside takes no more than this part of the memory limit, of all workers.
constexpr uint64_t kMemoryShare = 8;
/// From this number of groups on, counted over all workers, several threads merge them.
constexpr size_t kManyMergedGroups = 1 << 16;
/// ... and this many by one of them at a time. Their rows are blocks that may lie in temporary files; those of a single
/// partition may be too small for that.
constexpr size_t kMergedTogether = 1 << 15;

size_t PartitionOf(uint64_t hash) { return hash >> 56; }

/// The values of groups, each of `words` words, in another order.
template <class T>
std::vector<T> Reordered(const std::vector<T>& values, const std::vector<uint32_t>& order, size_t words = 1) {
  std::vector<T> out(values.size());
  if (values.empty()) return out;
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t w = 0; w < words; ++w) out[i * words + w] = values[order[i] * words + w];
  }
  return out;
}

}  // namespace

WorkerGroups::WorkerGroups(const Section& section, const StringPool* strings, size_t workers)
    : table(section, strings),
      words_(static_cast<size_t>(table.words())),
      most_(std::max(kManyGroups / workers, kLeastLooked)) {
  // (Keys, a hash, and 9 to 17 bytes an aggregate.)
  const size_t bytes = (words_ + 1) * 8 + section.aggregates.size() * 17;
  most_aside_ = std::min<uint64_t>(MemoryLimit() / kMemoryShare / workers / bytes, UINT32_MAX);
  stays_ = section.keys == 0;
}

Status WorkerGroups::AfterTile() {
  if (stays_ || table.groups() < most_) return Status::Ok();
  if (runs_.empty() && table.sought() >= kManyRows * table.groups()) {
    most_ *= 2;
    return Status::Ok();
  }
  if (groups() > most_aside_) {
    stays_ = true;
    return BringBack();
  }
  PutAside(kPutAside);
  most_ = kPutAside;
  return Status::Ok();
}

void WorkerGroups::PutAside(size_t room) {
  const GroupArrays& from = table.arrays();
  const size_t n = table.groups();
  if (n == 0) return;
  ThrowIfInterrupted();
  auto run = std::make_unique<Run>();
  run->begin = {};
  for (const uint64_t h : from.hashes) ++run->begin[PartitionOf(h) + 1];
  for (size_t p = 0; p < kGroupPartitions; ++p) run->begin[p + 1] += run->begin[p];
  std::vector<uint32_t> order(n);
  std::array<uint32_t, kGroupPartitions + 1> next = run->begin;
  for (size_t g = 0; g < n; ++g) order[next[PartitionOf(from.hashes[g])]++] = static_cast<uint32_t>(g);
  run->groups.keys = Reordered(from.keys, order, words_);
  run->groups.hashes = Reordered(from.hashes, order);
  for (const AggregateStates& s : from.aggregates) {
    run->groups.aggregates.push_back({s.op, Reordered(s.narrow, order), Reordered(s.wide, order),
                                      Reordered(s.words, order, s.words.size() / n), Reordered(s.seen, order)});
  }
  aside_ += n;
  runs_.push_back(std::move(run));
  table.Clear(room);
}

size_t WorkerGroups::GroupsOf(size_t begin, size_t end) const {
  size_t n = 0;
  for (const auto& run : runs_) n += run->begin[end] - run->begin[begin];
  return n;
}

Status WorkerGroups::MergePartition(size_t partition, GroupTable* to) const {
  for (const auto& run : runs_) TESSERA_TRY(to->Merge(run->groups, run->begin[partition], run->begin[partition + 1]));
  return Status::Ok();
}

Status WorkerGroups::BringBack() {
  for (auto& run : runs_) {
    TESSERA_TRY(table.Merge(run->groups, 0, run->begin[kGroupPartitions]));
    run.reset();
  }
  runs_.clear();
  aside_ = 0;
  return Status::Ok();
}

Status MergeIntoFirst(const std::vector<std::unique_ptr<WorkerGroups>>& workers) {
  for (const auto& w : workers) {
    TESSERA_TRY(w->BringBack());
    if (w != workers[0]) TESSERA_TRY(workers[0]->table.Merge(w->table));
  }
  return Status::Ok();
}

Result<RowSet> MergeGroups(const Section& section, const StringPool* strings, ThreadPool* pool,
                           const std::vector<std::unique_ptr<WorkerGroups>>& workers) {
  const MemoryPurpose purpose("grouping");
  size_t groups = 0;
  for (const auto& w : workers) groups += w->groups();
  const bool is_one = workers.size() == 1 && !workers[0]->has_partitions();
  if (section.keys == 0 || is_one || groups < kManyMergedGroups) {
    TESSERA_TRY(MergeIntoFirst(workers));
    return workers[0]->table.Rows();
  }
  TESSERA_TRY(ForEach(pool, workers.size(), [&](size_t w) {
    workers[w]->PutAside(0);
    return Status::Ok();
  }));
  const size_t merges = std::clamp<size_t>(std::bit_floor(groups / kMergedTogether), 1, kGroupPartitions);
  const size_t each = kGroupPartitions / merges;
  std::vector<RowSet> merged(merges);
  const auto merge = [&](size_t number) {
    GroupTable table(section, strings);
    size_t most = 0;
    for (const auto& w : workers) most += w->GroupsOf(number * each, (number + 1) * each);
    table.MakeRoom(most);
    for (size_t partition = number * each; partition < (number + 1) * each; ++partition) {
      for (const auto& w : workers) TESSERA_TRY(w->MergePartition(partition, &table));
    }
    merged[number] = table.Rows();
    return Status::Ok();
  };
  TESSERA_TRY(ForEach(pool, merges, merge));
  RowSet all = MakeRowSet(section.columns);
  TESSERA_TRY(AppendAll(&all, std::move(merged), pool));
  return all;
}

}  // namespace tessera::vm
