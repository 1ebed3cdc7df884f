#include "session/conflict_rows.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "session/kept_rows.h"
#include "session/program_run.h"
#include "session/updated_keys.h"
#include "tablet/catalog/table_of_rows.h"

namespace tessera {
namespace {

class ConflictRows {
 public:
  ConflictRows(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableWriter* writer,
               ReturnedRows* returned)
      : state_(*state),
        compiled_(compiled),
        conflict_(*compiled.statement.change.on_conflict),
        snapshot_(snapshot),
        writer_(*writer),
        returned_(*returned) {}

  Status Run(uint64_t* rows) {
    TESSERA_TRY(TakeIncoming());
    const Snapshot with = WithTable(snapshot_, conflict_.incoming);
    matched_.resize(count_);
    for (const OnConflict::Key& key : conflict_.keys) TESSERA_TRY(Find(key, with));
    TESSERA_TRY(Decide());
    if (std::ranges::count(matched_, true) > 0) {
      // Rows that go are named before the first that comes.
      TESSERA_TRY(writer_.Delete(replaced_, &fresh_).status());
      if (conflict_.updates != nullptr) TESSERA_TRY(Update(with));
    }
    TESSERA_TRY(Insert());
    *rows = changed_;
    return {};
  }

 private:
  /// The new rows as they would be stored, numbered.
  Status TakeIncoming() {
    const Statement& s = compiled_.statement;
    const auto take = [&](RowBatch&& batch) -> Status {
      if (batch.rows == 0) return {};
      if (s.change.rules) TESSERA_TRY(s.change.rules(&batch, count_ + 1));
      TESSERA_TRY(CheckConstraints(s.target->schema, batch, count_ + 1));
      ColumnVector& numbers = batch.columns.emplace_back();
      numbers.type = SqlType::Of(TypeId::kBigint);
      numbers.fixed.resize(batch.rows);
      std::iota(numbers.fixed.begin(), numbers.fixed.end(), static_cast<int64_t>(count_));
      count_ += batch.rows;
      batches_.push_back(std::move(batch));
      return {};
    };
    if (compiled_.program != nullptr) {
      TESSERA_TRY(RunProgram(&state_, *compiled_.program, snapshot_, take, s.explain.analyze, true));
    } else {
      TESSERA_TRY(take(RowBatch(s.change.values)));
    }
    return FillTable(batches_, conflict_.incoming.get());
  }

  Status Find(const OnConflict::Key& key, const Snapshot& with) {
    const bool replaces = conflict_.action == OnConflict::Action::kReplace;
    if (count_ > 0 && compiled_.statement.target->rows > 0) {
      TESSERA_TRY(RunQuery(&state_, key.matches.get(), with, [&](RowBatch&& batch) -> Status {
        for (const int64_t n : batch.columns[0].fixed) matched_[static_cast<size_t>(n)] = true;
        if (replaces) replaced_.insert(replaced_.end(), batch.columns[1].fixed.begin(), batch.columns[1].fixed.end());
        return {};
      }));
    }
    std::vector<int64_t>& deciding = deciding_.emplace_back();
    if (count_ < 2) return {};
    return RunQuery(&state_, key.repeats.get(), with, [&](RowBatch&& batch) -> Status {
      if (batch.rows > 0 && deciding.empty()) {
        deciding.resize(count_);
        std::iota(deciding.begin(), deciding.end(), 0);
      }
      for (size_t i = 0; i < batch.rows; ++i)
        deciding[static_cast<size_t>(batch.columns[0].fixed[i])] = batch.columns[1].fixed[i];
      return {};
    });
  }

