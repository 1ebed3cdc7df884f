// DELETE, UPDATE, MERGE and INSERT ... ON CONFLICT: the rows that queries find go, and new ones are added, in one commit.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <span>
#include <utility>

#include "base/phase_clock.h"
#include "session/conflict_rows.h"
#include "session/foreign_keys.h"
#include "session/kept_rows.h"
#include "session/program_run.h"
#include "session/returned_rows.h"
#include "session/same_snapshot.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "session/updated_keys.h"
#include "tablet/catalog/live_tablet.h"
#include "vm/run/row_marks.h"

namespace tessera {

Snapshot WithNumbers(const Snapshot& snapshot, const std::shared_ptr<const TableInfo>& target) {
  Snapshot out = snapshot;
  for (std::shared_ptr<const TableInfo>& table : out.tables) {
    if (table->id == target->id) table = target;
  }
  return out;
}

namespace {

/// Which rows of a table have come, by their numbers.
class SeenRows {
 public:
  /// `*fresh`: by number, whether it comes for the first time.
  void Note(const std::vector<int64_t>& numbers, std::vector<bool>* fresh) {
    fresh->assign(numbers.size(), false);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto tablet = static_cast<size_t>(numbers[i] >> kRowNumberBits);
      if (tablet >= words_.size()) words_.resize(tablet + 1);
      std::vector<uint64_t>& words = words_[tablet];
      const auto row = static_cast<size_t>(numbers[i] & ((int64_t{1} << kRowNumberBits) - 1));
      if (row / 64 >= words.size()) words.resize(std::max(row / 64 + 1, 2 * words.size()));
      const uint64_t bit = uint64_t{1} << row % 64;
      (*fresh)[i] = (words[row / 64] & bit) == 0;
      words[row / 64] |= bit;
    }
  }

 private:
  std::vector<std::vector<uint64_t>> words_;  ///< by tablet, a bit a row
};

/// Rows that go without a trace. Those that come as numbers go together, which threads share.
class Deletes final : public vm::RowMarks {
 public:
  Deletes(const TableInfo& table, TableWriter* writer)
      : end_(static_cast<int64_t>(table.tablets.size()) << kRowNumberBits), writer_(*writer) {}

  int64_t end() const override { return end_; }
  Status Take(std::span<const int64_t> numbers) override {
    waiting_.insert(waiting_.end(), numbers.begin(), numbers.end());
    return waiting_.size() < kMostWaiting ? Status::Ok() : DeleteWaiting();
  }
  Status TakeShare(std::span<const int64_t> numbers) override {
    if (numbers.empty()) return Status::Ok();
    TESSERA_ASSIGN(const uint64_t fresh, writer_.DeleteShare(numbers));
    rows_ += fresh;
    return Status::Ok();
  }
  Status TakeBits(int64_t first, std::span<const uint64_t> words) override {
    TESSERA_ASSIGN(const uint64_t fresh, writer_.DeleteMarked(first, words));
    rows_ += fresh;
    return Status::Ok();
  }
  /// After the last of them.
  Status End() { return DeleteWaiting(); }
  uint64_t rows() const { return rows_; }

 private:
  Status DeleteWaiting() {
    if (waiting_.empty()) return Status::Ok();
    TESSERA_ASSIGN(const uint64_t fresh, writer_.Delete(waiting_, nullptr));
    rows_ += fresh;
    waiting_.clear();
    return Status::Ok();
  }

  static constexpr size_t kMostWaiting = size_t{1} << 22;

  const int64_t end_;
  TableWriter& writer_;
  std::vector<int64_t> waiting_;
  std::atomic<uint64_t> rows_{0};
};

/// Takes the rows of the statement's query.
class Changes {
 public:
  /// `updated`: nullptr: what an UPDATE makes of rows is of no account to foreign keys.
  Changes(const Statement& statement, TableWriter* writer, ReturnedRows* returned, UpdatedKeys* updated)
      : statement_(statement),
        updated_(updated),
        writer_(*writer),
        returned_(*returned),
        deletes_(*statement.target, writer),
        columns_(statement.target->schema.columns.size()) {}

  /// The numbers of rows, after their values if there are any. A row that comes again stays as it was changed first.
  Status Take(RowBatch&& batch) {
    std::vector<int64_t> numbers = std::move(batch.columns.back().fixed);
    batch.columns.pop_back();
    if (!statement_.change.set_columns.empty()) return Update(std::move(batch), std::move(numbers));
    const bool values = !batch.columns.empty();
    if (!values) return deletes_.Take(numbers);
    TESSERA_ASSIGN(const uint64_t fresh, writer_.Delete(numbers, &fresh_));
    if (fresh > 0) {
      if (fresh < batch.rows) KeepRows(fresh_, &batch);
      if (statement_.kind == Statement::Kind::kUpdate) {
        KeepNumbers(fresh_, &numbers);
        TESSERA_TRY(Store(&batch, statement_.change.rules, numbers));
      }
      returned_.Add(std::move(batch));
    }
    rows_ += fresh;
    return Status::Ok();
  }

