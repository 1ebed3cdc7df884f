// Where a program runs, and what is counted of it.

#include "session/program_run.h"

#include <algorithm>

#include "mpi/cluster.h"
#include "session/temporary_tables.h"
#include "tablet/files/unpacked_chunks.h"
#include "vm/program/section_traits.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

/// With device auto, a product of this many pairs of rows is worth a GPU, however small its tables: one core of a host
/// compares some 10^9 pairs a second.
constexpr uint64_t kGpuMinPairs = uint64_t{1} << 30;

/// A GPU compares the pairs of a grid some ten times as fast as a chain of that many matches is followed: bench/HISTORY.md.
constexpr double kGpuGridMatches = 128;

/// Build sides of fewer bytes are on every rank before the other side's rows would have come.
constexpr uint64_t kExchangeBytes = uint64_t{32} << 20;
/// A join table that all ranks' GPUs have may take this part of their memory: all tables get half of it, and while one is
/// made its rows are there twice.
constexpr uint64_t kGpuTableShare = 4;

/// Rows of table `number` of the program.
uint64_t TableRows(const vm::Program& program, const Snapshot& snapshot, int32_t number) {
  const TableInfo* const table = vm::TableOf(snapshot, program.tables[static_cast<size_t>(number)]);
  return table == nullptr ? 0 : table->rows;
}

/// Rows of the stored table that a section scans, or of the one whose rows it compares all with; 0 if there is none.
uint64_t ScannedRows(const vm::Program& program, const Snapshot& snapshot, const vm::Section& section) {
  const vm::Section* s = &section;
  if (s->source_kind == vm::Section::Source::kJoin) {
    s = &program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(s->source)].section)];
  }
  return s->source_kind == vm::Section::Source::kTable ? TableRows(program, snapshot, s->source) : 0;
}

/// Once there is a context, tables of this part of gpu_min_rows are read on the GPU: TPC-DS q30, 720,000 rows, takes 22 ms on
/// 16 threads and 7 on an H200.
constexpr uint64_t kPartWithContext = 4;

/// Whether a join of the program was asked to launch from the GPU, or cuts both sides, of many pairs.
bool HasJoinForGpu(const vm::Program& program, const Snapshot& snapshot) {
  for (const vm::Section& s : program.sections) {
    const int grid = vm::TraitsOf(program, s).grid;
    if (grid < 0) continue;
    const vm::JoinSpec& join = program.joins[static_cast<size_t>(grid)];
    if (vm::Info(join.strategy).place == vm::JoinPlace::kDevice) return true;
    const uint64_t inner = ScannedRows(program, snapshot, program.sections[static_cast<size_t>(join.section)]);
    if (inner > 0 && ScannedRows(program, snapshot, s) >= kGpuMinPairs / inner) return true;
  }
  return false;
}

bool UseGpu(const SessionState& state, const vm::Program& program, const Snapshot& snapshot) {
  if (state.settings.device == DeviceChoice::kHost) return false;
  if (state.settings.device == DeviceChoice::kGpu) return true;
  if (state.engine->gpu_failed()) return false;
  auto least = static_cast<uint64_t>(state.settings.gpu_min_rows);
  if (state.engine->gpu() != nullptr) least /= kPartWithContext;
  for (size_t i = 0; i < program.tables.size(); ++i) {
    if (TableRows(program, snapshot, static_cast<int32_t>(i)) >= least) return true;
  }
  return HasJoinForGpu(program, snapshot);
}

Status RunOnRanks(SessionState* state, const vm::Program& program, const Snapshot& snapshot,
                  const vm::RunOptions& options, const vm::RowConsumer& consume) {
  ClusterQuery query;
  query.program = &program;
  query.snapshot = &snapshot;
  query.choices = {options.gpu != nullptr, options.gpu_required, options.profile, state->options.trace,
                   state->options.gpu_memory};
  query.settings = ClusterSettingsOf(state->settings);
  return state->cluster->Run(query, state->running.executor.get(), options, consume, &state->running.statistics);
}

}  // namespace

ClusterSettings ClusterSettingsOf(const Settings& settings) {
  ClusterSettings out;
#define CLUSTER_SETTING(Type, Name, Default, Greatest, Comment) out.Name = static_cast<Type>(settings.Name);
#include "mpi/cluster_settings.def"
  return out;
}

PlanOptions PlanOptionsOf(const SessionState& state) {
  const Settings& settings = state.settings;
  PlanOptions out{settings.join_strategy, settings.grid_pruning, settings.timezone};
  out.invisible_join = settings.invisible_join;
  out.read_runs = settings.read_runs;
  out.key_spans = settings.key_spans;
  const bool on_host = settings.device == DeviceChoice::kHost || GpuCount() == 0;
  out.on_device = !on_host;
  if (!on_host) out.grid_from_matches = kGpuGridMatches;
  out.caches = [&state] {
    std::vector<CacheReport> caches = {UnpackedReport()};
    if (const Gpu* const gpu = state.engine->gpu(); gpu != nullptr) caches.push_back(gpu->Cache());
    return caches;
  };
  out.variables = &state.variables;
  out.files = &state.files;
  out.sequences = state.sequences.get();
  out.activity = state.activity.get();
  out.parameters = state.running.parameters;
  if (state.cluster == nullptr) return out;
  out.ranks = state.cluster->ranks();
  out.join_exchange = settings.join_exchange;
  out.exchange_above = static_cast<uint64_t>(settings.exchange_above);
  out.broadcast_bytes =
      settings.broadcast_limit != 0 ? static_cast<uint64_t>(settings.broadcast_limit) : state.cluster->least_room();
  // Between GPUs a table that fits each of them gets there faster than the rows that probe it get to the ranks of their
  // keys: 24 M rows in 1.5 ms, 180 M that probe in 18 (two H200).
  if (on_host) out.exchange_bytes = kExchangeBytes;
  if (!on_host && settings.broadcast_limit == 0) {
    const uint64_t gpu = state.options.gpu_memory != 0 ? state.options.gpu_memory : GpuMemoryBytes();
    if (gpu > 0) out.broadcast_bytes = std::min(out.broadcast_bytes, gpu / kGpuTableShare);
  }
  return out;
}

