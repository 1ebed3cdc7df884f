// How the statistics of ranks become one.

#include "mpi/rank_statistics.h"

#include <algorithm>

#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

/// The ways to merge of vm/program/section_statistics.def.
template <class T>
void MergeMaster(const T&, bool, T*) {}
template <class T>
void MergeSum(const T& theirs, bool, T* out) {
  *out += theirs;
}
template <class T>
void MergeMax(const T& theirs, bool, T* out) {
  *out = std::max(*out, theirs);
}
void MergeAny(bool theirs, bool, bool* out) { *out |= theirs; }
void MergeRows(uint64_t theirs, bool each_has_some, uint64_t* out) {
  if (each_has_some) *out += theirs;
}
void MergeJoins(const std::vector<vm::JoinedRows>& theirs, bool, std::vector<vm::JoinedRows>* out) {
  if (out->size() != theirs.size()) out->clear();
  for (size_t j = 0; j < out->size(); ++j) {
    (*out)[j].rows += theirs[j].rows;
    (*out)[j].milliseconds = std::max((*out)[j].milliseconds, theirs[j].milliseconds);
  }
}

/// Tablets of the stored table that a section scans, from which every rank gets some; 0 if it scans something else.
size_t TabletsOf(const vm::Program& program, const Snapshot& snapshot, const vm::Section& s) {
  if (s.source_kind != vm::Section::Source::kTable) return 0;
  const TableInfo* const table = vm::TableOf(snapshot, program.tables[static_cast<size_t>(s.source)]);
  return table != nullptr && table->buckets.empty() ? table->tablets.size() : 0;  // perhaps all its rows have one key
}

/// Whether a rank scanned nothing of its portion, though there was something to scan.
bool WasIdle(const vm::SectionStatistics& rank) {
  // There was nothing to scan if the encoded predicates have shown that no row can pass.
  const bool could = rank.tablets_skipped < rank.tablets || rank.tablets == 0;
  return could && rank.rows_in == 0 && rank.pairs + rank.pruned_pairs == 0;
}

}  // namespace

void MergeSection(const vm::SectionStatistics& theirs, bool builds_join, vm::SectionStatistics* out) {
  const bool each_has_some = builds_join || theirs.distributed;
#define STATISTIC(Merging, Type, Name) Merge##Merging(theirs.Name, each_has_some, &out->Name);
#include "vm/program/section_statistics.def"
#undef STATISTIC
}

vm::RunStatistics MergeStatistics(const vm::Program& program, const Snapshot& snapshot,
                                  const std::vector<vm::RunStatistics>& all) {
  vm::RunStatistics out = all[0];
  for (const vm::RunStatistics& rank : all) out.ranks.push_back(rank.mine);
  for (vm::SectionStatistics& section : out.sections) {
    const vm::Section& s = program.sections[static_cast<size_t>(section.section)];
    const bool all_rows = s.after.limit < 0 || s.sink != vm::Section::Sink::kRows;
    const bool for_everyone = all_rows && TabletsOf(program, snapshot, s) >= all.size();
    for (size_t r = 0; r < all.size(); ++r) {
      for (const vm::SectionStatistics& theirs : all[r].sections) {
        if (theirs.section != section.section) continue;
        if (for_everyone && WasIdle(theirs)) ++out.idle_portions;
        if (r > 0) MergeSection(theirs, s.sink == vm::Section::Sink::kJoin, &section);
      }
    }
  }
  return out;
}

}  // namespace tessera
