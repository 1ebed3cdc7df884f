#include "kernels/run/join_build.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/exception_status.h"
#include "kernels/ranks/gather_rows.h"
#include "kernels/ranks/rank_texts.h"
#include "kernels/rows/resolve_texts.h"
#include "kernels/run/section_run.h"
#include "vm/rows/late_texts.h"
#include "vm/rows/row_set.h"
#include "vm/shares/tell_ranks.h"

namespace tessera::kernels {
namespace {

const vm::Section& SectionOf(const vm::SectionContext& context) {
  return context.program->sections[static_cast<size_t>(context.section)];
}

/// Clears the counters and summaries of `count` builds, here and on the device.
Status ClearBuildStates(GpuDevice* gpu, size_t count) {
  TESSERA_TRY(gpu->buffers.build_states.Reserve(count * sizeof(BuildState)));
  TESSERA_TRY(gpu->buffers.host_build_states.Reserve(count * sizeof(BuildState)));
  BuildState* states = gpu->buffers.host_build_states.As<BuildState>();
  for (size_t i = 0; i < count; ++i) {
    memset(&states[i].control, 0, sizeof(Control));
    for (ColumnSummary& s : states[i].columns) s = ColumnSummary();
  }
  CUDA_TRY(StartSmallCopies({{gpu->buffers.build_states.As<BuildState>(), states, count * sizeof(BuildState)}},
                            gpu->stream));
  return Status::Ok();
}

/// The join tables of one call, on their way.
class Build {
 public:
  Build(GpuDevice* gpu, DeviceJoins* joins, const KeptResults& results, RankTexts* texts, WaitingTables* waiting,
        const std::vector<vm::SectionContext>& contexts)
      : gpu_(*gpu),
        joins_(*joins),
        results_(results),
        texts_(*texts),
        waiting_(*waiting),
        contexts_(contexts),
        source_rows_(contexts.size()),
        all_(contexts.size()) {
    const auto has = std::ranges::find_if(contexts, [](const vm::SectionContext& c) { return c.exchange != nullptr; });
    if (has != contexts.end()) exchange_ = has->exchange;
    for (size_t i = 0; i < contexts.size(); ++i)
      source_rows_[i] = contexts[i].table != nullptr ? contexts[i].table->rows : 0;
  }

  vm::Exchange* exchange() const { return exchange_; }
  /// This rank's rows.
  Status MakeRows(const std::function<void()>& meanwhile);
  /// The rows of all ranks, where a section has SectionContext::exchange. `mine`: of MakeRows. All ranks.
  Status Gather(RankLinks* links, const Status& mine);
  /// The tables of the rows.
  Status Fill();

 private:
  /// What ranks tell each other of a table.
  struct Share {
    uint64_t rows = 0, source_rows = 0;
    uint64_t on_host = 0;  ///< 1: they outgrew the device
    uint64_t texts = 0;    ///< identifiers of texts that this rank has given
    // Of all tables of the rank:
    uint64_t most_bytes = 0;               ///< that their rows may have here
    uint64_t text_bytes = 0;               ///< that it has to tell, of texts in their rows
    uint64_t is_linked = 0;                ///< 1: it knows the way to the other devices
    ColumnSummary columns[kMaxSummaries];  ///< of the table's rows here, if these are on the device
  };

