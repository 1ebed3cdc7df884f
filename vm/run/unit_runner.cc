// Gives units to workers, and tiles to their machines.

#include "vm/run/unit_runner.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/clock.h"
#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "vm/rows/row_set.h"
#include "vm/run/row_marks.h"
#include "vm/shares/portion.h"

namespace tessera::vm {
namespace {

/// How often the MPI thread polls, in rows of a unit.
constexpr uint32_t kPollRows = 8 * kTileRows;
/// ... and in backward jumps of a tile.
constexpr int kPollSteps = 16;
/// When the units of a stream hold this many rows together, no more units are started.
constexpr uint64_t kStreamAllRows = 1 << 21;

/// The error of the earliest unit that failed.
class FirstError {
 public:
  void Note(size_t unit, Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (unit >= unit_) return;
    unit_ = unit;
    status_ = std::move(status);
  }
  /// REQUIRES: no worker runs.
  Status Take() { return std::move(status_); }

 private:
  std::mutex mutex_;
  Status status_;
  size_t unit_ = SIZE_MAX;
};

/// Whether there are enough rows for a LIMIT without ORDER BY. Only the units before the first that has not run count.
class EnoughRows {
 public:
  EnoughRows(const UnitWindow& window, const std::deque<UnitOutput>* outputs)
      : wanted_(window.wanted), outputs_(outputs), has_run_(wanted_ == UINT64_MAX ? 0 : window.size()) {}

  /// Notes that a unit has run. True if there are enough rows now.
  bool NoteRun(size_t unit) {
    if (wanted_ == UINT64_MAX) return false;
    std::lock_guard<std::mutex> lock(mutex_);
    has_run_[unit] = 1;
    for (; first_ < has_run_.size() && has_run_[first_] != 0; ++first_) rows_ += (*outputs_)[first_].rows.rows;
    return rows_ >= wanted_;
  }

 private:
  const uint64_t wanted_;
  const std::deque<UnitOutput>* const outputs_;
  std::mutex mutex_;
  std::vector<uint8_t> has_run_;
  size_t first_ = 0;   // the first that has not run
  uint64_t rows_ = 0;  // of those before it
};

class UnitRunner {
 public:
  UnitRunner(RunState* state, Scan* scan, const UnitWindow& window, std::deque<UnitOutput>* outputs)
      : state_(*state),
        section_(state->section(scan->number)),
        scan_(*scan),
        window_(window),
        outputs_(outputs),
        enough_(window, outputs),
        made_before_(scan->counts.rows_out),
        next_(window.begin) {
    for (size_t u = 0; window.streams() && u < window.size(); ++u) held_ += (*outputs)[u].rows.rows;
  }

  Status Run() {
    const size_t workers = std::clamp<size_t>(window_.size(), 1, static_cast<size_t>(state_.pool->threads()));
    if (scan_.machines.size() < workers) scan_.machines.resize(workers);
    if (IsGrouped() && scan_.groups.size() < workers) scan_.groups.resize(workers);
    if (scan_.table != nullptr && scan_.ahead == nullptr) {
      scan_.ahead = std::make_unique<ReadAhead>(scan_.encoder.get(), scan_.table, TabletsInOrder(), true);
    }
    const auto start = Clock::now();
    const MemoryPurpose purpose(IsGrouped() ? "grouping" : "holding rows");
    TESSERA_TRY(state_.pool->Run(static_cast<int>(workers), [&](int worker) {
      try {
        Work(static_cast<size_t>(worker));
      } catch (...) {  // the other workers and ranks must learn of it
        Fail(SIZE_MAX - 1, StatusOfException());
      }
      return Status::Ok();
    }));
    scan_.counts.milliseconds += MillisecondsSince(start);
    return error_.Take();
  }

 private:
  bool IsGrouped() const { return section_.sink == Section::Sink::kGroups; }
  bool Backwards() const { return !IsGrouped() && scan_.top->Backwards(); }

