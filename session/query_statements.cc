// SELECT, INSERT, CREATE TABLE and SET VARIABLE.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/phase_clock.h"
#include "compiler/query/schema_text.h"
#include "session/insert_queue.h"
#include "session/program_run.h"
#include "session/returned_rows.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "session/transaction.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/value_at.h"

namespace tessera {
namespace {

/// Hands rows to a writer, with Begin before the first of them: an error before that leaves nothing behind.
class RowForwarder {
 public:
  RowForwarder(SessionState* state, const std::vector<vm::ResultColumn>& columns, ResultWriter* out)
      : state_(*state), columns_(columns), out_(out) {}
  ~RowForwarder() { out_->SetHelpers(nullptr); }
  RowForwarder(const RowForwarder&) = delete;
  RowForwarder& operator=(const RowForwarder&) = delete;

  Status Rows(RowBatch&& batch) {
    TESSERA_TRY(Begin());
    rows_ += batch.rows;
    return out_->Rows(std::move(batch));
  }
  Status End() {
    TESSERA_TRY(Begin());
    return out_->End();
  }
  uint64_t rows() const { return rows_; }

 private:
  Status Begin() {
    if (begun_) return Status::Ok();
    begun_ = true;
    out_->SetHelpers(state_.running.executor != nullptr ? state_.running.executor->pool() : nullptr);
    return out_->Begin(columns_);
  }

