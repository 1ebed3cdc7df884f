// The state of one run of a program that its pieces share: the program, the results so far, and tests that many of them
// need. Private to vm/.
//
// Start at: RunState. Used by the thread of Executor::Run; workers read it while a section runs.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "tablet/catalog/table_info.h"
#include "vm/program/distribution.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/rows/late_texts.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"
#include "vm/run/host_joins.h"
#include "vm/run/run_options.h"
#include "vm/run/statistics.h"
#include "vm/shares/key_routes.h"

namespace tessera::vm {

class DeviceSections;

/// A section whose rows the section after it takes round by round as ranks exchange them: it does not run by itself.
struct Fed {
  bool is_fed = false;
  DeviceSections* device = nullptr;  ///< that runs it; nullptr: the host
};

struct RunState {
  RunState(const Program& p, const RunOptions& o, ThreadPool* threads, std::shared_ptr<StringPool> pool_of_strings)
      : program(p),
        traits(TraitsOf(p)),
        options(o),
        pool(threads),
        held_strings(std::move(pool_of_strings)),
        strings(*held_strings),
        results(p.sections.size()),
        joins(p, traits, threads),
        routes(p.joins.size()),
        may_be_in_shares(p.joins.size()),
        in_shares(p.joins.size()),
        may_stay_distributed(o.exchange == nullptr ? std::vector<bool>() : MayStayDistributed(p, traits)),
        distributed(p.sections.size()),
        fed(p.sections.size()),
        built_on_device(p.sections.size()),
        was_dropped(p.sections.size()) {}

  const Program& program;
  const ProgramTraits traits;
  const RunOptions& options;
  ThreadPool* const pool;
  const std::shared_ptr<StringPool> held_strings;
  StringPool& strings;
  std::vector<const TableInfo*> tables;                ///< by number in the program
  std::vector<std::shared_ptr<const TableInfo>> runs;  ///< of those that are read as such
  std::vector<RowSet> results;                         ///< by section: its rows, until they have been read
  HostJoins joins;
  std::vector<JoinRoutes> routes;           ///< by join, of ranks
  std::vector<bool> may_be_in_shares;       ///< by join, of ranks: MayBeInShares, and the host reads it
  std::vector<bool> in_shares;              ///< by join: every rank has the rows that it made; the same on all ranks
  std::vector<bool> may_stay_distributed;   ///< by section, of ranks
  std::vector<bool> distributed;            ///< by section: every rank has some of its rows; the same on all ranks
  std::vector<Fed> fed;                     ///< by section
  std::vector<bool> built_on_device;        ///< by section: its join table is on the device
  std::vector<bool> was_dropped;            ///< by section: its rows have been read for the last time
  HandedOn handed_on;                       ///< empty: everything runs on the host
  std::vector<SectionStatistics> finished;  ///< of fed sections
  LateTexts late_texts;
  RankStatistics mine;
  uint64_t turns = 0;  ///< of recursions that have ended

  const Section& section(int number) const { return program.sections[static_cast<size_t>(number)]; }
  const JoinSpec& join(int number) const { return program.joins[static_cast<size_t>(number)]; }
  RowSet& result(int number) { return results[static_cast<size_t>(number)]; }
  const RowSet& result(int number) const { return results[static_cast<size_t>(number)]; }
  bool IsLast(int number) const { return static_cast<size_t>(number) + 1 == program.sections.size(); }
  /// The stored table that a section scans, or nullptr.
  const TableInfo* SourceTable(const Section& s) const {
    return s.source_kind == Section::Source::kTable ? tables[static_cast<size_t>(s.source)] : nullptr;
  }

  bool IsCancelled() const { return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed); }
  /// Whether this process has the results: it runs alone, or as rank 0.
  bool IsMaster() const { return options.exchange == nullptr || options.exchange->rank() == 0; }
  /// Whether every rank runs its portion of the section.
  bool IsShared(const Section& s) const {
    if (options.exchange == nullptr) return false;
    return SharedByRanks(s) ||
           (s.source_kind == Section::Source::kSection && distributed[static_cast<size_t>(s.source)]);
  }
  /// Whether every rank takes part in the section, if only by receiving its rows.
  bool IsCollective(const Section& s) const {
    return IsShared(s) || (options.exchange != nullptr && (s.sink == Section::Sink::kJoin || s.placement.by_key));
  }

  SectionStatistics StartStatistics(int number) const {
    SectionStatistics stats;
    stats.section = number;
    stats.label = section(number).label;
    return stats;
  }
};

}  // namespace tessera::vm
