// Statements: compiled against the newest snapshot, run by the executor, the tables' writers or the session's settings.

#include "session/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <new>
#include <thread>

#include "base/clock.h"
#include "compiler/compiler.h"
#include "compiler/nearest_name.h"
#include "kernels/kernels.h"
#include "mpi/cluster.h"
#include "session/processors.h"
#include "session/standard_streams.h"
#include "session/statistics_text.h"

namespace tessera {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kDefaultLockTimeout = 10'000;  // milliseconds
constexpr uint32_t kMaxTabletRows = 1 << 20;
/// With device auto, tables with fewer rows stay on the host: the first query on a GPU pays some hundred milliseconds
/// for the CUDA context, and below a few tablets the host is as fast as a launch.
constexpr int64_t kDefaultGpuMinRows = 1 << 20;
/// With device auto, products of so many pairs of rows are worth a GPU, however small their tables: a second of a
/// host's core compares some 10^9.
constexpr uint64_t kGpuMinPairs = uint64_t{1} << 30;

struct Setting {
  const char* name;
  const char* description;
};
constexpr Setting kSettings[] = {
    {"broadcast_limit", "bytes of a join's build side that a rank has room for; 0: a quarter of its memory"},
    {"device", "where queries run: auto, host or gpu"},
    {"gpu_min_rows", "with device auto, scans of tables with fewer rows stay on the host"},
    {"grid_pruning", "whether pairs of a grid are left out whose ranges of values cannot match: on or off"},
    {"join_partitioning",
     "whether a GPU orders rows by a join table's places before it looks them up: auto, on or off"},
    {"join_strategy", "how joins find their pairs: auto, hash, dp, grid or loop"},
    {"lock_timeout", "milliseconds to wait for another process that writes"},
    {"replicate_below", "tables with fewer encoded bytes are on every rank; 0: none"},
    {"scatter_memory",
     "bytes of received tablets that a rank keeps in memory, the rest on disk; 0: half of its memory"},
    {"tablet_rows", "rows a tablet of new tables that do not say WITH (tablet_rows = N); 0: chosen at the first load"},
    {"threads", "threads on the host"},
};

const char* DeviceName(DeviceChoice device) {
  switch (device) {
    case DeviceChoice::kHost:
      return "host";
    case DeviceChoice::kGpu:
      return "gpu";
    case DeviceChoice::kAuto:
      break;
  }
  return "auto";
}

constexpr std::array<const char*, 5> kJoinChoices = {"auto", "hash", "dp", "grid", "loop"};  // as JoinChoice
constexpr std::array<const char*, 3> kPartitionings = {"auto", "on", "off"};                 // as JoinPartitioning

Status InvalidValue(const std::string& name, const std::string& value, const std::string& hint) {
  return SqlError("invalid value for parameter \"" + name + "\": \"" + value + "\"", -1, hint);
}

Status NoSuchSetting(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Setting& s : kSettings) names.emplace_back(s.name);
  const std::string nearest = NearestName(name, names);
  return SqlError("unrecognized configuration parameter \"" + name + "\"", -1,
                  nearest.empty() ? "SHOW ALL lists the settings." : "Perhaps you meant \"" + nearest + "\".");
}

Result<int64_t> IntegerSetting(const std::string& name, const std::string& value, int64_t least, int64_t greatest) {
  int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || at != end || number < least || number > greatest) {
    return InvalidValue(name, value, fmt::format("An integer from {} to {}.", least, greatest));
  }
  return number;
}

/// Hands rows to a writer, Begin before the first of them: an error before that leaves nothing behind.
class RowForwarder {
 public:
  RowForwarder(const std::vector<vm::ResultColumn>& columns, ResultWriter* out) : columns_(columns), out_(out) {}

  Status Rows(RowBatch&& batch) {
    TESSERA_TRY(Begin());
    rows_ += batch.rows;
    return out_->Rows(std::move(batch));
  }
  Status End() {
    TESSERA_TRY(Begin());
    return out_->End();
  }
  uint64_t rows() const { return rows_; }

