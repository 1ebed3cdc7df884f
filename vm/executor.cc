// Runs the sections of a program in order: cuts each source into units of work, lets workers take them, joins what they
// made.

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include "base/clock.h"
#include "vm/bind.h"
#include "vm/group_table.h"
#include "vm/join_table.h"
#include "vm/pair_ranges.h"
#include "vm/row_set.h"
#include "vm/thread_pool.h"
#include "vm/tile_machine.h"
#include "vm/top_rows.h"
#include "vm/vm.h"

namespace tessera::vm {
namespace {

/// Rows a worker takes at a time: large enough that taking costs nothing, small enough that workers end together. A
/// multiple of kTileRows.
constexpr uint32_t kUnitRows = 1 << 16;
/// Rows in a batch that the consumer gets.
constexpr size_t kBatchRows = 1 << 14;
/// Rows after which the thread that may looks for messages of other ranks.
constexpr uint32_t kPollRows = 8 * kTileRows;
/// ... and steps of a tile that goes over and over the same rows.
constexpr int kPollSteps = 16;
/// From so many groups on, those of all workers together, threads merge them together.
constexpr size_t kManyMergedGroups = 1 << 16;
/// Rows of the joined table that a unit of a grid goes over: with a tile that makes a million pairs, some milliseconds.
constexpr uint32_t kPartRows = 512;
/// Rows that a unit of a stream may hold before it waits for the consumer.
constexpr size_t kStreamRows = 1 << 18;
/// ... and those of all its units together, before it takes no more of them.
constexpr uint64_t kStreamAllRows = 1 << 21;
/// Most units that run at a time where they are many: what they made is put together in between.
constexpr size_t kWindowUnits = 1 << 14;
/// Entries of dictionaries whose identifiers are made for a device: 35 ns each (on an H100's host).
constexpr uint64_t kMostEntriesOnDevice = 1 << 18;
/// What a row of a join table takes beside its columns: its place in the index and in a chain.
constexpr uint64_t kIndexBytesPerRow = 16;

/// A piece of a source: some rows of one tablet (or of the one intermediate result).
struct Block {
  uint64_t number;  // among all of the source, those of other ranks included
  size_t tablet;
  uint32_t first, rows;
};
/// What a worker takes: a block; of a grid, a block and a part of the joined table's rows.
struct Unit {
  uint64_t number;  // among all units of the section, those of other ranks included
  const Block* block;
  uint32_t part_first, part_end;
};

/// A tablet bound once, by whichever worker comes first.
struct LazyTablet {
  std::once_flag once;
  Status status;
  BoundTablet bound;
};

/// Which units of a stored table are this rank's. Whole tablets in turn, so that each is read once; a table with too
/// few of them for that, or one that every rank has, is shared by units, made small enough to give every rank some.
class ShareOfTable {
 public:
  ShareOfTable(const TableInfo& table, const Exchange* exchange) {
    if (exchange == nullptr) return;
    rank_ = static_cast<uint64_t>(exchange->rank());
    ranks_ = static_cast<uint64_t>(exchange->ranks());
    by_tablet_ = SharedByTablets(table, exchange->ranks(), exchange->replicate_below());
    if (by_tablet_) return;
    const uint64_t tiles = (table.rows + kTileRows - 1) / kTileRows;
    const uint64_t tiles_each = std::clamp<uint64_t>(tiles / ranks_, 1, kUnitRows / kTileRows);
    unit_rows_ = static_cast<uint32_t>(tiles_each) * kTileRows;
  }
  /// Rows that every rank has.
  explicit ShareOfTable(const Exchange* exchange) : by_tablet_(exchange == nullptr) {
    if (exchange == nullptr) return;
    rank_ = static_cast<uint64_t>(exchange->rank());
    ranks_ = static_cast<uint64_t>(exchange->ranks());
  }
  bool by_tablet() const { return by_tablet_; }
  uint32_t unit_rows() const { return unit_rows_; }
  bool HasTablet(size_t tablet) const { return !by_tablet_ || tablet % ranks_ == rank_; }
  /// Not by tablet: the first unit of this rank, and from each to the next.
  uint64_t first_unit() const { return by_tablet_ ? 0 : rank_; }
  uint64_t unit_step() const { return by_tablet_ ? 1 : ranks_; }

 private:
  uint64_t rank_ = 0, ranks_ = 1;
  bool by_tablet_ = true;
  uint32_t unit_rows_ = kUnitRows;
};

/// What the values of a grid's blocks and parts tell of its units.
struct GridRanges {
  RangeProgram program;                        // no steps: nothing
  std::vector<std::vector<KnownRange>> outer;  // by block, then by column of the source
  std::vector<std::vector<KnownRange>> inner;  // by part, then by column of the join table
};

/// What one section has to do on this rank, and how far it is.
struct Scan {
  int number = 0;  // of the section
  const TableInfo* table = nullptr;
  std::vector<Block> blocks;
  int grid = -1;  // the join table whose rows are cut into parts, too
  uint32_t grid_rows = 0;
  uint64_t parts = 1;
  GridRanges ranges;
  uint64_t first_unit = 0, unit_step = 1;  // of blocks.size() * parts, block by block
  std::unique_ptr<SectionBinder> binder;   // of stored tables
  std::vector<LazyTablet> tablets;
  std::vector<std::unique_ptr<TileMachine>> machines;  // one per worker, or nullptr
  std::vector<std::unique_ptr<GroupTable>> groups;     // kGroups: one per worker
  std::atomic<uint64_t> rows_in{0}, rows_out{0};
  std::atomic<uint64_t> pairs{0}, pruned_pairs{0};
  std::unique_ptr<TileMachine::JoinCounter[]> joined;  // by number of the join table
  std::atomic<uint64_t> cycles{0};                     // of all tiles, if joins are measured
  double milliseconds = 0;                             // that units ran
  std::unique_ptr<TopRows> top;                        // of ORDER BY and LIMIT
  std::atomic<uint64_t> read_nanoseconds{0};

  /// Units are many where tables are multiplied, so they are not listed but counted.
  size_t units() const {
    const uint64_t all = blocks.size() * parts;
    return all <= first_unit ? 0 : static_cast<size_t>((all - first_unit - 1) / unit_step + 1);
  }
  /// REQUIRES: k < units().
  Unit At(size_t k) const {
    const uint64_t at = first_unit + k * unit_step, part = at % parts;
    const Block& block = blocks[at / parts];
    const uint64_t first = part * kPartRows;
    return {block.number * parts + part, &block, static_cast<uint32_t>(first),
            static_cast<uint32_t>(std::min<uint64_t>(first + kPartRows, grid_rows))};
  }
  /// How many pairs of the unit's rows can reach the sink.
  Share Reaching(const Unit& unit) const {
    const std::vector<RangeStep>& steps = ranges.program.steps;
    if (steps.empty()) return Share::kSome;
    return TryRanges(steps.data(), static_cast<int>(steps.size()),
                     ranges.outer[static_cast<size_t>(unit.block - blocks.data())].data(),
                     ranges.inner[unit.part_first / kPartRows].data());
  }
  /// Whether a unit of the block is among them.
  bool Has(size_t block) const {
    const uint64_t begin = block * parts, end = begin + parts;
    if (begin <= first_unit) return first_unit < end;
    return first_unit + (begin - first_unit + unit_step - 1) / unit_step * unit_step < end;
  }
};

/// Where the rows of one unit go, and how far it is.
struct UnitOutput {
  RowSet rows;
  std::unique_ptr<TileMachine> suspended;  // in the midst of a tile
  uint32_t at = 0;                         // first row of that tile, from the first of the block
  bool done = false;
};

/// The rows of an earlier section, as a tablet.
BoundTablet BindRows(const Section& s, const RowSet& rows) {
  BoundTablet out;
  out.rows = static_cast<uint32_t>(rows.rows);
  for (const Slot& slot : s.slots) {
    const RowColumn& c = rows.columns[static_cast<size_t>(slot.column)];
    BoundSlot b;
    b.decode = Decode::kRaw;
    b.width = 8;
    b.wide = slot.type.storage() == StorageClass::kWide;
    b.codes = reinterpret_cast<const uint8_t*>(c.low.data());
    if (b.wide) b.map = c.high.data();
    if (!c.null.empty()) b.null_bytes = c.null.data();
    out.slots.push_back(b);
  }
  return out;
}

/// Hands the rows that a section's OFFSET and LIMIT leave to the consumer, in batches.
class RowStream {
 public:
  RowStream(const Program& program, const Section& s, const StringPool& strings, const std::atomic<bool>* cancel,
            const RowConsumer& consume)
      : program_(program),
        section_(s),
        strings_(strings),
        cancel_(cancel),
        consume_(consume),
        skip_(static_cast<uint64_t>(s.offset)),
        left_(s.limit < 0 ? UINT64_MAX : static_cast<uint64_t>(s.limit)),
        batch_(MakeRowSet(s.columns)) {}

