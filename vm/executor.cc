// Runs the sections of a program in order, each where it was placed, and passes on their results: rows to the sections
// that read them and to the consumer, join tables to host and device.
//
// The pieces are in vm/run/: placement (host or device), scan (units of a source), unit_runner (workers),
// host_sections, device_sections, and shared_section for what ranks do together.

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/exception_status.h"
#include "base/host_name.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "base/status.h"
#include "base/temporary_memory.h"
#include "base/thread_pool.h"
#include "tablet/catalog/table_info.h"
#include "tablet/files/file_mapping.h"
#include "tablet/files/tablet.h"
#include "vm/after/fold_rows.h"
#include "vm/after/window.h"
#include "vm/program/distribution.h"
#include "vm/program/program.h"
#include "vm/ranks/device_exchange.h"
#include "vm/ranks/heavy_keys.h"
#include "vm/ranks/shared_section.h"
#include "vm/rows/row_set.h"
#include "vm/rows/sorted_rows.h"
#include "vm/run/device_sections.h"
#include "vm/run/host_sections.h"
#include "vm/run/placement.h"
#include "vm/run/recursion.h"
#include "vm/run/row_stream.h"
#include "vm/run/run_state.h"
#include "vm/run/statistics.h"
#include "vm/shares/exchange.h"
#include "vm/shares/tablet_shares.h"
#include "vm/vm.h"

namespace tessera::vm {
namespace {

class Run {
 public:
  Run(const Program& program, const RunOptions& options, ThreadPool* pool, std::shared_ptr<StringPool> strings,
      RunStatistics* statistics)
      : state_(program, options, pool, std::move(strings)),
        placement_(state_),
        host_(&state_, &placement_),
        device_(&state_, &placement_),
        recursions_(&state_),
        statistics_(statistics),
        readers_(program.sections.size()) {
    for (const Section& s : program.sections) {
      if (s.source_kind == Section::Source::kSection) ++readers_[static_cast<size_t>(s.source)];
    }
  }

  Status Execute(const Snapshot& snapshot, const RowConsumer& consume) {
    ResetMemoryPeak();
    ResetTemporaryPeak();
    const PhaseScope phase(Phase::kExecute);
    const Exchange* const exchange = state_.options.exchange;
    if (PhaseClock* const clock = PhaseClock::current(); clock != nullptr)
      clock->Reserve(state_.program.sections.size(), exchange == nullptr ? 0 : static_cast<size_t>(exchange->ranks()));
    state_.mine.threads = state_.pool->threads();
    state_.mine.host = HostName();
    state_.mine.device = "host";
    if (statistics_ != nullptr) statistics_->mine = state_.mine;  // if it fails
    TESSERA_TRY(FindTables(snapshot));
    TESSERA_TRY(RunSections(consume));
    state_.mine.memory_peak = MemoryPeak();
    state_.mine.temporary_peak = TemporaryPeak();
    if (statistics_ != nullptr) FinishStatistics();
    if (!state_.IsMaster()) return Status::Ok();
    const SectionScope last(static_cast<int>(state_.program.sections.size()) - 1);
    Section unbounded;  // the bounds have been applied
    unbounded.columns = state_.program.sections.back().columns;
    RowStream stream(state_, unbounded, consume);
    const RowSet& rows = state_.results.back();
    TESSERA_TRY(stream.Add(rows, 0, rows.rows));
    return stream.Flush();
  }

 private:
  Status FindTables(const Snapshot& snapshot) {
    for (const TableRef& ref : state_.program.tables) {
      const TableInfo* const table = TableOf(snapshot, ref);
      if (table == nullptr) return SqlError(ErrorKind::kUndefinedTable, "table \"" + ref.name + "\" does not exist");
      state_.tables.push_back(table);
      if (ref.runs_of < 0) continue;
      TESSERA_ASSIGN(auto runs, RunsOf(*table, ref.runs_of, &ref.runs));
      state_.tables.back() = state_.runs.emplace_back(std::move(runs)).get();
    }
    const Exchange* const exchange = state_.options.exchange;
    for (const Section& s : state_.program.sections) {
      if (exchange != nullptr && s.source_kind == Section::Source::kTable)
        TESSERA_TRY(CheckSpans(*state_.SourceTable(s), s, exchange->ranks()));
    }
    return Status::Ok();
  }