 private:
  Status Begin() {
    if (begun_) return Status::Ok();
    begun_ = true;
    return out_->Begin(columns_);
  }

  const std::vector<vm::ResultColumn>& columns_;
  ResultWriter* out_;
  bool begun_ = false;
  uint64_t rows_ = 0;
};

}  // namespace

class Session::Impl {
 public:
  ~Impl() {
    if (cluster_ != nullptr) cluster_->CloseDatabase();
  }

  Status Open(const SessionOptions& options) {
    options_ = options;
    threads_given_ = options.threads > 0;
    threads_ = threads_given_ ? std::min(options.threads, kMaxThreads) : DefaultThreads();
    TESSERA_ASSIGN(database_, Database::Open(options.directory, options.mode));
    database_->SetLockTimeout(lock_timeout_);
    if (options.cluster != nullptr && options.cluster->ranks() > 1) {
      std::error_code error;
      const std::string path = std::filesystem::canonical(database_->directory(), error).string();
      TESSERA_TRY(options.cluster->OpenDatabase(error ? database_->directory() : path, options.directory.empty(),
                                                options.scatter));
      cluster_ = options.cluster;
    }
    return SetDevice(options.device);
  }

  Status SetDevice(DeviceChoice device) {
    if (device == DeviceChoice::kGpu) TESSERA_TRY(OpenGpu());
    device_ = device;
    return Status::Ok();
  }

  Status Execute(std::string_view sql, ResultWriter* out) {
    // A Cancel() that began while the last statement ran must not reach this one: wait until none is under way, then
    // make the flag new. The wait is as long as two instructions of a signal handler.
    while (cancels_under_way_.load() != 0) std::this_thread::yield();
    cancel_ = false;
    running_ = true;
    timing_ = Timing{};
    statistics_ = vm::RunStatistics{};
    const auto start = Clock::now();
    Status status;
    try {
      status = Run(sql, out);
    } catch (const std::bad_alloc&) {
      status = OutOfMemory();
    }
    timing_.total = MillisecondsSince(start);
    running_ = false;
    // Whoever noticed the flag says it in one voice.
    if (!status.ok() && status.code() == ErrorCode::kCancelled) return Cancelled();
    return status;
  }

  void Cancel() {
    ++cancels_under_way_;
    if (running_) cancel_ = true;
    --cancels_under_way_;
  }

  int DefaultThreads() const {
    return ProcessorsOfRank(options_.cluster != nullptr ? options_.cluster->local_ranks() : 1);
  }

  Status OpenGpu() {
    if (gpu_ != nullptr) return Status::Ok();
    if (gpu_error_.ok()) {
      const int ordinal = cluster_ != nullptr && GpuCount() > 0 ? cluster_->local_rank() % GpuCount() : 0;
      Result<std::unique_ptr<Gpu>> gpu = Gpu::Open(ordinal, GpuOptions{options_.gpu_memory});
      if (gpu.ok()) {
        gpu_ = std::move(*gpu);
        return Status::Ok();
      }
      // Whatever the reason, it is the device that is missing.
      gpu_error_ = {ErrorCode::kDevice, gpu.status().message(), gpu.status().hint()};
    }
    return gpu_error_;
  }

  std::string HostDescription() const { return fmt::format("host, {} thread{}", threads_, threads_ == 1 ? "" : "s"); }

  SessionOptions options_;
  std::unique_ptr<Database> database_;
  Cluster* cluster_ = nullptr;  ///< nullptr if there are no other ranks
  ClusterSettings cluster_settings_;
  DeviceChoice device_ = DeviceChoice::kAuto;
  int threads_ = 1;
  bool threads_given_ = false;  ///< by the user; otherwise every rank looks for itself
  uint32_t tablet_rows_ = 0;
  int lock_timeout_ = kDefaultLockTimeout;
  int64_t gpu_min_rows_ = kDefaultGpuMinRows;
  vm::JoinPartitioning join_partitioning_ = vm::JoinPartitioning::kAuto;
  PlanOptions plan_options_;
  std::unique_ptr<vm::Executor> executor_;  ///< made by the first query, and anew when the number of threads changes
  std::unique_ptr<Gpu> gpu_;                ///< opened by the first query that may use it
  Status gpu_error_;                        ///< why it could not be opened; not tried again
  std::function<void(const Progress&)> progress_;
  Timing timing_;
  vm::RunStatistics statistics_;

