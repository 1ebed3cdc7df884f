// The virtual machine: runs verified programs over tablets. The public header of vm/.
//
// The machine, per tile of rows: a selection mask (one bit a row), accumulator A (64 bits and a NULL bit a row),
// accumulator W (128 bits and a NULL bit a row), mask registers, registers, one cursor a row for each join table that
// was probed, one group ordinal a row. An instruction is decoded once per tile. A tile is applied wholly or not at all.
// opcodes.def lists the instructions, meaning.h says what they do to one row, OPCODES.md is the manual.
//
// The host interpreter is here; a GPU is another SectionBackend that runs the same sections.
//
// Start at: Executor::Run. An Executor runs one program at a time; cancel may be set from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/phase_clock.h"
#include "base/status.h"
#include "tablet/tablet.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"

namespace tessera {
class ThreadPool;
}

namespace tessera::vm {

/// Rows in the machine's form, as sections make them. Text is identifiers of the query's pool.
struct RowColumn {
  SqlType type;
  std::vector<int64_t> low;   ///< the value, the double's bits, the identifier; kWide: the low half
  std::vector<int64_t> high;  ///< kWide: the high half; else empty
  std::vector<uint8_t> null;  ///< 1 for NULL, one byte a row; empty if no row is NULL
};
struct RowSet {
  size_t rows = 0;
  std::vector<RowColumn> columns;
};

/// A join of a section, and how many rows are left after it and its conditions.
struct JoinedRows {
  std::string table;  ///< the label of the section that built the join table
  uint64_t rows = 0;
  double milliseconds = 0;  ///< the section's time since the join before it; 0 if not measured
};

/// Statistics of one section. vm/program/section_statistics.def lists the fields and their meaning. Times are milliseconds.
struct SectionStatistics {
#define STATISTIC(Merging, Type, Name) Type Name{};
#include "vm/program/section_statistics.def"
#undef STATISTIC
};

/// What one rank spent on one section.
struct SectionAccount {
  int section = 0;
  uint64_t rows_in = 0, rows_out = 0, tablets = 0, bytes_read = 0;
  Account account;
};

/// Where one rank spent its time in one statement, and how much it moved. Without ranks there is only rank 0. Times are
/// milliseconds.
struct RankStatistics {
  int rank = 0;
  int threads = 0;
  std::string host;                ///< the machine's name
  std::string device;              ///< the GPU's name if a section ran there, else "host"
  uint64_t rows_scanned = 0;       ///< of stored tables
  uint64_t rows_out = 0;           ///< master: rows of the result; others: rows and groups sent to another rank
  uint64_t tablets = 0;            ///< tablets that the rank scanned, at least in part
  uint64_t bytes_read = 0;         ///< encoded bytes of the columns read
  uint64_t bytes_transferred = 0;  ///< to the GPU
  uint64_t bytes_sent = 0, bytes_received = 0;  ///< between ranks; without tablets and statistics
  uint64_t bytes_scattered = 0;                 ///< tablets: received from the master; master: sent
  uint64_t memory_peak = 0;                     ///< the most bytes that the process had allocated at a time
  uint64_t temporary_peak = 0;                  ///< the most bytes of temporary files at a time
  /// The master: from the statement's text to its end; others: from the command to run to the report. It is the sum of
  /// the account's phases.
  double total = 0;
  Account account;                       ///< of the thread that drives the statement
  std::vector<SectionAccount> sections;  ///< by number; the rest of `account` belongs to none
  // Work beside that thread, which overlaps its phases:
  double read_work = 0;      ///< opening, checking and encoding tablets, summed over the threads
  double transfer_work = 0;  ///< until copies to the GPU were on their way
  double kernel_work = 0;    ///< kernels, on the GPU's clock
  // For a timeline, if ClusterQuery::trace or SessionOptions::trace ask for one:
  std::vector<PhaseSpan> spans;
  int64_t agreed = 0;  ///< when the rank knew that all had the program; the same moment on all ranks, but for a message
};
/// Sets the times and the traffic to what the clock has measured up to now.
void TakeAccounts(PhaseClock* clock, RankStatistics* rank);

struct RunStatistics {
  std::vector<SectionStatistics> sections;  ///< across ranks: merged as section_statistics.def says
  RankStatistics mine;
  std::vector<RankStatistics> ranks;  ///< by rank; filled by the caller that knows the other ranks
  /// Ranks that scanned nothing, although a stored table had a tablet for each of them; 0 without ranks.
  uint64_t idle_portions = 0;
};

/// Whether a device partitions the rows of a section by hash slot before it probes a join table.
enum class JoinPartitioning : uint8_t {
  kAuto,  ///< if the table outgrows the device's cache and partitioning should be faster
  kOn,    ///< wherever possible
  kOff,
};

/// Groups whose value in `column` of the section's columns, an integer of any width, is NULL or in [low, high].
struct UnwantedGroups {
  int column = 0;
  int128_t low = 0, high = 0;
};

class LateTexts;
class Exchange;
struct HandedOn;
struct ProgramTraits;

/// SET decompression: how far columns that are stored packed are unpacked before they are read.
enum class Decompression : uint8_t {
  kPartial,  ///< as far as what reads them needs
  kFull,     ///< wholly
};

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
  JoinPartitioning join_partitioning = JoinPartitioning::kAuto;
  Decompression decompression = Decompression::kPartial;
  /// kRows: takes rows as they come, or once they are sorted if the section has an order. Then only the rows that fit
  /// the device's output are held at a time, and the result has no rows. Empty: all rows are in the result. An error
  /// ends the section and is returned by it.
  std::function<Status(RowSet*)> take_rows = {};
  /// kGroups: what nobody reads. A group to which any of these applies may be left out of the result.
  std::vector<UnwantedGroups> unwanted = {};
  /// So many rows or groups, or more, can stay on the device, where the sections that read them run. UINT64_MAX: none;
  /// so it is for a section with an order that is not for its windows.
  uint64_t keep_from = UINT64_MAX;
  /// The section, whose rows the device keeps, behind which these rows are to be kept: it is forgotten then. -1: none.
  int append_to = -1;
  /// Add the columns of the section's windows: SectionBackend::HasWindows, and all of its rows are made here.
  bool add_windows = false;
  /// kJoin: the other ranks, which build the table at the same time, each from its rows: it has the rows of all, in the
  /// same order on all ranks. With Section::by_key the rows wait for DeviceRun::ExchangeJoin. nullptr: it has these rows
  /// alone.
  Exchange* exchange = nullptr;
  /// A section over the rows of a join table, which so many ranks have in the same order: it runs over this one's share,
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
  /// them, or all. The caller drops the first OFFSET rows and those behind LIMIT; it does not sort.
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

/// How many rows of a shipment come from one unit of work. Units are numbered in the order of the source's rows,
/// equally on all ranks, so that the rows of many ranks can be put into the order in which one process would make them.
struct UnitRows {
  uint64_t unit = 0;
  uint64_t rows = 0;
};

/// Rows on their way to another rank.
struct Shipment {
  RowSet rows;
  std::vector<UnitRows> units;  ///< the units of `rows`, in order; units without rows may be missing
  uint64_t through = 0;         ///< in a stream: all of the sender's units below this number have been shipped
  bool last = true;             ///< in a stream: nothing follows
};

/// Rows between two ranks, in their order, cut into pieces that travel one by one.
using RowPieces = std::vector<RowSet>;

/// Bytes on their way between ranks: where this rank's are, and where those of others go. They travel in pieces, in order,
/// kUnderWay of them at a time between two ranks. Nothing fails on the way, because the other ranks wait: whoever has no
/// bytes sends others, and says so afterwards.
class ByteMover {
 public:
  static constexpr size_t kPieceBytes = size_t{4} << 20;
  static constexpr int kUnderWay = 2;
  virtual ~ByteMover() = default;
  /// The bytes from `at` on of those for rank `to`, which stay until the piece kUnderWay behind it is asked for.
  virtual const void* Outgoing(int to, uint64_t at, size_t bytes) = 0;
  /// Room for the bytes from `at` on of those from rank `from`.
  virtual void* Room(int from, uint64_t at, size_t bytes) = 0;
  /// They are there, and their room may be used again.
  virtual void Arrived(int from, uint64_t at, size_t bytes) = 0;
};

/// The messages between ranks that run one program together (mpi/PROTOCOL.md). All ranks run the same sections in the
/// same order. So a call that involves all ranks is made by all of them, in the same order, even by those that have
/// failed. Called from the thread of Executor::Run.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;   ///< 0: the master
  virtual int ranks() const = 0;  ///< at least 2
  /// A table with fewer encoded bytes than this is replicated: every rank has all its tablets.
  virtual uint64_t replicate_below() const = 0;
  /// The greatest size of a join's build side that a rank has room for, in bytes.
  virtual uint64_t broadcast_limit() const = 0;
  /// Intermediate results of more rows than this stay distributed over the ranks; smaller ones go to the master.
  virtual uint64_t exchange_above() const = 0;