namespace {

/// What a query runs on the way does not wait for a turn again.
class TurnScope {
 public:
  TurnScope(SessionState* state, bool has_turn) : state_(*state), before_(state->running.has_turn) {
    state_.running.has_turn = before_ || has_turn;
  }
  ~TurnScope() { state_.running.has_turn = before_; }
  TurnScope(const TurnScope&) = delete;
  TurnScope& operator=(const TurnScope&) = delete;

 private:
  SessionState& state_;
  const bool before_;
};

}  // namespace

Status RunProgram(SessionState* state, const vm::Program& program, const Snapshot& snapshot,
                  const vm::RowConsumer& consume, bool profile, bool alone, vm::RowMarks* marks) {
  if (state->running.executor == nullptr || state->running.executor->threads() != state->threads()) {
    state->GiveBackExecutor();
    state->running.executor = state->engine->TakeExecutor(state->threads());
  }
  vm::RunOptions options;
  options.cancel = &state->cancel;
  options.gpu_required = state->settings.device == DeviceChoice::kGpu;
  // (The host takes less time for a thousand rows than a launch.)
  options.gpu_keep_from =
      std::clamp<uint64_t>(static_cast<uint64_t>(state->settings.gpu_min_rows), 1, options.gpu_keep_from);
  options.profile = profile;
  options.marks = marks;
  options.strings = state->running.strings;
#define RUN_SETTING(Type, Name, Default, Greatest, Comment) options.settings.Name = state->settings.Name;
#include "vm/run/run_settings.def"
  // The executor tells a fraction. It is shown as rows of the largest table or series, which is where the time goes.
  uint64_t rows = 0;
  for (const vm::Section& s : program.sections) rows = std::max(rows, static_cast<uint64_t>(s.source_rows));
  for (size_t i = 0; i < program.tables.size(); ++i)
    rows = std::max(rows, TableRows(program, snapshot, static_cast<int32_t>(i)));
  // (A transaction may hold what the others wait for.)
  Engine::QueryTurn among_large;
  const bool waits = rows >= Engine::kLargeQuery && !state->running.has_turn && !state->transaction.is_open;
  if (waits) {
    state->activity->Tell("waiting for other queries", 0, 0, ProgressUnit::kRows);
    TESSERA_ASSIGN(among_large, state->engine->WaitForTurn(state->cancel));
  }
  const TurnScope turn_scope(state, waits);
  const bool on_ranks = state->cluster != nullptr && ReadsTables(program) && !ReadsTemporary(program) && !alone;
  const bool on_gpu = UseGpu(*state, program, snapshot);
  // (Also for a GPU alone: who has it must not wait for the ranks of one that waits for it.)
  Engine::RanksTurn ranks_turn;
  if (on_ranks || (on_gpu && state->cluster != nullptr)) {
    TESSERA_ASSIGN(ranks_turn, state->engine->WaitForRanks(state->cancel));
  }
  Engine::GpuTurn turn;
  if (on_gpu) {
    Status opened = state->OpenGpu();
    if (!opened.ok() && options.gpu_required) return opened;
    if (Gpu* const gpu = state->engine->gpu(); gpu != nullptr) {
      TESSERA_ASSIGN(turn, state->engine->WaitForGpu(KindOf(program), state->cancel));
      options.gpu = gpu;
      options.gpu_name = gpu->info().name;
      TESSERA_TRY(gpu->SetTransfer(state->settings.transfer, static_cast<uint64_t>(state->settings.transfer_piece)));
    }
  }
  if (state->progress) {
    options.progress = [state, rows](double done) {
      state->progress({"query", static_cast<uint64_t>(done * static_cast<double>(rows)), rows, ProgressUnit::kRows});
    };
  }
  const auto consume_in_zone = [&](RowBatch&& batch) {
    for (ColumnVector& c : batch.columns) c.zone = state->settings.timezone;
    return consume(std::move(batch));
  };
  vm::RunStatistics* const statistics = &state->running.statistics;
  Status status = on_ranks ? RunOnRanks(state, program, snapshot, options, consume_in_zone)
                           : state->running.executor->Run(program, snapshot, options, consume_in_zone, statistics);
  for (const vm::SectionStatistics& section : statistics->sections) {
    state->running.timing.kernel += section.kernel_milliseconds;
    state->running.timing.bytes_read += section.bytes_read;
  }
  return status;
}

std::vector<vm::ResultColumn> ResultColumns(const Compiled& compiled) {
  std::vector<vm::ResultColumn> columns = compiled.program->columns;
  columns.resize(columns.size() - static_cast<size_t>(compiled.statement.carried));
  return columns;
}

Status RunQuery(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, const vm::RowConsumer& consume,
                bool profile, bool alone, vm::RowMarks* marks) {
  const RowRules& finish = compiled.statement.finish;
  if (!finish) return RunProgram(state, *compiled.program, snapshot, consume, profile, alone, marks);
  uint64_t rows = 0;
  const auto finished = [&](RowBatch&& batch) -> Status {
    TESSERA_TRY(finish(&batch, rows + 1));
    rows += batch.rows;
    return consume(std::move(batch));
  };
  return RunProgram(state, *compiled.program, snapshot, finished, profile, alone);
}

}  // namespace tessera