 private:
  Status Run(std::string_view sql, ResultWriter* out) {
    TESSERA_ASSIGN(std::shared_ptr<const Snapshot> snapshot, database_->Read());
    const auto start = Clock::now();
    TESSERA_ASSIGN(Compiled compiled, Compile(sql, *snapshot, plan_options_));
    timing_.compile = MillisecondsSince(start);
    if (cancel_) return Cancelled();
    const auto execution = Clock::now();
    Status status = RunCompiled(compiled, *snapshot, out);
    timing_.execute = MillisecondsSince(execution);
    statistics_.mine.compile = timing_.compile;
    if (statistics_.ranks.empty()) {
      statistics_.mine.rows_out = timing_.rows;
      statistics_.mine.total = timing_.compile + timing_.execute;
      statistics_.ranks.push_back(statistics_.mine);
    } else {
      statistics_.ranks[0].compile = timing_.compile;
    }
    return status;
  }

  Status RunCompiled(const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
    const Statement& s = compiled.statement;
    if (s.explain) return Explain(compiled, snapshot, out);
    switch (s.kind) {
      case Statement::Kind::kSelect:
        return Select(compiled, snapshot, out);
      case Statement::Kind::kInsert: {
        TESSERA_TRY(Insert(compiled, snapshot));
        return out->Done(fmt::format("INSERT 0 {}", timing_.rows));
      }
      case Statement::Kind::kCreateTable: {
        TableSchema schema = s.schema;
        if (schema.tablet_rows == 0) schema.tablet_rows = tablet_rows_;
        TESSERA_TRY(database_->CreateTable(schema, s.if_exists));
        return out->Done("CREATE TABLE");
      }
      case Statement::Kind::kDropTable:
        TESSERA_TRY(database_->DropTable(s.table, s.if_exists));
        return out->Done("DROP TABLE");
      case Statement::Kind::kCopyFrom:
        return CopyFrom(s, out);
      case Statement::Kind::kCopyTo:
        return CopyTo(compiled, snapshot, out);
      case Statement::Kind::kSet:
        TESSERA_TRY(Set(s.setting, s.value));
        return out->Done("SET");
      case Statement::Kind::kShow:
        return Show(s.setting, out);
    }
    return {ErrorCode::kInternal, "a statement of an unknown kind"};
  }

  /// Runs the program; fills timing and statistics, those of single joins if `profile`.
  Status RunProgram(const vm::Program& program, const Snapshot& snapshot, const vm::RowConsumer& consume,
                    bool profile = false) {
    if (executor_ == nullptr || executor_->threads() != threads_) executor_ = std::make_unique<vm::Executor>(threads_);
    vm::RunOptions options;
    options.cancel = &cancel_;
    options.gpu_required = device_ == DeviceChoice::kGpu;
    options.profile = profile;
    options.join_partitioning = join_partitioning_;
    if (UseGpu(program, snapshot)) {
      Status opened = OpenGpu();
      if (!opened.ok() && options.gpu_required) return opened;
      options.gpu = gpu_.get();
    }
    if (progress_) {
      // The executor tells a fraction; shown as rows of the largest table, which is where the time goes.
      uint64_t rows = 0;
      for (const vm::TableRef& ref : program.tables) {
        const std::shared_ptr<const TableInfo> table = snapshot.Find(ref.name);
        if (table != nullptr) rows = std::max(rows, table->rows);
      }
      options.progress = [this, rows](double done) {
        progress_({"query", static_cast<uint64_t>(done * static_cast<double>(rows)), rows, ProgressUnit::kRows});
      };
    }
    double print = 0;
    const auto timed_consume = [&](RowBatch&& batch) {
      const auto start = Clock::now();
      Status consumed = consume(std::move(batch));
      print += MillisecondsSince(start);
      return consumed;
    };
    Status status = cluster_ != nullptr && ReadsTables(program)
                        ? RunOnRanks(program, snapshot, options, timed_consume)
                        : executor_->Run(program, snapshot, options, timed_consume, &statistics_);
    statistics_.mine.print = print;
    if (!statistics_.ranks.empty()) statistics_.ranks[0].print = print;
    for (const vm::SectionStatistics& section : statistics_.sections) {
      timing_.kernel += section.kernel_milliseconds;
      timing_.bytes_read += section.bytes_read;
    }
    return status;
  }