  /// The same of MERGE: which of its actions is to be done stands before the number.
  Status Merge(RowBatch&& batch) {
    const ColumnVector numbers = std::move(batch.columns.back());
    batch.columns.pop_back();
    const std::vector<int64_t> actions = std::move(batch.columns.back().fixed);
    batch.columns.pop_back();
    std::vector<int64_t> gone;
    for (size_t row = 0; row < batch.rows; ++row) {
      const MergeAction::Kind kind = KindOf(actions[row]);
      if (kind == MergeAction::Kind::kUpdate || kind == MergeAction::Kind::kDelete) gone.push_back(numbers.fixed[row]);
    }
    // (Without any it says that some may go later, before the first that comes.)
    const auto goes = [](const MergeAction& a) {
      return a.kind == MergeAction::Kind::kUpdate || a.kind == MergeAction::Kind::kDelete;
    };
    if (std::ranges::any_of(statement_.change.merge_actions, goes)) TESSERA_TRY(writer_.Delete(gone, &fresh_).status());
    if (std::ranges::count(fresh_, false) > 0) {
      return SqlError(ErrorKind::kCardinality, "MERGE command cannot affect row a second time", -1,
                      "Ensure that not more than one source row matches any one target row.");
    }
    for (size_t i = 0; i < statement_.change.merge_actions.size(); ++i) {
      const MergeAction& action = statement_.change.merge_actions[i];
      if (action.kind == MergeAction::Kind::kNothing) continue;
      std::vector<bool> kept(batch.rows);
      for (size_t row = 0; row < batch.rows; ++row) kept[row] = actions[row] == static_cast<int64_t>(i) + 1;
      const auto count = static_cast<uint64_t>(std::ranges::count(kept, true));
      if (count > 0 && action.kind != MergeAction::Kind::kDelete) {
        RowBatch rows = batch;
        if (count < batch.rows) KeepRows(kept, &rows);
        std::vector<int64_t> old;
        if (action.kind == MergeAction::Kind::kUpdate) KeepNumbers(kept, &(old = numbers.fixed));
        TESSERA_TRY(Store(&rows, action.rules, old));
      }
      rows_ += count;
    }
    return Status::Ok();
  }
  /// For rows of which nothing but the number comes; nullptr: there are others.
  vm::RowMarks* marks(const Compiled& compiled) {
    return compiled.program->columns.size() == 1 && !statement_.finish ? &deletes_ : nullptr;
  }
  /// After the last of them.
  Status End() { return deletes_.End(); }
  uint64_t rows() const { return rows_ + deletes_.rows(); }

 private:
  MergeAction::Kind KindOf(int64_t action) const {
    return action == 0 ? MergeAction::Kind::kNothing
                       : statement_.change.merge_actions[static_cast<size_t>(action - 1)].kind;
  }

  static void KeepNumbers(const std::vector<bool>& kept, std::vector<int64_t>* numbers) {
    size_t n = 0;
    for (size_t i = 0; i < numbers->size(); ++i) {
      if (kept[i]) (*numbers)[n++] = (*numbers)[i];
    }
    numbers->resize(n);
  }

  /// The columns of SET may be written by themselves. (No foreign key refers to one: they are in no key.)
  Status Update(RowBatch&& batch, std::vector<int64_t> numbers) {
    seen_.Note(numbers, &fresh_);
    const auto fresh = static_cast<uint64_t>(std::ranges::count(fresh_, true));
    if (fresh == 0) return Status::Ok();
    if (fresh < batch.rows) {
      KeepRows(fresh_, &batch);
      KeepNumbers(fresh_, &numbers);
    }
    RowBatch set;
    set.rows = batch.rows;
    if (statement_.change.sets_alone) {
      set.columns = std::move(batch.columns);
    } else {
      std::vector<ColumnVector> others = TakeOthers(&batch);
      if (statement_.change.rules) TESSERA_TRY(statement_.change.rules(&batch, rows_ + 1));
      for (const int c : statement_.change.set_columns) set.columns.push_back(batch.columns[static_cast<size_t>(c)]);
      std::ranges::move(others, std::back_inserter(batch.columns));
    }
    TESSERA_TRY(writer_.Update(statement_.change.set_columns, std::move(set), numbers, rows_ + 1));
    if (returned_.wanted()) returned_.Add(std::move(batch));
    rows_ += fresh;
    return Status::Ok();
  }

