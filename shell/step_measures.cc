#include "shell/step_measures.h"

#include <algorithm>

namespace tessera {

const vm::SectionStatistics* StepMeasures::Find(int section) const {
  const auto found = std::ranges::find(statistics_.sections, section, &vm::SectionStatistics::section);
  return found == statistics_.sections.end() ? nullptr : &*found;
}

size_t StepMeasures::RanksOf(int section) const {
  if (statistics_.ranks.size() < 2) return 0;
  size_t ranks = 0;
  for (const vm::RankStatistics& rank : statistics_.ranks) {
    ranks += std::ranges::any_of(rank.sections, [&](const vm::SectionAccount& a) {
      return a.section == section && (a.rows_in > 0 || a.rows_out > 0);
    });
  }
  return ranks;
}

std::optional<uint64_t> StepMeasures::RowsOf(const PlanNode& step) {
  const vm::SectionStatistics* const first = step.sections.empty() ? nullptr : Find(step.sections[0]);
  if (first == nullptr) return std::nullopt;
  switch (step.counted) {
    case PlanNode::Counted::kOut:
      return first->rows_out;
    case PlanNode::Counted::kIn:
      return first->rows_in;
    case PlanNode::Counted::kJoin: {
      // Joins are counted in their order, of which the last one is the outermost; not all are.
      const vm::SectionStatistics* const side = Find(step.side);
      size_t& left = joins_left_.try_emplace(step.sections[0], first->joined.size()).first->second;
      for (size_t i = left; side != nullptr && i-- > 0;) {
        if (first->joined[i].table != side->label) continue;
        left = i;
        return first->joined[i].rows;
      }
      return std::nullopt;
    }
    case PlanNode::Counted::kNothing:
      break;
  }
  return std::nullopt;
}

StepMeasure StepMeasures::Next(const PlanNode& step) {
  StepMeasure m;
  m.rows = RowsOf(step);
  for (const int section : step.sections) {
    const vm::SectionStatistics* const s = Find(section);
    if (s == nullptr || !shown_.insert(section).second) continue;
    m.sections.push_back(section);
    m.milliseconds += s->milliseconds;
    (s->on_gpu ? m.on_gpu : m.on_host) = true;
    m.ranks = std::max(m.ranks, RanksOf(section));
  }
  if (!step.reads) return m;
  if (const vm::SectionStatistics* const s = Find(step.sections[0])) {
    m.reads = s->rows_in;
    m.tablets = s->tablets;
    m.tablets_skipped = s->tablets_skipped;
    m.bytes_read = s->bytes_read;
  }
  return m;
}

}  // namespace tessera
