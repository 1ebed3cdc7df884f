// VACUUM: tables written anew.

#include "session/program_run.h"
#include "session/settings_scope.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/load/table_alteration.h"

namespace tessera {
namespace {

std::string Quoted(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

/// As a query names the table.
std::string SpelledName(const std::string& name) {
  const std::string_view schema = SchemaOfName(name);
  return Quoted(std::string(schema.empty() ? "public" : schema)) + "." + Quoted(BaseName(name));
}

Status VacuumTable(SessionState* state, const std::string& name) {
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, name));
  TESSERA_ASSIGN(const std::unique_ptr<TableAlteration> alteration, database->Alter(name));
  // The lock is held from here on: these are the rows that are replaced.
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state->Read());
  const std::shared_ptr<const TableInfo> table = now->Find(name);
  if (table == nullptr) return {ErrorCode::kInternal, "a table changed under its lock"};
  // (It has no rows, and may not be read.)
  if (table->schema.materialized && !table->schema.materialized->populated) return Status::Ok();
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, alteration->Rewrite(table->schema));
  TESSERA_ASSIGN(const Compiled rows, Compile("SELECT * FROM " + SpelledName(name), *now, PlanOptionsOf(*state)));
  uint64_t written = 0;
  const auto append = [&](RowBatch&& batch) -> Status {
    const uint64_t first = written + 1;
    written += batch.rows;
    return writer->Append(std::move(batch), first);
  };
  TESSERA_TRY(RunProgram(state, *rows.program, *now, append));
  if (state->cancel) return Cancelled();
  TESSERA_TRY(writer->Commit());
  state->running.timing.rows += written;
  return Status::Ok();
}

}  // namespace

Status Vacuum(SessionState* state, const std::vector<std::string>& tables, const std::string& compression) {
  if (state->transaction.is_open)
    return SqlError(ErrorKind::kActiveTransaction, "VACUUM cannot run inside a transaction block", -1,
                    "Enter COMMIT or ROLLBACK first.");
  const SettingsScope scope(state);
  if (!compression.empty()) TESSERA_TRY(Set(state, "compression", compression));
  state->settings.device = DeviceChoice::kHost;  // a GPU's rows come in any order
  for (const std::string& table : tables) TESSERA_TRY(VacuumTable(state, table));
  return Status::Ok();
}

}  // namespace tessera
