// Runs the sections of a program in order: cuts each source into units of work, lets workers take them, joins what they made.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>

#include "vm/bind.h"
#include "vm/group_table.h"
#include "vm/join_table.h"
#include "vm/row_set.h"
#include "vm/thread_pool.h"
#include "vm/tile_machine.h"
#include "vm/vm.h"

namespace tessera::vm {
namespace {

/// Rows a worker takes at a time: large enough that taking costs nothing, small enough that workers end together. A multiple of kTileRows.
constexpr uint32_t kUnitRows = 1 << 16;
/// Rows in a batch that the consumer gets.
constexpr size_t kBatchRows = 1 << 14;

Status Cancelled() { return {ErrorCode::kCancelled, "canceling statement due to user request"}; }

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// A piece of a source: some rows of one tablet (or of the one intermediate result).
struct Unit {
  size_t tablet;
  uint32_t first, rows;
};

/// A tablet bound once, by whichever worker comes first.
struct LazyTablet {
  std::once_flag once;
  Status status;
  BoundTablet bound;
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

class Run {
 public:
  Run(const Program& program, const Snapshot& snapshot, const RunOptions& options, ThreadPool* pool, RunStatistics* statistics)
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
    for (const TableRef& ref : program_.tables) {
      auto same = [&](const std::shared_ptr<const TableInfo>& t) { return t->id == ref.id; };
      auto found = std::find_if(snapshot_.tables.begin(), snapshot_.tables.end(), same);
      if (found == snapshot_.tables.end()) return SqlError("table \"" + ref.name + "\" does not exist");
      tables_.push_back(found->get());
    }
    for (size_t i = 0; i < n; ++i) {
      if (program_.sections[i].source_kind == Section::Source::kDictionary) continue;
      TESSERA_TRY(RunSection(static_cast<int>(i)));
    }
    const RowSet& rows = results_.back();
    for (size_t first = 0; first < rows.rows; first += kBatchRows) {
      if (IsCancelled()) return Cancelled();
      TESSERA_TRY(consume(DecodeRows(rows, program_.columns, first, std::min(kBatchRows, rows.rows - first), strings_)));
    }
    return Status::Ok();
  }

 private:
  bool IsCancelled() const { return options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed); }

  Status RunSection(int number) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    const auto start = std::chrono::steady_clock::now();
    SectionStatistics stats;
    stats.label = s.label;
    Result<RowSet> rows = RowSet{};
    bool gpu = false;
    if (options_.gpu != nullptr && s.source_kind == Section::Source::kTable) {
      Status can = options_.gpu->CanRun(program_, number);
      if (can.ok() && (s.sink == Section::Sink::kRows || s.sink == Section::Sink::kGroups)) {
        gpu = true;
      } else if (options_.gpu_required) {
        return can.ok() ? Unsupported("this join runs on the host only", -1, "Use --device auto or host.") : can;
      }
    }
    if (gpu) {
      stats.on_gpu = true;
      SectionContext context;
      context.program = &program_;
      context.section = number;
      context.table = tables_[static_cast<size_t>(s.source)];
      context.strings = &strings_;
      context.cancel = options_.cancel;
      context.statistics = &stats;
      rows = options_.gpu->RunSection(context);
    } else {
      rows = RunOnHost(number, &stats);
    }
    if (!rows.ok()) return rows.status();
    if (s.sink == Section::Sink::kJoin) {
      auto join = std::make_unique<JoinIndex>();
      stats.rows_out = rows->rows;
      TESSERA_TRY(join->Finish(std::move(*rows), s.keys));
      key_ranges_[static_cast<size_t>(s.join)] = join->key_range();
      joins_[static_cast<size_t>(s.join)] = std::move(join);
    } else {
      if (s.sink == Section::Sink::kRows) OrderAndLimit(s, strings_, &*rows);
      stats.rows_out = rows->rows;
      results_[static_cast<size_t>(number)] = std::move(*rows);
    }
    if (s.source_kind == Section::Source::kSection && --readers_[static_cast<size_t>(s.source)] == 0) {
      results_[static_cast<size_t>(s.source)] = RowSet{};  // read for the last time
    }
    stats.milliseconds = MillisecondsSince(start);
    if (statistics_ != nullptr) statistics_->sections.push_back(std::move(stats));
    return Status::Ok();
  }

