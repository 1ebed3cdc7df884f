// The threads of a load. Each of them does what is most urgent: encode a full tablet's column, else take the next share of
// the file and read its rows. They are handed on in the order of the file; what was read too early waits.
#include "tablet/load/file_load.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

class FileLoad {
 public:
  FileLoad(FileReader* reader, const CopyFromOptions& options, TabletCutter* load)
      : reader_(*reader), options_(options), load_(load), threads_(std::clamp(options.threads, 1, 256)) {}

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
    FileRows rows;
    uint64_t bytes = 0;  ///< of its share
    std::string path;
    uint64_t first_line = 0;
    std::string place;
  };

  bool Cancelled() const { return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed); }

  void Work() {
    std::unique_ptr<FileShare> share;
    uint64_t number = 0;
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
        // A slow share must not let the others pile up rows without limit.
        if (reading_done_ || shares_read_ > delivered_ + 2 * static_cast<uint64_t>(threads_)) {
          // The time limit is for the cancel flag, which wakes no thread.
          changed_.wait_for(lock, std::chrono::milliseconds(20));
          continue;
        }
      }
      if (!TakeShare(&share, &number)) continue;
      Deliver(number, {share->Read(), share->bytes(), share->path(), share->first_line(), share->place()});
    }
  }

  /// False at the end of the file.
  bool TakeShare(std::unique_ptr<FileShare>* share, uint64_t* number) {
    std::lock_guard reading(read_mutex_);
    {
      std::lock_guard lock(mutex_);
      if (reading_done_ || stopped_) return false;
    }
    const Status status = reader_.Next(share);
    const uint64_t bytes = reader_.bytes();
    std::lock_guard lock(mutex_);
    if (!status.ok()) {
      // Shares before it are still being read and may hold an earlier error; this one waits for its turn.
      read_error_ = status;
      reading_done_ = true;
      DeliverInOrder();
      return false;
    }
    if (*share == nullptr) {
      reading_done_ = true;
      DeliverInOrder();
      return false;
    }
    bytes_ = bytes;
    *number = shares_read_++;
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
      if (next.first_line > 0) line_ = next.first_line;
      if (next.rows.error) {
        StopLocked(Located(next));
        return;
      }
      if (delivered_ == 0) ExpectRows(next);
      ++delivered_;
      line_ += next.rows.lines;
      bytes_done_ += next.bytes;
      if (options_.ignored != nullptr) *options_.ignored += next.rows.ignored;
      if (options_.rules) {
        const Status status = options_.rules(&next.rows.batch, load_->rows_added() + 1);
        if (!status.ok()) {
          StopLocked(status.code() == ErrorCode::kConstraint
                         ? Status(status.kind(), QuoteForMessage(next.path) + ": " + status.message())
                         : status);
          return;
        }
      }
      if (Status status = load_->Add(std::move(next.rows.batch)); !status.ok()) {
        StopLocked(status);
        return;
      }
      if (options_.progress) options_.progress(bytes_done_, std::max(bytes_done_, bytes_));
    }
    if (!stopped_ && reading_done_ && delivered_ == shares_read_ && !complete_) {
      if (!read_error_.ok()) {
        StopLocked(read_error_);
        return;
      }
      complete_ = true;
      load_->EndOfRows();
    }
    changed_.notify_all();
  }

  /// Estimates the rows of the file from those of its first share.
  void ExpectRows(const Waiting& first) {
    const uint64_t rows = first.rows.batch.rows;
    if (first.bytes >= bytes_) {
      if (bytes_ > 0) load_->ExpectRows(rows);
      return;
    }
    // A tenth less than the estimate: where numbers grow, the first records are the shortest, and tablets of one size
    // too small cost less than too few tablets.
    load_->ExpectRows(static_cast<uint64_t>(0.9 * static_cast<double>(rows) * static_cast<double>(bytes_) /
                                            static_cast<double>(first.bytes)));
  }

  Status Located(const Waiting& next) const {
    const FileError& error = *next.rows.error;
    std::string where = QuoteForMessage(next.path) + ", ";
    where += next.place.empty() ? "line " + std::to_string(line_ + error.line) : next.place;
    if (!error.column.empty()) where += ", column \"" + error.column + "\"";
    return {error.kind, where + ": " + error.message, error.hint};
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

  std::mutex read_mutex_;  ///< held while reader_ is asked; before mutex_
  FileReader& reader_;

  const CopyFromOptions& options_;
  TabletCutter* const load_;
  const int threads_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Waiting> waiting_;  ///< read, by number of the share
  uint64_t shares_read_ = 0;
  uint64_t delivered_ = 0;
  uint64_t line_ = 1;  ///< of the next share's first record
  uint64_t bytes_done_ = 0;
  uint64_t bytes_ = 0;  ///< of the file, as far as is known
  bool reading_done_ = false;
  bool complete_ = false;
  bool stopped_ = false;
  Status read_error_;
  Status status_;
};

}  // namespace

Status LoadFile(FileReader* reader, const CopyFromOptions& options, TabletCutter* load) {
  return FileLoad(reader, options, load).Run();
}

}  // namespace tessera
