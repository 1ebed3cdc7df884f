// The threads of a COPY. Each of them does what is most urgent: encode a full tablet's column, else read and parse the
// next block. Blocks are handed on in the order of the file; what was parsed too early waits.
#include "tablet/csv/csv_load.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "tablet/csv/csv_parser.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

class CsvLoad {
 public:
  CsvLoad(CsvFile file, const CsvParser& parser, const CopyFromOptions& options, TabletCutter* load)
      : file_(std::move(file)),
        parser_(parser),
        options_(options),
        load_(load),
        threads_(std::clamp(options.threads, 1, 256)),
        line_(file_.first_line()) {}

  Status Run() {
    const MemoryPurpose purpose("the load");
    ThreadPool pool(threads_);
    TESSERA_TRY(pool.Run(threads_, [this](int) {
      try {
        Work();
      } catch (...) {  // the others must learn of it
        Stop(StatusOfException());
      }
      return Status::Ok();
    }));
    return status_;
  }

 private:
  struct Waiting {
    ParsedBlock parsed;
    uint64_t bytes = 0;  ///< of its text
  };

  bool Cancelled() const { return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed); }

  void Work() {
    CsvBlock block;
    for (;;) {
      if (Cancelled()) Stop({ErrorCode::kCancelled, "cancelled"});
      if (load_->RunTask()) continue;
      {
        std::unique_lock lock(mutex_);
        if (stopped_) return;
        if (complete_) {
          if (load_->waiting_tasks() == 0) return;
          continue;
        }
        // A slow block must not let the others pile up parsed rows without limit.
        if (reading_done_ || blocks_read_ > delivered_ + 2 * static_cast<uint64_t>(threads_)) {
          // The time limit is for the cancel flag, which nobody signals.
          changed_.wait_for(lock, std::chrono::milliseconds(20));
          continue;
        }
      }
      if (!ReadBlock(&block)) continue;
      Waiting waiting{parser_.Parse(block), block.size};
      Deliver(block.number, std::move(waiting));
    }
  }

  /// False at the end of the file.
  bool ReadBlock(CsvBlock* block) {
    std::lock_guard reading(read_mutex_);
    {
      std::lock_guard lock(mutex_);
      if (reading_done_ || stopped_) return false;
    }
    const Status status = file_.Read(block);
    std::lock_guard lock(mutex_);
    if (!status.ok()) {
      // Blocks before it are still being parsed and may hold an earlier error; this one waits for its turn.
      read_error_ = status;
      reading_done_ = true;
      DeliverInOrder();
      return false;
    }
    if (block->size == 0) {
      reading_done_ = true;
      DeliverInOrder();
      return false;
    }
    ++blocks_read_;
    return true;
  }

  void Deliver(uint64_t number, Waiting waiting) {
    std::lock_guard lock(mutex_);
    waiting_.emplace(number, std::move(waiting));
    DeliverInOrder();
  }

  /// REQUIRES: mutex_ held.
  void DeliverInOrder() {
    while (!stopped_ && !waiting_.empty() && waiting_.begin()->first == delivered_) {
      Waiting next = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      if (next.parsed.error) {
        StopLocked(Located(*next.parsed.error));
        return;
      }
      if (delivered_ == 0) ExpectRows(next);
      ++delivered_;
      line_ += next.parsed.lines;
      bytes_done_ += next.bytes;
      if (options_.rules) {
        const Status status = options_.rules(&next.parsed.batch, load_->rows_added() + 1);
        if (!status.ok()) {
          StopLocked(status.code() == ErrorCode::kConstraint
                         ? Status(status.code(), QuoteForMessage(file_.path()) + ": " + status.message())
                         : status);
          return;
        }
      }
      if (Status status = load_->Add(std::move(next.parsed.batch)); !status.ok()) {
        StopLocked(status);
        return;
      }
      if (options_.progress) options_.progress(bytes_done_, std::max(bytes_done_, file_.size()));
    }
    if (!stopped_ && reading_done_ && delivered_ == blocks_read_ && !complete_) {
      if (!read_error_.ok()) {
        StopLocked(read_error_);
        return;
      }
      complete_ = true;
      load_->EndOfRows();
    }
    changed_.notify_all();
  }

  /// Estimates the rows of the file from those of its first block.
  void ExpectRows(const Waiting& first) {
    const uint64_t rows = first.parsed.batch.rows;
    if (first.bytes >= file_.size()) {
      if (file_.size() > 0) load_->ExpectRows(rows);
      return;
    }
    // A tenth less than the estimate: where numbers grow, the first records are the shortest, and tablets of one size
    // too small cost less than too few tablets.
    load_->ExpectRows(static_cast<uint64_t>(0.9 * static_cast<double>(rows) * static_cast<double>(file_.size()) /
                                            static_cast<double>(first.bytes)));
  }

  Status Located(const CsvError& error) const {
    std::string where = QuoteForMessage(file_.path()) + ", line " + std::to_string(line_ + error.line);
    if (!error.column.empty()) where += ", column \"" + error.column + "\"";
    return {error.code, where + ": " + error.message};
  }

  void Stop(const Status& status) {
    std::lock_guard lock(mutex_);
    StopLocked(status);
  }
  void StopLocked(const Status& status) {
    if (!stopped_) status_ = status;
    stopped_ = true;
    changed_.notify_all();
  }

  std::mutex read_mutex_;  ///< held while file_ is read; before mutex_
  CsvFile file_;

  const CsvParser& parser_;
  const CopyFromOptions& options_;
  TabletCutter* const load_;
  const int threads_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Waiting> waiting_;  ///< parsed, by block number
  uint64_t blocks_read_ = 0;
  uint64_t delivered_ = 0;
  uint64_t line_;  ///< of the next block's first record
  uint64_t bytes_done_ = 0;
  bool reading_done_ = false;
  bool complete_ = false;
  bool stopped_ = false;
  Status read_error_;
  Status status_;
};

}  // namespace

Status LoadCsv(CsvFile file, const CopyFromOptions& options, TabletCutter* load, size_t block_bytes) {
  TESSERA_ASSIGN(const CsvParser parser, CsvParser::Create(load->schema(), options));
  file.Configure(options, block_bytes);
  if (parser.fields() > 1) file.DropBlankEnd();
  return CsvLoad(std::move(file), parser, options, load).Run();
}

}  // namespace tessera