  /// The next rows of the section: [first, first + count) of `rows`.
  Status Take(const RowSet& rows, size_t first, uint64_t count) {
    const uint64_t skipped = std::min(skip_, count), taken = std::min(count - skipped, left_);
    skip_ -= skipped;
    left_ -= taken;
    streamed_ += taken;
    if (taken == 0) return Status::Ok();
    if (taken >= kBatchRows) {  // as they lie
      TESSERA_TRY(Flush());
      return Forward(rows, first + skipped, taken);
    }
    AppendRange(&batch_, rows, first + skipped, taken);
    return batch_.rows >= kBatchRows ? Flush() : Status::Ok();
  }
  Status Flush() {
    TESSERA_TRY(Forward(batch_, 0, batch_.rows));
    batch_ = MakeRowSet(section_.columns);
    return Status::Ok();
  }
  bool full() const { return left_ == 0; }
  /// Rows that have yet to come; UINT64_MAX: all.
  uint64_t wanted() const { return left_ > UINT64_MAX - skip_ ? UINT64_MAX : left_ + skip_; }
  uint64_t streamed() const { return streamed_; }
  /// What the consumer took.
  double milliseconds() const { return milliseconds_; }

 private:
  Status Forward(const RowSet& rows, size_t first, size_t count) {
    const auto start = Clock::now();
    for (size_t at = 0; at < count; at += kBatchRows) {
      if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) return Cancelled();
      TESSERA_TRY(consume_(DecodeRows(rows, program_.columns, first + at, std::min(kBatchRows, count - at), strings_)));
    }
    milliseconds_ += MillisecondsSince(start);
    return Status::Ok();
  }

  const Program& program_;
  const Section& section_;
  const StringPool& strings_;
  const std::atomic<bool>* cancel_;
  const RowConsumer& consume_;
  uint64_t skip_, left_;
  uint64_t streamed_ = 0;
  double milliseconds_ = 0;
  RowSet batch_;
};

class Run {
 public:
  Run(const Program& program, const Snapshot& snapshot, const RunOptions& options, ThreadPool* pool,
      RunStatistics* statistics)
      : program_(program), snapshot_(snapshot), options_(options), pool_(pool), statistics_(statistics) {}

  Status Sections(const RowConsumer& consume) {
    const size_t n = program_.sections.size();
    results_.resize(n);
    readers_.resize(n);
    for (const Section& s : program_.sections) {
      if (s.source_kind == Section::Source::kSection) ++readers_[static_cast<size_t>(s.source)];
    }
    joins_.resize(program_.joins.size());
    key_ranges_.resize(program_.joins.size());
    on_device_.resize(n);
    built_.resize(n);
    for (const TableRef& ref : program_.tables) {
      auto same = [&](const std::shared_ptr<const TableInfo>& t) { return t->id == ref.id; };
      auto found = std::find_if(snapshot_.tables.begin(), snapshot_.tables.end(), same);
      if (found == snapshot_.tables.end()) return SqlError("table \"" + ref.name + "\" does not exist");
      tables_.push_back(found->get());
    }
    // With ranks an error ends the program where all of them have learnt of it, so that none waits for one that has
    // left.
    Status status = ChooseDevices();
    for (size_t i = 0; i < n; ++i) {
      const Section& s = program_.sections[i];
      if (s.source_kind == Section::Source::kDictionary || built_[i]) continue;
      if (Collective(s)) {
        status = options_.exchange->Agree(status);
        if (!status.ok()) return status;
      }
      if (status.ok()) status = RunSection(static_cast<int>(i), consume);
      if (status.ok()) continue;
      if (options_.exchange == nullptr) return status;
      options_.exchange->Stop();
    }
    if (options_.exchange != nullptr) TESSERA_TRY(options_.exchange->Agree(status));
    if (statistics_ != nullptr) statistics_->mine = mine_;
    if (!IsMaster()) return Status::Ok();
    Section unbounded;  // the bounds have been applied
    unbounded.columns = program_.sections.back().columns;
    RowStream stream(program_, unbounded, strings_, options_.cancel, consume);
    TESSERA_TRY(stream.Take(results_.back(), 0, results_.back().rows));
    return stream.Flush();
  }

 private:
  bool IsCancelled() const { return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed); }

