// What EXPLAIN says of ranks.

#include <algorithm>

#include "mpi/cluster.h"

namespace tessera {
namespace {

/// How ranks share the rows that a section reads.
std::string SourceText(const vm::Program& program, const Snapshot& snapshot, int ranks, const ClusterSettings& settings,
                       const vm::Section& s) {
  if (!vm::SharedByRanks(s)) return "on the master";
  if (vm::GridOf(program, s) >= 0 && s.source_kind == vm::Section::Source::kJoin)
    return "on every rank, the grid shared by tiles and ranges";
  bool by_tablets = false;
  for (const auto& table : snapshot.tables) {
    if (s.source_kind == vm::Section::Source::kTable && table->id == program.tables[static_cast<size_t>(s.source)].id)
      by_tablets = vm::SharedByTablets(*table, ranks, settings.replicate_below);
  }
  return by_tablets ? "shared by tablets" : "on every rank, shared by tiles";
}

/// Where the rows go that a section makes.
std::string SinkText(const vm::Section& s, bool is_last) {
  if (s.sink == vm::Section::Sink::kJoin) return "; build side broadcast to all";
  if (!vm::SharedByRanks(s)) return "";
  if (s.sink == vm::Section::Sink::kGroups) return "; partial groups merged by a tree";
  if (!s.order.empty()) {
    return s.limit >= 0 ? "; the first rows of each rank merged at the master"
                        : "; sorted rows of each rank merged at the master";
  }
  return is_last ? "; rows streamed to the master" : "; rows gathered at the master";
}

}  // namespace

bool ReadsTables(const vm::Program& program) {
  return std::any_of(program.sections.begin(), program.sections.end(),
                     [](const vm::Section& s) { return s.source_kind == vm::Section::Source::kTable; });
}

std::string RanksText(const vm::Program& program, const Snapshot& snapshot, int ranks,
                      const ClusterSettings& settings) {
  std::string out = std::to_string(ranks) + " ranks\n";
  for (size_t i = 0; i < program.sections.size(); ++i) {
    const vm::Section& s = program.sections[i];
    if (s.source_kind == vm::Section::Source::kDictionary) continue;
    out += "  section " + std::to_string(i) + " (" + s.label +
           "): " + SourceText(program, snapshot, ranks, settings, s) + SinkText(s, i + 1 == program.sections.size()) +
           "\n";
  }
  return out;
}

}  // namespace tessera
