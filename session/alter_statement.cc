// ALTER TABLE, and UNIQUE indexes: a table gets another schema, after a look at its rows, or is written anew.

#include <algorithm>
#include <bit>
#include <utility>

#include "base/phase_clock.h"
#include "session/program_run.h"
#include "session/same_snapshot.h"
#include "session/settings_scope.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/load/table_alteration.h"

namespace tessera {
namespace {

/// Which row of the table that is, from 1, those that were deleted not counted.
uint64_t PlaceOf(const TableInfo& table, int64_t number) {
  const auto tablet = static_cast<size_t>(number >> kRowNumberBits);
  const auto row = static_cast<uint32_t>(number & ((int64_t{1} << kRowNumberBits) - 1));
  uint64_t place = 1;
  for (size_t t = 0; t < tablet; ++t) {
    const LiveRows* const live = table.tablets[t]->live();
    place += table.tablets[t]->rows() - (live != nullptr ? live->deleted() : 0);
  }
  const LiveRows* const live = table.tablets[tablet]->live();
  for (uint32_t r = 0; r < row; ++r) place += live == nullptr || live->IsLive(r) ? 1 : 0;
  return place;
}

/// The error of the first row that a new CHECK is false for.
Status CheckRows(SessionState* state, const Compiled& compiled, const Snapshot& snapshot) {
  const Statement& s = compiled.statement;
  int64_t least = INT64_MAX;
  RowBatch first;
  const auto take = [&](RowBatch&& batch) {
    const std::vector<int64_t>& numbers = batch.columns.back().fixed;
    const auto at = std::min_element(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(batch.rows));
    if (batch.rows == 0 || *at >= least) return Status::Ok();
    least = *at;
    first = {};
    first.rows = 1;
    for (size_t c = 0; c + 1 < batch.columns.size(); ++c) {
      ColumnVector& column = first.columns.emplace_back();
      column.type = batch.columns[c].type;
      column.AppendFrom(batch.columns[c], static_cast<size_t>(at - numbers.begin()));
    }
    return Status::Ok();
  };
  TESSERA_TRY(RunProgram(state, *compiled.program, WithNumbers(snapshot, s.target), take, false, true));
  if (first.rows == 0) return Status::Ok();
  if (s.change.rules) TESSERA_TRY(s.change.rules(&first, PlaceOf(*s.target, least)));
  return {ErrorCode::kInternal, "a query finds a row that a CHECK is false for, and the CHECK is true"};
}

Status WriteAnew(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableAlteration* alteration) {
  const Statement& s = compiled.statement;
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, alteration->Rewrite(s.definition.schema));
  uint64_t written = 0;
  const auto append = [&](RowBatch&& batch) -> Status {
    if (s.change.rules) TESSERA_TRY(s.change.rules(&batch, written + 1));
    const uint64_t first = written + 1;
    written += batch.rows;
    return writer->Append(std::move(batch), first);
  };
  TESSERA_TRY(RunProgram(state, *compiled.program, WithNumbers(snapshot, s.target), append, false, true));
  if (state->cancel) return Cancelled();
  const PhaseScope phase(Phase::kPrint);
  return writer->Commit();
}

Status AlterRows(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableAlteration* alteration,
                 ResultWriter* out) {
  const Statement& s = compiled.statement;
  if (s.definition.rewrites) {
    TESSERA_TRY(WriteAnew(state, compiled, snapshot, alteration));
    TESSERA_TRY(ChangeSchemas(state, s.definition.dependents));
    return out->Done(s.notice);
  }
  if (!s.definition.sources.empty()) {
    TESSERA_TRY(alteration->MoveColumns(s.definition.schema, s.definition.sources));
    TESSERA_TRY(ChangeSchemas(state, s.definition.dependents));
    return out->Done(s.notice);
  }
  if (compiled.program != nullptr) TESSERA_TRY(CheckRows(state, compiled, snapshot));
  if (state->cancel) return Cancelled();
  TESSERA_TRY(alteration->Commit(s.definition.schema, &state->cancel));
  TESSERA_TRY(ChangeSchemas(state, s.definition.dependents));
  return out->Done(s.notice);
}

}  // namespace

Status ChangeSchemas(SessionState* state, const std::vector<TableSchema>& schemas) {
  for (const TableSchema& schema : schemas) {
    TESSERA_ASSIGN(Database* const database, DatabaseOf(state, schema.name));
    TESSERA_ASSIGN(const std::unique_ptr<TableAlteration> alteration, database->Alter(schema.name));
    TESSERA_TRY(alteration->Commit(schema, &state->cancel));
  }
  return Status::Ok();
}

Status Alter(SessionState* state, std::string_view sql, const Compiled& compiled,
             const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out) {
  const SettingsScope scope(state);
  state->settings.device = DeviceChoice::kHost;  // a GPU's rows come in any order
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, compiled.statement.table));
  TESSERA_TRY(CopyTypes(state, compiled.statement.definition.schema));
  std::shared_ptr<const Snapshot> seen = snapshot;
  if (NeedsSequences(compiled.statement)) {
    TESSERA_TRY(ChangeSequencesOf(state, compiled.statement));
    TESSERA_ASSIGN(seen, SnapshotOf(state));
  }
  TESSERA_ASSIGN(const std::unique_ptr<TableAlteration> alteration, database->Alter(compiled.statement.table));
  // The table is that of this moment: no other process changes it until the commit.
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, SnapshotOf(state));
  if (IsSame(*now, *seen)) return AlterRows(state, compiled, *now, alteration.get(), out);
  TESSERA_ASSIGN(const Compiled anew, Compile(sql, *now, PlanOptionsOf(*state), &state->random));
  if (anew.statement.kind == Statement::Kind::kNotice) return out->Done(anew.statement.notice);
  // (DROP INDEX may mean another table by now.)
  if (anew.statement.table != compiled.statement.table)
    return {ErrorKind::kSerializationFailure, "tables were changed by another process", "Run the statement again."};
  return AlterRows(state, anew, *now, alteration.get(), out);
}

}  // namespace tessera