  /// What RETURNING needs beside the columns of the table.
  std::vector<ColumnVector> TakeOthers(RowBatch* batch) const {
    const auto end = batch->columns.begin() + static_cast<std::ptrdiff_t>(columns_);
    std::vector<ColumnVector> others(std::make_move_iterator(end), std::make_move_iterator(batch->columns.end()));
    batch->columns.erase(end, batch->columns.end());
    return others;
  }

  /// The first columns are those of the table; what RETURNING needs of others follows. `old`: the rows whose new values
  /// they are; empty: they are new rows.
  Status Store(RowBatch* batch, const RowRules& rules, std::span<const int64_t> old) {
    std::vector<ColumnVector> others = TakeOthers(batch);
    if (rules) TESSERA_TRY(rules(batch, rows_ + 1));
    TESSERA_TRY(writer_.Append(*batch, rows_ + 1));
    if (updated_ != nullptr && !old.empty()) TESSERA_TRY(updated_->Note(*statement_.target, old, *batch));
    for (ColumnVector& other : others) batch->columns.push_back(std::move(other));
    return Status::Ok();
  }

  const Statement& statement_;
  UpdatedKeys* const updated_;
  TableWriter& writer_;
  ReturnedRows& returned_;
  Deletes deletes_;
  const size_t columns_;
  SeenRows seen_;
  std::vector<bool> fresh_;
  uint64_t rows_ = 0;
};

const char* TagOf(const Statement& statement) {
  if (statement.kind == Statement::Kind::kInsert) return "INSERT 0";
  if (statement.kind == Statement::Kind::kMerge) return "MERGE";
  return statement.kind == Statement::Kind::kDelete ? "DELETE" : "UPDATE";
}

}  // namespace

Status ChangeRows(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableWriter* writer,
                  ResultWriter* out) {
  const Statement& s = compiled.statement;
  std::string tag;
  tag.reserve(kTagBytes);
  const Snapshot numbered = WithNumbers(snapshot, s.target);
  ReturnedRows returned(state, s);
  uint64_t rows = 0;
  if (s.change.on_conflict != nullptr) {
    TESSERA_TRY(InsertOrChange(state, compiled, numbered, writer, &returned, &rows));
  } else {
    Changes changes(s, writer, &returned, state->running.updated_keys);
    const bool merges = s.kind == Statement::Kind::kMerge;
    const auto take = [&](RowBatch&& batch) {
      return merges ? changes.Merge(std::move(batch)) : changes.Take(std::move(batch));
    };
    TESSERA_TRY(RunQuery(state, compiled, numbered, take, s.explain.analyze, true, changes.marks(compiled)));
    TESSERA_TRY(changes.End());
    rows = changes.rows();
  }
  TESSERA_TRY(returned.Compute(numbered));
  if (state->cancel) return Cancelled();
  const PhaseScope phase(Phase::kPrint);
  TESSERA_TRY(writer->Commit());
  state->running.timing.rows = rows;
  fmt::format_to(std::back_inserter(tag), "{} {}", TagOf(s), rows);
  return returned.Show(tag, out);
}

Status CompileForNow(SessionState* state, std::string_view sql, Compiled* compiled,
                     std::shared_ptr<const Snapshot>* snapshot) {
  TESSERA_ASSIGN(std::shared_ptr<const Snapshot> now, SnapshotOf(state));
  if (IsSame(*now, **snapshot)) return {};
  *snapshot = std::move(now);
  TESSERA_ASSIGN(*compiled, CompileStatement(state, sql, PlanOptionsOf(*state), snapshot));
  if (state->running.updated_keys == nullptr && TouchesForeignKeys(compiled->statement, **snapshot))
    return {ErrorKind::kSerializationFailure, "tables were changed by another process", "Run the statement again."};
  return {};
}

Status Change(SessionState* state, std::string_view sql, Compiled* compiled,
              const std::shared_ptr<const Snapshot>& snapshot, ResultWriter* out) {
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, compiled->statement.table));
  TESSERA_ASSIGN(std::unique_ptr<TableWriter> writer, database->Write(compiled->statement.table));
  // The rows are those of this moment: no other process changes them until the commit.
  std::shared_ptr<const Snapshot> seen = snapshot;
  TESSERA_TRY(CompileForNow(state, sql, compiled, &seen));
  if (const Statement& s = compiled->statement; state->transaction.older.Find(s.table) != nullptr) {
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, database->Read());
    TESSERA_ASSIGN(writer, WriteOlder(s.table, *now, std::move(writer), s.change.on_conflict != nullptr,
                                      &state->transaction.older));
  }
  return ChangeRows(state, *compiled, *seen, writer.get(), out);
}

}  // namespace tessera
