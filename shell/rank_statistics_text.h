// The statistics of statements, one record per rank and one per section and rank, for scripts that draw plots: CSV or
// one JSON object a line.
//
// Start at: RankStatisticsText. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "vm/run/statistics.h"

namespace tessera {

enum class StatisticsFormat { kCsv, kJson };

/// What the lines of one run of a statement begin with.
struct StatementRun {
  uint64_t number = 0;  ///< of the statement, from 1
  std::string name;     ///< that the script gives it; may be empty
  uint64_t run = 1;     ///< of those of --repeat
};

/// The first line of a CSV file; nothing for JSON.
std::string RankStatisticsHeader(StatisticsFormat format);
/// For each rank that took part a line, and after it one for each section on which it spent time; nothing if no program
/// ran. Times are milliseconds. What is not measured of a section is empty, or null.
std::string RankStatisticsText(StatisticsFormat format, const StatementRun& run, const vm::RunStatistics& statistics);

}  // namespace tessera
