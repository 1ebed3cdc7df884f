// What is written of each statement that ran, beside its result: lines of --stats, and the timeline of --trace.
//
// Start at: RunReports::Add. One thread.
#pragma once

#include <string>

#include "base/status.h"
#include "shell/command_line.h"
#include "shell/rank_statistics_text.h"
#include "shell/timeline_text.h"

namespace tessera {

class RunReports {
 public:
  explicit RunReports(const CommandLine& line);
  ~RunReports();
  RunReports(const RunReports&) = delete;
  RunReports& operator=(const RunReports&) = delete;

  /// Notes one run of a statement. Errors: kIo, a file cannot be written, and is left alone from then on.
  Status Add(const StatementRun& run, const vm::RunStatistics& statistics);
  /// Completes the files. Errors: as Add.
  Status End();

 private:
  struct File {
    std::string name;  ///< "": standard error
    int fd = -1;
    bool wanted = false;
  };
  static Status Write(std::string_view text, File* file);

  const StatisticsFormat format_;
  File statistics_, trace_;
  TimelineText timeline_;
  bool first_ = true;
};

}  // namespace tessera
