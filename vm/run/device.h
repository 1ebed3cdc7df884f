// A device that runs sections of a program: what a GPU has to do, and what the executor asks of it.
//
// Start at: SectionBackend, DeviceRun.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"
#include "vm/run/run_settings.h"
#include "vm/run/statistics.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

/// Groups whose value in `column` of the section's columns, an integer of any width, is NULL or in [low, high].
struct UnwantedGroups {
  int column = 0;
  int128_t low = 0, high = 0;
};

class LateTexts;
class Exchange;
class RowMarks;
struct HandedOn;
struct ProgramTraits;

/// What a section needs besides the program.
struct SectionContext {
  const Program* program = nullptr;
  const ProgramTraits* traits = nullptr;  ///< of the program
  int section = 0;
  const TableInfo* table = nullptr;  ///< the stored table that it scans; nullptr: it scans rows that the device has
  StringPool* strings = nullptr;
  const std::atomic<bool>* cancel = nullptr;  ///< may be nullptr
  SectionStatistics* statistics = nullptr;
  ThreadPool* pool = nullptr;  ///< for work on the host that can be shared; idle while the section runs
  bool profile = false;        ///< fill statistics->joined
  RunSettings settings = {};
  /// kRows: takes rows as they come, or once they are sorted if the section has an order. Then only the rows that fit
  /// the device's output are held at a time, and the result has no rows. Empty: all rows are in the result. An error
  /// ends the section and is returned by it.
  std::function<Status(RowSet*)> take_rows = {};
  /// ... or some of them, of sections without order and bounds, as the numbers that their only column has. The result has as
  /// many rows as went there. nullptr: none.
  RowMarks* marks = nullptr;
  /// kGroups: what is not read. A group to which any of these applies may be left out of the result.
  std::vector<UnwantedGroups> unwanted = {};
  /// From this number on, rows or groups can stay on the device, where the sections that read them run. UINT64_MAX: none
  /// can, as it is for a section with an order that is not for its windows.
  uint64_t keep_from = UINT64_MAX;
  /// The section, whose rows the device keeps, after which these rows are to be kept: it is forgotten then. -1: none.
  int append_to = -1;
  /// Add the columns of the section's windows: SectionBackend::HasWindows, and all of its rows are made here.
  bool add_windows = false;
  /// kJoin: the other ranks, which build the table at the same time, each from its rows: it has the rows of all, in the
  /// same order on all ranks. With RankPlacement::by_key the rows wait for DeviceRun::ExchangeJoin. nullptr: it has these rows
  /// alone.
  Exchange* exchange = nullptr;
  /// A section over the rows of a join table, which `ranks` ranks have in the same order: it runs over the share of `rank`,
  /// see vm/shares/source_shares.h.
  int rank = 0, ranks = 1;
  /// Texts that are only handed on, and where these come from. nullptr: there are none. The caller resolves the rows that
  /// it gets.
  const HandedOn* handed_on = nullptr;
  LateTexts* late_texts = nullptr;
};

/// What ranks tell each other of groups that may go from device to device.
struct GroupOffer {
  uint64_t groups = 0;
  uint64_t can = 0;         ///< 1: they can
  uint64_t is_linked = 0;   ///< 1: the rank knows the way to the other devices
  uint64_t text_bytes = 0;  ///< that the rank has to tell before, of texts in their keys
};