  Status RunSection(int number, const RowConsumer& consume) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    const auto start = Clock::now();
    SectionStatistics stats;
    StartStatistics(number, &stats);
    const bool gpu = on_device_[static_cast<size_t>(number)];
    if (gpu && s.sink == Section::Sink::kJoin) return BuildOnDevice(number);
    Result<RowSet> rows = RowSet{};
    double consumed = 0;
    const bool last = static_cast<size_t>(number) + 1 == program_.sections.size();
    const bool streams = last && options_.exchange == nullptr && (gpu || s.order.empty());
    if (streams) {
      if (gpu) {
        rows = StreamFromGpu(number, consume, &stats, &consumed);
      } else {
        TESSERA_TRY(StreamHere(number, consume, &stats, &consumed));
      }
    } else if (Shared(s)) {
      rows = RunShared(number, gpu, Status::Ok(), consume, &stats);
    } else if (IsMaster()) {
      rows = RunHere(number, gpu, &stats);
    }
    if (Collective(s) && !Shared(s)) {
      TESSERA_TRY(options_.exchange->Agree(rows.status()));
      rows = options_.exchange->Broadcast(std::move(*rows), &strings_);
    }
    if (!rows.ok()) return rows.status();
    if (s.sink == Section::Sink::kJoin) {
      if (!Shared(s)) stats.rows_out = rows->rows;
      TESSERA_TRY(OrderJoin(s, &*rows));
      if (UsedOnDevice(s.join)) {
        const uint64_t source_rows =
            s.source_kind == Section::Source::kTable ? tables_[static_cast<size_t>(s.source)]->rows : rows->rows;
        Status put = device_run_->PutJoin(program_, s.join, *rows, source_rows, options_.join_partitioning);
        if (!put.ok()) TESSERA_TRY(GiveDeviceUp(put));
      }
      TESSERA_TRY(IndexJoin(s, std::move(*rows)));
    } else {
      if (!Shared(s) && !streams) stats.rows_out = rows->rows;
      if (s.append_to >= 0 && IsMaster()) {
        RowSet first = std::move(results_[static_cast<size_t>(s.append_to)]);
        AppendRows(&first, std::move(*rows));
        *rows = std::move(first);
      }
      results_[static_cast<size_t>(number)] = std::move(*rows);
    }
    if (s.source_kind == Section::Source::kSection && --readers_[static_cast<size_t>(s.source)] == 0) {
      results_[static_cast<size_t>(s.source)] = RowSet{};  // read for the last time
    }
    stats.milliseconds = MillisecondsSince(start) - consumed;
    if (!Shared(s) && IsMaster()) (options_.exchange == nullptr ? mine_.execute : mine_.merge) += stats.milliseconds;
    if (Shared(s) || IsMaster()) Record(std::move(stats));
    return Status::Ok();
  }

  // ---- One process --------------------------------------------------------------------------------------------------

  /// Which sections run on the GPU. All ranks come to the same answer. Errors: a section does not, and must.
  Status ChooseDevices() {
    TESSERA_TRY(PlaceSections());
    for (size_t i = 0; i < program_.sections.size(); ++i) {
      if (on_device_[i] || !ProbesBy(program_.sections[i], JoinStrategy::kDp)) continue;
      if (options_.gpu == nullptr) return RefuseStrategy("dp", "it needs a GPU");
      const Status can = options_.gpu->CanRun(program_, static_cast<int>(i));
      return RefuseStrategy("dp", can.ok() ? "it does not run across ranks" : can.message());
    }
    return Status::Ok();
  }

  static Status RefuseStrategy(const char* strategy, const std::string& reason) {
    return Unsupported(std::string("join strategy \"") + strategy + "\" cannot run this query: " + reason, -1,
                       "Use SET join_strategy = auto.");
  }
  bool ProbesBy(const Section& s, JoinStrategy strategy) const {
    return std::any_of(s.code.begin(), s.code.end(),
                       [&](const Instruction& in) { return Probes(in) && program_.joins[in.p1].strategy == strategy; });
  }

  Status PlaceSections() {
    bool everywhere = options_.gpu != nullptr;
    if (options_.exchange != nullptr) {
      TESSERA_ASSIGN(const uint64_t devices, options_.exchange->Sum(everywhere ? 1 : 0));
      everywhere = devices == static_cast<uint64_t>(options_.exchange->ranks());
    }
    if (options_.gpu == nullptr) return Status::Ok();
    device_run_ = options_.gpu->Begin();
    // Backwards: a join table is built where it is probed.
    for (size_t i = program_.sections.size(); i-- > 0;) {
      const Section& s = program_.sections[i];
      if (s.source_kind != Section::Source::kTable && s.source_kind != Section::Source::kJoin) continue;
      Status can = ProbesBy(s, JoinStrategy::kLoop) ? RefuseStrategy("loop", "it runs on the host only")
                                                    : options_.gpu->CanRun(program_, static_cast<int>(i));
      if (s.source_kind == Section::Source::kJoin) {
        // (Ranks share such a section on the host.)
        on_device_[i] = can.ok() && options_.exchange == nullptr && s.sink != Section::Sink::kJoin;
        if (!can.ok() && options_.gpu_required) return can;
        continue;
      }
      const ShareOfTable share(*tables_[static_cast<size_t>(s.source)], options_.exchange);
      if (s.sink == Section::Sink::kJoin) {
        // Where every rank has the table, each builds all of the join table by itself: that takes a GPU less time than
        // exchanging the rows. Otherwise the ranks exchange them, and the device gets them then.
        const bool alone = options_.exchange == nullptr || (everywhere && !share.by_tablet());
        const bool cheap = options_.gpu_required || !ReadsLargeDictionaries(s);
        on_device_[i] = can.ok() && alone && cheap && UsedOnDevice(s.join) && !UsedOnHost(s.join);
      } else {
        // A GPU takes whole tablets. All ranks must share in one way, and perhaps not all of them have a GPU.
        if ((!share.by_tablet() || ReadsLargeDictionaries(s)) && !options_.gpu_required) continue;
        on_device_[i] = can.ok();
        if (!can.ok() && options_.gpu_required) return can;
      }
    }
    return Status::Ok();
  }

  /// Whether values of TEXT columns with very many different entries are read. A device needs the identifiers of all
  /// entries before it starts; the host asks for those of the rows that are left.
  bool ReadsLargeDictionaries(const Section& s) const {
    const std::vector<ColumnStatistics>& columns = tables_[static_cast<size_t>(s.source)]->statistics;
    const std::vector<bool> values = SlotsReadAsValues(s);
    uint64_t entries = 0;
    for (size_t i = 0; i < s.slots.size(); ++i) {
      if (values[i] && s.slots[i].type.id == TypeId::kText && s.slots[i].map < 0)
        entries += columns[static_cast<size_t>(s.slots[i].column)].distinct;
    }
    return entries > kMostEntriesOnDevice;
  }

  /// The sections that probe a join table, or scan it, and of which `f` is true: is there one?
  template <class F>
  bool AnyUser(int join, F f) const {
    for (size_t i = 0; i < program_.sections.size(); ++i) {
      const Section& s = program_.sections[i];
      if (s.source_kind == Section::Source::kJoin && s.source == join && f(i)) return true;
      for (const Instruction& in : s.code) {
        if (Probes(in) && in.p1 == join && f(i)) return true;
      }
    }
    return false;
  }
  bool UsedOnDevice(int join) const {
    return AnyUser(join, [&](size_t i) { return on_device_[i]; });
  }
  bool UsedOnHost(int join) const {
    return AnyUser(join, [&](size_t i) { return !on_device_[i]; });
  }

  /// The device cannot do what was asked, for the reason given. The host does the rest of the program, unless the user
  /// asked for the device.
  Status GiveDeviceUp(const Status& why) {
    const bool host_can = why.code() == ErrorCode::kUnsupported || why.code() == ErrorCode::kResource;
    if (!host_can || options_.gpu_required || options_.exchange != nullptr) return why;
    for (const Section& s : program_.sections) {
      if (ProbesBy(s, JoinStrategy::kDp)) return RefuseStrategy("dp", why.message());
    }
    std::fill(on_device_.begin(), on_device_.end(), false);
    return Status::Ok();
  }

  /// Sorts a join table's rows as the program asks for. Errors: kResource, more rows than an index takes.
  Status OrderJoin(const Section& s, RowSet* rows) const {
    TESSERA_TRY(JoinIndex::CheckRows(*rows));
    const int32_t order = program_.joins[static_cast<size_t>(s.join)].order;
    return order < 0 ? Status::Ok() : SortRows(order, strings_, pool_, rows);
  }

  /// An index over a join table's rows, for probers on the host. One process makes it even if there are none, in case
  /// the device gives up; ranks do not go on then.
  Status IndexJoin(const Section& s, RowSet rows) {
    if (!UsedOnHost(s.join) && options_.exchange != nullptr) return Status::Ok();
    auto join = std::make_unique<JoinIndex>();
    TESSERA_TRY(join->Finish(std::move(rows), s.keys));
    key_ranges_[static_cast<size_t>(s.join)] = join->key_range();
    joins_[static_cast<size_t>(s.join)] = std::move(join);
    return Status::Ok();
  }

  /// Join tables that a section on the host needs and that were built on the device, which then gave up.
  Status MakeHostJoins(int number) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    std::vector<int> needed;
    if (s.source_kind == Section::Source::kJoin) needed.push_back(s.source);
    for (const Instruction& in : s.code) {
      if (Probes(in)) needed.push_back(in.p1);
    }
    for (const int j : needed) {
      const JoinTable& join = program_.joins[static_cast<size_t>(j)];
      if (joins_[static_cast<size_t>(j)] != nullptr || !built_[static_cast<size_t>(join.section)]) continue;
      SectionStatistics again;
      TESSERA_ASSIGN(RowSet rows, RunHere(join.section, false, &again));
      TESSERA_TRY(OrderJoin(program_.sections[static_cast<size_t>(join.section)], &rows));
      TESSERA_TRY(IndexJoin(program_.sections[static_cast<size_t>(join.section)], std::move(rows)));
    }
    return Status::Ok();
  }

  /// Builds the join table of a section on the device, and with it those of the sections behind it that are built
  /// there, too, and need none of these: the fewer steps, the less often the host waits.
  Status BuildOnDevice(int first) {
    std::vector<int> numbers;
    size_t i = static_cast<size_t>(first);
    for (; i < program_.sections.size(); ++i) {
      const Section& s = program_.sections[i];
      if (s.source_kind == Section::Source::kDictionary) continue;
      if (s.sink != Section::Sink::kJoin || !on_device_[i]) break;
      bool independent = true;
      for (int earlier : numbers) {
        const int join = program_.sections[static_cast<size_t>(earlier)].join;
        for (const Instruction& in : s.code) independent &= !Probes(in) || in.p1 != join;
        for (const Predicate& p : s.predicates) independent &= p.join != join;
      }
      if (!independent) break;
      numbers.push_back(static_cast<int>(i));
    }
    const auto start = Clock::now();
    std::vector<SectionStatistics> stats(numbers.size());
    std::vector<SectionContext> contexts;
    for (size_t k = 0; k < numbers.size(); ++k) {
      const Section& s = program_.sections[static_cast<size_t>(numbers[k])];
      StartStatistics(numbers[k], &stats[k]);
      contexts.push_back(DeviceContext(numbers[k], SourceTable(s), &stats[k]));
    }
    SectionStatistics unused;
    if (i < program_.sections.size() && on_device_[i] && program_.sections[i].sink != Section::Sink::kJoin &&
        SourceTable(program_.sections[i]) != nullptr && options_.exchange == nullptr) {
      device_run_->Expect(DeviceContext(static_cast<int>(i), SourceTable(program_.sections[i]), &unused));
    }
    Status status = device_run_->BuildJoins(contexts);
    if (!status.ok()) {
      TESSERA_TRY(GiveDeviceUp(status));
      return RunSection(first, {});
    }
    const double milliseconds = MillisecondsSince(start);
    double kernels = 0;
    for (const SectionStatistics& s : stats) kernels += s.kernel_milliseconds;
    mine_.execute += milliseconds;
    for (size_t k = 0; k < numbers.size(); ++k) {
      stats[k].milliseconds = kernels > 0 ? milliseconds * stats[k].kernel_milliseconds / kernels
                                          : milliseconds / static_cast<double>(numbers.size());
      built_[static_cast<size_t>(numbers[k])] = true;
      Record(std::move(stats[k]));
    }
    return Status::Ok();
  }

  /// What the section makes of all of its source.
  Result<RowSet> RunHere(int number, bool gpu, SectionStatistics* stats) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    if (gpu) {
      Result<RowSet> rows = RunOnGpu(number, SourceTable(s), stats);
      if (rows.ok()) {
        if (s.sink == Section::Sink::kRows) ApplyBounds(s, &*rows);
        return rows;
      }
      TESSERA_TRY(GiveDeviceUp(rows.status()));
      StartStatistics(number, stats);
    }
    TESSERA_TRY(MakeHostJoins(number));
    Scan scan;
    TESSERA_TRY(Prepare(number, &scan));
    RowSet all = MakeRowSet(s.columns);
    Status status = RunAll(number, &scan, &all);
    AddScan(scan, stats);
    if (!status.ok()) return status;
    if (s.sink == Section::Sink::kRows) TESSERA_TRY(OrderAndLimit(s, strings_, pool_, &all));
    if (s.sink != Section::Sink::kGroups) return all;
    return MergedGroups(&scan);
  }

  /// Runs all units. kGroups: into scan->groups; otherwise what they make is appended to `rows`, in their order.
  Status RunAll(int number, Scan* scan, RowSet* rows) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    if (s.sink == Section::Sink::kGroups) return RunUnits(number, scan, 0, scan->units(), UINT64_MAX, nullptr);
    size_t begin = 0;
    do {
      const size_t end = std::min(scan->units(), begin + kWindowUnits);
      const uint64_t wanted = WantedRows(s, rows->rows);
      std::deque<UnitOutput> units(end - begin);
      TESSERA_TRY(RunUnits(number, scan, begin, end, wanted, &units));
      for (UnitOutput& u : units) {
        if (u.rows.rows > 0) AppendRows(rows, std::move(u.rows));
      }
      begin = end;
    } while (begin < scan->units() && WantedRows(s, rows->rows) > 0);
    return Status::Ok();
  }

  /// The last section of one process: its rows go to `consume` in order, as they come. Some units run at a time, and
  /// one that has made very many rows waits until they have been taken.
  Status StreamHere(int number, const RowConsumer& consume, SectionStatistics* stats, double* consumed) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    TESSERA_TRY(MakeHostJoins(number));
    Scan scan;
    TESSERA_TRY(Prepare(number, &scan));
    RowStream stream(program_, s, strings_, options_.cancel, consume);
    Status status;
    std::deque<UnitOutput> units;  // from unit `begin` on
    size_t begin = 0, window = StreamWindow();
    while (status.ok() && begin < scan.units() && !stream.full()) {
      units.resize(std::max(units.size(), std::min(window, scan.units() - begin)));
      status = RunUnits(number, &scan, begin, begin + units.size(), stream.wanted(), &units, kStreamRows);
      const uint64_t before = stream.streamed();
      while (status.ok() && !units.empty()) {
        UnitOutput& first = units.front();
        status = stream.Take(first.rows, 0, first.rows.rows);
        first.rows = MakeRowSet(s.columns);
        if (!first.done) break;
        units.pop_front();
        ++begin;
      }
      if (status.ok()) status = stream.Flush();
      // Where few rows come, threads should not meet after every few units.
      if (units.empty() && stream.streamed() - before < 8 * kBatchRows) window = std::min(4 * window, kWindowUnits);
      if (stream.streamed() - before > 64 * kBatchRows) window = std::max(window / 2, StreamWindow());
    }
    AddScan(scan, stats);
    stats->rows_out = stream.streamed();
    *consumed = stream.milliseconds();
    return status;
  }

  /// The same on the device, whose rows come in its order or in that of ORDER BY. Returns what was not streamed: where
  /// the device gave up, all rows of a section with an order.
  Result<RowSet> StreamFromGpu(int number, const RowConsumer& consume, SectionStatistics* stats, double* consumed) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    RowStream stream(program_, s, strings_, options_.cancel, consume);
    SectionContext context = DeviceContext(number, SourceTable(s), stats);
    context.take_rows = [&](const RowSet& rows) { return stream.Take(rows, 0, rows.rows); };
    const Status status = device_run_->RunSection(context).status();
    if (!status.ok() && stream.streamed() == 0) {
      TESSERA_TRY(GiveDeviceUp(status));
      StartStatistics(number, stats);
      if (s.order.empty()) {
        TESSERA_TRY(StreamHere(number, consume, stats, consumed));
        return RowSet{};
      }
      TESSERA_ASSIGN(RowSet rows, RunHere(number, false, stats));
      stats->rows_out = rows.rows;
      return rows;
    }
    TESSERA_TRY(status);
    TESSERA_TRY(stream.Flush());
    stats->rows_out = stream.streamed();
    *consumed = stream.milliseconds();
    return RowSet{};
  }

  void StartStatistics(int number, SectionStatistics* stats) const {
    *stats = SectionStatistics();
    stats->section = number;
    stats->label = program_.sections[static_cast<size_t>(number)].label;
  }
  /// The stored table that a section scans, or nullptr.
  const TableInfo* SourceTable(const Section& s) const {
    return s.source_kind == Section::Source::kTable ? tables_[static_cast<size_t>(s.source)] : nullptr;
  }

  Result<RowSet> RunOnGpu(int number, const TableInfo* table, SectionStatistics* stats) {
    return device_run_->RunSection(DeviceContext(number, table, stats));
  }
  SectionContext DeviceContext(int number, const TableInfo* table, SectionStatistics* stats) {
    stats->on_gpu = true;
    SectionContext context;
    context.program = &program_;
    context.section = number;
    context.table = table;
    context.strings = &strings_;
    context.cancel = options_.cancel;
    context.statistics = stats;
    context.pool = pool_;
    context.profile = options_.profile;
    context.join_partitioning = options_.join_partitioning;
    return context;
  }

  /// Whether each row meets all rows of a join table: then a tile is work enough for a unit.
  static bool MakesProduct(const Section& s) {
    return std::any_of(s.code.begin(), s.code.end(), [](const Instruction& in) { return Probes(in) && in.p3 == 0; });
  }

  /// Cuts the source into units and keeps those of this rank.
  Status Prepare(int number, Scan* scan) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    scan->number = number;
    scan->joined = std::make_unique<TileMachine::JoinCounter[]>(program_.joins.size());
    scan->top = std::make_unique<TopRows>(s);
    scan->grid = GridOf(program_, s);
    if (scan->grid >= 0) {
      scan->grid_rows = static_cast<uint32_t>(joins_[static_cast<size_t>(scan->grid)]->rows().rows);
      scan->parts = std::max<uint64_t>(1, (uint64_t{scan->grid_rows} + kPartRows - 1) / kPartRows);
    }
    const auto cut = [&](const ShareOfTable& share, size_t tablet, uint32_t rows, uint64_t* number_of_block) {
      const uint32_t block_rows = MakesProduct(s) ? kTileRows : share.unit_rows();
      for (uint32_t first = 0; first < rows; ++*number_of_block) {
        const uint32_t count = std::min(block_rows, rows - first);
        if (share.HasTablet(tablet)) scan->blocks.push_back({*number_of_block, tablet, first, count});
        first += count;
      }
      scan->first_unit = share.first_unit();
      scan->unit_step = share.unit_step();
    };
    uint64_t blocks = 0;
    if (s.source_kind == Section::Source::kTable) {
      scan->table = tables_[static_cast<size_t>(s.source)];
      scan->binder = std::make_unique<SectionBinder>(program_, number, &strings_, key_ranges_, true);
      scan->tablets = std::vector<LazyTablet>(scan->table->tablets.size());
      const ShareOfTable share(*scan->table, options_.exchange);
      for (size_t t = 0; t < scan->table->tablets.size(); ++t) cut(share, t, scan->table->tablets[t]->rows(), &blocks);
      return Status::Ok();
    }
    BoundTablet bound;
    bound.rows = 1;
    if (s.source_kind == Section::Source::kSection || s.source_kind == Section::Source::kJoin) {
      const RowSet& from = s.source_kind == Section::Source::kJoin ? joins_[static_cast<size_t>(s.source)]->rows()
                                                                   : results_[static_cast<size_t>(s.source)];
      if (from.rows > UINT32_MAX - kUnitRows)
        return {ErrorCode::kResource, "an intermediate result has more than 2^32 rows"};
      bound = BindRows(s, from);
    }
    scan->tablets = std::vector<LazyTablet>(1);
    std::call_once(scan->tablets[0].once, [] {});
    scan->tablets[0].bound = std::move(bound);
    // Every rank has the rows of a join table; the master alone has those of a section.
    cut(ShareOfTable(Shared(s) ? options_.exchange : nullptr), 0, scan->tablets[0].bound.rows, &blocks);
    FindRanges(number, scan);
    return Status::Ok();
  }

  /// The ranges of a grid's blocks and parts, where both sides are sorted: otherwise they hardly tell anything.
  void FindRanges(int number, Scan* scan) const {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    if (scan->grid < 0 || s.source_kind != Section::Source::kJoin ||
        program_.joins[static_cast<size_t>(scan->grid)].order < 0)
      return;
    GridRanges& ranges = scan->ranges;
    ranges.program = MakeRangeProgram(program_, number, scan->grid);
    if (ranges.program.steps.empty()) return;
    const auto find = [&](RangeSource source, const RowSet& rows, size_t first, size_t count) {
      std::vector<KnownRange> out(rows.columns.size());
      for (const RangeStep& step : ranges.program.steps) {
        if (step.source == source && out[step.index].unknown)
          out[step.index] = RangeOfColumn(rows.columns[step.index], first, count);
      }
      return out;
    };
    const RowSet& outer = joins_[static_cast<size_t>(s.source)]->rows();
    for (const Block& b : scan->blocks) ranges.outer.push_back(find(RangeSource::kOuter, outer, b.first, b.rows));
    const RowSet& inner = joins_[static_cast<size_t>(scan->grid)]->rows();
    for (uint64_t part = 0; part < scan->parts; ++part) {
      const size_t first = part * kPartRows;
      ranges.inner.push_back(find(RangeSource::kInner, inner, first, std::min<size_t>(kPartRows, inner.rows - first)));
    }
  }

  /// Runs units [begin, end) of the scan, until the first of them have made `wanted` rows. kGroups: into scan->groups;
  /// otherwise into `outputs`, one entry per unit. Those that are done, or are suspended and still have rows, stay as
  /// they are; one that has made `suspend_at` rows is suspended, and the last of them may not run if the first have
  /// made very many.
  Status RunUnits(int number, Scan* scan, size_t begin, size_t end, uint64_t wanted, std::deque<UnitOutput>* outputs,
                  size_t suspend_at = SIZE_MAX) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    const TableInfo* table = scan->table;
    const size_t count = end - begin;
    const bool grouped = s.sink == Section::Sink::kGroups;
    const int workers = static_cast<int>(std::clamp<size_t>(count, 1, static_cast<size_t>(pool_->threads())));
    // Enough rows for a LIMIT without ORDER BY: counted over the units that are done without a gap.
    const bool may_stop = wanted != UINT64_MAX;
    if (scan->machines.size() < static_cast<size_t>(workers)) scan->machines.resize(static_cast<size_t>(workers));
    if (grouped && scan->groups.size() < static_cast<size_t>(workers))
      scan->groups.resize(static_cast<size_t>(workers));
    std::vector<uint8_t> has_run(may_stop ? count : 0);
    size_t prefix = 0;
    uint64_t prefix_rows = 0;

    const bool streams = suspend_at != SIZE_MAX;
    uint64_t held = 0;  // by the units, before they run
    for (size_t u = 0; streams && u < count; ++u) held += (*outputs)[u].rows.rows;
    const uint64_t made_before = scan->rows_out;
    std::atomic<size_t> next{begin}, done{0};
    std::atomic<bool> stop{false}, stopped_elsewhere{false};
    std::mutex mutex;
    Status error;
    size_t error_unit = SIZE_MAX;
    auto fail = [&](size_t unit, Status status) {
      std::lock_guard<std::mutex> lock(mutex);
      if (unit < error_unit) {  // the earliest unit's error is the one told
        error_unit = unit;
        error = std::move(status);
      }
      stop = true;
    };
    const auto work = [&](int worker) {
      std::unique_ptr<TileMachine>& machine = scan->machines[static_cast<size_t>(worker)];
      if (grouped && scan->groups[static_cast<size_t>(worker)] == nullptr) {
        scan->groups[static_cast<size_t>(worker)] = std::make_unique<GroupTable>(s, &strings_);
      }
      while (!stop.load(std::memory_order_relaxed)) {
        // The first unit runs in any case: it is what the consumer waits for.
        const bool full = streams && held + scan->rows_out - made_before >= kStreamAllRows;
        if (full && next.load() > begin) break;
        const size_t taken = next.fetch_add(1);
        if (taken >= end) break;
        const size_t u = !grouped && scan->top->Backwards() ? begin + (end - 1 - taken) : taken;
        const Unit unit = scan->At(u);
        const Block& block = *unit.block;
        UnitOutput* const output = grouped ? nullptr : &(*outputs)[u - begin];
        const auto finish = [&] {
          if (!may_stop) return;
          std::lock_guard<std::mutex> lock(mutex);
          has_run[u - begin] = 1;
          for (; prefix < count && has_run[prefix] != 0; ++prefix) prefix_rows += (*outputs)[prefix].rows.rows;
          if (prefix_rows >= wanted) stop = true;
        };
        if (output != nullptr && (output->done || (output->suspended != nullptr && output->rows.rows > 0))) {
          finish();
          continue;
        }
        LazyTablet& tablet = scan->tablets[block.tablet];
        if (table != nullptr) {
          std::call_once(tablet.once, [&] {
            const auto start = Clock::now();
            Result<BoundTablet> bound = scan->binder->Bind(*table->tablets[block.tablet]);
            if (bound.ok()) {
              tablet.bound = std::move(*bound);
            } else {
              tablet.status = bound.status();
            }
            scan->read_nanoseconds += static_cast<uint64_t>((Clock::now() - start) / std::chrono::nanoseconds(1));
          });
          if (!tablet.status.ok()) return fail(u, tablet.status);
        }
        TileSinks sinks;
        if (grouped) {
          sinks.groups = scan->groups[static_cast<size_t>(worker)].get();
        } else {
          sinks.rows = &output->rows;
        }
        const size_t rows_before = grouped ? 0 : output->rows.rows;
        const uint64_t pairs = scan->grid < 0 ? 0 : uint64_t{block.rows} * (unit.part_end - unit.part_first);
        const Share reaching = tablet.bound.skip ? Share::kNone : scan->Reaching(unit);
        if (!tablet.bound.skip && table != nullptr && !grouped && scan->top->LeavesOut(tablet.bound)) {
          // Nothing of it is wanted.
        } else if (!tablet.bound.skip && reaching == Share::kNone) {
          scan->pruned_pairs += pairs;
          if (unit.part_first == 0) scan->rows_in += block.rows;
        } else if (!tablet.bound.skip) {
          if (!grouped && output->suspended != nullptr) {
            machine = std::move(output->suspended);
          } else {
            if (!grouped) output->rows = MakeRowSet(s.columns);
            if (machine == nullptr) machine = NewMachine(number, *scan, suspend_at);
            if (scan->grid >= 0) {
              const int all_from = reaching == Share::kAll ? scan->ranges.program.all_from : -1;
              machine->MeetRows(scan->grid, unit.part_first, unit.part_end, all_from);
            }
          }
          if (options_.exchange != nullptr) {
            // MPI is called from one thread only.
            machine->StopIf([&, worker, asked = 0]() mutable {
              if (worker == 0 && ++asked % kPollSteps == 0 && options_.exchange->Stopped()) stopped_elsewhere = true;
              return stopped_elsewhere.load(std::memory_order_relaxed);
            });
          }
          const uint64_t first_cycle = options_.profile ? __builtin_ia32_rdtsc() : 0;
          for (uint32_t at = grouped ? 0 : output->at; at < block.rows; at += kTileRows) {
            if (IsCancelled()) return fail(u, Cancelled());
            // MPI is called from this one thread.
            if (worker == 0 && options_.exchange != nullptr && at % kPollRows == 0 && options_.exchange->Stopped())
              return fail(u, Cancelled());
            Status status =
                machine->suspended()
                    ? machine->ResumeTile(sinks)
                    : machine->RunTile(tablet.bound, block.first + at,
                                       static_cast<int>(std::min<uint32_t>(kTileRows, block.rows - at)), sinks);
            if (!status.ok()) return fail(u, std::move(status));
            if (!grouped) status = scan->top->Cut(at + kTileRows >= block.rows, strings_, &output->rows);
            if (!status.ok()) return fail(u, std::move(status));
            if (machine->suspended()) {
              output->at = at;
              output->suspended = std::move(machine);
              break;
            }
          }
          if (options_.profile) scan->cycles += __builtin_ia32_rdtsc() - first_cycle;
          if (!grouped) scan->rows_out += output->rows.rows - rows_before;
          if (machine == nullptr) {
            finish();
            continue;
          }
          scan->pairs += pairs;
          if (unit.part_first == 0) scan->rows_in += block.rows;
        }
        if (!grouped) output->done = true;
        const size_t finished = begin + ++done;
        if (options_.progress) options_.progress(static_cast<double>(finished) / static_cast<double>(scan->units()));
        finish();
      }
    };
    const auto start = Clock::now();
    pool_->Run(workers, [&](int worker) {
      try {
        work(worker);
      } catch (const std::bad_alloc&) {  // the other workers, and other ranks, must learn of it
        fail(SIZE_MAX - 1, OutOfMemory());
      }
    });
    scan->milliseconds += MillisecondsSince(start);
    return error;
  }

  std::unique_ptr<TileMachine> NewMachine(int number, const Scan& scan, size_t suspend_at) {
    auto machine = std::make_unique<TileMachine>(program_, number, joins_, &strings_);
    machine->CountJoined(scan.joined.get(), options_.profile);
    if (scan.top->active()) machine->EmitOnly(scan.top.get());
    machine->StopOn(options_.cancel);
    machine->SuspendAt(suspend_at);
    return machine;
  }

  /// How many rows of the section are still of use when it has made `made`; UINT64_MAX: all, as without LIMIT.
  static uint64_t WantedRows(const Section& s, uint64_t made) {
    if (s.sink != Section::Sink::kRows || !s.order.empty() || s.limit < 0) return UINT64_MAX;
    const uint64_t enough = static_cast<uint64_t>(s.offset) + static_cast<uint64_t>(s.limit);
    return enough > made ? enough - made : 0;
  }

  /// The groups of all workers, merged: many of them part by part, by all threads. (32 M rows in 13.8 M groups by 16
  /// threads: 1.4 s, 6.2 with one that merges.)
  Result<RowSet> MergedGroups(Scan* scan) {
    size_t groups = 0;
    for (const auto& g : scan->groups) groups += g->groups();
    const Section& s = program_.sections[static_cast<size_t>(scan->number)];
    if (s.keys == 0 || scan->groups.size() == 1 || groups < kManyMergedGroups) {
      TESSERA_TRY(MergeWorkers(scan));
      return scan->groups[0]->Rows();
    }
    const size_t parts = std::min<size_t>(64, std::bit_ceil(scan->groups.size()));
    std::vector<RowSet> merged(parts);
    const auto merge = [&](size_t part) {
      GroupTable table(s, &strings_);
      for (const auto& g : scan->groups)
        TESSERA_TRY(table.MergePart(*g, static_cast<uint32_t>(part), static_cast<uint32_t>(parts)));
      merged[part] = table.Rows();
      return Status::Ok();
    };
    TESSERA_TRY(ForEach(pool_, parts, merge));
    RowSet all = std::move(merged[0]);
    for (size_t part = 1; part < parts; ++part) AppendRows(&all, std::move(merged[part]));
    return all;
  }

  Status MergeWorkers(Scan* scan) {
    for (size_t w = 1; w < scan->groups.size(); ++w) TESSERA_TRY(scan->groups[0]->Merge(*scan->groups[w]));
    return Status::Ok();
  }

  void AddScan(const Scan& scan, SectionStatistics* stats) {
    stats->rows_in = scan.rows_in;
    stats->pairs = scan.pairs;
    stats->pruned_pairs = scan.pruned_pairs;
    stats->joined.clear();
    for (const int join : JoinsBefore(program_.sections[static_cast<size_t>(scan.number)])) {
      if (join < 0 || scan.joined == nullptr) continue;
      const int builder = program_.joins[static_cast<size_t>(join)].section;
      const TileMachine::JoinCounter& counter = scan.joined[static_cast<size_t>(join)];
      const double share =
          scan.cycles == 0 ? 0 : static_cast<double>(counter.cycles) / static_cast<double>(scan.cycles);
      stats->joined.push_back(
          {program_.sections[static_cast<size_t>(builder)].label, counter.rows, share * scan.milliseconds});
    }
    if (scan.table == nullptr) return;
    size_t last = SIZE_MAX;
    for (size_t b = 0; b < scan.blocks.size(); ++b) {
      if (scan.blocks[b].tablet == last || !scan.Has(b)) continue;
      last = scan.blocks[b].tablet;
      const BoundTablet& bound = scan.tablets[last].bound;
      ++stats->tablets;
      if (bound.skip) {
        ++stats->tablets_skipped;
      } else {
        stats->bytes_read += bound.encoded_bytes;
      }
    }
    mine_.read += static_cast<double>(scan.read_nanoseconds) * 1e-6;
  }

  void Record(SectionStatistics stats) {
    if (program_.sections[static_cast<size_t>(stats.section)].source_kind == Section::Source::kTable) {
      mine_.rows_scanned += stats.rows_in;
      mine_.tablets += stats.tablets;
      mine_.bytes_read += stats.bytes_read;
      mine_.bytes_transferred += stats.bytes_transferred;
      mine_.transfer += stats.transfer_milliseconds;
    }
    if (statistics_ != nullptr) statistics_->sections.push_back(std::move(stats));
  }

  // ---- Ranks --------------------------------------------------------------------------------------------------------

  bool IsMaster() const { return options_.exchange == nullptr || options_.exchange->rank() == 0; }
  /// Every rank runs a part of the section: of a stored table, or of the rows of a join table, which all of them have.
  bool Shared(const Section& s) const { return options_.exchange != nullptr && SharedByRanks(s); }
  /// Every rank takes part in the section, if only by receiving what it made.
  bool Collective(const Section& s) const {
    return Shared(s) || (options_.exchange != nullptr && s.sink == Section::Sink::kJoin);
  }

  /// This rank's rows of a section, in shipments of some units.
  struct RankShare {
    Status status;  ///< why there are none
    bool gpu = false;
    Scan scan;
    TableInfo tablets;  ///< GPU: the table with this rank's tablets
    RowSet gpu_rows;
    size_t next = 0;    ///< unit, or row of gpu_rows
    uint64_t made = 0;  ///< rows, by the host
  };

  void PrepareShare(int number, bool gpu, Status status, RankShare* share) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    share->gpu = gpu;
    share->status = std::move(status);
    if (!share->status.ok()) return;
    if (!gpu) {
      share->status = Prepare(number, &share->scan);
      return;
    }
    const TableInfo& table = *tables_[static_cast<size_t>(s.source)];
    share->tablets.id = table.id;
    share->tablets.schema = table.schema;
    share->tablets.statistics = table.statistics;
    for (size_t t = static_cast<size_t>(options_.exchange->rank()); t < table.tablets.size();
         t += static_cast<size_t>(options_.exchange->ranks())) {
      share->tablets.tablets.push_back(table.tablets[t]);
      share->tablets.rows += table.tablets[t]->rows();
    }
  }

  /// The next rows of the share. After an error or the last shipment there is none.
  Result<Shipment> NextShipment(int number, RankShare* share, size_t window, SectionStatistics* stats) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    TESSERA_TRY(share->status);
    const auto start = Clock::now();
    Shipment out;
    out.rows = MakeRowSet(s.columns);
    if (share->gpu) {
      if (share->next == 0 && !share->tablets.tablets.empty()) {
        TESSERA_ASSIGN(share->gpu_rows, RunOnGpu(number, &share->tablets, stats));
      }
      const size_t count = std::min(share->gpu_rows.rows - share->next, window * kUnitRows);
      AppendRange(&out.rows, share->gpu_rows, share->next, count);
      // In whatever order the GPU made them: all under the number of this rank.
      if (count > 0) out.units.push_back({static_cast<uint64_t>(options_.exchange->rank()), count});
      share->next += count;
      out.last = share->next == share->gpu_rows.rows;
      out.through = out.last ? UINT64_MAX : 0;
    } else {
      Scan& scan = share->scan;
      const size_t last = std::min(scan.units(), share->next + std::min(window, scan.units()));
      do {
        const size_t end = std::min(last, share->next + kWindowUnits);
        std::deque<UnitOutput> units(end - share->next);
        Status status = RunUnits(number, &scan, share->next, end, WantedRows(s, share->made), &units);
        if (!status.ok()) return status;
        for (size_t u = share->next; u < end; ++u) {
          RowSet& rows = units[u - share->next].rows;
          if (rows.rows == 0) continue;
          out.units.push_back({scan.At(u).number, rows.rows});
          share->made += rows.rows;
          AppendRows(&out.rows, std::move(rows));
        }
        share->next = end;
      } while (share->next < last && WantedRows(s, share->made) > 0);
      out.last = share->next == scan.units() || WantedRows(s, share->made) == 0;
      out.through = out.last ? UINT64_MAX : scan.At(share->next).number;
    }
    mine_.execute += MillisecondsSince(start);
    stats->rows_out += out.rows.rows;
    return out;
  }

  /// All rows of the share.
  Result<Shipment> WholeShare(int number, RankShare* share, SectionStatistics* stats) {
    Result<Shipment> all = NextShipment(number, share, SIZE_MAX / kUnitRows, stats);
    if (!share->gpu) AddScan(share->scan, stats);
    if (!all.ok()) options_.exchange->Stop();
    return all;
  }

  /// OK for a rank that stopped because another one said so: it is that one which has something to tell.
  Status OwnError(const Status& status) {
    if (!status.ok() && status.code() == ErrorCode::kCancelled && !IsCancelled() && options_.exchange->Stopped())
      return Status::Ok();
    return status;
  }

  /// A section over a stored table: this rank's share of it, then what the ranks made, put together at the master (join
  /// tables: everywhere). Rows of a result without order go to `consume` as they come. An error here is one of this
  /// rank; all have sent and received what the section asks for when it returns, and learn of the error when they agree
  /// the next time.
  Result<RowSet> RunShared(int number, bool gpu, Status status, const RowConsumer& consume, SectionStatistics* stats) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    RankShare share;
    PrepareShare(number, gpu, std::move(status), &share);
    if (s.sink == Section::Sink::kGroups) return MergeGroups(number, &share, stats);
    if (s.sink == Section::Sink::kJoin) return GatherJoin(number, &share, stats);
    if (static_cast<size_t>(number) + 1 == program_.sections.size() && s.order.empty()) {
      return IsMaster() ? StreamIn(number, &share, consume, stats) : StreamOut(number, &share, stats);
    }
    return GatherRows(number, &share, stats);
  }

  /// Up a binary tree: in round k, ranks whose bit k is the lowest that is set send to the rank without that bit.
  Result<RowSet> MergeGroups(int number, RankShare* share, SectionStatistics* stats) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    Exchange& exchange = *options_.exchange;
    auto groups = std::make_unique<GroupTable>(s, &strings_);
    Status status = share->status;
    const auto start = Clock::now();
    if (status.ok() && share->gpu) {
      if (!share->tablets.tablets.empty()) {
        Result<RowSet> rows = RunOnGpu(number, &share->tablets, stats);
        status = rows.ok() ? groups->Merge(*rows) : rows.status();
      }
    } else if (status.ok()) {
      status = RunAll(number, &share->scan, nullptr);
      AddScan(share->scan, stats);
      if (status.ok()) status = MergeWorkers(&share->scan);
      if (status.ok()) groups = std::move(share->scan.groups[0]);
    }
    mine_.execute += MillisecondsSince(start);
    if (!status.ok()) exchange.Stop();
    stats->rows_out = groups->groups();
    const int rank = exchange.rank();
    for (int bit = 1; bit < exchange.ranks(); bit <<= 1) {
      if ((rank & bit) != 0) {
        Shipment mine;
        if (status.ok()) mine.rows = groups->Rows();
        TESSERA_TRY(
            exchange.Send(rank - bit, status.ok() ? Result<Shipment>(std::move(mine)) : status, strings_, true));
        groups.reset();
        break;
      }
      if (rank + bit < exchange.ranks()) {
        Result<Shipment> theirs = exchange.Receive(rank + bit, &strings_);
        const auto merge = Clock::now();
        if (status.ok()) status = theirs.ok() ? groups->Merge(theirs->rows) : theirs.status();
        mine_.merge += MillisecondsSince(merge);
      }
    }
    TESSERA_TRY(OwnError(status));
    if (IsMaster()) stats->rows_out = groups->groups();
    return IsMaster() ? groups->Rows() : RowSet{};
  }

  /// Every rank gets all rows of the build side.
  Result<RowSet> GatherJoin(int number, RankShare* share, SectionStatistics* stats) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    Exchange& exchange = *options_.exchange;
    Result<Shipment> mine = WholeShare(number, share, stats);
    TESSERA_TRY(exchange.Agree(mine.ok() ? Status::Ok() : OwnError(mine.status())));
    TESSERA_ASSIGN(const uint64_t rows, exchange.Sum(mine->rows.rows));
    const uint64_t bytes = rows * (s.columns.size() * sizeof(int64_t) + kIndexBytesPerRow);
    if (bytes > exchange.broadcast_limit()) {
      return Unsupported("the build side of a join has " + std::to_string(rows) +
                             " rows, more than a rank has room for, and rows cannot be exchanged by key yet",
                         -1,
                         "Filter it, swap the tables of the join, or SET broadcast_limit to more than " +
                             std::to_string(bytes) + " bytes.");
    }
    TESSERA_ASSIGN(std::vector<Shipment> all, exchange.AllGather(std::move(*mine), &strings_));
    const auto start = Clock::now();
    RowSet together = InUnitOrder(s, std::move(all));
    mine_.merge += MillisecondsSince(start);
    return together;
  }

  /// All rows at the master, ordered. Ranks sort and cut their own rows first; a hidden last column, the number of the
  /// unit, decides between equal rows as one process does.
  Result<RowSet> GatherRows(int number, RankShare* share, SectionStatistics* stats) {
    Section s = program_.sections[static_cast<size_t>(number)];
    Exchange& exchange = *options_.exchange;
    Result<Shipment> mine = WholeShare(number, share, stats);
    const Section plain = s;
    const bool ordered = !s.order.empty();
    if (ordered) {
      s.order.push_back({static_cast<int32_t>(s.columns.size()), false, false});
      s.columns.push_back(SqlType::Of(TypeId::kBigint));
      if (mine.ok()) {
        const auto start = Clock::now();
        AppendUnitColumn(&*mine);
        // (Those of a GPU have come in order, all under one number.)
        if (!share->gpu) {
          const Status sorted = OrderAndLimit(WithoutOffset(s), strings_, pool_, &mine->rows);
          if (!sorted.ok()) mine = sorted;
        }
        mine_.execute += MillisecondsSince(start);
      }
    }
    if (!IsMaster()) {
      Status status = mine.status();
      TESSERA_TRY(exchange.Send(0, std::move(mine), strings_, true));
      TESSERA_TRY(OwnError(status));
      return RowSet{};
    }
    Status status = mine.status();
    std::vector<Shipment> all(1);
    if (status.ok()) all[0] = std::move(*mine);
    for (int r = 1; r < exchange.ranks(); ++r) {
      Result<Shipment> theirs = exchange.Receive(r, &strings_);
      if (!theirs.ok()) {
        if (status.ok()) status = theirs.status();
      } else if (status.ok()) {
        all.push_back(std::move(*theirs));
      }
    }
    TESSERA_TRY(OwnError(status));
    if (!status.ok()) return RowSet{};
    const auto start = Clock::now();
    RowSet rows;
    if (ordered) {
      rows = MakeRowSet(s.columns);
      std::vector<size_t> starts;
      for (Shipment& shipment : all) {
        starts.push_back(rows.rows);
        if (shipment.rows.rows > 0) AppendRows(&rows, std::move(shipment.rows));
        shipment = Shipment{};
      }
      TESSERA_TRY(MergeRuns(s, starts, strings_, pool_, &rows));
      rows.columns.pop_back();
    } else {
      rows = InUnitOrder(s, std::move(all));
      TESSERA_TRY(OrderAndLimit(plain, strings_, pool_, &rows));
    }
    mine_.merge += MillisecondsSince(start);
    stats->rows_out = rows.rows;
    return rows;
  }

  /// Units in a shipment of a stream: enough for all threads, few enough that what is under way stays small.
  size_t StreamWindow() const { return static_cast<size_t>(pool_->threads()) * 2; }

  Result<RowSet> StreamOut(int number, RankShare* share, SectionStatistics* stats) {
    Status status;
    for (bool last = false; !last;) {
      Result<Shipment> next = NextShipment(number, share, StreamWindow(), stats);
      status = next.status();
      last = !next.ok() || next->last;
      TESSERA_TRY(options_.exchange->Send(0, std::move(next), strings_, last));
    }
    if (!share->gpu) AddScan(share->scan, stats);
    TESSERA_TRY(OwnError(status));
    return RowSet{};
  }

  /// The rows of all ranks in the order of their units, as they come: at most one shipment of each rank is held.
  Result<RowSet> StreamIn(int number, RankShare* share, const RowConsumer& consume, SectionStatistics* stats) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    Exchange& exchange = *options_.exchange;
    struct Incoming {
      Shipment shipment;
      size_t unit = 0, row = 0;  ///< how much of it has been consumed
      uint64_t Next() const { return unit < shipment.units.size() ? shipment.units[unit].unit : shipment.through; }
      bool done() const { return unit == shipment.units.size() && shipment.last; }
    };
    std::vector<Incoming> from(static_cast<size_t>(exchange.ranks()));
    for (Incoming& i : from) i.shipment.last = false;
    RowStream stream(program_, s, strings_, options_.cancel, consume);
    Status status;
    while (status.ok() && !stream.full()) {
      size_t least = 0;
      for (size_t r = 1; r < from.size(); ++r) {
        if (from[least].done() || (!from[r].done() && from[r].Next() < from[least].Next())) least = r;
      }
      Incoming& i = from[least];
      if (i.done()) break;
      if (i.unit == i.shipment.units.size()) {
        Result<Shipment> next = least == 0 ? NextShipment(number, share, StreamWindow(), stats)
                                           : exchange.Receive(static_cast<int>(least), &strings_);
        if (next.ok()) {
          i = Incoming{std::move(*next)};
        } else {
          i.shipment.last = true;  // it will send no more
          status = next.status();
        }
        continue;
      }
      const uint64_t rows = i.shipment.units[i.unit].rows;
      status = stream.Take(i.shipment.rows, i.row, rows);
      i.row += rows;
      ++i.unit;
    }
    if (status.ok()) status = stream.Flush();
    // Everybody's last shipment has to be taken, whatever became of the rows.
    bool all_done = true;
    for (size_t r = 1; r < from.size(); ++r) all_done &= from[r].shipment.last;
    if (!all_done) exchange.Stop();
    for (size_t r = 1; r < from.size(); ++r) {
      while (!from[r].shipment.last) {
        Result<Shipment> rest = exchange.Receive(static_cast<int>(r), &strings_);
        from[r].shipment.last = !rest.ok() || rest->last;
      }
    }
    if (!share->gpu) AddScan(share->scan, stats);
    stats->rows_out = stream.streamed();
    TESSERA_TRY(OwnError(status));
    return MakeRowSet(s.columns);
  }

  const Program& program_;
  const Snapshot& snapshot_;
  const RunOptions& options_;
  ThreadPool* pool_;
  RunStatistics* statistics_;
  StringPool strings_;
  std::vector<const TableInfo*> tables_;
  std::vector<RowSet> results_;
  std::vector<int> readers_;  // sections that have yet to read each result
  std::vector<std::unique_ptr<JoinIndex>> joins_;
  std::vector<KeyRange> key_ranges_;
  std::unique_ptr<DeviceRun> device_run_;  // nullptr: everything runs on the host
  std::vector<bool> on_device_;            // per section
  std::vector<bool> built_;                // sections that were run together with an earlier one
  RankStatistics mine_;
};

}  // namespace

