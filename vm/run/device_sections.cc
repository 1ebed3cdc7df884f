// Requests to the device.

#include "vm/run/device_sections.h"

#include <algorithm>

#include "base/clock.h"
#include "base/exception_status.h"
#include "vm/run/unwanted_groups.h"
#include "vm/shares/tablet_shares.h"

namespace tessera::vm {

bool DeviceSections::Takes(int number) const {
  if (!placement_.OnDevice(number)) return false;
  const Section& s = state_.section(number);
  if (s.source_kind != Section::Source::kSection || s.sink == Section::Sink::kJoin || Keeps(s.source)) return true;
  if (s.after.append_to >= 0 && Keeps(s.after.append_to) && placement_.AreReadOnDevice(number)) return true;
  return std::ranges::any_of(
      state_.traits.section(number).probes, [&](int join) { return !state_.joins.Has(join); }, &ProbeTrait::join);
}

bool DeviceSections::Gathers(const Section& s) const {
  const Exchange* const exchange = state_.options.exchange;
  if (exchange == nullptr || s.sink != Section::Sink::kJoin || s.placement.co_located) return false;
  if (s.placement.by_key) return true;
  // A table that is on every rank, or small, is read by each, in any order. Ranks that share the rows need the same one.
  const auto shares = [&](const Section& r) { return r.source_kind == Section::Source::kJoin && r.source == s.join; };
  if (s.source_kind != Section::Source::kTable || std::ranges::any_of(state_.program.sections, shares)) return true;
  const TableInfo& table = *state_.SourceTable(s);
  return SharedByTablets(table, exchange->ranks(), exchange->replicate_below()) &&
         !IsReadWhole(table, s, exchange->replicate_below());
}

const TableInfo* DeviceSections::TableOf(int number) {
  const Section& s = state_.section(number);
  const TableInfo* const table = state_.SourceTable(s);
  const Exchange* const exchange = state_.options.exchange;
  const bool reads_all = s.sink == Section::Sink::kJoin && !s.placement.co_located && !Gathers(s);
  if (exchange == nullptr || table == nullptr || reads_all) return table;
  const auto [at, is_new] = portions_.try_emplace(number);
  TableInfo& portion = at->second;
  if (!is_new) return &portion;
  portion.id = table->id;
  portion.schema = table->schema;
  portion.statistics = table->statistics;
  for (const TabletPart& part : PartsOf(*table, s, exchange->ranks())) {
    if (part.rank != exchange->rank()) continue;
    const std::shared_ptr<const Tablet>& tablet = table->tablets[part.tablet];
    const bool is_whole = part.rows == tablet->rows();
    const Tablet* const rows = is_whole ? tablet.get() : tablet->Part(part.first, part.rows);
    portion.tablets.push_back(std::shared_ptr<const Tablet>(tablet, rows));
    portion.rows += part.rows;
  }
  for (size_t c = 0; c < portion.statistics.size(); ++c) {
    uint64_t& distinct = portion.statistics[c].distinct;
    // Of the column by which rows are on their ranks each rank has other values.
    const bool apart = table->schema.distribute_by == std::vector<int>{static_cast<int>(c)};
    const double share = static_cast<double>(portion.rows) / static_cast<double>(std::max<uint64_t>(table->rows, 1));
    if (apart) distinct = static_cast<uint64_t>(static_cast<double>(distinct) * share);
    distinct = std::min(distinct, portion.rows);
  }
  return &portion;
}

Result<RowSet> DeviceSections::Run(int number, SectionStatistics* stats) {
  TESSERA_TRY(PutSource(number));
  SectionContext context = ContextOf(number, stats);
  const int append_to = state_.section(number).after.append_to;
  if (placement_.AreReadOnDevice(number)) {
    if (append_to < 0) context.keep_from = KeepFrom(number);
    if (append_to >= 0 && Keeps(append_to)) {
      context.keep_from = 0;
      context.append_to = append_to;
    }
  }
  context.add_windows = placement_.AddsWindows(number);
  TESSERA_ASSIGN(RowSet rows, run_->RunSection(context));
  TESSERA_TRY(Resolve(&rows));
  return rows;
}

/// Of rows that stay distributed each rank keeps its own, however few.
uint64_t DeviceSections::KeepFrom(int number) const {
  if (state_.options.exchange == nullptr) return state_.options.gpu_keep_from;
  const bool may_stay =
      state_.IsShared(state_.section(number)) && state_.may_stay_distributed[static_cast<size_t>(number)];
  return may_stay ? 1 : UINT64_MAX;
}

Result<uint64_t> DeviceSections::FindGroups(int number, SectionStatistics* stats) {
  TESSERA_TRY(PutSource(number));
  SectionContext context = ContextOf(number, stats);
  if (placement_.AreReadOnDevice(number)) context.keep_from = KeepFrom(number);
  context.unwanted = FindUnwanted(state_.program, number);
  return run_->FindGroups(context);
}

Result<RowSet> DeviceSections::TakeGroups(bool whole) {
  TESSERA_ASSIGN(RowSet rows, run_->TakeGroups(whole));
  TESSERA_TRY(Resolve(&rows));
  return rows;
}

Result<RowSet> DeviceSections::Fetch(int number) {
  TESSERA_ASSIGN(RowSet rows, run_->FetchRows(state_.program, number));
  TESSERA_TRY(Resolve(&rows));
  return rows;
}

Status DeviceSections::Resolve(RowSet* rows) const {
  return state_.late_texts.Resolve(&state_.strings, state_.pool, rows);
}

Status DeviceSections::PutSource(int number) {
  const Section& s = state_.section(number);
  if (s.source_kind != Section::Source::kSection || Keeps(s.source)) return Status::Ok();
  return run_->PutRows(state_.program, s.source, state_.result(s.source));
}

Status DeviceSections::Stream(int number, RowStream* stream, SectionStatistics* stats) {
  TESSERA_TRY(PutSource(number));
  SectionContext context = ContextOf(number, stats);
  context.take_rows = [&](RowSet* rows) -> Status {
    TESSERA_TRY(Resolve(rows));
    return stream->Add(*rows, 0, rows->rows);
  };
  // (Rows within bounds, or in an order, are picked out by the stream.)
  const RowsAfter& after = state_.section(number).after;
  if (after.order.empty() && after.limit < 0 && after.offset == 0) context.marks = state_.options.marks;
  TESSERA_ASSIGN(const RowSet rows, run_->RunSection(context));
  stream->Count(rows.rows);
  return Status::Ok();
}

Status DeviceSections::BuildJoins(int first, const Status& ready, std::vector<SectionStatistics>* built) {
  size_t next = 0;
  const std::vector<int> numbers = placement_.BuiltTogether(first, &next);
  const auto start = Clock::now();
  std::vector<SectionStatistics> stats;
  for (const int number : numbers) stats.push_back(state_.StartStatistics(number));
  std::vector<SectionContext> contexts;
  // Ranks that build together must not wait for one that could not begin: it takes part with its error.
  Status put = ready;
  for (const int number : numbers) {
    if (put.ok()) put = Caught([&] { return PutSource(number); });
  }
  Exchange* const exchange = state_.options.exchange;
  for (size_t k = 0; k < numbers.size(); ++k) {
    const Section& s = state_.section(numbers[k]);
    contexts.push_back(ContextOf(numbers[k], &stats[k]));
    if (Gathers(s)) contexts.back().exchange = exchange;
    stats[k].distributed = (s.placement.co_located || s.placement.by_key) && exchange != nullptr;
  }
  SectionStatistics unused;
  if (next < state_.program.sections.size()) {
    const Section& s = state_.program.sections[next];
    const int number = static_cast<int>(next);
    if (placement_.OnDevice(number) && s.sink != Section::Sink::kJoin && state_.SourceTable(s) != nullptr &&
        !TableOf(number)->tablets.empty())
      run_->Expect(ContextOf(number, &unused));
  }
  // Those of the other ranks that have no error go on after all of these.
  for (const int number : numbers) state_.built_on_device[static_cast<size_t>(number)] = exchange != nullptr;
  TESSERA_TRY(run_->BuildJoins(contexts, put));
  const double milliseconds = MillisecondsSince(start);
  double kernels = 0;
  for (const SectionStatistics& s : stats) kernels += s.kernel_milliseconds;
  for (SectionStatistics& s : stats) {
    s.milliseconds = kernels > 0 ? milliseconds * s.kernel_milliseconds / kernels
                                 : milliseconds / static_cast<double>(numbers.size());
    state_.built_on_device[static_cast<size_t>(s.section)] = true;
  }
  *built = std::move(stats);
  return Status::Ok();
}

Result<bool> DeviceSections::ExchangeJoin(int number, const Result<RowSet>& mine, SectionStatistics* stats) {
  const int join = state_.traits.probed_with[static_cast<size_t>(number)];
  SectionContext context = ContextOf(number, stats);
  context.exchange = state_.options.exchange;
  const bool on_host = mine.ok() && !Keeps(number) && mine->rows > 0;
  const bool can = !on_host || Caught([&] { return run_->PutRows(state_.program, number, *mine); }).ok();
  return run_->ExchangeJoin(context, join, can, state_.traits.join(join).inner, mine.status());
}

Result<RowSet> DeviceSections::TakeJoin(int join) {
  TESSERA_ASSIGN(RowSet rows, run_->TakeJoin(state_.program, join, state_.pool));
  TESSERA_TRY(Resolve(&rows));
  return rows;
}

Status DeviceSections::PutJoin(const Section& s, const RowSet& rows) {
  const TableInfo* const table = state_.SourceTable(s);
  return run_->PutJoin(state_.program, state_.traits, s.join, rows, table != nullptr ? table->rows : rows.rows,
                       state_.options.settings.join_partitioning);
}

SectionContext DeviceSections::ContextOf(int number, SectionStatistics* stats) {
  stats->on_gpu = true;
  SectionContext context;
  context.program = &state_.program;
  context.traits = &state_.traits;
  context.section = number;
  context.table = TableOf(number);
  context.strings = &state_.strings;
  context.cancel = state_.options.cancel;
  context.statistics = stats;
  context.pool = state_.pool;
  context.profile = state_.options.profile;
  context.handed_on = &state_.handed_on;
  context.late_texts = &state_.late_texts;
  context.settings = state_.options.settings;
  if (state_.options.exchange != nullptr && state_.section(number).source_kind == Section::Source::kJoin) {
    context.rank = state_.options.exchange->rank();
    context.ranks = state_.options.exchange->ranks();
  }
  // (With other ranks a group here may be a part of one: see FindGroups.)
  if (state_.section(number).sink == Section::Sink::kGroups && state_.options.exchange == nullptr)
    context.unwanted = FindUnwanted(state_.program, number);
  return context;
}

}  // namespace tessera::vm
