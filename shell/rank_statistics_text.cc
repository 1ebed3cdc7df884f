#include "shell/rank_statistics_text.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace tessera {
namespace {

std::vector<std::pair<const char*, std::string>> Fields(uint64_t number, const vm::RankStatistics& r) {
  const auto time = [](double milliseconds) { return fmt::format("{:.3f}", milliseconds); };
  return {{"statement", std::to_string(number)},
          {"rank", std::to_string(r.rank)},
          {"rows_scanned", std::to_string(r.rows_scanned)},
          {"rows_out", std::to_string(r.rows_out)},
          {"tablets", std::to_string(r.tablets)},
          {"bytes_read", std::to_string(r.bytes_read)},
          {"bytes_transferred", std::to_string(r.bytes_transferred)},
          {"bytes_sent", std::to_string(r.bytes_sent)},
          {"bytes_received", std::to_string(r.bytes_received)},
          {"bytes_scattered", std::to_string(r.bytes_scattered)},
          {"memory_peak", std::to_string(r.memory_peak)},
          {"temporary_peak", std::to_string(r.temporary_peak)},
          {"compile_ms", time(r.compile)},
          {"scatter_ms", time(r.scatter)},
          {"read_ms", time(r.read)},
          {"transfer_ms", time(r.transfer)},
          {"execute_ms", time(r.execute)},
          {"gather_ms", time(r.gather)},
          {"merge_ms", time(r.merge)},
          {"print_ms", time(r.print)},
          {"total_ms", time(r.total)}};
}

}  // namespace

std::string RankStatisticsHeader(StatisticsFormat format) {
  std::string line;
  if (format == StatisticsFormat::kJson) return line;
  for (const auto& [name, value] : Fields(0, {})) line += std::string(line.empty() ? "" : ",") + name;
  return line + "\n";
}

std::string RankStatisticsText(StatisticsFormat format, uint64_t number, const vm::RunStatistics& statistics) {
  std::string out;
  if (statistics.sections.empty()) return out;
  for (const vm::RankStatistics& rank : statistics.ranks) {
    std::string line;
    for (const auto& [name, value] : Fields(number, rank)) {
      if (!line.empty()) line += ",";
      line += format == StatisticsFormat::kJson ? fmt::format("\"{}\":{}", name, value) : value;
    }
    out += format == StatisticsFormat::kJson ? "{" + line + "}\n" : line + "\n";
  }
  return out;
}

}  // namespace tessera