  /// With ranks, an error ends the program only when all ranks know of it, so that none waits for a rank that has left.
  Status RunSections(const RowConsumer& consume) {
    Exchange* const exchange = state_.options.exchange;
    Status status = Caught([&] {
      // What follows here decides on all ranks alike what they exchange.
      const WithoutMemoryLimit without_limit;
      const InterruptScope without_interrupts{nullptr};
      if (state_.options.gpu != nullptr)
        state_.handed_on = FindHandedOn(state_.program, state_.traits, [&](int table, int column) {
          return VarietyOf(*state_.tables[static_cast<size_t>(table)], column);
        });
      TESSERA_TRY(placement_.Choose());
      for (size_t j = 0; j < state_.program.joins.size() && exchange != nullptr; ++j) {
        const int join = static_cast<int>(j);
        state_.may_be_in_shares[j] =
            MayBeInShares(state_.program, state_.traits, join) && !placement_.IsUsedOnDevice(join);
      }
      return Status::Ok();
    });
    for (size_t i = 0; i < state_.program.sections.size(); ++i) {
      const Section& s = state_.program.sections[i];
      if (s.source_kind == Section::Source::kDictionary || state_.built_on_device[i]) continue;
      if (recursions_.IsLeftOut(static_cast<int>(i))) continue;
      const SectionScope scope(static_cast<int>(i));
      const bool takes_errors = TakesErrors(i);
      if (state_.IsCollective(s) && !takes_errors) {
        status = exchange->Agree(status);
        if (!status.ok()) return status;
      }
      if (Feeds(i)) {
        state_.fed[i] = {true, device_.Takes(static_cast<int>(i)) ? &device_ : nullptr};
        state_.distributed[i] = true;
        continue;
      }
      if (status.ok() || takes_errors) {
        status = RunSection(static_cast<int>(i), consume, status);
        // Rows made of a file that went away are wrong, and so is an error.
        if (Status intact = Intact(); !intact.ok()) status = std::move(intact);
      }
      if (s.recursion.first >= 0 && exchange != nullptr) {
        if (!status.ok()) exchange->Stop();
        TESSERA_TRY(exchange->Agree(status));
      }
      if (s.recursion.first >= 0 && status.ok()) {
        TESSERA_ASSIGN(const bool more, recursions_.EndTurn(static_cast<int>(i)));
        if (more) i = static_cast<size_t>(s.recursion.first);
      }
      if (status.ok()) continue;
      if (exchange == nullptr) return status;
      exchange->Stop();
    }
    return exchange == nullptr ? Status::Ok() : exchange->Agree(status);
  }

  /// Whether all ranks take part in section i even if one has failed before: what it tells or sends the others in place of
  /// its rows is its error, so they need not agree on that before. The same on all ranks.
  bool TakesErrors(size_t i) const {
    const Section& s = state_.program.sections[i];
    const int number = static_cast<int>(i);
    if (!state_.IsCollective(s) || !placement_.OnAllDevices(number) || s.placement.by_key ||
        recursions_.IsInside(number))
      return false;
    if (s.source_kind == Section::Source::kSection && state_.fed[static_cast<size_t>(s.source)].is_fed) return false;
    return s.sink == Section::Sink::kJoin || state_.IsShared(s);
  }

  /// Whether the section after takes the rows of section i as they are exchanged. One that streams to the master cannot:
  /// it waits for single ranks.
  bool Feeds(size_t i) const {
    const Section& s = state_.program.sections[i];
    if (!s.placement.by_key || s.sink != Section::Sink::kRows || !state_.IsShared(s)) return false;
    if (placement_.IsExchangedByDevices(static_cast<int>(i))) return false;
    const Section& next = state_.program.sections[i + 1];
    return !(state_.IsLast(static_cast<int>(i) + 1) && next.after.order.empty() && next.sink == Section::Sink::kRows) &&
           next.source_kind == Section::Source::kSection && next.source == static_cast<int32_t>(i) && readers_[i] == 1;
  }

  Status Intact() const {
    if (!FileMapping::any_lost()) return Status::Ok();
    for (const TableInfo* table : state_.tables) {
      for (const std::shared_ptr<const Tablet>& tablet : table->tablets) TESSERA_TRY(tablet->Intact());
    }
    return Status::Ok();
  }

