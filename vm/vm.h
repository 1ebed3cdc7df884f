// The virtual machine: runs verified programs over tablets. The public header of vm/.
//
// The machine, per tile of rows: a selection mask (one bit a row), accumulator A (64 bits and a NULL bit a row),
// accumulator W (128 bits and a NULL bit a row), mask registers, registers, one cursor a row for each join table that
// was probed, one group ordinal a row. An instruction is decoded once per tile. A tile is applied wholly or not at all.
// opcodes.def lists the instructions, meaning.h says what they do to one row, OPCODES.md is the manual made from both.
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

#include "base/status.h"
#include "tablet/tablet.h"
#include "vm/program.h"
#include "vm/string_pool.h"

namespace tessera::vm {

class ThreadPool;

/// Rows in the machine's form: what a section made. Text is identifiers of the query's pool.
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

/// A join of a section: how many rows there are behind it and its conditions.
struct JoinedRows {
  std::string table;  ///< the label of the section that built the join table
  uint64_t rows = 0;
  double milliseconds = 0;  ///< of the section's time, what passed since the join before it; 0 if not measured
};

/// What one section did. The list of fields, with their meaning, is vm/section_statistics.def. Times are milliseconds.
struct SectionStatistics {
#define STATISTIC(Merging, Type, Name) Type Name{};
#include "vm/section_statistics.def"
#undef STATISTIC
};

/// Where one rank's time went in one statement, and what it moved. Without ranks there is one, rank 0. Times are
/// milliseconds.
struct RankStatistics {
  int rank = 0;
  uint64_t rows_scanned = 0;       ///< of stored tables
  uint64_t rows_out = 0;           ///< master: rows of the result; others: rows and groups sent to another rank
  uint64_t tablets = 0;            ///< of which the rank scanned a part
  uint64_t bytes_read = 0;         ///< encoded bytes of the columns read
  uint64_t bytes_transferred = 0;  ///< to the GPU
  uint64_t bytes_sent = 0, bytes_received = 0;  ///< between ranks, tablets not counted
  uint64_t bytes_scattered = 0;                 ///< tablets: received from the master; master: sent
  double compile = 0;                           ///< master: text to program; others: parsing and verifying it
  double scatter = 0;                           ///< tablets on their way over MPI
  double read = 0;                              ///< opening, checking and encoding tablets, summed over the threads
  double transfer = 0;                          ///< to the GPU: the host's time, which overlaps the kernels
  double execute = 0;                           ///< running sections, reading included
  double gather = 0;                            ///< sending, receiving and waiting for other ranks
  double merge = 0;  ///< joining what came from other ranks, and the master's sections over that
  double print = 0;  ///< master: taking the result's rows
  double total = 0;
};

struct RunStatistics {
  std::vector<SectionStatistics> sections;  ///< across ranks: merged as section_statistics.def says
  RankStatistics mine;
  std::vector<RankStatistics> ranks;  ///< by rank; filled by whoever knows the other ranks
  /// Ranks that scanned nothing of a stored table that had a tablet for each of them; 0 without ranks.
  uint64_t idle_portions = 0;
};

/// Whether a device brings the rows of a section into the order of a join table's places before it looks them up.
enum class JoinPartitioning : uint8_t {
  kAuto,  ///< where the table outgrows the device's cache and that is expected to be faster
  kOn,    ///< wherever it can
  kOff,
};

/// What a section needs besides the program.
struct SectionContext {
  const Program* program = nullptr;
  int section = 0;
  const TableInfo* table = nullptr;  ///< the stored table that it scans; nullptr: it scans a join table
  StringPool* strings = nullptr;
  const std::atomic<bool>* cancel = nullptr;  ///< may be nullptr
  SectionStatistics* statistics = nullptr;
  ThreadPool* pool = nullptr;  ///< for work on the host that can be shared; idle while the section runs
  bool profile = false;        ///< fill statistics->joined
  JoinPartitioning join_partitioning = JoinPartitioning::kAuto;
  /// kRows: takes rows as they come, so that no more are held than fit the device's output at a time (or, of a section
  /// with an order, once they are sorted), and the result has none; empty: all are the result. An error ends the
  /// section and is returned by it.
  std::function<Status(const RowSet&)> take_rows = {};
};

/// One run of a program on a device. Join tables stay there from the section that builds them to the end of the run.
class DeviceRun {
 public:
  virtual ~DeviceRun() = default;
  /// Runs a section with sink kRows or kGroups, over a stored table or over a join table that is on the device.
  ///
  /// kRows: if the section has an order, the rows come in it, equal ones in any, and the device leaves out those behind
  /// the first OFFSET + LIMIT. Without an order they come in any, and where there is a LIMIT, at least OFFSET + LIMIT
  /// of them or all. The caller leaves out the first OFFSET and what is behind LIMIT; it does not sort.
  ///
  /// kGroups: `columns` are the keys, then the aggregates' final values (SUM, MIN, MAX without a value: NULL). Without
  /// keys there is exactly one group. REQUIRES: the join tables that it probes have been built or put. Errors:
  /// kUnsupported, kResource: the device cannot, as it turned out; the host can.
  virtual Result<RowSet> RunSection(const SectionContext& context) = 0;
  /// Tells which section RunSection will be asked for behind the next BuildJoins, so that what does not depend on the
  /// join tables can be done while these are built. (Its statistics are not used.)
  virtual void Expect(const SectionContext& next) { (void)next; }
  /// Runs sections with sink kJoin that do not need each other's tables. Errors: as RunSection.
  virtual Status BuildJoins(const std::vector<SectionContext>& contexts) = 0;
  /// A join table whose rows (keys, none NULL, then payload) were made elsewhere, from a table of `source_rows` rows.
  virtual Status PutJoin(const Program& program, int join, const RowSet& rows, uint64_t source_rows,
                         JoinPartitioning partitioning) = 0;
};

/// A device that runs sections over stored tables and join tables.
class SectionBackend {
 public:
  virtual ~SectionBackend() = default;
  /// OK, or kUnsupported with the reason why this section cannot run here.
  virtual Status CanRun(const Program& program, int section) const = 0;
  /// Starts a run. It must not outlive the device.
  virtual std::unique_ptr<DeviceRun> Begin() = 0;
};

/// How many of the rows beside it a unit of work made. Units of a source are numbered in the order of its rows, the
/// same on all ranks, so that rows of many ranks can be put into the order in which one process makes them.
struct UnitRows {
  uint64_t unit = 0;
  uint64_t rows = 0;
};

/// Rows on their way to another rank.
struct Shipment {
  RowSet rows;
  std::vector<UnitRows> units;  ///< what `rows` consists of, in order; units without rows may be missing
  uint64_t through = 0;         ///< in a stream: all of the sender's units below this number have been shipped
  bool last = true;             ///< in a stream: nothing follows
};

/// What ranks that run one program together tell each other (mpi/PROTOCOL.md). All ranks run the same sections in the
/// same order, so every call that involves all of them is made by all of them, in the same order, whether or not they
/// have failed. Called from the thread of Executor::Run.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;   ///< 0: the master
  virtual int ranks() const = 0;  ///< at least 2
  /// Encoded bytes below which every rank has all tablets of a table.
  virtual uint64_t replicate_below() const = 0;
  /// Bytes of a join's build side that a rank has room for.
  virtual uint64_t broadcast_limit() const = 0;

