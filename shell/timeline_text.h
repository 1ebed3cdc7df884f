// A timeline of statements in the Trace Event Format (JSON), which Perfetto and chrome://tracing open: a process for each
// rank, a row for the thread that drives it and one for its GPU; statements, their sections, their phases, one inside the
// other.
//
// Times are those of the master's clock. Ranks of its machine have the same clock; that of another machine is set by the
// moment in which all ranks agree that they have the program, which is right to the time of a message.
//
// Start at: TimelineText::Add. One thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "shell/rank_statistics_text.h"
#include "vm/run/statistics.h"

namespace tessera {

class TimelineText {
 public:
  /// The text that the run of a statement adds to the file; nothing if no program ran.
  std::string Add(const StatementRun& run, const vm::RunStatistics& statistics);
  /// The end of the file.
  std::string End();

 private:
  struct Place {
    int rank;
    uint16_t track;
  };
  /// A stretch of time with a name. Nanoseconds of the master's clock.
  void AddSpan(Place place, const std::string& name, int64_t begin, int64_t end, const StatementRun* run,
               std::string* out);
  void AddRank(const StatementRun& run, const vm::RunStatistics& statistics, const vm::RankStatistics& rank,
               int64_t shift, std::string* out);
  void NameRank(const vm::RankStatistics& rank, std::string* out);
  void Begin(std::string* out);

  bool begun_ = false;
  int64_t origin_ = 0;   ///< the beginning of the first statement
  std::set<int> named_;  ///< ranks
};

}  // namespace tessera