  Status RunOnRanks(const vm::Program& program, const Snapshot& snapshot, const vm::RunOptions& options,
                    const vm::RowConsumer& consume) {
    ClusterQuery query;
    query.program = &program;
    query.snapshot = &snapshot;
    query.threads = threads_given_ ? threads_ : 0;
    query.use_gpu = UseGpu(program, snapshot);
    query.gpu_required = options.gpu_required;
    query.gpu_memory = options_.gpu_memory;
    query.settings = cluster_settings_;
    return cluster_->Run(query, executor_.get(), options, consume, &statistics_);
  }

  bool UseGpu(const vm::Program& program, const Snapshot& snapshot) const {
    if (device_ == DeviceChoice::kHost) return false;
    if (device_ == DeviceChoice::kGpu) return true;
    if (!gpu_error_.ok()) return false;
    const auto rows_of = [&](int32_t number) -> uint64_t {
      const std::shared_ptr<const TableInfo> table = snapshot.Find(program.tables[static_cast<size_t>(number)].name);
      return table == nullptr ? 0 : table->rows;
    };
    for (size_t i = 0; i < program.tables.size(); ++i) {
      if (rows_of(static_cast<int32_t>(i)) >= static_cast<uint64_t>(gpu_min_rows_)) return true;
    }
    // Small tables make large products, and dp was asked for by name.
    const auto scanned = [&](const vm::Section* s) -> uint64_t {
      if (s->source_kind == vm::Section::Source::kJoin) {
        s = &program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(s->source)].section)];
      }
      return s->source_kind == vm::Section::Source::kTable ? rows_of(s->source) : 0;
    };
    for (const vm::Section& s : program.sections) {
      for (const vm::Instruction& in : s.code) {
        if (in.op != vm::Opcode::Probe) continue;
        const vm::JoinTable& join = program.joins[in.p1];
        if (join.strategy == vm::JoinStrategy::kDp) return true;
        if (join.strategy != vm::JoinStrategy::kGrid) continue;
        const uint64_t inner = scanned(&program.sections[static_cast<size_t>(join.section)]);
        if (inner > 0 && scanned(&s) >= kGpuMinPairs / inner) return true;
      }
    }
    return false;
  }

  Status Select(const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
    RowForwarder rows(compiled.program->columns, out);
    TESSERA_TRY(RunProgram(*compiled.program, snapshot, [&](RowBatch&& batch) { return rows.Rows(std::move(batch)); }));
    timing_.rows = rows.rows();
    return rows.End();
  }

  /// Leaves the number of rows in timing_.rows.
  Status Insert(const Compiled& compiled, const Snapshot& snapshot) {
    const Statement& s = compiled.statement;
    TESSERA_ASSIGN(std::unique_ptr<TableWriter> writer, database_->Write(s.table));
    // The snapshot is older than the lock: the table may have become another one in between.
    TESSERA_ASSIGN(std::shared_ptr<const Snapshot> now, database_->Read());
    const std::shared_ptr<const TableInfo> table = now->Find(s.table);
    if (table == nullptr || table->id != s.target->id) {
      return {ErrorCode::kBusy, "table \"" + s.table + "\" was replaced by another process",
              "Run the statement again."};
    }
    uint64_t rows = 0;
    auto append = [&](const RowBatch& batch) -> Status {
      TESSERA_TRY(writer->Append(batch, rows + 1));
      rows += batch.rows;
      return Status::Ok();
    };
    if (compiled.program != nullptr) {
      // Reads the snapshot while the writer fills new tablets, so a table may be inserted into itself.
      TESSERA_TRY(RunProgram(*compiled.program, snapshot, [&](RowBatch&& batch) { return append(batch); }));
    } else if (s.values.rows > 0) {
      TESSERA_TRY(append(s.values));
    }
    if (cancel_) return Cancelled();
    TESSERA_TRY(writer->Commit());
    timing_.rows = rows;
    return Status::Ok();
  }

  Status CopyFrom(const Statement& s, ResultWriter* out) {
    CopyFromOptions options = s.copy_from;
    options.threads = threads_;
    options.cancel = &cancel_;
    std::string file = s.file;
    TemporaryFile spool;
    if (file.empty()) {
      if (!options_.standard_input_is_free) {
        return SqlError("COPY FROM STDIN cannot read standard input: the statements come from there", -1,
                        "Give the statement with -c or in a file with -f.");
      }
      TESSERA_ASSIGN(spool, SpoolStandardInput(&cancel_));
      file = spool.path();
    }
    if (progress_) {
      options.progress = [this, what = s.table](uint64_t done, uint64_t all) {
        progress_({what.c_str(), done, all, ProgressUnit::kBytes});
      };
    }
    Result<uint64_t> rows = database_->CopyFrom(s.table, file, options);
    if (!rows.ok()) return s.file.empty() ? NameStandardInput(rows.status(), file) : rows.status();
    timing_.rows = *rows;
    return out->Done(fmt::format("COPY {}", *rows));
  }

  Status CopyTo(const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
    const Statement& s = compiled.statement;
    std::vector<std::string> names;
    for (const vm::ResultColumn& c : compiled.program->columns) names.push_back(c.name);
    std::string file = s.file;
    TemporaryFile spool;
    if (file.empty()) {  // through a file, so that one writer makes all CSV and an error leaves no half of it on the
                         // output
      TESSERA_ASSIGN(spool, TemporaryFile::Create());
      file = spool.path();
    }
    TESSERA_ASSIGN(std::unique_ptr<CsvWriter> writer, CsvWriter::Create(file, s.copy_to, names));
    uint64_t rows = 0;
    TESSERA_TRY(RunProgram(*compiled.program, snapshot, [&](RowBatch&& batch) {
      rows += batch.rows;
      return writer->Append(batch);
    }));
    TESSERA_TRY(writer->Close());
    timing_.rows = rows;
    if (s.file.empty()) return spool.ForEachPiece([&](const std::string& text) { return out->Text(text); });
    return out->Done(fmt::format("COPY {}", rows));
  }

  Status Explain(const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
    std::string text = compiled.plan;
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (compiled.program != nullptr) text += "\n" + vm::Listing(*compiled.program);
    if (compiled.program != nullptr && cluster_ != nullptr && ReadsTables(*compiled.program)) {
      text += "\n" + RanksText(*compiled.program, snapshot, cluster_->ranks(), cluster_settings_);
    }
    if (compiled.statement.explain_analyze) {
      if (compiled.statement.kind == Statement::Kind::kInsert) {
        TESSERA_TRY(Insert(compiled, snapshot));
      } else if (compiled.program != nullptr) {
        const auto start = Clock::now();
        const auto count = [&](RowBatch&& batch) {
          timing_.rows += batch.rows;
          return Status::Ok();
        };
        TESSERA_TRY(RunProgram(*compiled.program, snapshot, count, true));
        timing_.execute = MillisecondsSince(start);
      }
      double bandwidth = 0;
      for (const vm::SectionStatistics& section : statistics_.sections) {
        if (!section.on_gpu || gpu_ == nullptr || bandwidth > 0) continue;
        Result<double> measured = gpu_->MeasureBandwidth();  // without it there are no percentages
        if (measured.ok()) bandwidth = *measured;
      }
      text += "\n" + StatisticsText(statistics_, compiled.estimates, timing_, bandwidth);
    }
    return out->Text(text);
  }

  Status Set(const std::string& name, const std::string& value) {
    const bool reset = value.empty() || value == "default" || value == "DEFAULT";
    if (name == "device") {
      if (value == "host") return SetDevice(DeviceChoice::kHost);
      if (value == "gpu") return SetDevice(DeviceChoice::kGpu);
      if (value == "auto" || reset) return SetDevice(DeviceChoice::kAuto);
      return InvalidValue(name, value, "Available values: auto, host, gpu.");
    }
    if (name == "join_strategy") {
      const auto at = reset ? kJoinChoices.begin() : std::find(kJoinChoices.begin(), kJoinChoices.end(), value);
      if (at == kJoinChoices.end()) return InvalidValue(name, value, "Available values: auto, hash, dp, grid, loop.");
      plan_options_.join = static_cast<JoinChoice>(at - kJoinChoices.begin());
      return Status::Ok();
    }
    if (name == "join_partitioning") {
      const auto at = reset ? kPartitionings.begin() : std::find(kPartitionings.begin(), kPartitionings.end(), value);
      if (at == kPartitionings.end()) return InvalidValue(name, value, "Available values: auto, on, off.");
      join_partitioning_ = static_cast<vm::JoinPartitioning>(at - kPartitionings.begin());
      return Status::Ok();
    }
    if (name == "grid_pruning") {
      const bool on = value == "on" || value == "true" || reset;
      if (!on && value != "off" && value != "false") return InvalidValue(name, value, "Available values: on, off.");
      plan_options_.grid_pruning = on;
      return Status::Ok();
    }
    if (name == "threads") {
      int64_t n = DefaultThreads();
      if (!reset) {
        TESSERA_ASSIGN(n, IntegerSetting(name, value, 1, kMaxThreads));
      }
      threads_ = static_cast<int>(n);
      threads_given_ = !reset;
      return Status::Ok();
    }
    if (name == "tablet_rows") {
      int64_t n = 0;
      if (!reset) {
        TESSERA_ASSIGN(n, IntegerSetting(name, value, 0, kMaxTabletRows));
      }
      tablet_rows_ = static_cast<uint32_t>(n);
      return Status::Ok();
    }
    if (uint64_t* const setting = ClusterSetting(name)) {
      int64_t n = static_cast<int64_t>(name == "replicate_below" ? ClusterSettings().replicate_below : 0);
      if (!reset) {
        TESSERA_ASSIGN(n, IntegerSetting(name, value, 0, INT64_MAX));
      }
      *setting = static_cast<uint64_t>(n);
      return Status::Ok();
    }
    if (name == "lock_timeout") {
      int64_t n = kDefaultLockTimeout;
      if (!reset) {
        TESSERA_ASSIGN(n, IntegerSetting(name, value, 0, INT32_MAX));
      }
      lock_timeout_ = static_cast<int>(n);
      database_->SetLockTimeout(lock_timeout_);
      return Status::Ok();
    }
    if (name == "gpu_min_rows") {
      int64_t n = kDefaultGpuMinRows;
      if (!reset) {
        TESSERA_ASSIGN(n, IntegerSetting(name, value, 0, INT64_MAX));
      }
      gpu_min_rows_ = n;
      return Status::Ok();
    }
    return NoSuchSetting(name);
  }

  /// The setting of that name that concerns ranks, or nullptr.
  uint64_t* ClusterSetting(std::string_view name) {
    if (name == "replicate_below") return &cluster_settings_.replicate_below;
    if (name == "broadcast_limit") return &cluster_settings_.broadcast_limit;
    if (name == "scatter_memory") return &cluster_settings_.scatter_memory;
    return nullptr;
  }

  std::string SettingText(std::string_view name) {
    if (const uint64_t* const setting = ClusterSetting(name)) return std::to_string(*setting);
    if (name == "device") return DeviceName(device_);
    if (name == "gpu_min_rows") return std::to_string(gpu_min_rows_);
    if (name == "grid_pruning") return plan_options_.grid_pruning ? "on" : "off";
    if (name == "join_partitioning") return kPartitionings[static_cast<size_t>(join_partitioning_)];
    if (name == "join_strategy") return kJoinChoices[static_cast<size_t>(plan_options_.join)];
    if (name == "lock_timeout") return std::to_string(lock_timeout_);
    if (name == "tablet_rows") return std::to_string(tablet_rows_);
    return std::to_string(threads_);
  }

  Status Show(const std::string& name, ResultWriter* out) {
    const SqlType text = SqlType::Text();
    std::vector<vm::ResultColumn> columns;
    RowBatch batch;
    if (name == "all") {
      columns = {{"name", text}, {"setting", text}, {"description", text}};
    } else {
      const bool known =
          std::any_of(std::begin(kSettings), std::end(kSettings), [&](const Setting& s) { return name == s.name; });
      if (!known) return NoSuchSetting(name);
      columns = {{name, text}};
    }
    batch.columns.resize(columns.size());
    for (ColumnVector& c : batch.columns) c.type = text;
    for (const Setting& s : kSettings) {
      if (name == "all") {
        batch.columns[0].Append(Value::Text(s.name));
        batch.columns[1].Append(Value::Text(SettingText(s.name)));
        batch.columns[2].Append(Value::Text(s.description));
        ++batch.rows;
      } else if (name == s.name) {
        batch.columns[0].Append(Value::Text(SettingText(s.name)));
        ++batch.rows;
      }
    }
    timing_.rows = batch.rows;
    TESSERA_TRY(out->Begin(columns));
    TESSERA_TRY(out->Rows(std::move(batch)));
    return out->End();
  }

  // All three are touched by signal handlers.
  std::atomic<bool> cancel_{false};
  std::atomic<bool> running_{false};
  std::atomic<int> cancels_under_way_{0};
  static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);
};

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Open(const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session());
  TESSERA_TRY(session->impl_->Open(options));
  return session;
}