  /// `ready`: an error that this rank has met before, if the section TakesErrors.
  Status RunSection(int number, const RowConsumer& consume, const Status& ready) {
    const Section& s = state_.section(number);
    if (placement_.OnDevice(number) && s.sink == Section::Sink::kJoin) {
      const Status built = Caught([&] { return BuildOnDevice(number, ready); });
      // If the device has given up, the host builds it.
      if (!built.ok() || placement_.OnDevice(number)) return built;
    }
    const auto start = Clock::now();
    const bool shared = state_.IsShared(s);
    const PhaseScope phase(shared || state_.options.exchange == nullptr ? Phase::kExecute : Phase::kMerge);
    SectionStatistics stats = state_.StartStatistics(number);
    double consumed = 0;
    TESSERA_ASSIGN(RowSet rows, RowsOf(number, consume, ready, &stats, &consumed));
    if (s.after.repeat >= 0 && rows.rows > 0) {
      TESSERA_TRY(Caught([&] {
        RepeatRows(s.after.repeat, &rows);
        return Status::Ok();
      }));
      stats.rows_out = rows.rows;
    }
    if (s.after.fold.kind != Section::Fold::kNone) {
      TESSERA_TRY(Caught([&] {
        return FoldRows(s.after.fold, static_cast<size_t>(s.keys), state_.program.constants, &state_.strings, &rows);
      }));
      stats.rows_out = rows.rows;
    }
    const bool has_windows = device_.Keeps(number) || rows.columns.size() > s.columns.size();
    if (!s.after.windows.empty() && !has_windows &&
        (state_.IsMaster() || state_.distributed[static_cast<size_t>(number)]))
      TESSERA_TRY(Caught([&] { return AddWindows(s, state_.program.constants, &state_.strings, state_.pool, &rows); }));
    TESSERA_TRY(Caught([&] {
      if (s.sink == Section::Sink::kJoin) return KeepJoin(s, std::move(rows));
      return KeepRows(number, std::move(rows));
    }));
    NoteRead(number);
    stats.milliseconds = MillisecondsSince(start) - consumed;
    for (SectionStatistics& fed : std::exchange(state_.finished, {})) {
      stats.milliseconds -= fed.milliseconds;
      Record(std::move(fed));
    }
    if (shared || state_.IsMaster()) Record(std::move(stats));
    return Status::Ok();
  }

  /// Runs the section and returns the rows to keep on this rank. `consumed`: milliseconds of these that the consumer
  /// took, if rows went to it as they came.
  Result<RowSet> RowsOf(int number, const RowConsumer& consume, const Status& ready, SectionStatistics* stats,
                        double* consumed) {
    const Section& s = state_.section(number);
    const bool on_device = device_.Takes(number), by_devices = placement_.IsExchangedByDevices(number);
    if (state_.IsShared(s)) {
      const Status fetched = on_device || !ready.ok() ? ready : Caught([&] { return FetchSource(s); });
      return SharedSection(&state_, on_device ? &device_ : nullptr, fetched, placement_.OnAllDevices(number),
                           by_devices ? &device_ : nullptr, number, stats)
          .Run(consume);
    }
    if (state_.IsLast(number) && state_.options.exchange == nullptr && (on_device || s.after.order.empty()))
      return Stream(number, consume, stats, consumed);
    Result<RowSet> rows = RowSet{};
    if (state_.IsMaster()) rows = RunHere(number, stats);
    if (s.placement.by_key && state_.options.exchange != nullptr) {
      if (!state_.IsMaster()) rows = MakeRowSet(s.columns);
      if (by_devices) return ExchangeByDevices(&state_, &device_, number, std::move(rows), stats);
      rows = ExchangeJoinRows(&state_, number, 1, std::move(rows), stats);
      state_.distributed[static_cast<size_t>(number)] = true;
    } else if (state_.IsCollective(s)) {
      TESSERA_TRY(state_.options.exchange->Agree(rows.status()));
      rows = state_.options.exchange->Broadcast(std::move(*rows), s.columns, &state_.strings);
    }
    if (rows.ok()) stats->rows_out = rows->rows;
    return rows;
  }

  /// Runs the section over all of its source. No exception leaves it: other ranks must learn of errors.
  Result<RowSet> RunHere(int number, SectionStatistics* stats) {
    return Caught([&] { return RunOnDeviceOrHost(number, stats); });
  }
  Result<RowSet> RunOnDeviceOrHost(int number, SectionStatistics* stats) {
    const Section& s = state_.section(number);
    if (device_.Takes(number)) {
      Result<RowSet> rows = device_.Run(number, stats);
      if (rows.ok() && s.sink == Section::Sink::kRows && !device_.Keeps(number)) ApplyBounds(s.after, &*rows);
      if (rows.ok()) return rows;
      TESSERA_TRY(placement_.FallBackToHost(rows.status()));
      *stats = state_.StartStatistics(number);
    }
    TESSERA_TRY(FetchSource(s));
    return host_.Run(number, stats);
  }

