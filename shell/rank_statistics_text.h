// The statistics of statements, one record per rank, for scripts that draw plots: CSV or one JSON object a line.
#pragma once

#include <cstdint>
#include <string>

#include "vm/vm.h"

namespace tessera {

enum class StatisticsFormat { kCsv, kJson };

/// The first line of a CSV file; nothing for JSON.
std::string RankStatisticsHeader(StatisticsFormat format);
/// A line for each rank that took part in statement `number`; nothing if no program ran. Times are milliseconds.
std::string RankStatisticsText(StatisticsFormat format, uint64_t number, const vm::RunStatistics& statistics);

}  // namespace tessera