  /// All ranks. OK if all are OK; else the same error everywhere, naming the lowest rank that failed by itself.
  virtual Status Agree(const Status& mine) = 0;
  /// All ranks: the sum of all ranks' values.
  virtual Result<uint64_t> Sum(uint64_t mine) = 0;
  /// All ranks: the least of all ranks' values.
  virtual Result<int64_t> Minimum(int64_t mine) = 0;
  /// All ranks: everybody's shipment, by rank. Text is interned into `strings`. Here and below, `types` are those of the
  /// columns: rows of others are refused. Errors: kCorrupt.
  virtual Result<std::vector<Shipment>> AllGather(Shipment mine, const std::vector<SqlType>& types,
                                                  StringPool* strings) = 0;
  /// All ranks: mine[r] goes to rank r, a piece while others are packed and unpacked. Returns what came, by rank; this
  /// rank's own stays as it is. Errors: kCorrupt.
  virtual Result<std::vector<RowPieces>> AllToAll(std::vector<RowPieces> mine, const std::vector<SqlType>& types,
                                                  StringPool* strings) = 0;
  /// All ranks: everybody's bytes, by rank.
  virtual Result<std::vector<std::string>> AllGatherBytes(const std::string& mine) = 0;
  /// The same if all ranks know how many bytes come of each: in one step.
  virtual Result<std::vector<std::string>> AllGatherBytes(const std::string& mine,
                                                          const std::vector<uint64_t>& sizes) = 0;
  /// All ranks: outgoing[r] bytes go to rank r and incoming[r] come from there, as both ranks know.
  virtual void MoveBytes(const std::vector<uint64_t>& outgoing, const std::vector<uint64_t>& incoming,
                         ByteMover* mover) = 0;
  /// All ranks: the master's rows become everybody's.
  virtual Result<RowSet> Broadcast(RowSet mine, const std::vector<SqlType>& types, StringPool* strings) = 0;
  /// One shipment, or the reason why there is none, from one rank to another. Send may return before the shipment has
  /// arrived, but only a few messages are ever on the way. `wait`: return only when everything that was sent has been
  /// received.
  virtual Status Send(int to, Result<Shipment> shipment, const StringPool& strings, bool wait) = 0;
  virtual Result<Shipment> Receive(int from, const std::vector<SqlType>& types, StringPool* strings) = 0;
  /// Tells the other ranks to stop their work: this rank has failed, or has all the rows that it needs.
  virtual void Stop() = 0;
  /// Whether another rank has called Stop. Cheap; called often while a section runs, because it also keeps messages
  /// moving.
  virtual bool Stopped() = 0;
};