  const SessionState& state_;
  const std::vector<vm::ResultColumn>& columns_;
  ResultWriter* out_;
  bool begun_ = false;
  uint64_t rows_ = 0;
};

/// Hands on the rows that run(consumer) gives.
template <class Run>
Status Forward(SessionState* state, const std::vector<vm::ResultColumn>& columns, ResultWriter* out, const Run& run) {
  RowForwarder rows(state, columns, out);
  TESSERA_TRY(run([&](RowBatch&& batch) { return rows.Rows(std::move(batch)); }));
  state->running.timing.rows = rows.rows();
  const PhaseScope phase(Phase::kPrint);
  return rows.End();
}

}  // namespace

Status Select(SessionState* state, const vm::Program& program, const Snapshot& snapshot, ResultWriter* out) {
  return Forward(state, program.columns, out,
                 [&](const vm::RowConsumer& consume) { return RunProgram(state, program, snapshot, consume); });
}

Status Select(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
  return Forward(state, ResultColumns(compiled), out,
                 [&](const vm::RowConsumer& consume) { return RunQuery(state, compiled, snapshot, consume); });
}

namespace {

/// The rows of the statement into `writer`, and Commit().
Status WriteRows(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableWriter* writer,
                 ReturnedRows* returned) {
  const Statement& s = compiled.statement;
  uint64_t rows = 0;
  auto append = [&](RowBatch&& batch) -> Status {
    if (s.change.rules) TESSERA_TRY(s.change.rules(&batch, rows + 1));
    const uint64_t first = rows + 1;
    rows += batch.rows;
    if (!returned->wanted()) return writer->Append(std::move(batch), first);
    TESSERA_TRY(writer->Append(batch, first));
    returned->Add(std::move(batch));
    return Status::Ok();
  };
  if (compiled.program != nullptr) {
    // Reads the snapshot while the writer fills new tablets, so a table may be inserted into itself.
    TESSERA_TRY(RunQuery(state, compiled, snapshot, append, s.explain.analyze));
  } else if (s.change.rules || returned->wanted()) {
    TESSERA_TRY(append(RowBatch(s.change.values)));
  } else if (s.change.values.rows > 0) {
    TESSERA_TRY(writer->Append(s.change.values, 1));
    rows = s.change.values.rows;
  }
  TESSERA_TRY(returned->Compute(snapshot));
  if (state->cancel) return Cancelled();
  const PhaseScope phase(Phase::kPrint);
  TESSERA_TRY(writer->Commit());
  state->running.timing.rows = rows;
  return Status::Ok();
}

/// Whether an INSERT may share the commit of others: its end is its commit.
bool MayJoin(const SessionState& state, const Compiled& compiled, const Database& database) {
  return InsertsValuesAlone(compiled) && compiled.statement.change.values.rows <= InsertQueue::kMostRows &&
         &database == state.database.get() && !state.transaction.is_open && !database.InTransaction();
}

/// False: nothing was done.
Result<bool> StoreTogether(SessionState* state, const Statement& s) {
  RowBatch ruled;
  if (s.change.rules) {
    ruled = s.change.values;
    TESSERA_TRY(s.change.rules(&ruled, 1));
  }
  const RowBatch& rows = s.change.rules ? ruled : s.change.values;
  TESSERA_TRY(CheckConstraints(s.target->schema, rows, 1));
  const PhaseScope phase(Phase::kPrint);
  const InsertQueue::Insert insert{.database = state->database.get(),
                                   .table = s.table,
                                   .table_id = s.target->id,
                                   .schema = &s.target->schema,
                                   .rows = &rows,
                                   .cancel = &state->cancel,
                                   .patience = std::chrono::milliseconds(state->settings.lock_timeout)};
  std::string warning;
  TESSERA_ASSIGN(const bool stored, state->engine->inserts()->Store(insert, &warning));
  if (stored) state->running.timing.rows = rows.rows;
  if (!warning.empty()) state->running.warning = std::move(warning);
  return stored;
}

/// COPY FROM a Parquet file is an INSERT of its rows.
void AppendTag(const Statement& s, uint64_t rows, std::string* tag) {
  fmt::format_to(std::back_inserter(*tag), "{} {}", s.copy.file.empty() ? "INSERT 0" : "COPY", rows);
}

}  // namespace

Status Insert(SessionState* state, std::string_view sql, Compiled* compiled,
              const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out) {
  const Statement& s = compiled->statement;
  std::string tag;
  tag.reserve(kTagBytes);
  if (MayWait(*state, *compiled)) {
    RowBatch rows = s.change.values;
    if (s.change.rules) TESSERA_TRY(s.change.rules(&rows, 1));
    state->running.timing.rows = rows.rows;
    TESSERA_TRY(LetWait(state, s, rows));
    AppendTag(s, state->running.timing.rows, &tag);
    return out->Done(tag);
  }
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, s.table));
  CopyFromOptions options;
  if (const std::unique_ptr<FileReader> file = WholeFile(state, s, &options)) {
    std::atomic<uint64_t> ignored{0};
    options.ignored = &ignored;
    options.schema = &s.target->schema;
    TESSERA_ASSIGN(state->running.timing.rows, database->Load(s.table, file.get(), options));
    WarnOfIgnored(state, ignored);
    if (out == nullptr) return {};
    AppendTag(s, state->running.timing.rows, &tag);
    return out->Done(tag);
  }
  if (MayJoin(*state, *compiled, *database)) {
    TESSERA_ASSIGN(const bool stored, StoreTogether(state, s));
    if (stored) {
      AppendTag(s, state->running.timing.rows, &tag);
      return out->Done(tag);
    }
  }
  TESSERA_ASSIGN(std::unique_ptr<TableWriter> writer, database->Write(s.table));
  // The snapshot is older than the lock: others may have changed what the query reads, and the table may have become another one.
  std::shared_ptr<const Snapshot> seen = snapshot;
  if (compiled->program != nullptr) TESSERA_TRY(CompileForNow(state, sql, compiled, &seen));
  TESSERA_ASSIGN(std::shared_ptr<const Snapshot> now, database->Read());
  const std::shared_ptr<const TableInfo> table = now->Find(s.table);
  if (table == nullptr || table->id != s.target->id) {
    return {ErrorKind::kSerializationFailure, "table \"" + s.table + "\" was replaced by another process",
            "Run the statement again."};
  }
  TESSERA_TRY(CheckUnchanged(s.target->schema, table->schema));
  ReturnedRows returned(state, s);
  TESSERA_TRY(WriteRows(state, *compiled, *seen, writer.get(), &returned));
  AppendTag(s, state->running.timing.rows, &tag);
  return returned.Show(tag, out);
}