  /// The tablets of this rank's units, as workers come to them.
  std::vector<size_t> TabletsInOrder() const {
    const ScanUnits& units = scan_.units;
    std::vector<size_t> order;
    std::vector<bool> known(scan_.table->tablets.size());
    const auto add = [&](size_t block) {
      const size_t tablet = units.blocks[block].tablet;
      if (!known[tablet]) order.push_back(tablet);
      known[tablet] = true;
    };
    if (Backwards() && units.grid < 0) {
      for (size_t begin = 0; begin < units.size(); begin += kWindowUnits) {
        for (size_t u = std::min(units.size(), begin + kWindowUnits); u > begin; --u) add(units.At(u - 1).block);
      }
    } else {
      for (size_t b = 0; b < units.blocks.size(); ++b) {
        if (units.HasBlock(b)) add(b);
      }
    }
    return order;
  }

  void Fail(size_t unit, Status status) {
    error_.Note(unit, std::move(status));
    stop_ = true;
  }
  void NoteRun(size_t unit) {
    if (enough_.NoteRun(unit - window_.begin)) stop_ = true;
  }

  /// Takes units until there are none left, or until `stop_` is set.
  void Work(size_t worker) {
    if (IsGrouped() && scan_.groups[worker] == nullptr)
      scan_.groups[worker] = std::make_unique<WorkerGroups>(section_, &state_.strings, scan_.groups.size());
    while (!stop_.load(std::memory_order_relaxed)) {
      // The first unit runs in any case, because the consumer waits for it.
      const bool full = window_.streams() && window_.marks == nullptr &&
                        held_ + scan_.counts.rows_out - made_before_ >= RowsByWidth(kStreamAllRows, section_);
      if (full && next_.load() > window_.begin) break;
      const size_t taken = next_.fetch_add(1);
      if (taken >= window_.end) break;
      const size_t u = Backwards() ? window_.begin + (window_.end - 1 - taken) : taken;
      Status status = RunUnit(worker, u);
      if (!status.ok()) return Fail(u, std::move(status));
      NoteRun(u);
    }
  }

  /// Runs a unit to its end, or until it holds as many rows as it may.
  Status RunUnit(size_t worker, size_t u) {
    const Unit unit = scan_.units.At(u);
    const Block& block = scan_.units.blocks[unit.block];
    UnitOutput* const output = IsGrouped() ? nullptr : &(*outputs_)[u - window_.begin];
    if (output != nullptr && output->MustWait()) return Status::Ok();
    LazyTablet& tablet = scan_.tablets[block.tablet];
    if (scan_.table != nullptr) {
      if (!tablet.done) Read(unit.block, &tablet);
      TESSERA_TRY(tablet.status);
    }
    if (IsWanted(tablet.encoded)) {
      const Coverage reaching = scan_.pruning.Reaching(unit);
      const uint64_t pairs = scan_.units.PairsOf(unit);
      if (reaching == Coverage::kNone) {
        scan_.counts.pruned_pairs += pairs;
      } else {
        TESSERA_TRY(RunTiles(worker, unit, tablet.encoded, reaching, output));
        if (output != nullptr && output->suspended != nullptr) return Status::Ok();
        scan_.counts.pairs += pairs;
      }
      if (unit.IsFirstOfBlock() && !scan_.counted) scan_.counts.rows_in += block.rows;
    }
    if (output != nullptr) output->done = true;
    // What packed chunks were unpacked to may go.
    if (scan_.table != nullptr && scan_.units.grid < 0 && --tablet.units_left == 0) {
      tablet.encoded.chunks.clear();
      tablet.encoded.tile_codes.clear();
    }
    const size_t finished = window_.begin + ++done_;
    if (state_.options.progress)
      state_.options.progress(scan_.done +
                              scan_.round * static_cast<double>(finished) / static_cast<double>(scan_.units.size()));
    return Status::Ok();
  }

