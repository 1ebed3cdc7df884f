#include "shell/statement_progress.h"

namespace tessera {

void StatementProgress::Start() {
  const std::scoped_lock lock(mutex_);
  running_ = true;
  bar_.reset();
  done_ = 0;
  total_ = 0;
}

void StatementProgress::Update(const Progress& progress) {
  // Many threads report. While one report is shown others are dropped: the next one says more.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !running_) return;
  // A smaller number after a finished pass is the next pass. Small steps back come from threads that overtook each
  // other.
  const bool next_pass = done_ >= total_ && progress.done < done_ / 2;
  if (bar_ == nullptr || next_pass || progress.total != total_) {
    bar_ = std::make_unique<ProgressBar>(progress.what, progress.total, progress.unit);
    done_ = 0;
    total_ = progress.total;
  }
  if (progress.done > done_) {
    bar_->Advance(progress.done - done_);
    done_ = progress.done;
  }
}

void StatementProgress::Finish() {
  const std::scoped_lock lock(mutex_);
  running_ = false;
  bar_.reset();
}

}  // namespace tessera
