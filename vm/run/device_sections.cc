// Requests to the device.

#include "vm/run/device_sections.h"

#include <algorithm>

#include "base/clock.h"
#include "vm/run/unwanted_groups.h"

namespace tessera::vm {

bool DeviceSections::Takes(int number) const {
  if (!placement_.OnDevice(number)) return false;
  const Section& s = state_.section(number);
  if (s.source_kind != Section::Source::kSection || s.sink == Section::Sink::kJoin || Keeps(s.source)) return true;
  return std::any_of(s.code.begin(), s.code.end(),
                     [&](const Instruction& in) { return Probes(in) && !state_.joins.Has(in.p1); });
}

Result<RowSet> DeviceSections::Run(int number, const TableInfo* table, SectionStatistics* stats) {
  TESSERA_TRY(PutSource(number));
  SectionContext context = ContextOf(number, table, stats);
  const int append_to = state_.section(number).append_to;
  if (state_.options.exchange == nullptr && placement_.AreReadOnDevice(number)) {
    if (append_to < 0) context.keep_from = state_.options.gpu_keep_from;
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
  SectionContext context = ContextOf(number, state_.SourceTable(state_.section(number)), stats);
  context.take_rows = [&](RowSet* rows) -> Status {
    TESSERA_TRY(Resolve(rows));
    return stream->Add(*rows, 0, rows->rows);
  };
  return run_->RunSection(context).status();
}

Status DeviceSections::BuildJoins(int first, std::vector<SectionStatistics>* built) {
  size_t next = 0;
  const std::vector<int> numbers = placement_.BuiltTogether(first, &next);
  const auto start = Clock::now();
  std::vector<SectionStatistics> stats;
  for (const int number : numbers) stats.push_back(state_.StartStatistics(number));
  std::vector<SectionContext> contexts;
  for (const int number : numbers) TESSERA_TRY(PutSource(number));
  for (size_t k = 0; k < numbers.size(); ++k)
    contexts.push_back(ContextOf(numbers[k], state_.SourceTable(state_.section(numbers[k])), &stats[k]));
  SectionStatistics unused;
  if (next < state_.program.sections.size() && state_.options.exchange == nullptr) {
    const Section& s = state_.program.sections[next];
    const int number = static_cast<int>(next);
    if (placement_.OnDevice(number) && s.sink != Section::Sink::kJoin && state_.SourceTable(s) != nullptr)
      run_->Expect(ContextOf(number, state_.SourceTable(s), &unused));
  }
  TESSERA_TRY(run_->BuildJoins(contexts));
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

Status DeviceSections::PutJoin(const Section& s, const RowSet& rows) {
  const TableInfo* const table = state_.SourceTable(s);
  return run_->PutJoin(state_.program, s.join, rows, table != nullptr ? table->rows : rows.rows,
                       state_.options.join_partitioning);
}

SectionContext DeviceSections::ContextOf(int number, const TableInfo* table, SectionStatistics* stats) {
  stats->on_gpu = true;
  SectionContext context;
  context.program = &state_.program;
  context.section = number;
  context.table = table;
  context.strings = &state_.strings;
  context.cancel = state_.options.cancel;
  context.statistics = stats;
  context.pool = state_.pool;
  context.profile = state_.options.profile;
  context.handed_on = &state_.handed_on;
  context.late_texts = &state_.late_texts;
  context.join_partitioning = state_.options.join_partitioning;
  // (With other ranks a group here is a part of one.)
  if (state_.section(number).sink == Section::Sink::kGroups && state_.options.exchange == nullptr)
    context.unwanted = FindUnwanted(state_.program, number);
  return context;
}

}  // namespace tessera::vm