  /// Encodes the tablet of a block. If a worker has begun, encodes one that comes next, because one worker unpacks all columns of
  /// a tablet, which has units for many; and then helps.
  void Read(size_t block, LazyTablet* to) {
    const PhaseScope phase(Phase::kRead);
    while (!to->done) {
      if (!to->begun.exchange(true)) {
        Encode(scan_.units.blocks[block].tablet, false, to);
      } else {
        EncodeNext(block, *to);
        scan_.loops.HelpUntil([&] { return to->done || !to->begun; });
      }
    }
  }
  /// While `awaited` is not done, the first tablet after a block that no thread has begun and that is not skipped, if this rank will
  /// read it for sure and there is plenty of memory.
  void EncodeNext(size_t block, const LazyTablet& awaited) {
    const ScanUnits& units = scan_.units;
    const bool reads_all = IsGrouped() || (window_.wanted == UINT64_MAX && !scan_.top->active() && !window_.streams());
    if (!reads_all || units.grid >= 0) return;
    const size_t end = units.At(window_.end - 1).block + 1;
    for (size_t b = block + 1; b < end && !awaited.done && !stop_.load(std::memory_order_relaxed); ++b) {
      const size_t number = units.blocks[b].tablet;
      LazyTablet& next = scan_.tablets[number];
      if (!units.HasBlock(b) || next.begun) continue;
      const uint64_t bytes = uint64_t{scan_.table->tablets[number]->rows()} * section_.slots.size() * sizeof(int64_t);
      const bool is_plenty = MemoryUsed() + (ahead_bytes_ += bytes) <= MemoryLimit() / 2;
      const bool encodes = is_plenty && !next.begun.exchange(true);
      const bool skipped = !encodes || Encode(number, true, &next);
      ahead_bytes_ -= bytes;
      if (!is_plenty || !skipped) return;
    }
  }
  /// `ahead`: without memory for it, it is not begun. Returns whether it is skipped.
  bool Encode(size_t number, bool ahead, LazyTablet* to) {
    const auto start = Clock::now();
    const LoopRunner loop = [&](size_t n, const std::function<Status(size_t)>& f) { return scan_.loops.Run(n, f); };
    Result<TabletEncoding> encoded = Caught([&] {
      scan_.ahead->Begin(number);
      return scan_.encoder->Encode(*scan_.table->tablets[number], nullptr, loop);
    });
    const bool skipped = encoded.ok() && encoded->skip;
    if (ahead && !encoded.ok() && encoded.status().code() == ErrorCode::kResource) {
      to->begun = false;
    } else {
      if (encoded.ok()) {
        to->encoded = std::move(*encoded);
      } else {
        to->status = encoded.status();
      }
      to->done = true;
    }
    scan_.loops.Wake();
    scan_.counts.read_nanoseconds += static_cast<uint64_t>((Clock::now() - start) / std::chrono::nanoseconds(1));
    return skipped;
  }

  /// Whether any row of the tablet can be in the result.
  bool IsWanted(const TabletEncoding& tablet) const {
    if (tablet.skip) return false;
    return scan_.table == nullptr || IsGrouped() || !scan_.top->LeavesOut(tablet);
  }