  /// Runs the last section if there is one process: its rows go to `consume` as they come. Returns the rows that did
  /// not: all rows of a section with an order, if the device gave up.
  Result<RowSet> Stream(int number, const RowConsumer& consume, SectionStatistics* stats, double* consumed) {
    const Section& s = state_.section(number);
    RowStream stream(state_, s, consume);
    Status status;
    if (device_.Takes(number)) {
      status = device_.Stream(number, &stream, stats);
      if (!status.ok() && stream.streamed() == 0) {
        TESSERA_TRY(placement_.FallBackToHost(status));
        *stats = state_.StartStatistics(number);
        if (s.after.order.empty()) return Stream(number, consume, stats, consumed);
        TESSERA_TRY(FetchSource(s));
        TESSERA_ASSIGN(RowSet rows, host_.Run(number, stats));
        stats->rows_out = rows.rows;
        return rows;
      }
      if (status.ok()) status = stream.Flush();
    } else {
      TESSERA_TRY(FetchSource(s));
      status = host_.Stream(number, &stream, stats);
    }
    TESSERA_TRY(status);
    stats->rows_out = stream.streamed();
    *consumed = stream.milliseconds();
    return RowSet{};
  }

  /// Before the host runs the section: brings the rows that it reads from the device.
  Status FetchSource(const Section& s) {
    if (s.source_kind != Section::Source::kSection || !device_.Keeps(s.source)) return Status::Ok();
    TESSERA_ASSIGN(state_.result(s.source), device_.Fetch(s.source));
    device_.Drop(s.source);
    return Status::Ok();
  }

  /// The section has read its source. Rows that are not read any more go.
  void NoteRead(int number) {
    const Section& s = state_.section(number);
    if (recursions_.IsInside(number)) return;
    if (s.source_kind != Section::Source::kSection || --readers_[static_cast<size_t>(s.source)] > 0) return;
    state_.result(s.source) = RowSet{};
    state_.was_dropped[static_cast<size_t>(s.source)] = true;
    device_.Drop(s.source);
  }

  /// OK if the device has built the join table, or has given up, so that the host has to build it.
  Status BuildOnDevice(int number, const Status& ready) {
    std::vector<SectionStatistics> built;
    Status status = device_.BuildJoins(number, ready, &built);
    if (!status.ok()) return placement_.FallBackToHost(status);
    for (SectionStatistics& stats : built) {
      NoteRead(stats.section);
      Record(std::move(stats));
    }
    return Status::Ok();
  }

  /// Keeps a join table for the sections that probe it or scan it.
  Status KeepJoin(const Section& s, RowSet rows) {
    Exchange* const exchange = state_.options.exchange;
    if (s.placement.by_key && exchange != nullptr) {
      // It may get rows of other ranks before it is probed.
      const bool later = state_.traits.join(s.join).exchanged_prober >= 0;
      TESSERA_TRY(exchange->Agree(Caught([&] {
        if (!later) return host_.IndexJoin(s, std::move(rows));
        state_.joins.SetKeyRange(s.join, JoinIndex::RangeOf(rows, s.keys));
        state_.joins.Keep(s.join, std::move(rows), s.keys);
        return Status::Ok();
      })));
      return AgreeOnKeyRange(s.join);
    }
    TESSERA_TRY(OrderJoin(state_, s, &rows));
    if (placement_.IsUsedOnDevice(s.join)) {
      const Status put = device_.PutJoin(s, rows);
      if (!put.ok()) TESSERA_TRY(placement_.FallBackToHost(put));
    }
    return host_.IndexJoin(s, std::move(rows));
  }

  /// Each rank has some of the rows; scans leave out what no rank's keys can match.
  Status AgreeOnKeyRange(int join) {
    KeyRange range = state_.joins.key_ranges()[static_cast<size_t>(join)];
    if (!range.known) return Status::Ok();  // by their type, so on no rank
    const bool empty = range.low > range.high;
    TESSERA_ASSIGN(range.low, state_.options.exchange->Minimum(empty ? INT64_MAX : range.low));
    TESSERA_ASSIGN(const int64_t high, state_.options.exchange->Minimum(empty ? INT64_MAX : ~range.high));
    range.high = ~high;
    state_.joins.SetKeyRange(join, range);
    return Status::Ok();
  }