  /// All ranks. OK if all are OK; else the same error everywhere, naming the lowest rank that failed by itself.
  virtual Status Agree(const Status& mine) = 0;
  /// All ranks: the sum of what each gives.
  virtual Result<uint64_t> Sum(uint64_t mine) = 0;
  /// All ranks: everybody's shipment, by rank. Text is interned into `strings`.
  virtual Result<std::vector<Shipment>> AllGather(Shipment mine, StringPool* strings) = 0;
  /// All ranks: the master's rows become everybody's.
  virtual Result<RowSet> Broadcast(RowSet mine, StringPool* strings) = 0;
  /// One shipment, or the reason why there is none, from one rank to another. Send may return before it has arrived,
  /// but never has more than some messages under way. `wait`: return only when all that was sent has been taken.
  virtual Status Send(int to, Result<Shipment> shipment, const StringPool& strings, bool wait) = 0;
  virtual Result<Shipment> Receive(int from, StringPool* strings) = 0;
  /// Tells the others that what they are doing is in vain: this rank has failed, or has all the rows that it needs.
  virtual void Stop() = 0;
  /// Whether another rank said so. Cheap; called often while a section runs, because it also keeps messages moving.
  virtual bool Stopped() = 0;
};

struct RunOptions {
  Exchange* exchange = nullptr;   ///< nullptr: this process alone; not the same on two ranks
  SectionBackend* gpu = nullptr;  ///< nullptr: everything on the host
  bool gpu_required = false;      ///< a section over a stored table that the GPU cannot run is an error
  bool profile = false;           ///< measure joins one by one, as EXPLAIN ANALYZE asks
  JoinPartitioning join_partitioning = JoinPartitioning::kAuto;
  const std::atomic<bool>* cancel =
      nullptr;  ///< set by another thread; the run ends with kCancelled within some milliseconds
  std::function<void(double)> progress;  ///< fraction done, 0..1, from any thread; may be empty
};

/// Whether every rank runs its portion of the section: of a stored table, or of the rows of a join table, which all of
/// them have. Other sections run on the master alone.
bool SharedByRanks(const Section& section);
/// The join table that a section probes by a grid: its rows are cut into ranges as the source's are into tiles. -1: none.
int GridOf(const Program& program, const Section& section);
/// How ranks share a stored table: whole tablets in turn, tablet i to rank i modulo `ranks`; or, if there are too few
/// of them or the table has fewer encoded bytes than `replicate_below`, every rank has all of it and scans some of its
/// tiles.
bool SharedByTablets(const TableInfo& table, int ranks, uint64_t replicate_below);

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

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::vm
