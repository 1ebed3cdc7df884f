// What a run has measured of each step of a plan. Internal to shell/.
//
// Start at: StepMeasures::Next. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/plan/plan_node.h"
#include "session/session.h"

namespace tessera {

struct StepMeasure {
  std::optional<uint64_t> rows;   ///< that it made, if they are counted
  std::optional<uint64_t> reads;  ///< that it read
  std::vector<int> sections;      ///< that run and whose times are not those of a step before it
  double milliseconds = 0;        ///< of these
  bool on_host = false, on_gpu = false;
  size_t ranks = 0;  ///< that worked on them; 0 in one process
  uint64_t tablets = 0, tablets_skipped = 0, bytes_read = 0;
};

class StepMeasures {
 public:
  explicit StepMeasures(const Analysis& analysis) : statistics_(*analysis.statistics) {}

  /// Steps come as their lines do: each before its inputs, which come in their order.
  StepMeasure Next(const PlanNode& step);

 private:
  const vm::SectionStatistics* Find(int section) const;
  size_t RanksOf(int section) const;
  std::optional<uint64_t> RowsOf(const PlanNode& step);

  const vm::RunStatistics& statistics_;
  std::set<int> shown_;
  std::map<int, size_t> joins_left_;  ///< by section: how many of its joins come below the last one
};

}  // namespace tessera