  /// Keeps rows for the sections that read them, or for the result.
  Status KeepRows(int number, RowSet rows) {
    const Section& s = state_.section(number);
    const auto at = static_cast<size_t>(number);
    // Rows that the master alone has are distributed rows of which the others have none.
    if (s.after.append_to >= 0 && state_.distributed[static_cast<size_t>(s.after.append_to)])
      state_.distributed[at] = true;
    if (state_.distributed[at] && rows.columns.empty()) rows = MakeRowSet(TypesOfRows(s));
    if (s.after.append_to >= 0 && (state_.IsMaster() || state_.distributed[at]) && !device_.Keeps(number)) {
      if (device_.Keeps(s.after.append_to)) {
        TESSERA_ASSIGN(state_.result(s.after.append_to), device_.Fetch(s.after.append_to));
        device_.Drop(s.after.append_to);
      }
      RowSet first = std::move(state_.result(s.after.append_to));
      if (first.columns.empty()) first = MakeRowSet(TypesOfRows(s));
      std::vector<RowSet> behind;
      behind.push_back(std::move(rows));
      TESSERA_TRY(AppendAll(&first, std::move(behind), state_.pool));
      rows = std::move(first);
    }
    state_.result(number) = std::move(rows);
    return Status::Ok();
  }

  /// What this rank did, section by section.
  void FinishStatistics() {
    for (size_t i = 0; i < state_.program.sections.size(); ++i) {
      SectionAccount& account = state_.mine.sections.emplace_back();
      account.section = static_cast<int>(i);
      for (const SectionStatistics& s : statistics_->sections) {
        if (s.section != account.section) continue;
        account.rows_in = s.rows_in;
        account.rows_out = s.rows_out;
        account.tablets = s.tablets;
        account.bytes_read = s.bytes_read;
        if (s.on_gpu) state_.mine.device = state_.options.gpu_name;
      }
    }
    statistics_->mine = state_.mine;
  }

  void Record(SectionStatistics stats) {
    if (state_.section(stats.section).source_kind == Section::Source::kTable) {
      RankStatistics& mine = state_.mine;
      mine.rows_scanned += stats.rows_in;
      mine.tablets += stats.tablets;
      mine.bytes_read += stats.bytes_read;
      mine.bytes_transferred += stats.bytes_transferred;
    }
    state_.mine.transfer_work += stats.transfer_milliseconds;
    state_.mine.kernel_work += stats.kernel_milliseconds;
    if (statistics_ == nullptr) return;
    std::vector<SectionStatistics>& all = statistics_->sections;
    const auto earlier =
        std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.section == stats.section; });
    if (earlier == all.end()) return all.push_back(std::move(stats));
    // A turn of a recursion.
    earlier->rows_in += stats.rows_in;
    earlier->rows_out += stats.rows_out;
    earlier->milliseconds += stats.milliseconds;
  }

  RunState state_;
  Placement placement_;
  HostSections host_;
  DeviceSections device_;
  Recursions recursions_;
  RunStatistics* const statistics_;
  std::vector<int> readers_;  // by section: how many have yet to read its result
};

}  // namespace

void TakeAccounts(PhaseClock* clock, RankStatistics* rank) {
  for (SectionAccount& s : rank->sections) s.account = clock->Of(s.section);
  rank->account = clock->All();
  rank->spans = clock->spans();
  const Traffic traffic = rank->account.AllTraffic();
  rank->bytes_sent = traffic.sent;
  rank->bytes_received = traffic.received;
}

class Executor::Impl {
 public:
  explicit Impl(int threads) : pool(threads) {}
  ThreadPool pool;
};

bool SharedByRanks(const Section& section) {
  return section.source_kind == Section::Source::kTable || section.source_kind == Section::Source::kJoin;
}

Executor::Executor(int threads) : impl_(std::make_unique<Impl>(threads)) {}
Executor::~Executor() = default;
int Executor::threads() const { return impl_->pool.threads(); }
ThreadPool* Executor::pool() { return &impl_->pool; }

Status Executor::Run(const Program& program, const Snapshot& snapshot, const RunOptions& options,
                     const RowConsumer& consume, RunStatistics* statistics) {
  // Ranks tell each other of as many strings as a pool has, so theirs begin with none.
  const bool keeps = options.strings != nullptr && options.exchange == nullptr;
  return vm::Run(program, options, &impl_->pool, keeps ? options.strings : std::make_shared<StringPool>(), statistics)
      .Execute(snapshot, consume);
}

}  // namespace tessera::vm
