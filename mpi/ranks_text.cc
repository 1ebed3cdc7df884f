// What EXPLAIN says of ranks.

#include <algorithm>
#include <map>
#include <utility>

#include "mpi/cluster.h"
#include "vm/program/distribution.h"
#include "vm/program/section_traits.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

/// What is said of one section.
struct Described {
  const vm::Program& program;
  const vm::ProgramTraits& traits;
  const vm::Section& section;
  const std::vector<bool>& may_stay;  ///< vm::MayStayDistributed
  size_t number;
  const TableInfo* table;  ///< that it scans, or nullptr

  /// Whether it reads rows that ranks may have kept.
  bool ReadsDistributed() const {
    if (section.source_kind != vm::Section::Source::kSection) return false;
    const auto source = static_cast<size_t>(section.source);
    return may_stay[source] || program.sections[source].placement.by_key;
  }
};

/// How ranks share the rows that a section reads.
std::string SourceText(const Described& d, int ranks, const ClusterSettings& settings) {
  const vm::Section& s = d.section;
  if (d.ReadsDistributed()) return "where its rows are";
  if (!vm::SharedByRanks(s)) return "on the master";
  if (d.traits.sections[d.number].grid >= 0 && s.source_kind == vm::Section::Source::kJoin)
    return "on every rank, the grid shared by tiles and ranges (on GPUs: by pieces of these rows)";
  if (d.table == nullptr) return "on every rank, shared by tiles";
  if (!d.table->schema.distribute_by.empty()) return "shared by buckets";
  if (!s.placement.spans.empty() && s.sink == vm::Section::Sink::kJoin) return "each rank's keys, by ranges of tablets";
  if (!s.placement.spans.empty()) return "shared by ranges of tablets";
  return vm::SharedByTablets(*d.table, ranks, settings.replicate_below)
             ? "shared by tablets"
             : "on every rank, shared by tiles (on GPUs: by tablets and parts of them)";
}

/// What happens to a join table that is larger than SET broadcast_limit.
std::string BroadcastText(const Described& d, const ClusterSettings& settings) {
  const int join = d.section.join;
  if (!vm::MayBeInShares(d.program, d.traits, join)) {
    return settings.broadcast_limit == 0 ? ""
                                         : ", also of more than " + std::to_string(settings.broadcast_limit) + " bytes";
  }
  const bool is_source = !d.traits.join(join).scanners.empty();
  const std::string size = settings.broadcast_limit == 0
                               ? "than has room there"
                               : "than " + std::to_string(settings.broadcast_limit) + " bytes";
  return (is_source ? ", more " + size + " stay on their ranks" : ", more " + size + " in pieces");
}

/// Where the rows go that a section makes.
std::string SinkText(const Described& d, const ClusterSettings& settings) {
  const vm::Section& s = d.section;
  if (s.placement.by_key && s.sink == vm::Section::Sink::kRows)
    return "; rows exchanged by key, those of heavy keys spread";
  if (s.placement.by_key) return "; rows exchanged by key";
  if (s.sink == vm::Section::Sink::kJoin) {
    if (s.placement.co_located) return "; build side co-located";
    const bool whole = d.table != nullptr && vm::IsReadWhole(*d.table, s, settings.replicate_below);
    return std::string("; build side broadcast to all") + (whole ? " (on GPUs: made by each)" : "") +
           BroadcastText(d, settings);
  }
  if (!vm::SharedByRanks(s) && !d.ReadsDistributed()) return "";
  const std::string more = ", more than " + std::to_string(settings.exchange_above);
  const std::string exchanged =
      d.may_stay[d.number] ? more + (s.placement.co_located ? " stay, co-located" : " exchanged by key") : "";
  if (s.sink == vm::Section::Sink::kGroups) return "; partial groups merged by a tree" + exchanged;
  if (!s.after.order.empty()) {
    return s.after.limit >= 0 ? "; the first rows of each rank merged at the master"
                              : "; sorted rows of each rank merged at the master" + exchanged;
  }
  if (d.number + 1 == d.program.sections.size()) return "; rows streamed to the master";
  if (s.placement.co_located) return "; rows stay on their ranks";
  return "; rows gathered at the master" + (d.may_stay[d.number] ? more + " stay on their ranks" : "");
}

/// " on 2 nodes: 0-3 on a, 4-7 on b"; nothing if there is one node.
std::string NodesText(const std::vector<std::string>& nodes) {
  std::vector<std::string> ranges;  // of the ranks of a node, by node in the order of their first ranks
  std::map<std::string, size_t> numbers;
  for (size_t first = 0, end = 0; first < nodes.size(); first = end) {
    while (end < nodes.size() && nodes[end] == nodes[first]) ++end;
    const auto [at, is_new] = numbers.emplace(nodes[first], ranges.size());
    if (is_new) ranges.emplace_back();
    std::string& of_node = ranges[at->second];
    of_node += (is_new ? "" : " ") + std::to_string(first);
    if (end - first > 1) of_node += "-" + std::to_string(end - 1);
  }
  if (ranges.size() < 2) return "";
  for (const auto& [node, number] : numbers) ranges[number] += " on " + node;
  std::string out = " on " + std::to_string(ranges.size()) + " nodes";
  const char* before = ": ";
  for (const std::string& node : ranges) out += std::exchange(before, ", ") + node;
  return out;
}

}  // namespace

bool ReadsTables(const vm::Program& program) {
  return std::any_of(program.sections.begin(), program.sections.end(),
                     [](const vm::Section& s) { return s.source_kind == vm::Section::Source::kTable; });
}

std::string RanksText(const vm::Program& program, const Snapshot& snapshot, const std::vector<std::string>& nodes,
                      const ClusterSettings& settings) {
  const int ranks = static_cast<int>(nodes.size());
  std::string out = std::to_string(ranks) + " ranks" + NodesText(nodes) + "\n";
  const vm::ProgramTraits traits = vm::TraitsOf(program);
  const std::vector<bool> may_stay = vm::MayStayDistributed(program, traits);
  for (size_t i = 0; i < program.sections.size(); ++i) {
    const vm::Section& s = program.sections[i];
    if (s.source_kind == vm::Section::Source::kDictionary) continue;
    const Described d{program, traits, s, may_stay, i, vm::ScannedTable(snapshot, program, s)};
    out += "  section " + std::to_string(i) + " (" + s.label + "): " + SourceText(d, ranks, settings) +
           SinkText(d, settings) + "\n";
  }
  return out;
}

}  // namespace tessera
