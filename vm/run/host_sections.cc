// A section on the threads of this process: runs the units and puts their rows together.

#include "vm/run/host_sections.h"

#include <algorithm>
#include <deque>

#include "base/memory_budget.h"
#include "vm/after/select_fold.h"
#include "vm/rows/sorted_rows.h"
#include "vm/run/unit_runner.h"
#include "vm/shares/portion.h"

namespace tessera::vm {
namespace {

/// Rows that a unit of a stream may hold before it waits for the consumer.
constexpr size_t kStreamRows = 1 << 18;

/// Hands the rows of the first units to the stream and drops the units that are done. Returns how many it dropped.
Result<size_t> TakeRows(const Section& s, std::deque<UnitOutput>* units, RowStream* stream) {
  size_t dropped = 0;
  for (; !units->empty(); ++dropped) {
    UnitOutput& first = units->front();
    TESSERA_TRY(stream->Add(first.rows, 0, first.rows.rows));
    first.rows = MakeRowSet(s.columns);
    if (!first.done) break;
    units->pop_front();
  }
  TESSERA_TRY(stream->Flush());
  return dropped;
}

/// How many units the OFFSET of a stream leaves out: those of a stored table or a series all of whose rows are the
/// section's.
size_t SkipUnits(const RunState& state, const Scan& scan, RowStream* stream) {
  const bool all_rows = state.traits.section(scan.number).only_moves;
  const bool is_cut = scan.table != nullptr || state.section(scan.number).source_kind == Section::Source::kSeries;
  if (!is_cut || !all_rows || state.options.exchange != nullptr) return 0;
  size_t u = 0;
  for (; u < scan.units.size(); ++u) {
    const uint32_t rows = scan.units.blocks[scan.units.At(u).block].rows;
    if (rows > stream->skip()) break;
    stream->Skip(rows);
  }
  return u;
}

/// Runs all units of a round; their rows go to `stream`.
Status StreamRound(RunState* state, Scan* scan, RowStream* stream) {
  const Section& s = state->section(scan->number);
  std::deque<UnitOutput> units;  // from unit `begin` on
  // (Nothing waits for the consumer then.)
  const bool all =
      s.after.order.empty() && s.after.limit < 0 && s.after.offset == 0 && s.after.fold.kind == Section::Fold::kNone;
  RowMarks* const marks = all ? state->options.marks : nullptr;
  size_t begin = SkipUnits(*state, *scan, stream), window = marks != nullptr ? kWindowUnits : StreamWindow(*state);
  while (begin < scan->units.size() && !stream->full()) {
    units.resize(std::max(units.size(), std::min(window, scan->units.size() - begin)));
    const uint64_t before = stream->streamed(), made_before = scan->counts.rows_out;
    const UnitWindow these = {begin, begin + units.size(), stream->wanted(), RowsByWidth(kStreamRows, s), marks};
    TESSERA_TRY(RunUnits(state, scan, these, &units));
    if (marks != nullptr) stream->Count(scan->counts.rows_out - made_before);
    TESSERA_ASSIGN(const size_t dropped, TakeRows(s, &units, stream));
    begin += dropped;
    // If few rows come, threads should not have to wait for each other after every few units.
    const uint64_t came = stream->streamed() - before;
    if (units.empty() && came < RowsByWidth(8 * kBatchRows, s)) window = std::min(4 * window, kWindowUnits);
    if (came > RowsByWidth(64 * kBatchRows, s)) window = std::max(window / 2, StreamWindow(*state));
  }
  return Status::Ok();
}

/// Runs all units of a round and adds their rows to `rows`, up to the section's LIMIT.
Status RunRound(RunState* state, Scan* scan, RowSet* rows) {
  const Section& s = state->section(scan->number);
  if (s.sink == Section::Sink::kGroups) return RunUnits(state, scan, {0, scan->units.size()}, nullptr);
  size_t begin = 0;
  do {
    const size_t end = std::min(scan->units.size(), begin + kWindowUnits);
    std::deque<UnitOutput> units(end - begin);
    TESSERA_TRY(RunUnits(state, scan, {begin, end, WantedRows(s, rows->rows)}, &units));
    std::vector<RowSet> made;
    for (UnitOutput& u : units) made.push_back(std::move(u.rows));
    TESSERA_TRY(AppendAll(rows, std::move(made), state->pool));
    begin = end;
  } while (begin < scan->units.size() && WantedRows(s, rows->rows) > 0);
  return Status::Ok();
}

}  // namespace

Result<RowSet> HostSections::Run(int number, SectionStatistics* stats) {
  const Section& s = state_.section(number);
  TESSERA_TRY(MakeJoins(number));
  Scan scan;
  TESSERA_TRY(PrepareScan(&state_, number, &scan));
  RowSet all = MakeRowSet(s.columns);
  Status status = RunAllUnits(&state_, &scan, &all);
  AddScan(scan, &state_, stats);
  if (!status.ok()) return status;
  if (s.sink == Section::Sink::kGroups) return MergeGroups(s, &state_.strings, state_.pool, scan.groups);
  if (s.sink != Section::Sink::kRows) return all;
  TESSERA_ASSIGN(const bool folded, SelectFold(s, state_.program.constants, state_.pool, &all));
  if (!folded) TESSERA_TRY(OrderAndLimit(s.after, state_.strings, state_.pool, &all));
  return all;
}

Status HostSections::Stream(int number, RowStream* stream, SectionStatistics* stats) {
  TESSERA_TRY(MakeJoins(number));
  Scan scan;
  TESSERA_TRY(PrepareScan(&state_, number, &scan));
  // Texts go to the consumer as they lie in the chunks.
  HandedOn late;
  if (scan.encoder != nullptr && state_.section(number).after.fold.kind == Section::Fold::kNone) {
    late = FindHandedOn(state_.program, state_.traits, [&](int table, int column) {
      return VarietyOf(*state_.tables[static_cast<size_t>(table)], column);
    });
    scan.encoder->HandOn(&late.slots[static_cast<size_t>(number)], &state_.late_texts);
  }
  Status status = StreamRound(&state_, &scan, stream);
  while (status.ok() && !stream->full() && CutNextOfSeries(&state_, &scan))
    status = StreamRound(&state_, &scan, stream);
  AddScan(scan, &state_, stats);
  return status;
}

/// The index is for probes on the host. Without ranks the rows are kept even if there are none, in case the device gives
/// up; ranks end the program then.
Status HostSections::IndexJoin(const Section& s, RowSet rows) {
  if (placement_.IsUsedOnHost(s.join)) return state_.joins.Add(s.join, std::move(rows), s.keys);
  if (state_.options.exchange == nullptr) state_.joins.Keep(s.join, std::move(rows), s.keys);
  return Status::Ok();
}

/// Makes the indexes that the section needs and that the device had in place of the host.
Status HostSections::MakeJoins(int number) {
  const Section& s = state_.section(number);
  std::vector<int> needed;
  if (s.source_kind == Section::Source::kJoin) needed.push_back(s.source);
  for (const ProbeTrait& p : state_.traits.section(number).probes) needed.push_back(p.join);
  for (const int join : needed) {
    const int builder = state_.join(join).section;
    if (state_.joins.Has(join)) {
      TESSERA_TRY(state_.joins.Index(join));
      continue;
    }
    if (!state_.built_on_device[static_cast<size_t>(builder)]) continue;
    SectionStatistics again;
    TESSERA_TRY(MakeSource(builder));
    TESSERA_ASSIGN(RowSet rows, Run(builder, &again));
    TESSERA_TRY(OrderJoin(state_, state_.section(builder), &rows));
    TESSERA_TRY(state_.joins.Add(join, std::move(rows), state_.section(builder).keys));
  }
  return Status::Ok();
}

/// Makes the rows that the section reads once more, if they have gone.
Status HostSections::MakeSource(int number) {
  const Section& s = state_.section(number);
  if (s.source_kind != Section::Source::kSection || !state_.was_dropped[static_cast<size_t>(s.source)])
    return Status::Ok();
  SectionStatistics again;
  TESSERA_TRY(MakeSource(s.source));
  TESSERA_ASSIGN(state_.result(s.source), Run(s.source, &again));
  state_.was_dropped[static_cast<size_t>(s.source)] = false;
  return Status::Ok();
}

Status OrderJoin(const RunState& state, const Section& s, RowSet* rows) {
  TESSERA_TRY(JoinIndex::CheckRows(*rows));
  const int32_t order = state.join(s.join).order;
  return order < 0 ? Status::Ok() : SortRows(order, state.strings, state.pool, rows);
}

Status RunAllUnits(RunState* state, Scan* scan, RowSet* rows) {
  const Section& s = state->section(scan->number);
  do {
    TESSERA_TRY(RunRound(state, scan, rows));
  } while ((s.sink == Section::Sink::kGroups ? !scan->has_groups : WantedRows(s, rows->rows) > 0) &&
           CutNextOfSeries(state, scan));
  return Status::Ok();
}

uint64_t WantedRows(const Section& s, uint64_t made) {
  if (s.sink != Section::Sink::kRows || !s.after.order.empty() || s.after.limit < 0) return UINT64_MAX;
  const uint64_t enough = s.after.Needed();
  return enough > made ? enough - made : 0;
}

size_t StreamWindow(const RunState& state) { return static_cast<size_t>(state.pool->threads()) * 2; }

}  // namespace tessera::vm