  /// Runs the rest of the unit's tiles. If it gets suspended, its machine is in `output` afterwards.
  Status RunTiles(size_t worker, const Unit& unit, const TabletEncoding& tablet, Coverage reaching,
                  UnitOutput* output) {
    const Block& block = scan_.units.blocks[unit.block];
    std::unique_ptr<TileMachine>& machine = scan_.machines[worker];
    TileSinks sinks;
    uint32_t at = 0;
    uint64_t rows_before = 0, marked = 0;
    if (output == nullptr) {
      sinks.groups = &scan_.groups[worker]->table;
    } else {
      sinks.rows = &output->rows;
      at = output->at;
      rows_before = output->rows.rows;
    }
    if (output != nullptr && output->suspended != nullptr) {
      machine = std::move(output->suspended);
    } else {
      if (output != nullptr) output->rows = MakeRowSet(section_.columns);
      if (machine == nullptr) machine = NewMachine();
      if (scan_.units.grid >= 0) {
        const int all_from = reaching == Coverage::kAll ? scan_.pruning.program.all_from : -1;
        machine->MeetRows(scan_.units.grid, unit.range_first, unit.range_end, all_from);
      }
    }
    if (state_.options.exchange != nullptr)
      machine->StopIf([this, worker, asked = 0]() mutable { return StoppedInTile(worker, &asked); });
    machine->StartAt(scan_.first_rows.empty() ? scan_.place : scan_.place + scan_.first_rows[block.tablet]);
    const uint64_t first_cycle = state_.options.profile ? __builtin_ia32_rdtsc() : 0;
    for (; at < block.rows; at += kTileRows) {
      TESSERA_TRY(CheckCancelled(worker, at));
      const int rows = static_cast<int>(std::min<uint32_t>(kTileRows, block.rows - at));
      TESSERA_TRY(machine->suspended() ? machine->ResumeTile(sinks)
                                       : machine->RunTile(tablet, block.first + at, rows, sinks));
      if (output == nullptr) {
        TESSERA_TRY(scan_.groups[worker]->AfterTile());
        if (scan_.groups[worker]->table.groups() >= scan_.enough_groups) {
          scan_.has_groups = stop_ = true;
          break;
        }
      }
      if (output != nullptr) {
        const bool end = at + kTileRows >= block.rows;
        TESSERA_TRY(scan_.top->Cut(end, state_.strings, &output->rows));
        scan_.first_of_keys->Cut(end, state_.strings, &output->rows);
      }
      if (window_.marks != nullptr) {
        marked += output->rows.rows;
        TESSERA_TRY(MarkRows(&output->rows));
      }
      scan_.counts.decoded_bytes += machine->TakeDecodedBytes();
      if (machine->suspended()) {
        output->at = at;
        output->suspended = std::move(machine);
        break;
      }
      if (output != nullptr && output->rows.rows >= window_.wanted) break;  // the unit has all that are wanted itself
    }
    if (state_.options.profile) scan_.counts.cycles += __builtin_ia32_rdtsc() - first_cycle;
    if (output != nullptr) scan_.counts.rows_out += output->rows.rows + marked - rows_before;
    return Status::Ok();
  }

  /// Hands the numbers of rows over, while they are in the cache.
  Status MarkRows(RowSet* rows) {
    std::vector<int64_t>* const numbers = &rows->columns[0].low;
    TESSERA_TRY(window_.marks->TakeShare(*numbers));
    numbers->clear();
    rows->columns[0].null.clear();
    rows->rows = 0;
    return Status::Ok();
  }

  // Only one thread calls MPI: worker 0.

  /// Whether another rank has called Stop. Called at the backward jumps of a tile.
  bool StoppedInTile(size_t worker, int* asked) {
    if (worker == 0 && ++*asked % kPollSteps == 0 && state_.options.exchange->Stopped()) stopped_elsewhere_ = true;
    return stopped_elsewhere_.load(std::memory_order_relaxed);
  }
  /// kCancelled if the user has cancelled, or another rank has called Stop. Called between tiles. `at`: rows of the
  /// unit before the next tile.
  Status CheckCancelled(size_t worker, uint32_t at) {
    if (state_.IsCancelled()) return Cancelled();
    if (worker == 0 && state_.options.exchange != nullptr && at % kPollRows == 0 && state_.options.exchange->Stopped())
      return Cancelled();
    return Status::Ok();
  }

  std::unique_ptr<TileMachine> NewMachine() {
    auto machine = std::make_unique<TileMachine>(state_.program, scan_.number, state_.traits.section(scan_.number),
                                                 state_.joins.indexes(), &state_.strings);
    machine->CountJoined(scan_.counts.joined.get(), state_.options.profile);
    if (scan_.top->active()) machine->EmitOnly(scan_.top.get());
    machine->StopOn(state_.options.cancel);
    machine->SuspendAt(window_.suspend_at);
    return machine;
  }

  RunState& state_;
  const Section& section_;
  Scan& scan_;
  const UnitWindow& window_;
  std::deque<UnitOutput>* const outputs_;
  FirstError error_;
  EnoughRows enough_;
  uint64_t held_ = 0;  // rows that the units of a stream held before this call
  const uint64_t made_before_;
  std::atomic<size_t> next_, done_{0};
  std::atomic<uint64_t> ahead_bytes_{0};  ///< that tablets may take which are being encoded ahead
  std::atomic<bool> stop_{false}, stopped_elsewhere_{false};
};

}  // namespace

Status RunUnits(RunState* state, Scan* scan, const UnitWindow& window, std::deque<UnitOutput>* outputs) {
  return UnitRunner(state, scan, window, outputs).Run();
}

}  // namespace tessera::vm
