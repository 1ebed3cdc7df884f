// DELETE and UPDATE: the rows that a query finds go, and their new values are added, in one commit.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/phase_clock.h"
#include "session/program_run.h"
#include "session/statements.h"

namespace tessera {

Snapshot WithNumbers(const Snapshot& snapshot, const std::shared_ptr<const TableInfo>& target) {
  Snapshot out = snapshot;
  for (std::shared_ptr<const TableInfo>& table : out.tables) {
    if (table->id == target->id) table = target;
  }
  return out;
}

namespace {

/// Leaves out the rows that are not `kept`.
void KeepRows(const std::vector<bool>& kept, RowBatch* batch) {
  RowBatch out;
  for (const ColumnVector& from : batch->columns) {
    ColumnVector& to = out.columns.emplace_back();
    to.type = from.type;
    for (size_t row = 0; row < batch->rows; ++row) {
      if (kept[row]) to.AppendFrom(from, row);
    }
  }
  out.rows = static_cast<size_t>(std::ranges::count(kept, true));
  *batch = std::move(out);
}

/// Takes the rows of the statement's query.
class Changes {
 public:
  Changes(const Statement& statement, TableWriter* writer) : statement_(statement), writer_(*writer) {}

  /// The numbers of rows, behind their new values if there are any. A row that comes again stays as it was changed first.
  Status Take(RowBatch&& batch) {
    const std::vector<int64_t> numbers = std::move(batch.columns.back().fixed);
    batch.columns.pop_back();
    TESSERA_TRY(writer_.Delete(numbers, &fresh_));
    const auto fresh = static_cast<uint64_t>(std::ranges::count(fresh_, true));
    if (statement_.kind == Statement::Kind::kUpdate && fresh > 0) {
      if (fresh < batch.rows) KeepRows(fresh_, &batch);
      if (statement_.rules) TESSERA_TRY(statement_.rules(&batch, rows_ + 1));
      TESSERA_TRY(writer_.Append(batch, rows_ + 1));
    }
    rows_ += fresh;
    return Status::Ok();
  }
  uint64_t rows() const { return rows_; }

 private:
  const Statement& statement_;
  TableWriter& writer_;
  std::vector<bool> fresh_;
  uint64_t rows_ = 0;
};

Status ChangeRows(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableWriter* writer,
                  ResultWriter* out) {
  const Statement& s = compiled.statement;
  std::string tag;
  tag.reserve(kTagBytes);
  Changes changes(s, writer);
  const auto take = [&](RowBatch&& batch) { return changes.Take(std::move(batch)); };
  TESSERA_TRY(RunProgram(state, *compiled.program, WithNumbers(snapshot, s.target), take, false, true));
  if (state->cancel) return Cancelled();
  const PhaseScope phase(Phase::kPrint);
  TESSERA_TRY(writer->Commit());
  state->timing.rows = changes.rows();
  fmt::format_to(std::back_inserter(tag), "{} {}", s.kind == Statement::Kind::kDelete ? "DELETE" : "UPDATE",
                 changes.rows());
  return out->Done(tag);
}

}  // namespace

Status Change(SessionState* state, std::string_view sql, const Compiled& compiled,
              const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out) {
  const Statement& s = compiled.statement;
  if (s.explain) return Explain(state, compiled, WithNumbers(*snapshot, s.target), out);
  TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, state->database->Write(s.table));
  // The rows are those of this moment: no other process changes them until the commit.
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, state->Read());
  if (now == snapshot) return ChangeRows(state, compiled, *now, writer.get(), out);
  TESSERA_ASSIGN(const Compiled anew, Compile(sql, *now, PlanOptionsOf(*state), &state->random));
  return ChangeRows(state, anew, *now, writer.get(), out);
}

}  // namespace tessera
