// Rows from a statement into a table.
#include "tablet/load/table_writer.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/background_thread.h"
#include "tablet/load/table_load.h"
#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

/// More threads than this encode faster than one statement produces rows.
constexpr unsigned kGreatestThreads = 8;

class LoadWriter final : public TableWriter {
 public:
  explicit LoadWriter(std::unique_ptr<TableLoad> load) : load_(std::move(load)) {}
  ~LoadWriter() override { StopHelpers(); }

  Status Append(RowBatch batch, uint64_t first_row) override {
    TESSERA_TRY(failure_);
    if (committed_) return {ErrorCode::kInternal, "rows are added after Commit()"};
    TESSERA_TRY(failure_ = CheckConstraints(load_->schema(), batch, first_row));
    TESSERA_TRY(failure_ = load_->Add(std::move(batch)));
    if (load_->waiting_tasks() == 0) return {};
    WakeHelpers();
    // Two tablets ahead of the encoders are enough to keep them busy; beyond that this thread helps.
    while (load_->unfinished_tablets() > 2 && load_->RunTask()) {
    }
    return {};
  }

  Result<uint64_t> Delete(std::span<const int64_t> rows, std::vector<bool>* fresh) override {
    TESSERA_TRY(failure_);
    if (committed_) return Status(ErrorCode::kInternal, "rows are deleted after Commit()");
    Result<uint64_t> deleted = load_->Delete(rows, fresh);
    failure_ = deleted.status();
    return deleted;
  }

  Result<uint64_t> DeleteShare(std::span<const int64_t> rows) override {
    TESSERA_TRY(failure_);
    if (committed_) return Status(ErrorCode::kInternal, "rows are deleted after Commit()");
    return load_->DeleteShare(rows);
  }

  Result<uint64_t> DeleteMarked(int64_t first, std::span<const uint64_t> bits) override {
    TESSERA_TRY(failure_);
    if (committed_) return Status(ErrorCode::kInternal, "rows are deleted after Commit()");
    Result<uint64_t> deleted = load_->DeleteMarked(first, bits);
    failure_ = deleted.status();
    return deleted;
  }

  Status Update(std::span<const int> columns, RowBatch values, std::span<const int64_t> rows,
                uint64_t first_row) override {
    TESSERA_TRY(failure_);
    if (committed_) return {ErrorCode::kInternal, "rows are updated after Commit()"};
    TableSchema set;
    set.name = load_->schema().name;
    for (const int c : columns) set.columns.push_back(load_->schema().columns[static_cast<size_t>(c)]);
    TESSERA_TRY(failure_ = CheckConstraints(set, values, first_row));
    return failure_ = load_->Update(columns, std::move(values), rows);
  }

  Status Commit() override {
    TESSERA_TRY(failure_);
    if (committed_) return {ErrorCode::kInternal, "Commit() was called twice"};
    committed_ = true;
    TESSERA_TRY(failure_ = load_->SettleUpdate());
    load_->EndOfRows();
    // A table of one short tablet is encoded faster than threads start: a small INSERT starts none.
    if (!helpers_.empty() || load_->unfinished_tablets() > 1) WakeHelpers();
    failure_ = load_->Commit();
    StopHelpers();
    const Status result = failure_;
    load_.reset();  // discards what failed and releases the writer lock
    return result;
  }

 private:
  void WakeHelpers() {
    if (helpers_.empty()) {
      const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 2u, kGreatestThreads);
      helpers_.reserve(threads);
      for (unsigned i = 1; i < threads; ++i) {
        auto helper = std::make_unique<BackgroundThread>();
        // Without helpers this thread encodes everything.
        if (!helper->Start([this] { return Help(); }).ok()) break;
        helpers_.push_back(std::move(helper));
      }
    }
    std::lock_guard lock(mutex_);
    ++rounds_;
    work_.notify_all();
  }

  Status Help() {
    uint64_t seen = 0;
    for (;;) {
      while (load_->RunTask()) {
      }
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return rounds_ != seen || stopping_; });
      if (stopping_) return {};
      seen = rounds_;
    }
  }

  void StopHelpers() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      work_.notify_all();
    }
    helpers_.clear();
  }

  std::unique_ptr<TableLoad> load_;
  Status failure_;  ///< the first error; a load with a hole is never committed
  bool committed_ = false;

  std::mutex mutex_;
  std::condition_variable work_;
  uint64_t rounds_ = 0;
  bool stopping_ = false;
  std::vector<std::unique_ptr<BackgroundThread>> helpers_;
};

}  // namespace

std::unique_ptr<TableWriter> MakeTableWriter(std::unique_ptr<TableLoad> load) {
  return std::make_unique<LoadWriter>(std::move(load));
}

Status CheckConstraints(const TableSchema& schema, const RowBatch& batch, uint64_t first_row) {
  if (batch.columns.size() != schema.columns.size()) {
    return {ErrorCode::kInternal, "a batch of " + std::to_string(batch.columns.size()) + " columns for table \"" +
                                      schema.name + "\" of " + std::to_string(schema.columns.size())};
  }
  // The first bad row of all columns is reported, of several bad columns in it the first.
  size_t rows = batch.rows;
  Status status;
  for (size_t c = 0; c < schema.columns.size(); ++c) {
    const ColumnSchema& column = schema.columns[c];
    const ColumnVector& vector = batch.columns[c];
    if (vector.type.storage() != column.type.storage() || vector.size() != batch.rows ||
        (!vector.null.empty() && vector.null.size() != batch.rows)) {
      return {ErrorCode::kInternal,
              "a batch does not fit column \"" + column.name + "\" of table \"" + schema.name + "\""};
    }
    if (column.not_null && !vector.null.empty()) {
      const auto begin = vector.null.begin();
      const auto end = begin + static_cast<std::ptrdiff_t>(rows);
      const auto at = std::find_if(begin, end, [](uint8_t n) { return n != 0; });
      if (at != end) {
        rows = static_cast<size_t>(at - begin);
        status = Status(ErrorKind::kNotNullViolation, "null value in column \"" + column.name + "\" of table \"" +
                                                          schema.name + "\" violates not-null constraint, row " +
                                                          std::to_string(first_row + rows));
      }
    }
    if (column.type.storage() != StorageClass::kText) continue;
    for (size_t row = 0; row < rows; ++row) {
      if (vector.IsNull(row)) continue;
      const std::string_view text = vector.Text(row);
      const ParseError error = CheckText(text, column.type);
      if (error == ParseError::kNone) continue;
      rows = row;
      const std::string place = "in column \"" + column.name + "\", row " + std::to_string(first_row + row) + ": ";
      const char* what = error == ParseError::kEncoding ? "invalid UTF-8 " : "NUL byte ";
      status =
          Status(error == ParseError::kTooLong ? ErrorKind::kTextTooLong : ErrorKind::kInvalidEncoding,
                 (error == ParseError::kTooLong ? "value too long for type " + column.type.ToString() + " " : what) +
                     place + QuoteForMessage(text));
    }
  }
  return status;
}

}  // namespace tessera