struct RunOptions {
  Exchange* exchange = nullptr;   ///< nullptr: this process runs alone; each rank has its own
  SectionBackend* gpu = nullptr;  ///< nullptr: everything on the host
  std::string gpu_name = {};      ///< for statistics
  bool gpu_required = false;      ///< a section over a stored table that the GPU cannot run is an error
  uint64_t gpu_keep_from = 1001;  ///< results of fewer rows, and the sections that read them, go to the host
  bool profile = false;           ///< measure joins one by one, for EXPLAIN ANALYZE
  JoinPartitioning join_partitioning = JoinPartitioning::kAuto;
  Decompression decompression = Decompression::kPartial;
  /// Set by another thread; the run ends with kCancelled within some milliseconds. May be nullptr.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(double)> progress;  ///< fraction done, 0..1, from any thread; may be empty
};

/// Whether every rank runs its portion of the section: of a stored table, or of the rows of a join table, which every
/// rank has. Sections over results that are distributed are shared, too; others run on the master alone.
bool SharedByRanks(const Section& section);
/// Bytes of memory that a row of the join table takes which the section builds, its place in the index included.
uint64_t BuildRowBytes(const Section& section);
/// Whether the section makes rows, all that there are, in any order, and nothing more is done with them.
bool MakesPlainRows(const Section& section);
/// Whether the section's rows, which are co-located, stay on their ranks however few they are: plain rows, and those that
/// meet others there.
bool MustStayDistributed(const Program& program, const ProgramTraits& traits, int32_t section);
/// By section: whether its rows may stay distributed over the ranks that made them, because those that read them need
/// not see them all together.
std::vector<bool> MayStayDistributed(const Program& program, const ProgramTraits& traits);
/// The columns of a section's rows by which they are exchanged, so that one rank can finish the rows with equal values
/// without the others': keys of groups and of folds, PARTITION BY of windows. Empty: only one rank can.
std::vector<int32_t> ExchangeKeys(const Section& section);
/// Whether ranks may keep the rows of the join table that they have made, if these have no room on every rank: the table
/// has no keys, and one section reads it, as its source or by an inner join. There the rows come to all in pieces.
bool MayBeInShares(const Program& program, const ProgramTraits& traits, int join);

/// Takes result rows, batch by batch, in order. An error ends the run and is returned by it.
using RowConsumer = std::function<Status(RowBatch&&)>;

class Executor {
 public:
  /// `threads` workers, at least 1, the calling thread among them.
  explicit Executor(int threads);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs a verified program. Tables are found in `snapshot` by their id. Errors: SQL errors of live rows (overflow,
  /// bad text ...), kCorrupt and kIo from tablets, kCancelled, kDevice.
  Status Run(const Program& program, const Snapshot& snapshot, const RunOptions& options, const RowConsumer& consume,
             RunStatistics* statistics);
  int threads() const;
  /// The workers. They are idle while the calling thread waits for other ranks.
  ThreadPool* pool();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::vm
