// What EXPLAIN says of ranks.

#include <algorithm>

#include "mpi/cluster.h"

namespace tessera {
namespace {

/// What is said of one section.
struct Described {
  const vm::Program& program;
  const vm::Section& section;
  const std::vector<bool>& may_stay;  ///< vm::MayStayDistributed
  size_t number;

  /// Whether it reads rows that ranks may have kept.
  bool ReadsDistributed() const {
    if (section.source_kind != vm::Section::Source::kSection) return false;
    const auto source = static_cast<size_t>(section.source);
    return may_stay[source] || program.sections[source].by_key;
  }
};

/// How ranks share the rows that a section reads.
std::string SourceText(const Described& d, const Snapshot& snapshot, int ranks, const ClusterSettings& settings) {
  const vm::Section& s = d.section;
  if (d.ReadsDistributed()) return "where its rows are";
  if (!vm::SharedByRanks(s)) return "on the master";
  if (vm::GridOf(d.program, s) >= 0 && s.source_kind == vm::Section::Source::kJoin)
    return "on every rank, the grid shared by tiles and ranges";
  bool by_tablets = false;
  for (const auto& table : snapshot.tables) {
    if (s.source_kind == vm::Section::Source::kTable && table->id == d.program.tables[static_cast<size_t>(s.source)].id)
      by_tablets = vm::SharedByTablets(*table, ranks, settings.replicate_below);
  }
  return by_tablets ? "shared by tablets" : "on every rank, shared by tiles";
}

/// Where the rows go that a section makes.
std::string SinkText(const Described& d, const ClusterSettings& settings) {
  const vm::Section& s = d.section;
  if (s.by_key) return "; rows exchanged by key";
  if (s.sink == vm::Section::Sink::kJoin) return "; build side broadcast to all";
  if (!vm::SharedByRanks(s) && !d.ReadsDistributed()) return "";
  const std::string more = ", more than " + std::to_string(settings.exchange_above);
  const std::string exchanged = d.may_stay[d.number] ? more + " exchanged by key" : "";
  if (s.sink == vm::Section::Sink::kGroups) return "; partial groups merged by a tree" + exchanged;
  if (!s.order.empty()) {
    return s.limit >= 0 ? "; the first rows of each rank merged at the master"
                        : "; sorted rows of each rank merged at the master" + exchanged;
  }
  if (d.number + 1 == d.program.sections.size()) return "; rows streamed to the master";
  return "; rows gathered at the master" + (d.may_stay[d.number] ? more + " stay on their ranks" : "");
}

}  // namespace

bool ReadsTables(const vm::Program& program) {
  return std::any_of(program.sections.begin(), program.sections.end(),
                     [](const vm::Section& s) { return s.source_kind == vm::Section::Source::kTable; });
}

std::string RanksText(const vm::Program& program, const Snapshot& snapshot, int ranks,
                      const ClusterSettings& settings) {
  std::string out = std::to_string(ranks) + " ranks\n";
  const std::vector<bool> may_stay = vm::MayStayDistributed(program);
  for (size_t i = 0; i < program.sections.size(); ++i) {
    const vm::Section& s = program.sections[i];
    if (s.source_kind == vm::Section::Source::kDictionary) continue;
    const Described d{program, s, may_stay, i};
    out += "  section " + std::to_string(i) + " (" + s.label + "): " + SourceText(d, snapshot, ranks, settings) +
           SinkText(d, settings) + "\n";
  }
  return out;
}

}  // namespace tessera