  Result<RowSet> RunOnHost(int number, SectionStatistics* stats) {
    const Section& s = program_.sections[static_cast<size_t>(number)];
    const TableInfo* table = s.source_kind == Section::Source::kTable ? tables_[static_cast<size_t>(s.source)] : nullptr;
    // What there is to do.
    std::vector<Unit> units;
    std::vector<LazyTablet> tablets(table != nullptr ? table->tablets.size() : 1);
    if (table != nullptr) {
      for (size_t t = 0; t < table->tablets.size(); ++t) {
        const uint32_t rows = table->tablets[t]->rows();
        for (uint32_t first = 0; first < rows; first += kUnitRows) units.push_back({t, first, std::min(kUnitRows, rows - first)});
      }
    } else {
      BoundTablet bound;
      bound.rows = 1;
      if (s.source_kind == Section::Source::kSection) {
        const RowSet& from = results_[static_cast<size_t>(s.source)];
        if (from.rows > UINT32_MAX - kUnitRows) return Status(ErrorCode::kResource, "an intermediate result has more than 2^32 rows");
        bound = BindRows(s, from);
      }
      std::call_once(tablets[0].once, [] {});
      tablets[0].bound = std::move(bound);
      const uint32_t rows = tablets[0].bound.rows;
      for (uint32_t first = 0; first < rows; first += kUnitRows) units.push_back({0, first, std::min(kUnitRows, rows - first)});
    }
    const bool grouped = s.sink == Section::Sink::kGroups;
    const int workers = static_cast<int>(std::clamp<size_t>(units.size(), 1, static_cast<size_t>(pool_->threads())));
    // Enough rows for a LIMIT without ORDER BY: counted over the units that are done without a gap.
    const bool may_stop = s.sink == Section::Sink::kRows && s.order.empty() && s.limit >= 0;
    const uint64_t enough = may_stop ? static_cast<uint64_t>(s.offset) + static_cast<uint64_t>(s.limit) : 0;
    std::vector<RowSet> unit_rows(grouped ? 0 : units.size());
    std::vector<std::unique_ptr<GroupTable>> groups(static_cast<size_t>(workers));
    std::vector<uint8_t> unit_done(may_stop ? units.size() : 0);
    size_t prefix = 0;
    uint64_t prefix_rows = 0;

    std::atomic<size_t> next{0}, done{0};
    std::atomic<uint64_t> rows_in{0};
    std::atomic<bool> stop{false};
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
    pool_->Run(workers, [&](int worker) {
      std::unique_ptr<TileMachine> machine;
      if (grouped) groups[static_cast<size_t>(worker)] = std::make_unique<GroupTable>(s, &strings_);
      while (!stop.load(std::memory_order_relaxed)) {
        const size_t u = next.fetch_add(1);
        if (u >= units.size()) break;
        const Unit& unit = units[u];
        LazyTablet& tablet = tablets[unit.tablet];
        if (table != nullptr) {
          std::call_once(tablet.once, [&] {
            Result<BoundTablet> bound = BindTablet(program_, number, *table->tablets[unit.tablet], &strings_, key_ranges_);
            if (bound.ok()) {
              tablet.bound = std::move(*bound);
            } else {
              tablet.status = bound.status();
            }
          });
          if (!tablet.status.ok()) return fail(u, tablet.status);
        }
        TileSinks sinks;
        if (grouped) {
          sinks.groups = groups[static_cast<size_t>(worker)].get();
        } else {
          unit_rows[u] = MakeRowSet(s.columns);
          sinks.rows = &unit_rows[u];
        }
        if (!tablet.bound.skip) {
          if (machine == nullptr) machine = std::make_unique<TileMachine>(program_, number, joins_, &strings_);
          for (uint32_t at = 0; at < unit.rows; at += kTileRows) {
            if (IsCancelled()) return fail(u, Cancelled());
            Status status = machine->RunTile(tablet.bound, unit.first + at, static_cast<int>(std::min<uint32_t>(kTileRows, unit.rows - at)), sinks);
            if (!status.ok()) return fail(u, std::move(status));
          }
          rows_in += unit.rows;
        }
        const size_t finished = ++done;
        if (options_.progress) options_.progress(static_cast<double>(finished) / static_cast<double>(units.size()));
        if (may_stop) {
          std::lock_guard<std::mutex> lock(mutex);
          unit_done[u] = 1;
          for (; prefix < units.size() && unit_done[prefix] != 0; ++prefix) prefix_rows += unit_rows[prefix].rows;
          if (prefix_rows >= enough) stop = true;
        }
      }
    });
    if (!error.ok()) return error;
    stats->rows_in = rows_in;
    if (table != nullptr) {
      stats->tablets = tablets.size();
      for (const LazyTablet& t : tablets) {
        if (t.bound.skip) {
          ++stats->tablets_skipped;
        } else {
          stats->bytes_read += t.bound.encoded_bytes;
        }
      }
    }
    if (grouped) {
      for (size_t w = 1; w < groups.size(); ++w) TESSERA_TRY(groups[0]->Merge(*groups[w]));
      return groups[0]->Rows();
    }
    RowSet all = MakeRowSet(s.columns);
    for (RowSet& r : unit_rows) {
      if (r.rows > 0) AppendRows(&all, std::move(r));
    }
    return all;
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
};

}  // namespace

class Executor::Impl {
 public:
  explicit Impl(int threads) : pool(threads) {}
  ThreadPool pool;
};

Executor::Executor(int threads) : impl_(std::make_unique<Impl>(threads)) {}
Executor::~Executor() = default;
int Executor::threads() const { return impl_->pool.threads(); }

Status Executor::Run(const Program& program, const Snapshot& snapshot, const RunOptions& options, const RowConsumer& consume,
                     RunStatistics* statistics) {
  return vm::Run(program, snapshot, options, &impl_->pool, statistics).Sections(consume);
}

}  // namespace tessera::vm
