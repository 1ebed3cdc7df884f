// The progress bar of the running statement. It shows itself only on a terminal and after a second (base/progress.h).
//
// Start at: StatementProgress. Update() from any thread; the others from the thread that runs statements.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/progress.h"
#include "session/session.h"

namespace tessera {

class StatementProgress {
 public:
  /// A statement starts.
  void Start();
  /// How far it is. A query does one pass after another; each has its own bar.
  void Update(const Progress& progress);
  /// Clears the line: results or messages follow. Nothing is drawn until the next Start().
  void Finish();

 private:
  std::mutex mutex_;
  bool running_ = false;
  std::unique_ptr<ProgressBar> bar_;
  uint64_t done_ = 0, total_ = 0;
};

}  // namespace tessera