namespace {

/// A column of an attached database may have a type that this one does not have.
Status CheckTypesExist(const TableSchema& schema, const Snapshot& snapshot) {
  for (const ColumnSchema& column : schema.columns) {
    if (column.type.id != TypeId::kEnum || std::ranges::count(snapshot.types, EnumOf(column.type)) > 0) continue;
    std::string create = CreateTypeText(EnumOf(column.type));
    create.resize(create.rfind(';'));
    return SqlError(
        ErrorKind::kUndefinedObject,
        "column \"" + column.name + "\" is of type " + EnumOf(column.type).name + ", which is not one of this database",
        -1, "Enter " + create + ", or cast the column to TEXT.");
  }
  return {};
}

}  // namespace

Status CreateTable(SessionState* state, const Compiled& compiled, const Snapshot& snapshot) {
  const Statement& s = compiled.statement;
  TableSchema schema = s.definition.schema;
  if (schema.tablet_rows == 0) schema.tablet_rows = static_cast<uint32_t>(state->settings.tablet_rows);
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, schema.name));
  const bool was_there = s.definition.if_exists && snapshot.Find(schema.name) != nullptr;
  if (!IsTemporaryName(schema.name)) TESSERA_TRY(CheckTypesExist(schema, snapshot));
  TESSERA_TRY(CopyTypes(state, schema));
  if (compiled.program == nullptr) {
    TESSERA_TRY(s.definition.or_replace ? database->ReplaceTable(schema)
                                        : database->CreateTable(schema, s.definition.if_exists));
    if (was_there) return Status::Ok();
    TESSERA_TRY(AddSequences(state, s));
    return NoteOnCommit(state, s);
  }
  CopyFromOptions options;
  if (const std::unique_ptr<FileReader> file = WholeFile(state, s, &options)) {
    std::atomic<uint64_t> ignored{0};
    options.ignored = &ignored;
    TESSERA_ASSIGN(state->running.timing.rows, database->LoadNew(schema, s.definition.or_replace, file.get(), options));
    WarnOfIgnored(state, ignored);
    return was_there ? Status::Ok() : NoteOnCommit(state, s);
  }
  TESSERA_ASSIGN(std::unique_ptr<TableWriter> writer, database->WriteNew(schema, s.definition.or_replace));
  ReturnedRows none(state, s);
  TESSERA_TRY(WriteRows(state, compiled, snapshot, writer.get(), &none));
  return was_there ? Status::Ok() : NoteOnCommit(state, s);
}

Result<std::vector<std::string>> FirstColumn(SessionState* state, const std::string& sql, const Snapshot& snapshot) {
  auto seen = std::make_shared<const Snapshot>(snapshot);
  TESSERA_ASSIGN(const Compiled compiled, CompileStatement(state, sql, PlanOptionsOf(*state), &seen));
  std::vector<std::string> texts;
  if (compiled.program == nullptr) return texts;
  const Status status = RunProgram(state, *compiled.program, *seen, [&](RowBatch&& batch) {
    const ColumnVector& column = batch.columns[0];
    for (size_t row = 0; row < batch.rows; ++row) {
      if (column.IsNull(row)) continue;
      texts.emplace_back();
      AppendText(column, row, &texts.back());
    }
    return Status::Ok();
  });
  // What is counted is the statement's alone.
  state->running.statistics = vm::RunStatistics{};
  state->running.timing.kernel = 0;
  state->running.timing.bytes_read = 0;
  if (!status.ok()) return status;
  return texts;
}

Status SetVariable(SessionState* state, const Compiled& compiled, const Snapshot& snapshot) {
  const std::string& name = compiled.statement.variable;
  if (compiled.program == nullptr) {
    state->variables.erase(name);
    return Status::Ok();
  }
  uint64_t rows = 0;
  Value value = Value::Null(compiled.program->columns[0].type);
  TESSERA_TRY(RunQuery(state, compiled, snapshot, [&](RowBatch&& batch) {
    if (rows == 0 && batch.rows > 0) value = ValueAt(batch.columns[0], 0, batch.columns[0].type);
    rows += batch.rows;
    return Status::Ok();
  }));
  if (rows > 1) return {ErrorCode::kSql, "SET VARIABLE takes one value, not " + std::to_string(rows) + " rows"};
  value.type = compiled.program->columns[0].type;
  state->variables.insert_or_assign(name, std::move(value));
  return Status::Ok();
}

}  // namespace tessera
