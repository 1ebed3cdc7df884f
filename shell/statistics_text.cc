#include "shell/statistics_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/table_text.h"

namespace tessera {

std::string BytesText(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} B", bytes);
  return fmt::format("{:.{}f} {}", bytes, bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0, kUnits[unit]);
}

namespace {

/// The ranks that worked on a section, or on the whole statement.
class RankTimes {
 public:
  void Add(int rank, const Account& account) {
    const double busy = account.BusyMilliseconds();
    if (busy < kNothing) return;
    if (ranks_ == 0 || busy < fastest_.ms) fastest_ = {rank, busy};
    if (ranks_ == 0 || busy > slowest_.ms) slowest_ = {rank, busy};
    ++ranks_;
    busy_ += busy;
    wait_ += account.Milliseconds(Phase::kWait);
    bytes_ += account.AllTraffic().sent;
  }
  int ranks() const { return ranks_; }

  std::vector<std::string> Row(const std::string& label) const {
    const auto of = [](const One& one) { return fmt::format("{:.3f} (rank {})", one.ms, one.rank); };
    return {std::to_string(ranks_),
            of(fastest_),
            of(slowest_),
            fmt::format("{:.3f}", busy_ / ranks_),
            fmt::format("{:.3f}", wait_ / ranks_),
            BytesText(static_cast<double>(bytes_)),
            label};
  }

 private:
  /// Milliseconds of a rank that has no part in a section but to go on to the next.
  static constexpr double kNothing = 0.0005;
  struct One {
    int rank = 0;
    double ms = 0;
  };
  One fastest_, slowest_;
  int ranks_ = 0;
  double busy_ = 0, wait_ = 0;
  uint64_t bytes_ = 0;
};

/// How the ranks shared the time of each section: what it took them but for waiting for each other.
std::string RanksTable(const vm::RunStatistics& statistics) {
  std::vector<std::vector<std::string>> table = {
      {"ranks", "fastest ms", "slowest ms", "mean ms", "mean wait ms", "sent", "section"}};
  for (const vm::SectionStatistics& s : statistics.sections) {
    RankTimes times;
    for (const vm::RankStatistics& rank : statistics.ranks) {
      for (const vm::SectionAccount& account : rank.sections) {
        if (account.section == s.section) times.Add(rank.rank, account.account);
      }
    }
    if (times.ranks() > 0) table.push_back(times.Row(s.label));
  }
  RankTimes all;
  for (const vm::RankStatistics& rank : statistics.ranks) all.Add(rank.rank, rank.account);
  if (all.ranks() > 0) table.push_back(all.Row("all, compiling included"));
  return TableText(table, 1);
}

}  // namespace

std::string TotalsText(const Analysis& analysis) {
  const vm::RunStatistics& statistics = *analysis.statistics;
  const Timing& timing = *analysis.timing;
  const bool gpu = std::ranges::any_of(statistics.sections, [](const vm::SectionStatistics& s) { return s.on_gpu; });
  std::string out =
      fmt::format("{} rows; compiled in {:.3f} ms, executed in {:.3f} ms", timing.rows, timing.compile, timing.execute);
  if (gpu) out += fmt::format(" ({:.3f} ms in kernels)", timing.kernel);
  uint64_t memory = statistics.mine.memory_peak, temporary = statistics.mine.temporary_peak;
  for (const vm::RankStatistics& r : statistics.ranks) {
    memory = std::max(memory, r.memory_peak);
    temporary = std::max(temporary, r.temporary_peak);
  }
  if (memory > 0) out += fmt::format("; at most {} of memory", BytesText(static_cast<double>(memory)));
  if (temporary > 0) out += fmt::format(" and {} of temporary files", BytesText(static_cast<double>(temporary)));
  return out + "\n";
}