  bool IsGathered(size_t i) const {
    return contexts_[i].exchange != nullptr && !SectionOf(contexts_[i]).placement.by_key;
  }
  bool IsExchanged(size_t i) const {
    return contexts_[i].exchange != nullptr && SectionOf(contexts_[i]).placement.by_key;
  }
  /// Whether its rows have texts; and such as stand for entries of this rank's chunks.
  bool HasTexts(size_t i) const {
    return std::ranges::any_of(ColumnsOf(i), [](const SqlType& t) { return t.storage() == StorageClass::kText; });
  }
  bool HasLateTexts(size_t i) const { return Has(i, &vm::HandedOn::columns); }
  /// Whether they stand for such until the rows are made.
  bool HasTextsToSettle(size_t i) const { return Has(i, &vm::HandedOn::settled); }
  bool Has(size_t i, std::vector<std::vector<bool>> vm::HandedOn::*which) const {
    if (contexts_[i].handed_on == nullptr || (contexts_[i].handed_on->*which).empty()) return false;
    const std::vector<bool>& late = (contexts_[i].handed_on->*which)[static_cast<size_t>(contexts_[i].section)];
    return std::ranges::find(late, true) != late.end();
  }
  const std::vector<SqlType>& ColumnsOf(size_t i) const { return SectionOf(contexts_[i]).columns; }
  BuildState* states() const { return gpu_.buffers.host_build_states.As<BuildState>(); }
  BuildState* device_states() const { return gpu_.buffers.build_states.As<BuildState>(); }
  /// `status`: of MakeRows.
  tessera::Result<std::vector<std::vector<Share>>> TellShares(const RankLinks& links, const Status& status);
  std::vector<Share> OwnShares(const RankLinks& links) const;
  /// Gives the texts identifiers of which rows have numbers for this section alone.
  Status SettleTexts();
  Status Settle(size_t i);
  /// Finds the texts that rows have which may go from device to device. Returns the bytes of those to be told.
  tessera::Result<uint64_t> PrepareTexts();
  /// By way of the hosts: a table that has no room on some rank's device. All ranks; `*mine` is what this one has failed with
  /// alone, of which the others hear with the next table, or after this call.
  Status GatherOnHost(size_t i, Status* mine);
  /// Leaves the rows of a table that is exchanged, and what is known of those of all ranks.
  void LeaveWaiting(size_t i);
  /// What is known of the columns of a table's rows, from what is known of each rank's.
  void MergeSummaries(size_t i, const std::vector<std::vector<Share>>& shares);
  /// Finds what is known of the columns of rows that have come, or changed, since they were made.
  Status Summarize(const std::vector<size_t>& tables);

