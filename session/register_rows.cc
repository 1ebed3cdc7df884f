// Rows of the program around the session, as a temporary table: for interfaces that take them.

#include "compiler/parse/transaction_command.h"
#include "compiler/query/bound_query.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "session/transaction.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/view.h"

namespace tessera {
namespace {

/// Such rows are seldom read often: packing them would take longer than what it saves. (10 M rows of four columns in 0.4 s
/// instead of 0.8, on two cores.)
class WithoutPacking {
 public:
  WithoutPacking(Database* database, CompressionGoal before) : database_(*database), before_(before) {
    database_.SetCompression(CompressionGoal::kNone);
  }
  ~WithoutPacking() { database_.SetCompression(before_); }
  WithoutPacking(const WithoutPacking&) = delete;
  WithoutPacking& operator=(const WithoutPacking&) = delete;

 private:
  Database& database_;
  const CompressionGoal before_;
};

}  // namespace

namespace {

/// Errors: the name hides a view.
Status CheckName(const SessionState& state, const std::string& name) {
  if (FindView(state.temporaries.views, name) == nullptr) return {};
  return SqlError(ErrorKind::kDuplicateTable, "view \"" + name + "\" already exists", -1,
                  "Register the rows under another name, or DROP VIEW " + name + ".");
}

}  // namespace

Status RegisterFrame(SessionState* state, const std::string& name, std::shared_ptr<TableInfo> frame) {
  TESSERA_TRY(CheckTransaction(state, {}));
  TESSERA_TRY(CheckName(*state, name));
  frame->schema.name = QualifiedName(kTemporarySchema, name);
  // (One of a database that has the name hides it no longer: both would be found.)
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> seen, SnapshotOf(state));
  const std::shared_ptr<const TableInfo> there = seen->Find(frame->schema.name);
  if (there != nullptr && there->files.empty()) {
    return SqlError(ErrorKind::kDuplicateTable, "temporary table \"" + name + "\" already exists", -1,
                    "Register the rows under another name, or DROP TABLE " + name + ".");
  }
  (void)ForgetFrame(state, name);
  state->running.timing.rows = frame->rows;
  state->temporaries.frames.push_back(std::move(frame));
  return {};
}

bool ForgetFrame(SessionState* state, const std::string& name) {
  const std::string qualified = QualifiedName(kTemporarySchema, name);
  return std::erase_if(state->temporaries.frames, [&](const auto& frame) { return frame->schema.name == qualified; }) >
         0;
}

Result<uint64_t> RegisterRows(SessionState* state, const std::string& name, FileReader* rows) {
  TESSERA_TRY(CheckTransaction(state, {}));
  TESSERA_TRY(StoreWaiting(state));
  TableSchema schema = rows->schema();
  schema.name = QualifiedName(kTemporarySchema, name);
  schema.tablet_rows = static_cast<uint32_t>(state->settings.tablet_rows);
  TESSERA_TRY(CheckName(*state, name));
  (void)ForgetFrame(state, name);
  // (A transaction that only reads may add rows to temporary tables, as INSERT does, and so it may have these.)
  Statement insert;
  insert.kind = Statement::Kind::kInsert;
  insert.table = schema.name;
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> seen, SnapshotOf(state));
  TESSERA_TRY(BeginChange(state, &insert, seen).status());
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, schema.name));
  CopyFromOptions options;
  options.threads = state->threads();
  options.cancel = &state->cancel;
  options.zone = state->settings.timezone;
  if (state->progress) {
    options.progress = [state, name](uint64_t done, uint64_t all) {
      state->progress({name.c_str(), done, all, ProgressUnit::kBytes});
    };
  }
  const WithoutPacking packing(database, state->settings.compression);
  TESSERA_ASSIGN(state->running.timing.rows, database->LoadNew(schema, true, rows, options));
  return state->running.timing.rows;
}

}  // namespace tessera