std::string StatisticsText(const Analysis& analysis) {
  const vm::RunStatistics& statistics = *analysis.statistics;
  // Where nothing ran on a GPU its columns would only be noise.
  bool gpu = false, decoded = false;
  for (const vm::SectionStatistics& s : statistics.sections) {
    gpu |= s.on_gpu;
    decoded |= s.bytes_decoded > 0;
  }
  std::vector<std::vector<std::string>> table = {
      {"where", "rows in", "rows out", "expected", "tablets", "skipped", "bytes"}};
  if (decoded) table[0].emplace_back("decoded");
  table[0].emplace_back("ms");
  if (gpu) {
    for (const char* name : {"kernel ms", "transferred", "staged", "on demand", "% of bandwidth"})
      table[0].emplace_back(name);
  }
  table[0].emplace_back("section");
  for (const vm::SectionStatistics& s : statistics.sections) {
    const double expected = (*analysis.estimates)[static_cast<size_t>(s.section)];
    std::vector<std::string> row = {s.on_gpu ? "gpu" : "host",
                                    fmt::format("{}", s.rows_in),
                                    fmt::format("{}", s.rows_out),
                                    expected < 0 ? "" : fmt::format("~{:.0f}", expected),
                                    fmt::format("{}", s.tablets),
                                    fmt::format("{}", s.tablets_skipped),
                                    BytesText(static_cast<double>(s.bytes_read))};
    if (decoded) row.push_back(BytesText(static_cast<double>(s.bytes_decoded)));
    row.push_back(fmt::format("{:.3f}", s.milliseconds));
    if (gpu) {
      const double staged = static_cast<double>(s.bytes_staged), on_demand = static_cast<double>(s.bytes_on_demand);
      const double rate = (staged + on_demand) / (s.kernel_milliseconds / 1e3);
      const bool knows_rate = s.kernel_milliseconds > 0 && analysis.bandwidth > 0;
      row.insert(row.end(),
                 {fmt::format("{:.3f}", s.kernel_milliseconds), BytesText(static_cast<double>(s.bytes_transferred)),
                  BytesText(staged), s.on_gpu ? "~" + BytesText(on_demand) : "",
                  knows_rate ? fmt::format("{:.1f}", 100 * rate / analysis.bandwidth) : ""});
    }
    row.push_back(s.label);
    table.push_back(std::move(row));
  }
  std::string out = TableText(table, 1);
  if (statistics.ranks.size() > 1) out += "\n" + RanksTable(statistics) + "\n";
  for (const vm::SectionStatistics& s : statistics.sections) {
    if (!s.device_plan.empty()) out += fmt::format("{}: {}\n", s.label, s.device_plan);
    if (s.bytes_in_place > 0) {
      out += fmt::format("{}: {} of its columns stayed on the host, about {} of it read over the link\n", s.label,
                         BytesText(static_cast<double>(s.bytes_in_place)),
                         BytesText(static_cast<double>(s.bytes_read_in_place)));
    }
    if (!s.joined.empty()) {
      out += fmt::format("{}: rows after its joins:", s.label);
      for (size_t j = 0; j < s.joined.size(); ++j) {
        const vm::JoinedRows& join = s.joined[j];
        out += fmt::format("{} {} ({}, {:.3f} ms)", j == 0 ? "" : ",", join.rows, join.table, join.milliseconds);
      }
      out += "\n";
    }
    if (s.distributed) {
      out += fmt::format("{}: its rows stay on the ranks", s.label);
      if (s.rows_exchanged > 0) out += fmt::format("; {} went to the rank of their key", s.rows_exchanged);
      if (s.heavy_keys > 0) out += fmt::format("; heavy keys: {}, their rows spread", s.heavy_keys);
      out += "\n";
    }
    if (s.join_passes > 0) out += fmt::format("{}: {} passes, join tables in parts\n", s.label, s.join_passes);
    if (s.group_spills > 0) {
      out += fmt::format("{}: the group table was full {} times and sent {} groups to the host\n", s.label,
                         s.group_spills, s.spilled_groups);
    }
    if (s.pairs + s.pruned_pairs > 0) {
      out += fmt::format("{}: {} pairs tested", s.label, s.pairs);
      if (s.pruned_pairs > 0) out += fmt::format(", {} left out", s.pruned_pairs);
      if (s.child_grids > 0) out += fmt::format(", {} child grids", s.child_grids);
      out += "\n";
    }
  }
  return out + TotalsText(analysis);
}

}  // namespace tessera