Status Session::Execute(std::string_view sql, ResultWriter* out) { return impl_->Execute(sql, out); }
void Session::Cancel() { impl_->Cancel(); }
void Session::SetProgress(std::function<void(const Progress&)> progress) { impl_->progress_ = std::move(progress); }
namespace {

/// "NVIDIA H100 80GB HBM3 (0), 79.1 GiB"
std::string Describe(const Gpu& gpu) {
  return fmt::format("{} (0), {:.1f} GiB", gpu.info().name, static_cast<double>(gpu.info().memory_bytes) / (1 << 30));
}
std::string DescribeMemory(const Gpu& gpu) {
  const GpuMemory m = gpu.memory();
  return fmt::format("{:.1f} MB of columns cached, budget {:.1f} MB", static_cast<double>(m.cached_bytes) / 1e6,
                     static_cast<double>(m.budget_bytes) / 1e6);
}

}  // namespace

const Timing& Session::last_timing() const { return impl_->timing_; }
const vm::RunStatistics& Session::last_statistics() const { return impl_->statistics_; }
DeviceChoice Session::device() const { return impl_->device_; }
Status Session::SetDevice(DeviceChoice device) { return impl_->SetDevice(device); }
int Session::threads() const { return impl_->threads_; }
Result<std::shared_ptr<const Snapshot>> Session::Tables() { return impl_->database_->Read(); }
Database& Session::database() { return *impl_->database_; }
std::string Session::GpuMemoryDescription() const { return impl_->gpu_ != nullptr ? DescribeMemory(*impl_->gpu_) : ""; }

std::vector<std::string> Session::Devices() {
  const std::string host = impl_->HostDescription();
  Status opened = impl_->OpenGpu();
  return {host, opened.ok() ? Describe(*impl_->gpu_) : "no GPU: " + opened.message()};
}

std::string Session::DeviceDescription() const {
  const std::string host = impl_->HostDescription();
  if (impl_->device_ == DeviceChoice::kHost) return host;
  const std::string gpu = impl_->gpu_ != nullptr ? Describe(*impl_->gpu_) : std::string();
  return gpu.empty() ? host : gpu + "; " + host;
}

}  // namespace tessera
