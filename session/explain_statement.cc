// EXPLAIN: the plan of a statement, or its program; with ANALYZE it runs first, as it does without EXPLAIN.

#include "base/clock.h"
#include "base/phase_clock.h"
#include "compiler/plan/plan_tree.h"
#include "mpi/cluster.h"
#include "session/decode_depth.h"
#include "session/no_result.h"
#include "session/program_run.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

Status Run(SessionState* state, std::string_view sql, Compiled* compiled,
           const std::shared_ptr<const Snapshot>& snapshot) {
  NoResult nothing;
  if (ChangesRows(compiled->statement)) return Change(state, sql, compiled, snapshot, &nothing);
  if (compiled->statement.kind == Statement::Kind::kInsert) return Insert(state, sql, compiled, snapshot, &nothing);
  if (compiled->statement.kind == Statement::Kind::kCreateTable) return CreateTable(state, *compiled, *snapshot);
  const auto count = [&](RowBatch&& batch) {
    state->running.timing.rows += batch.rows;
    return Status::Ok();
  };
  return RunQuery(state, *compiled, *snapshot, count, true);
}

/// How the ranks share the program; "" if there are none, or it reads no table.
std::string RanksPart(SessionState* state, const Compiled& compiled, const Snapshot& snapshot) {
  if (compiled.program == nullptr || state->cluster == nullptr || !ReadsTables(*compiled.program) ||
      ReadsTemporary(*compiled.program))
    return {};
  return "\n" + RanksText(*compiled.program, snapshot, state->cluster->nodes(), ClusterSettingsOf(state->settings));
}

/// The plan, the sections and how columns are stored.
std::string ProgramText(SessionState* state, const Compiled& compiled, const Snapshot& snapshot) {
  std::string text = ShownName(PlanText(compiled.plan));
  if (compiled.program == nullptr) return text;
  text += "\n" + ShownName(vm::Listing(*compiled.program));
  const Statement& s = compiled.statement;
  const std::string depths =
      DecodeDepths(*compiled.program, ChangesRows(s) ? WithNumbers(snapshot, s.target) : snapshot);
  return text + (depths.empty() ? "" : "\n" + depths) + RanksPart(state, compiled, snapshot);
}

/// Of the GPU's memory, in bytes a second; 0 if nothing ran on one.
double BandwidthOf(SessionState* state) {
  for (const vm::SectionStatistics& section : state->running.statistics.sections) {
    if (!section.on_gpu || state->engine->gpu() == nullptr) continue;
    Result<double> measured = state->engine->gpu()->MeasureBandwidth();  // without it there are no percentages
    if (measured.ok() && *measured > 0) return *measured;
  }
  return 0;
}

}  // namespace

Status Explain(SessionState* state, std::string_view sql, Compiled* compiled,
               const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out) {
  const bool analyze = compiled->statement.explain.analyze;
  const ExplainForm form = compiled->statement.explain.form;
  if (analyze) {
    const auto start = Clock::now();
    TESSERA_TRY(Run(state, sql, compiled, snapshot));
    state->running.timing.execute = MillisecondsSince(start);
    if (PhaseClock* const clock = PhaseClock::current(); clock != nullptr && !state->running.statistics.ranks.empty())
      TakeAccounts(clock, &state->running.statistics.ranks[0]);
  }
  Analysis analysis{&state->running.statistics, &compiled->estimates, &state->running.timing};
  if (!form.program) {
    TESSERA_TRY(out->Explained({&compiled->plan, &form, analyze, analysis}));
    return form.verbose && !form.json && !form.html ? out->Text(RanksPart(state, *compiled, *snapshot)) : Status::Ok();
  }
  if (analyze) analysis.bandwidth = BandwidthOf(state);
  TESSERA_TRY(out->Text(ProgramText(state, *compiled, *snapshot)));
  return analyze ? out->Analyzed(analysis) : Status::Ok();
}

std::string ExplainWords(const ExplainRequest& explain) {
  if (!explain.wanted) return {};
  const ExplainForm &form = explain.form, normal{};
  std::string words = explain.analyze ? "ANALYZE" : "ANALYZE off";
  if (form.program) words += ", PROGRAM";
  if (form.json) words += ", FORMAT json";
  if (form.html) words += ", FORMAT html";
  if (form.verbose) words += ", VERBOSE";
  if (form.buffers) words += ", BUFFERS";
  if (form.costs != normal.costs) words += ", COSTS off";
  if (form.timing != normal.timing) words += ", TIMING off";
  if (form.summary != normal.summary) words += ", SUMMARY off";
  return "EXPLAIN (" + words + ") ";
}

}  // namespace tessera