  GpuDevice& gpu_;
  DeviceJoins& joins_;
  const KeptResults& results_;
  RankTexts& texts_;
  WaitingTables& waiting_;
  const std::vector<vm::SectionContext>& contexts_;
  vm::Exchange* exchange_ = nullptr;
  std::vector<std::unique_ptr<SectionRun>> runs_;
  std::vector<uint64_t> source_rows_;
  /// Of tables that are exchanged.
  struct All {
    uint64_t rows = 0;
    bool on_devices = true;  ///< of all ranks
  };
  std::vector<All> all_;
  std::map<size_t, vm::RowSet> from_hosts_;  ///< gathered there
  TableBatch batch_;
};

Status Build::MakeRows(const std::function<void()>& meanwhile) {
  const size_t n = contexts_.size();
  TESSERA_TRY(ClearBuildStates(&gpu_, n));
  TESSERA_TRY(gpu_.clock.Begin(gpu_.stream));
  std::vector<RowsToSummarize> to_summarize;
  for (size_t i = 0; i < n; ++i) {
    const vm::Section& section = SectionOf(contexts_[i]);
    const bool of_table = section.source_kind == vm::Section::Source::kTable;
    runs_.push_back(std::make_unique<SectionRun>(
        &gpu_, contexts_[i], &joins_, of_table ? nullptr : &results_.source(section.source), static_cast<int>(i)));
    TESSERA_TRY(runs_[i]->StartBuild());
    if (HasTextsToSettle(i)) continue;
    to_summarize.push_back(
        ToSummarize(runs_[i]->build_rows().on_device(), section.columns.size(), device_states()[i].columns));
    to_summarize.back().control = &device_states()[i].control;  // it may not have run yet
  }
  if (!to_summarize.empty()) CUDA_TRY(StartSummarize(to_summarize.data(), to_summarize.size(), gpu_.stream));
  TESSERA_TRY(gpu_.clock.End(gpu_.stream));
  CUDA_TRY(StartSmallCopies({{states(), device_states(), n * sizeof(BuildState)}}, gpu_.stream));
  meanwhile();
  TESSERA_TRY(gpu_.WaitForStream(&device_states()[n - 1].control.stop, contexts_[0].cancel));
  TESSERA_ASSIGN(const double milliseconds, gpu_.clock.KernelMilliseconds());
  uint64_t rows_in = 0;
  for (const vm::SectionContext& c : contexts_) rows_in += c.statistics->rows_in;
  for (size_t i = 0; i < n; ++i) {
    const vm::SectionContext& c = contexts_[i];
    TESSERA_TRY(runs_[i]->FinishBuild());
    c.statistics->rows_out = runs_[i]->build_rows().count();
    // They ran as one: each gets its part of the time by the rows that it read.
    c.statistics->kernel_milliseconds =
        milliseconds * static_cast<double>(c.statistics->rows_in + 1) / static_cast<double>(rows_in + n);
    runs_[i]->AddJoinStatistics();
    if (c.table == nullptr) source_rows_[i] = c.statistics->rows_in;
  }
  return SettleTexts();
}

Status Build::SettleTexts() {
  std::vector<size_t> settled;
  for (size_t i = 0; i < contexts_.size(); ++i) {
    if (!HasTextsToSettle(i)) continue;
    TESSERA_TRY(Settle(i));
    if (runs_[i]->build_rows().on_host().empty()) settled.push_back(i);
  }
  return settled.empty() ? Status::Ok() : Summarize(settled);
}

Status Build::Settle(size_t i) {
  const vm::SectionContext& c = contexts_[i];
  BuildRows& rows = runs_[i]->build_rows();
  for (vm::RowSet& piece : rows.on_host()) TESSERA_TRY(c.late_texts->Resolve(c.strings, c.pool, &piece));
  if (!rows.on_host().empty()) return Status::Ok();
  const std::vector<bool>& settled = c.handed_on->settled[static_cast<size_t>(c.section)];
  for (size_t column = 0; column < settled.size(); ++column) {
    if (settled[column]) TESSERA_TRY(ResolveTexts(&gpu_, c, rows.on_device().low(column), rows.on_device().rows()));
  }
  return Status::Ok();
}

tessera::Result<uint64_t> Build::PrepareTexts() {
  const vm::StringPool& strings = *contexts_[0].strings;
  const uint64_t count = strings.count();
  if (count > RankTexts::kMostTexts) return uint64_t{0};
  bool any = false;
  for (size_t i = 0; i < contexts_.size(); ++i) {
    BuildRows& rows = runs_[i]->build_rows();
    if (!IsGathered(i) || !HasTexts(i) || HasLateTexts(i) || !rows.on_host().empty()) continue;
    TESSERA_TRY(texts_.Mark(&gpu_, ColumnsOf(i), rows.on_device(), count));
    any = true;
  }
  return any ? texts_.Prepare(strings) : 0;
}

std::vector<Build::Share> Build::OwnShares(const RankLinks& links) const {
  std::vector<Share> mine(contexts_.size());
  for (size_t i = 0; i < contexts_.size(); ++i) {
    BuildRows& rows = runs_[i]->build_rows();
    mine[i].rows = rows.count();
    mine[i].source_rows = source_rows_[i];
    mine[i].on_host = rows.on_host().empty() ? 0 : 1;
    mine[i].texts = contexts_[i].strings->count();
    std::ranges::copy(states()[i].columns, mine[i].columns);
  }
  mine[0].most_bytes = joins_.MostRowBytes();
  mine[0].is_linked = links.is_connected() ? 1 : 0;
  return mine;
}

tessera::Result<std::vector<std::vector<Build::Share>>> Build::TellShares(const RankLinks& links,
                                                                          const Status& status) {
  std::vector<Share> mine(contexts_.size());
  const Status ready = Caught([&]() -> Status {
    TESSERA_TRY(status);
    TESSERA_ASSIGN(const uint64_t text_bytes, PrepareTexts());
    mine = OwnShares(links);
    mine[0].text_bytes = text_bytes;
    return Status::Ok();
  });
  return vm::TellRanks(exchange_, ready, mine);
}

Status Build::Gather(RankLinks* links, const Status& mine) {
  TESSERA_ASSIGN(const std::vector<std::vector<Share>> shares, TellShares(*links, mine));
  const auto own = static_cast<size_t>(exchange_->rank());
  uint64_t room = UINT64_MAX;
  bool linked = true;
  std::vector<uint64_t> text_bytes;
  for (const std::vector<Share>& of_rank : shares) {
    room = std::min(room, of_rank[0].most_bytes);
    linked = linked && of_rank[0].is_linked != 0;
    text_bytes.push_back(of_rank[0].text_bytes);
  }
  if (!linked) TESSERA_TRY(links->Connect(gpu_.ordinal(), exchange_));
  std::vector<RowsToGather> gathered;
  std::vector<size_t> on_device, on_host;
  bool texts = false;
  for (size_t i = 0; i < contexts_.size(); ++i) {
    if (IsExchanged(i)) {
      source_rows_[i] = 0;
      for (const std::vector<Share>& of_rank : shares) {
        all_[i].rows += of_rank[i].rows;
        all_[i].on_devices = all_[i].on_devices && of_rank[i].on_host == 0;
        source_rows_[i] += of_rank[i].source_rows;
      }
    }
    if (!IsGathered(i)) continue;
    BuildRows& rows = runs_[i]->build_rows();
    RowsToGather& table = gathered.emplace_back();
    table.columns = &ColumnsOf(i);
    table.rows = &rows.on_device();
    uint64_t total = 0, bytes = 0;
    bool fits = true;
    source_rows_[i] = 0;
    for (const std::vector<Share>& of_rank : shares) {
      table.packed.emplace_back(ColumnsOf(i), of_rank[i].columns, of_rank[i].rows);
      total += of_rank[i].rows;
      bytes += table.packed.back().bytes();
      source_rows_[i] += of_rank[i].source_rows;
      fits = fits && of_rank[i].on_host == 0;
      if (HasTexts(i)) fits = fits && of_rank[i].texts <= RankTexts::kMostTexts;
    }
    bytes += total * rows.row_bytes();
    if (fits && bytes <= room && total < UINT32_MAX && !HasLateTexts(i)) {
      room -= bytes;
      texts = texts || HasTexts(i);
      on_device.push_back(i);
      continue;
    }
    gathered.pop_back();
    on_host.push_back(i);
  }
  Status here;
  if (!gathered.empty()) {
    const Status told =
        texts ? texts_.Tell(text_bytes, exchange_, contexts_[0].strings, contexts_[0].pool) : Status::Ok();
    TESSERA_TRY(GatherRows(&gpu_, links, exchange_, told, &gathered));
    here = Caught([&]() -> Status {
      for (const RowsToGather& table : gathered)
        if (texts) TESSERA_TRY(texts_.Translate(&gpu_, *table.columns, table.RowsOf(), own, table.rows));
      // Those of texts that have come are known only now.
      std::vector<size_t> with_texts = on_device;
      std::erase_if(with_texts, [&](size_t i) { return !HasTexts(i); });
      return with_texts.empty() ? Status::Ok() : Summarize(with_texts);
    });
    for (const size_t i : on_device) {
      if (!HasTexts(i)) MergeSummaries(i, shares);
    }
    for (const size_t i : on_device) contexts_[i].statistics->device_plan += ", rows of all ranks by " + links->name();
  }
  for (const size_t i : on_host) TESSERA_TRY(GatherOnHost(i, &here));
  for (size_t i = 0; i < contexts_.size(); ++i) {  // (Summarize has brought this rank's back)
    if (IsExchanged(i)) MergeSummaries(i, shares);
  }
  return here;
}

void Build::MergeSummaries(size_t i, const std::vector<std::vector<Share>>& shares) {
  for (size_t c = 0; c < kMaxSummaries; ++c) {
    ColumnSummary& all = states()[i].columns[c] = {};
    for (const std::vector<Share>& of_rank : shares) {
      const ColumnSummary& s = of_rank[i].columns[c];
      all.low = std::min(all.low, s.low);
      all.high = std::max(all.high, s.high);
      all.nulls += s.nulls;
    }
  }
}

Status Build::Summarize(const std::vector<size_t>& tables) {
  std::vector<RowsToSummarize> to_summarize;
  for (const size_t i : tables) {
    std::ranges::fill(states()[i].columns, ColumnSummary());
    CUDA_TRY(
        StartSmallCopies({{device_states()[i].columns, states()[i].columns, sizeof states()[i].columns}}, gpu_.stream));
    to_summarize.push_back(
        ToSummarize(runs_[i]->build_rows().on_device(), ColumnsOf(i).size(), device_states()[i].columns));
  }
  CUDA_TRY(StartSummarize(to_summarize.data(), to_summarize.size(), gpu_.stream));
  CUDA_TRY(StartSmallCopies({{states(), device_states(), contexts_.size() * sizeof(BuildState)}}, gpu_.stream));
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  return Status::Ok();
}

Status Build::GatherOnHost(size_t i, Status* mine) {
  BuildRows& rows = runs_[i]->build_rows();
  vm::Shipment shipment;
  const Status moved = Caught([&]() -> Status {
    TESSERA_TRY(*mine);
    const vm::SectionContext& c = contexts_[i];
    TESSERA_TRY(rows.MoveToHost());
    shipment.rows = vm::MakeRowSet(ColumnsOf(i));
    TESSERA_TRY(vm::AppendAll(&shipment.rows, std::move(rows.on_host()), c.pool));
    return c.late_texts == nullptr ? Status::Ok() : c.late_texts->Resolve(c.strings, c.pool, &shipment.rows);
  });
  TESSERA_TRY(exchange_->Agree(moved));
  TESSERA_ASSIGN(std::vector<vm::Shipment> all,
                 exchange_->AllGather(std::move(shipment), ColumnsOf(i), contexts_[i].strings));
  *mine = Caught([&] {
    std::vector<vm::RowSet> sets;
    for (vm::Shipment& of_rank : all) sets.push_back(std::move(of_rank.rows));
    from_hosts_[i] = vm::MakeRowSet(ColumnsOf(i));
    return vm::AppendAll(&from_hosts_[i], std::move(sets), contexts_[i].pool);
  });
  return Status::Ok();
}

void Build::LeaveWaiting(size_t i) {
  const vm::Section& section = SectionOf(contexts_[i]);
  BuildRows& rows = runs_[i]->build_rows();
  WaitingTable table;
  swap(table.rows, rows.on_device());
  table.on_host = std::move(rows.on_host());
  table.summaries.assign(states()[i].columns, states()[i].columns + kMaxSummaries);
  table.all_rows = all_[i].rows;
  table.source_rows = source_rows_[i];
  const ColumnSummary& key = table.summaries[0];
  if (all_[i].on_devices && section.keys == 1 && section.columns[0].storage() == StorageClass::kInt)
    table.keys = {true, all_[i].rows > 0 ? key.low : 0, all_[i].rows > 0 ? key.high : -1};
  joins_.SetKeyRange(section.join, table.keys);
  waiting_.Add(section.join, &table);
}

Status Build::Fill() {
  const vm::Program& program = *contexts_[0].program;
  for (size_t i = 0; i < contexts_.size(); ++i) {
    BuildRows& rows = runs_[i]->build_rows();
    const int join = SectionOf(contexts_[i]).join;
    if (IsExchanged(i)) LeaveWaiting(i);
    if (IsExchanged(i) || from_hosts_.contains(i)) continue;
    if (rows.on_host().empty()) {
      TESSERA_TRY(joins_.LayOut(
          program, *contexts_[i].traits,
          {join, &rows.on_device(), states()[i].columns, source_rows_[i], runs_[i]->source_keys()}, &batch_));
    } else {
      batch_.on_host.push_back({join, source_rows_[i], std::move(rows.on_host())});
    }
  }
  TESSERA_TRY(joins_.FillTables(program, &batch_, contexts_[0].pool));
  for (const auto& [i, rows] : from_hosts_)
    TESSERA_TRY(joins_.Put(program, *contexts_[i].traits, SectionOf(contexts_[i]).join, rows, source_rows_[i],
                           contexts_[i].settings.join_partitioning));
  return Status::Ok();
}

}  // namespace

Status BuildJoins(GpuDevice* gpu, DeviceJoins* joins, const KeptResults& results, RankLinks* links, RankTexts* texts,
                  WaitingTables* waiting, const std::vector<vm::SectionContext>& contexts, const Status& begun,
                  const std::function<void()>& meanwhile) {
  Build build(gpu, joins, results, texts, waiting, contexts);
  const Status made = Caught([&]() -> Status {
    TESSERA_TRY(begun);
    joins->SetPartitioning(contexts[0].settings.join_partitioning);
    return build.MakeRows(meanwhile);
  });
  if (build.exchange() != nullptr) {
    TESSERA_TRY(build.Gather(links, made));
  } else {
    TESSERA_TRY(made);
  }
  return build.Fill();
}

}  // namespace tessera::kernels