/// One run of a program on a device. Join tables stay on the device from the section that builds them to the end of the
/// run, kept rows until they are dropped.
class DeviceRun {
 public:
  virtual ~DeviceRun() = default;
  /// Runs a section with sink kRows or kGroups, over a stored table, over a join table that is on the device, or over
  /// rows that it keeps.
  ///
  /// kRows: if the section has an order, rows come in that order (equal rows in any), and the device returns only the
  /// first OFFSET + LIMIT. Without an order they come in any order; with a LIMIT there are at least OFFSET + LIMIT of
  /// them, or all. The caller drops the first OFFSET rows and those after LIMIT; it does not sort.
  ///
  /// kGroups: `columns` are the keys, then the aggregates' final values (SUM, MIN, MAX without a value: NULL). Without
  /// keys there is exactly one group.
  ///
  /// If the device keeps the rows (SectionContext::keep_from, Keeps), these are only those within OFFSET and LIMIT, and the
  /// result has their number, without those before them (append_to), and no columns.
  ///
  /// SectionContext::add_windows: rows that the device keeps have the columns of TypesOfRows (vm/after/window.h). Those that it
  /// returns have them, or, if it turned out that the host has to add them, Section::columns only.
  ///
  /// REQUIRES: the join tables that it probes have been built or put. Errors: kUnsupported, kResource: the device turned
  /// out to be unable to run the section; the host can.
  virtual Result<RowSet> RunSection(const SectionContext& context) = 0;
  /// With other ranks: finds the groups of a section with sink kGroups and keys, and leaves them on the device until
  /// TakeGroups or the next section. Returns how many there are. Unless they are co-located, groups of other ranks may
  /// have the same keys; so SectionContext::unwanted is left alone until ExchangeGroups.
  virtual Result<uint64_t> FindGroups(const SectionContext& context) = 0;
  /// What the others must know before groups go to the ranks of their keys, from device to device. REQUIRES, here and
  /// below: FindGroups, of the latest section.
  virtual Result<GroupOffer> OfferGroups(int ranks) = 0;
  /// All ranks: each gets all groups with its keys, which become one for each key. Returns how many these are. `offers`:
  /// of all ranks, who all can.
  virtual Result<uint64_t> ExchangeGroups(const std::vector<GroupOffer>& offers, Exchange* exchange) = 0;
  /// The result of RunSection. `keep`: the device may keep it, as SectionContext::keep_from says.
  virtual Result<RowSet> TakeGroups(bool keep) = 0;
  /// Whether the device has the rows of a section, for others to read.
  virtual bool Keeps(int section) const = 0;
  /// Takes the rows of a section that were made elsewhere, those of its windows included. Errors: as RunSection.
  virtual Status PutRows(const Program& program, int section, const RowSet& rows) = 0;
  /// Copies the rows of a section to the host. REQUIRES: Keeps(section).
  virtual Result<RowSet> FetchRows(const Program& program, int section) = 0;
  /// Forgets the rows of a section.
  virtual void DropRows(int section) = 0;
  /// Announces the section that RunSection will get after the next BuildJoins, so that work that does not depend on the
  /// join tables can be done while they are built. (Its statistics are not used.)
  virtual void Expect(const SectionContext& next) { (void)next; }
  /// Runs sections with sink kJoin that do not need each other's tables, over stored tables and rows that the device
  /// keeps. Errors: as RunSection. If one has SectionContext::exchange, all ranks call this, and the error of one is that
  /// of all. `ready`: an error that this rank has met before; then nothing is built.
  virtual Status BuildJoins(const std::vector<SectionContext>& contexts, const Status& ready) = 0;
  /// All ranks: both sides of a join go to the ranks of their keys: the rows that BuildJoins has left waiting, and those of
  /// context.section that the device keeps, if any. Then the table is on the device, and so are the rows that have come,
  /// if any (Keeps). `can`: nothing of this rank is elsewhere. `is_inner`: rows of the table may be on a rank on which not
  /// all rows are that probe them. `mine`: an error that this rank has met before, which is that of all then. false on all
  /// ranks: they cannot, and nothing has changed.
  virtual Result<bool> ExchangeJoin(const SectionContext& context, int join, bool can, bool is_inner,
                                    const Status& mine) = 0;
  /// The rows of a join table that wait, which are not on the device any more.
  virtual Result<RowSet> TakeJoin(const Program& program, int join, ThreadPool* pool) = 0;
  /// Takes a join table whose rows (keys, none NULL, then payload) were made elsewhere, from a table of `source_rows`
  /// rows.
  virtual Status PutJoin(const Program& program, const ProgramTraits& traits, int join, const RowSet& rows,
                         uint64_t source_rows, JoinPartitioning partitioning) = 0;
};

/// A device that runs sections over stored tables and join tables.
class SectionBackend {
 public:
  virtual ~SectionBackend() = default;
  /// OK, or kUnsupported with the reason why this section cannot run here.
  virtual Status CanRun(const Program& program, int section) const = 0;
  /// Whether it can add the columns of the section's windows.
  virtual bool HasWindows(const Program& program, int section) const = 0;
  /// Starts a run, which must not outlive the device.
  virtual std::unique_ptr<DeviceRun> Begin() = 0;
};

}  // namespace tessera::vm
