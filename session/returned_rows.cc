#include "session/returned_rows.h"

#include <algorithm>
#include <utility>

#include "base/exception_status.h"
#include "session/program_run.h"
#include "tablet/catalog/table_of_rows.h"

namespace tessera {

Snapshot WithTable(const Snapshot& snapshot, std::shared_ptr<const TableInfo> table) {
  Snapshot out = snapshot;
  const auto before = [](const std::shared_ptr<const TableInfo>& a, const std::shared_ptr<const TableInfo>& b) {
    return a->schema.name < b->schema.name;
  };
  out.tables.insert(std::ranges::upper_bound(out.tables, table, before), table);
  return out;
}

namespace {

/// What is counted of sections is the statement's own program, not one beside it.
Status RunBeside(SessionState* state, const vm::Program& program, const Snapshot& snapshot,
                 const vm::RowConsumer& consume) {
  std::vector<vm::SectionStatistics> own = std::exchange(state->running.statistics.sections, {});
  const Status status = RunProgram(state, program, snapshot, consume, false, true);
  state->running.statistics.sections = std::move(own);
  return status;
}

}  // namespace

Status RunQuery(SessionState* state, Query* query, const Snapshot& snapshot, const vm::RowConsumer& consume) {
  TESSERA_ASSIGN(const std::unique_ptr<vm::Program> program,
                 CompileQuery(query, snapshot, PlanOptionsOf(*state), &state->random));
  return RunBeside(state, *program, snapshot, consume);
}

void ReturnedRows::Add(RowBatch&& batch, std::span<const int64_t> order) {
  if (!wanted() || batch.rows == 0) return;
  ColumnVector& numbers = batch.columns.emplace_back();
  numbers.type = SqlType::Of(TypeId::kBigint);
  numbers.fixed.assign(order.begin(), order.end());
  while (numbers.fixed.size() < batch.rows) numbers.fixed.push_back(next_++);
  rows_.push_back(std::move(batch));
}

Status ReturnedRows::Compute(const Snapshot& snapshot) {
  if (!wanted()) return {};
  TESSERA_TRY(FillTable(rows_, statement_.change.changed.get()));
  rows_.clear();
  const Snapshot with = WithTable(snapshot, statement_.change.changed);
  TESSERA_ASSIGN(program_,
                 CompileQuery(statement_.change.returning.get(), with, PlanOptionsOf(state_), &state_.random));
  const auto keep = [&](RowBatch&& batch) {
    results_.push_back(std::move(batch));
    return Status::Ok();
  };
  return RunBeside(&state_, *program_, with, keep);
}

Status ReturnedRows::Show(const std::string& tag, ResultWriter* out) {
  if (!wanted()) return out->Done(tag);
  const Status shown = Caught([&]() -> Status {
    TESSERA_TRY(out->Begin(program_->columns));
    for (RowBatch& batch : results_) TESSERA_TRY(out->Rows(std::move(batch)));
    TESSERA_TRY(out->End());
    return out->Done(tag);
  });
  if (shown.ok()) return shown;
  return {shown.kind(), shown.message() + ": the rows have been changed, but not all were returned", shown.hint()};
}

}  // namespace tessera