class Executor::Impl {
 public:
  explicit Impl(int threads) : pool(threads) {}
  ThreadPool pool;
};

bool SharedByRanks(const Section& section) {
  return section.source_kind == Section::Source::kTable || section.source_kind == Section::Source::kJoin;
}

int GridOf(const Program& program, const Section& section) {
  for (const Instruction& in : section.code) {
    if (!Probes(in)) continue;
    return IsCutBothWays(program.joins[in.p1].strategy) ? in.p1 : -1;  // it is the first
  }
  return -1;
}

bool SharedByTablets(const TableInfo& table, int ranks, uint64_t replicate_below) {
  uint64_t bytes = 0;
  for (const ColumnStatistics& c : table.statistics) bytes += c.encoded_bytes;
  return table.tablets.size() >= static_cast<size_t>(ranks) && bytes >= replicate_below;
}

Executor::Executor(int threads) : impl_(std::make_unique<Impl>(threads)) {}
Executor::~Executor() = default;
int Executor::threads() const { return impl_->pool.threads(); }

Status Executor::Run(const Program& program, const Snapshot& snapshot, const RunOptions& options,
                     const RowConsumer& consume, RunStatistics* statistics) {
  return vm::Run(program, snapshot, options, &impl_->pool, statistics).Sections(consume);
}

}  // namespace tessera::vm