  /// Which of the new rows are inserted.
  Status Decide() {
    inserted_.assign(count_, true);
    std::erase_if(deciding_, [](const std::vector<int64_t>& d) { return d.empty(); });
    if (conflict_.action == OnConflict::Action::kReplace) {
      // A row goes with the first later one that is equal to it in some key.
      for (const std::vector<int64_t>& last : deciding_) {
        for (size_t n = 0; n < count_; ++n) inserted_[n] = inserted_[n] && last[n] == static_cast<int64_t>(n);
      }
      return {};
    }
    std::vector<std::vector<bool>> taken(deciding_.size(), std::vector<bool>(count_));
    for (size_t n = 0; n < count_; ++n) {
      inserted_[n] = !matched_[n];
      for (size_t k = 0; k < deciding_.size() && inserted_[n]; ++k) {
        if (!taken[k][static_cast<size_t>(deciding_[k][n])]) continue;
        if (conflict_.action == OnConflict::Action::kUpdate) return Twice();
        inserted_[n] = false;
      }
      for (size_t k = 0; k < deciding_.size() && inserted_[n]; ++k)
        taken[k][static_cast<size_t>(deciding_[k][n])] = true;
    }
    return {};
  }

  static Status Twice() {
    return SqlError(ErrorKind::kCardinality, "ON CONFLICT DO UPDATE command cannot affect row a second time", -1,
                    "Ensure that no rows proposed for insertion within the same command have duplicate constrained "
                    "values.");
  }

  Status Update(const Snapshot& with) {
    return RunQuery(&state_, conflict_.updates.get(), with, [&](RowBatch&& batch) -> Status {
      const std::vector<int64_t> rows = std::move(batch.columns.back().fixed);
      batch.columns.pop_back();
      const std::vector<int64_t> order = std::move(batch.columns.back().fixed);
      batch.columns.pop_back();
      TESSERA_TRY(writer_.Delete(rows, &fresh_).status());
      if (std::ranges::count(fresh_, false) > 0) return Twice();
      if (conflict_.rules) TESSERA_TRY(conflict_.rules(&batch, changed_ + 1));
      if (state_.running.updated_keys != nullptr)
        TESSERA_TRY(state_.running.updated_keys->Note(*compiled_.statement.target, rows, batch));
      return Store(std::move(batch), {}, order);
    });
  }

  Status Insert() {
    for (RowBatch& batch : batches_) {
      std::vector<bool> kept(batch.rows);
      for (size_t i = 0; i < batch.rows; ++i) kept[i] = inserted_[static_cast<size_t>(batch.columns.back().fixed[i])];
      if (std::ranges::count(kept, false) > 0) KeepRows(kept, &batch);
      const std::vector<int64_t> order = std::move(batch.columns.back().fixed);
      batch.columns.pop_back();
      TESSERA_TRY(Store(std::move(batch), {}, order));
      batch = {};
    }
    return {};
  }

  Status Store(RowBatch&& batch, const RowRules& rules, std::span<const int64_t> order) {
    if (batch.rows == 0) return {};
    if (rules) TESSERA_TRY(rules(&batch, changed_ + 1));
    TESSERA_TRY(writer_.Append(batch, changed_ + 1));
    changed_ += batch.rows;
    returned_.Add(std::move(batch), order);
    return {};
  }

  SessionState& state_;
  const Compiled& compiled_;
  const OnConflict& conflict_;
  const Snapshot& snapshot_;
  TableWriter& writer_;
  ReturnedRows& returned_;
  std::vector<RowBatch> batches_;
  size_t count_ = 0;                            ///< of the new rows
  std::vector<bool> matched_;                   ///< new rows with a key that an old one has
  std::vector<std::vector<int64_t>> deciding_;  ///< by key: OnConflict::Key::repeats of each new row
  std::vector<int64_t> replaced_;               ///< old rows that go
  std::vector<bool> inserted_, fresh_;
  uint64_t changed_ = 0;
};

}  // namespace

Status InsertOrChange(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, TableWriter* writer,
                      ReturnedRows* returned, uint64_t* rows) {
  return ConflictRows(state, compiled, snapshot, writer, returned).Run(rows);
}

}  // namespace tessera
