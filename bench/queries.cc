// The program `queries_bench`: the thirteen queries of the Star Schema Benchmark and one scan, the 22 of TPC-H, the 99 of TPC-DS,
// 43 over a table of ClickBench's shape, or those of data_gen/sql on windows, sets, medians and texts, on a loaded database
// (bench/queries.sh makes it). `make demo`, `make bench-ssb` and their like run it.
//
//   queries_bench --benchmark ssb|tpch|tpcds|clickbench|sql --database DIR [--device host|auto|gpu] [--threads N] [--runs N] [--csv FILE]
//             [--scale S]                             of the data: a parameter of TPC-H's q11
//             [--texts DIR]                           of schema.sql and the queries; by default data_gen/<benchmark>
//             [--queries "q1 q2"]                     only these
//             [--limit SECONDS]                       of a query (default 60); one that takes longer is left there
//             [--set NAME=VALUE]... [--gpu-memory MB]
//             [--duckdb PYTHON --data DIR]            beside DuckDB: the same text files, the same number of threads
//             [--shell PROGRAM --small-database DIR]  memory and start of whole processes
//   queries_bench --tight N --benchmark ... as above
//             each query with the memory that it likes, and with an Nth of that as memory_limit
//   queries_bench --each-device --benchmark ... as above
//             each query with device host, gpu and auto alternately, and whether auto is as fast as the better
//   queries_bench --demo --benchmark ssb|tpch|tpcds --database DIR [--threads N]    each query once, with its first rows
//
// ms is the median of the hot runs, from SQL text to the last row; each run compiles, unless --set program_cache=4MB. With DuckDB, runs alternate between the two, so that
// other load on the machine hits both; its time ends when its result is complete, before Python takes the rows. The rows
// of both are compared before anything is timed. Queries of more than ten seconds together have fewer runs.

#include <fcntl.h>
#include <fmt/format.h>
#include <getopt.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bench/answer.h"
#include "bench/duckdb.h"
#include "compiler/compiler.h"
#include "session/session.h"
#include "shell/statistics_text.h"

namespace tessera {
namespace {

/// q1, q2, ...
std::vector<std::string> Numbered(int queries) {
  std::vector<std::string> names;
  for (int i = 1; i <= queries; ++i) names.push_back("q" + std::to_string(i));
  return names;
}

struct Benchmark {
  std::string name;  ///< also of its folder in data_gen/
  std::vector<std::string> queries;
  std::string scan;  ///< one more that reads one table only, so kernels run all of it; not in the sums; "" if none
  double compile_limit, duckdb_limit;
};

const Benchmark kBenchmarks[] = {
    {"ssb",
     {"q1.1", "q1.2", "q1.3", "q2.1", "q2.2", "q2.3", "q3.1", "q3.2", "q3.3", "q3.4", "q4.1", "q4.2", "q4.3"},
     "scan",
     0.25,
     1.5},
    {"tpch", Numbered(22), "", 1, 1},
    {"tpcds", Numbered(99), "", 2, 0.6},
    {"clickbench", Numbered(43), "", 1, 0.8},
    {"sql",
     {"w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9", "w10", "s1", "s2",
      "s3", "m1", "m2", "m3", "m4", "m5", "f1", "f2", "f3", "f4",  "f5", "f6"},
     "",
     1,
     1},
};

constexpr double kMemoryLimit = 256e6;
constexpr double kProcessLimit = 50;

struct Options {
  SessionOptions session;
  const Benchmark* benchmark = nullptr;
  bool demo = false, each_device = false;
  int runs = 7, limit = 60, tight = 0;
  double scale = 1;
  std::vector<std::string> queries, settings;
  std::string csv, duckdb, data, texts, shell, small_database;
};

struct Measurement {
  std::string query;
  std::string failed;  ///< why there are no figures; "" if there are
  double ms = 0, first_ms = 0, compile_ms = 0, kernel_ms = 0;
  uint64_t rows = 0, bytes_read = 0, bytes_transferred = 0;
  std::optional<double> duckdb_ms;
  std::optional<uint64_t> peak_memory;  ///< of a process that runs only this query

  double GigabytesPerSecond(bool gpu) const {
    const double time = gpu && kernel_ms > 0 ? kernel_ms : ms;
    return time > 0 ? static_cast<double>(bytes_read) / time * 1e-6 : 0;
  }
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Result<std::string> ReadFile(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  if (!in) return Status(ErrorCode::kIo, "could not open \"" + name + "\"");
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// The SQL of a query, on one line, without comments and semicolon.
Result<std::string> QueryText(const Options& options, const std::string& name) {
  const bool scan = name == options.benchmark->scan;
  TESSERA_ASSIGN(std::string sql, ReadFile(scan ? "bench/ssb_scan.sql" : options.texts + "/" + name + ".sql"));
  for (size_t at; (at = sql.find("--")) != std::string::npos;) sql.erase(at, sql.find('\n', at) - at);
  std::replace(sql.begin(), sql.end(), '\n', ' ');
  sql.erase(sql.find_last_not_of("; \t\r") + 1);
  // The fraction of q11 is 0.0001 divided by the scale factor.
  constexpr std::string_view kFraction = "0.0001000000";
  if (const size_t at = sql.find(kFraction); at != std::string::npos)
    sql.replace(at, kFraction.size(), fmt::format("{:.10f}", 0.0001 / options.scale));
  return sql;
}

Status Execute(Session* session, const std::string& sql, ResultWriter* writer) {
  Status status = session->Execute(sql, writer);
  if (!status.ok()) return {status.kind(), FormatError(status, sql)};
  return status;
}

Status Set(Session* session, const std::string& name, const std::string& value) {
  RowCounter none;
  return Execute(session, "SET " + name + " = " + value, &none);
}

/// A whole process that answers one query; its output is dropped.
struct ProcessRun {
  double ms = 0;
  uint64_t peak_memory = 0;
};
Result<ProcessRun> RunProcess(const Options& options, const std::string& database, const std::string& sql) {
  const std::string threads = std::to_string(options.session.threads);
  const auto start = Clock::now();
  const pid_t process = fork();
  if (process == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    execl(options.shell.c_str(), options.shell.c_str(), "--device", "host", "--threads", threads.c_str(), "-readonly",
          "-c", sql.c_str(), database.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (process < 0 || wait4(process, &status, 0, &usage) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Status(ErrorCode::kIo, "could not run " + options.shell);
  }
  return ProcessRun{MillisecondsSince(start), static_cast<uint64_t>(usage.ru_maxrss) * 1024};
}

/// Of a query that failed: the limit, or the first line of the error.
std::string Reason(const Options& options, const Status& status) {
  if (status.code() == ErrorCode::kCancelled) return fmt::format("> {} s", options.limit);
  return status.message().substr(0, status.message().find('\n'));
}

Status Demo(Session* session, const Options& options) {
  double sum = 0;
  size_t answered = 0;
  fmt::print("query    first ms      hot ms     rows  first rows\n");
  for (const std::string& query : options.queries) {
    TESSERA_ASSIGN(const std::string sql, QueryText(options, query));
    AnswerWriter writer;
    RowCounter again;
    Status status = Execute(session, sql, &writer);
    const double first = session->last_timing().total;
    if (status.ok()) status = Execute(session, sql, &again);
    const double hot = session->last_timing().total;
    if (!status.ok()) {
      fmt::print("{:<6} {}\n", query, Reason(options, status));
      continue;
    }
    sum += hot;
    ++answered;
    fmt::print("{:<6} {:10.2f}  {:10.2f}  {:7}  ", query, first, hot, writer.answer.rows.size());
    constexpr size_t kShown = 3;
    for (size_t row = 0; row < std::min(kShown, writer.answer.rows.size()); ++row) {
      std::string text;
      for (const std::string& cell : writer.answer.rows[row]) text += (text.empty() ? "" : "|") + cell;
      fmt::print("{}{}", row == 0 ? "" : "  ", text);
    }
    fmt::print("{}\n", writer.answer.rows.size() > kShown ? "  ..." : "");
    fflush(stdout);
  }
  fmt::print("\n{} queries, {:.1f} ms hot; {}\n", answered, sum, session->DeviceDescription());
  return Status::Ok();
}

/// Runs the query and compares its rows. Errors: other rows than DuckDB's, or DuckDB has ended; what else goes wrong is
/// in the measurement.
Status Warm(Session* session, DuckDb* duckdb, const Options& options, const std::string& sql, Measurement* m) {
  AnswerWriter ours;
  Status status = Execute(session, sql, &ours);
  m->first_ms = session->last_timing().total;
  m->rows = ours.answer.rows.size();
  if (!status.ok()) m->failed = Reason(options, status);
  if (duckdb == nullptr) return Status::Ok();
  TESSERA_ASSIGN(const Answer theirs, duckdb->Rows(sql));
  if (!m->failed.empty()) return Status::Ok();
  if (const std::optional<std::string> difference = Difference(ours.answer, theirs))
    return {ErrorCode::kInternal, m->query + " has other rows than DuckDB's: " + *difference};
  RowCounter again;
  if (status = Execute(session, sql, &again); !status.ok()) m->failed = Reason(options, status);
  return Status::Ok();
}

Result<Measurement> Measure(Session* session, DuckDb* duckdb, const Options& options, const std::string& query) {
  Measurement m;
  m.query = query;
  TESSERA_ASSIGN(const std::string sql, QueryText(options, query));
  TESSERA_TRY(Warm(session, duckdb, options, sql, &m));
  std::vector<double> ms, compile, kernel, duckdb_ms;
  double spent = 0;
  constexpr double kEnough = 10'000;
  for (int i = 0; i < options.runs && spent < kEnough; ++i) {
    if (m.failed.empty()) {
      RowCounter rows;
      const Status status = Execute(session, sql, &rows);
      if (!status.ok()) m.failed = Reason(options, status);
      const Timing& timing = session->last_timing();
      ms.push_back(timing.total);
      compile.push_back(timing.compile);
      kernel.push_back(timing.kernel);
      m.bytes_read = timing.bytes_read;
      spent += timing.total;
    }
    if (duckdb == nullptr) continue;
    TESSERA_ASSIGN(const double time, duckdb->Time(sql));
    duckdb_ms.push_back(time);
    spent += time;
  }
  if (duckdb != nullptr) m.duckdb_ms = Median(duckdb_ms);
  if (!m.failed.empty()) return m;
  m.ms = Median(ms);
  m.compile_ms = Median(compile);
  m.kernel_ms = Median(kernel);
  for (const vm::SectionStatistics& section : session->last_statistics().sections)
    m.bytes_transferred += section.bytes_transferred;
  if (!options.shell.empty()) {
    TESSERA_ASSIGN(const ProcessRun run, RunProcess(options, options.session.directory, sql));
    m.peak_memory = run.peak_memory;
  }
  return m;
}

void PrintRow(const Measurement& m, bool gpu) {
  if (!m.failed.empty()) {
    fmt::print("{:<6} {:>10}", m.query, m.failed);
    // Under the heading, if the reason is as short as a number.
    if (m.duckdb_ms) fmt::print("{}{:>11.3f}", std::string(gpu ? 77 : 53, ' '), *m.duckdb_ms);
    fmt::print("\n");
    fflush(stdout);
    return;
  }
  fmt::print("{:<6} {:>10.3f} {:>10.3f} {:>8} {:>10} {:>8.2f} {:>11.3f}", m.query, m.ms, m.first_ms, m.rows,
             BytesText(static_cast<double>(m.bytes_read)), m.GigabytesPerSecond(gpu), m.compile_ms);
  if (gpu) fmt::print(" {:>10.3f} {:>12}", m.kernel_ms, BytesText(static_cast<double>(m.bytes_transferred)));
  if (m.duckdb_ms) fmt::print(" {:>10.3f} {:>6.2f}", *m.duckdb_ms, m.ms / *m.duckdb_ms);
  if (m.peak_memory) {
    fmt::print(" {:>10} {:>10}", BytesText(static_cast<double>(*m.peak_memory)),
               BytesText(static_cast<double>(*m.peak_memory) - static_cast<double>(m.bytes_read)));
  }
  fmt::print("\n");
  fflush(stdout);
}

Status WriteCsv(const std::string& file, const std::vector<Measurement>& measurements, bool gpu) {
  std::ofstream out(file);
  out << "query,ms,first_ms,rows,bytes_read,gb_per_s,compile_ms,kernel_ms,bytes_transferred,duckdb_ms,peak_memory,"
         "failed\n";
  for (const Measurement& m : measurements) {
    const std::string figures =
        m.failed.empty()
            ? fmt::format("{:.4f},{:.4f},{},{},{:.3f},{:.4f},{:.4f},{}", m.ms, m.first_ms, m.rows, m.bytes_read,
                          m.GigabytesPerSecond(gpu), m.compile_ms, m.kernel_ms, m.bytes_transferred)
            : ",,,,,,,";
    std::string failed = m.failed;
    std::replace(failed.begin(), failed.end(), '"', '\'');
    out << fmt::format("{},{},{},{},\"{}\"\n", m.query, figures, m.duckdb_ms ? fmt::format("{:.4f}", *m.duckdb_ms) : "",
                       m.peak_memory ? std::to_string(*m.peak_memory) : "", failed);
  }
  if (!out.flush()) return {ErrorCode::kIo, "could not write \"" + file + "\""};
  return Status::Ok();
}

const char* Verdict(bool met) { return met ? "met" : "MISSED"; }

/// Of the queries that both sides answered: the geometric mean of the ratios, and the slower ones, the worst first.
void PrintRatios(const std::vector<Measurement>& measurements) {
  constexpr double kSlower = 1.2;
  std::vector<std::pair<double, std::string>> ratios;
  double logarithms = 0;
  for (const Measurement& m : measurements) {
    if (!m.failed.empty() || !m.duckdb_ms || m.ms <= 0 || *m.duckdb_ms <= 0) continue;
    ratios.emplace_back(m.ms / *m.duckdb_ms, m.query);
    logarithms += std::log(ratios.back().first);
  }
  if (ratios.empty()) return;
  const auto slower = std::ranges::count_if(ratios, [](const auto& ratio) { return ratio.first > kSlower; });
  fmt::print("geometric mean of {} ratios: {:.2f}; above {}: {}", ratios.size(),
             std::exp(logarithms / static_cast<double>(ratios.size())), kSlower, slower);
  std::ranges::sort(ratios, std::greater{});
  for (const auto& [ratio, query] : ratios) {
    if (ratio > kSlower) fmt::print("{} {} {:.2f}", query == ratios.front().second ? ":" : ",", query, ratio);
  }
  fmt::print("\n");
}

Status Bench(Session* session, const Options& options) {
  const bool gpu = options.session.device != DeviceChoice::kHost;
  DuckDb duckdb;
  const bool compare = !options.duckdb.empty();
  fmt::print("{}; {} hot runs", session->DeviceDescription(), options.runs);
  if (compare) {
    TESSERA_TRY(duckdb.Start(options.duckdb, options.data, options.texts + "/schema.sql", session->threads()));
    fmt::print("; {}, {} threads", duckdb.version, session->threads());
  }
  fmt::print("\n\nquery          ms   first ms     rows       read     GB/s  compile ms");
  if (gpu) fmt::print("  kernel ms       to GPU");
  if (compare) fmt::print("  DuckDB ms  ratio");
  if (!options.shell.empty()) fmt::print("        RSS   RSS-read");
  fmt::print("\n");
  fflush(stdout);
  std::vector<Measurement> measurements;
  for (const std::string& query : options.queries) {
    TESSERA_ASSIGN(Measurement m, Measure(session, compare ? &duckdb : nullptr, options, query));
    PrintRow(m, gpu);
    measurements.push_back(std::move(m));
  }

  // Sums are over the queries that both sides answered.
  double sum = 0, first_sum = 0, run_sum = 0, duckdb_sum = 0, compile = 0, memory = 0;
  size_t answered = 0;
  const Measurement* worst = nullptr;
  for (const Measurement& m : measurements) {
    if (!m.failed.empty()) continue;
    compile = std::max(compile, m.compile_ms);
    if (m.peak_memory)
      memory = std::max(memory, static_cast<double>(*m.peak_memory) - static_cast<double>(m.bytes_read));
    if (m.query == options.benchmark->scan) continue;
    ++answered;
    sum += m.ms;
    first_sum += m.first_ms;
    run_sum += m.ms - m.compile_ms;
    duckdb_sum += m.duckdb_ms.value_or(0);
    if (m.duckdb_ms && (worst == nullptr || m.ms * *worst->duckdb_ms > worst->ms * *m.duckdb_ms)) worst = &m;
  }
  fmt::print("\nsum of {}: {:.1f} ms from text to rows, {:.1f} from program to rows, {:.1f} in the first runs",
             answered, sum, run_sum, first_sum);
  if (compare && worst != nullptr) {
    const double limit = options.benchmark->duckdb_limit, ratio = sum / duckdb_sum;
    fmt::print("\nDuckDB: {:.1f} ms; ratio {:.2f} (limit {:.1f}: {}), of {} {:.2f}", duckdb_sum, ratio, limit,
               Verdict(ratio <= limit), worst->query, worst->ms / *worst->duckdb_ms);
  }
  fmt::print("\n");
  PrintRatios(measurements);
  fmt::print("slowest compilation: {:.3f} ms (limit {:.2f}: {})\n", compile, options.benchmark->compile_limit,
             Verdict(compile <= options.benchmark->compile_limit));
  if (!options.shell.empty()) {
    fmt::print("peak memory of a process beyond the encoded columns it reads: {} (limit {}: {})\n", BytesText(memory),
               BytesText(kMemoryLimit), Verdict(memory <= kMemoryLimit));
    TESSERA_ASSIGN(const std::string sql, QueryText(options, options.benchmark->queries[0]));
    std::vector<double> processes;
    for (int i = 0; i < 21; ++i) {
      TESSERA_ASSIGN(const ProcessRun run, RunProcess(options, options.small_database, sql));
      processes.push_back(run.ms);
    }
    const double process = Median(processes);
    fmt::print("whole process for q1.1 at scale 0.01: {:.1f} ms (limit {:.0f}: {})\n", process, kProcessLimit,
               Verdict(process <= kProcessLimit));
  }
  if (gpu) fmt::print("{}\n", session->GpuMemoryDescription());
  if (!options.csv.empty()) TESSERA_TRY(WriteCsv(options.csv, measurements, gpu));
  const bool all = std::ranges::all_of(measurements, [](const Measurement& m) { return m.failed.empty(); });
  return all ? Status::Ok() : Status(ErrorCode::kSql, "not all queries were answered");
}

/// A query under a memory limit.
struct LimitedRun {
  Answer answer;
  double ms = 0;
  uint64_t memory = 0, temporary = 0;  ///< the most bytes at a time
};
Result<LimitedRun> RunLimited(Session* session, const Options& options, const std::string& sql, uint64_t limit) {
  TESSERA_TRY(Set(session, "memory_limit", limit == 0 ? "DEFAULT" : std::to_string(limit)));
  LimitedRun run;
  std::vector<double> ms;
  for (int i = 0; i < options.runs; ++i) {
    AnswerWriter writer;
    TESSERA_TRY(Execute(session, sql, &writer));
    run.answer = std::move(writer.answer);
    ms.push_back(session->last_timing().total);
    run.memory = session->last_statistics().mine.memory_peak;
    run.temporary = session->last_statistics().mine.temporary_peak;
  }
  run.ms = Median(ms);
  return run;
}

/// Each query with all memory, and with a part of what it took then.
Status Tight(Session* session, const Options& options) {
  constexpr uint64_t kLeastLimit = 16 << 20;  // of memory_limit
  constexpr double kSlowest = 10;
  fmt::print("{}; {} runs\n\n", session->DeviceDescription(), options.runs);
  fmt::print("query          ms     memory      limit         ms  ratio  temporary files\n");
  double worst = 0;
  for (const std::string& query : options.queries) {
    TESSERA_ASSIGN(const std::string sql, QueryText(options, query));
    TESSERA_ASSIGN(const LimitedRun free, RunLimited(session, options, sql, 0));
    const uint64_t limit = std::max(kLeastLimit, free.memory / static_cast<uint64_t>(options.tight));
    TESSERA_ASSIGN(const LimitedRun tight, RunLimited(session, options, sql, limit));
    if (const std::optional<std::string> difference = Difference(tight.answer, free.answer))
      return {ErrorCode::kInternal, query + " has other rows with little memory: " + *difference};
    worst = std::max(worst, tight.ms / free.ms);
    fmt::print("{:<6} {:>10.3f} {:>10} {:>10} {:>10.3f} {:>6.2f} {:>16}\n", query, free.ms,
               BytesText(static_cast<double>(free.memory)), BytesText(static_cast<double>(limit)), tight.ms,
               tight.ms / free.ms, BytesText(static_cast<double>(tight.temporary)));
    fflush(stdout);
  }
  fmt::print("\nslowest: {:.2f} times as long (limit {:.0f}: {})\n", worst, kSlowest, Verdict(worst <= kSlowest));
  return Status::Ok();
}

constexpr const char* kDevices[] = {"host", "gpu", "auto"};
constexpr size_t kAuto = 2;

/// What one query takes on each device.
struct DeviceTimes {
  std::string query;
  std::optional<double> ms[std::size(kDevices)];  ///< nothing where the device refuses the query
  std::string refused;                            ///< why; "" if none does

  /// How long `auto` may take.
  double Limit() const {
    constexpr double kFactor = 1.1, kMore = 0.2;
    return kFactor * std::min(ms[0].value_or(HUGE_VAL), ms[1].value_or(HUGE_VAL)) + kMore;
  }
  bool Met() const { return ms[kAuto].has_value() && *ms[kAuto] <= Limit(); }
};

/// The devices take turns, so that other load on the machine hits all of them. Errors: they have different rows.
Result<DeviceTimes> MeasureDevices(Session* session, const Options& options, const std::string& query) {
  DeviceTimes times{query, {}, ""};
  TESSERA_ASSIGN(const std::string sql, QueryText(options, query));
  std::optional<Answer> first;
  bool answers[std::size(kDevices)] = {};
  for (size_t d = 0; d < std::size(kDevices); ++d) {
    TESSERA_TRY(Set(session, "device", kDevices[d]));
    AnswerWriter writer;
    const Status status = Execute(session, sql, &writer);
    if (answers[d] = status.ok(); !answers[d]) {
      times.refused = fmt::format("{}: {}", kDevices[d], Reason(options, status));
      continue;
    }
    if (!first) first = writer.answer;
    if (const std::optional<std::string> difference = Difference(writer.answer, *first))
      return Status(ErrorCode::kInternal,
                    fmt::format("{} has other rows with device {}: {}", query, kDevices[d], *difference));
  }
  std::vector<double> ms[std::size(kDevices)];
  for (int run = 0; run < options.runs; ++run) {
    for (size_t d = 0; d < std::size(kDevices); ++d) {
      if (!answers[d]) continue;
      TESSERA_TRY(Set(session, "device", kDevices[d]));
      RowCounter rows;
      TESSERA_TRY(Execute(session, sql, &rows));
      ms[d].push_back(session->last_timing().total);
    }
  }
  for (size_t d = 0; d < std::size(kDevices); ++d) {
    if (answers[d]) times.ms[d] = Median(ms[d]);
  }
  return times;
}

/// Whether device auto is at most a tenth and 0.2 ms slower than the better of host and gpu, query by query.
Status EachDevice(Session* session, const Options& options) {
  fmt::print("{} runs on each device\n\nquery     host ms     gpu ms    auto ms   limit ms\n", options.runs);
  std::ofstream csv;
  if (!options.csv.empty()) csv.open(options.csv);
  csv << "query,host_ms,gpu_ms,auto_ms,limit_ms,met\n";
  double sums[std::size(kDevices)] = {};
  size_t met = 0;
  for (const std::string& query : options.queries) {
    TESSERA_ASSIGN(const DeviceTimes times, MeasureDevices(session, options, query));
    std::string row;
    for (size_t d = 0; d < std::size(kDevices); ++d) {
      row += fmt::format(" {:>10}", times.ms[d] ? fmt::format("{:.3f}", *times.ms[d]) : "-");
      sums[d] += times.ms[d].value_or(0);
    }
    met += times.Met() ? 1 : 0;
    fmt::print("{:<6}{} {:>10.3f}  {}{}\n", query, row, times.Limit(), Verdict(times.Met()),
               times.refused.empty() ? "" : "; " + times.refused);
    fflush(stdout);
    const auto cell = [](const std::optional<double>& value) { return value ? fmt::format("{:.4f}", *value) : ""; };
    csv << fmt::format("{},{},{},{},{:.4f},{}\n", query, cell(times.ms[0]), cell(times.ms[1]), cell(times.ms[2]),
                       times.Limit(), times.Met() ? 1 : 0);
  }
  TESSERA_TRY(Set(session, "device", "auto"));
  fmt::print("sum   {:>11.3f}{:>11.3f}{:>11.3f}\n\nauto is within the limit in {} of {} queries; {}\n", sums[0],
             sums[1], sums[2], met, options.queries.size(), session->DeviceDescription());
  if (!options.csv.empty() && !csv.flush()) return {ErrorCode::kIo, "could not write \"" + options.csv + "\""};
  return Status::Ok();
}

int Usage(const std::string& message) {
  fmt::print(stderr, "queries_bench: {}\nThe options are at the head of bench/queries.cc.\n", message);
  return 2;
}

Status Run(Options options) {
  if (options.queries.empty()) {
    options.queries = options.benchmark->queries;
    if (!options.demo && !options.benchmark->scan.empty()) options.queries.push_back(options.benchmark->scan);
  }
  TESSERA_ASSIGN(const std::unique_ptr<Session> session, Session::Open(options.session));
  TESSERA_TRY(Set(session.get(), "statement_timeout", std::to_string(options.limit * 1000)));
  TESSERA_TRY(Set(session.get(), "program_cache", "0"));  // a figure is that of a text that is new
  for (const std::string& setting : options.settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) return {ErrorCode::kSql, "--set takes NAME=VALUE, not " + setting};
    TESSERA_TRY(Set(session.get(), setting.substr(0, equals), setting.substr(equals + 1)));
  }
  if (options.tight > 0) return Tight(session.get(), options);
  if (options.each_device) return EachDevice(session.get(), options);
  return options.demo ? Demo(session.get(), options) : Bench(session.get(), options);
}

/// Where the value of an option goes that is taken as it is; nullptr for the others.
std::string* TextOption(Options& options, int option) {
  switch (option) {
    case 'a':
      return &options.data;
    case 'b':
      return &options.session.directory;
    case 'c':
      return &options.csv;
    case 'm':
      return &options.small_database;
    case 's':
      return &options.shell;
    case 'u':
      return &options.duckdb;
    case 'x':
      return &options.texts;
    default:
      return nullptr;
  }
}

int RunBench(int argc, char** argv) {
  Options options;
  options.session.mode = OpenMode::kReadOnly;
  options.session.device = DeviceChoice::kHost;
  const option names[] = {{"benchmark", required_argument, nullptr, 'B'},
                          {"csv", required_argument, nullptr, 'c'},
                          {"data", required_argument, nullptr, 'a'},
                          {"database", required_argument, nullptr, 'b'},
                          {"demo", no_argument, nullptr, 'e'},
                          {"device", required_argument, nullptr, 'd'},
                          {"duckdb", required_argument, nullptr, 'u'},
                          {"each-device", no_argument, nullptr, 'E'},
                          {"gpu-memory", required_argument, nullptr, 'g'},
                          {"limit", required_argument, nullptr, 'l'},
                          {"queries", required_argument, nullptr, 'q'},
                          {"runs", required_argument, nullptr, 'r'},
                          {"scale", required_argument, nullptr, 'f'},
                          {"set", required_argument, nullptr, 'S'},
                          {"shell", required_argument, nullptr, 's'},
                          {"small-database", required_argument, nullptr, 'm'},
                          {"texts", required_argument, nullptr, 'x'},
                          {"threads", required_argument, nullptr, 't'},
                          {"tight", required_argument, nullptr, 'T'},
                          {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", names, nullptr)) >= 0;) {
    const std::string value = optarg == nullptr ? "" : optarg;
    if (std::string* text = TextOption(options, c)) {
      *text = value;
      continue;
    }
    const auto number = [&](auto* out) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *out);
      return error == std::errc{} && end == value.data() + value.size() && *out > 0;
    };
    switch (c) {
      case 'B':
        options.benchmark = std::ranges::find(kBenchmarks, value, &Benchmark::name);
        if (options.benchmark == std::end(kBenchmarks))
          return Usage("--benchmark is ssb, tpch, tpcds, clickbench or sql");
        break;
      case 'd':
        if (value != "host" && value != "auto" && value != "gpu") return Usage("--device is host, auto or gpu");
        options.session.device = value == "gpu"    ? DeviceChoice::kGpu
                                 : value == "auto" ? DeviceChoice::kAuto
                                                   : DeviceChoice::kHost;
        break;
      case 'e':
        options.demo = true;
        break;
      case 'E':
        options.each_device = true;
        break;
      case 'f':
        if (!number(&options.scale)) return Usage("--scale takes a number");
        break;
      case 'g': {
        if (!number(&options.session.gpu_memory)) return Usage("--gpu-memory takes a number");
        options.session.gpu_memory <<= 20;
        break;
      }
      case 'l':
        if (!number(&options.limit)) return Usage("--limit takes a number");
        break;
      case 'q': {
        std::istringstream words(value);
        for (std::string word; words >> word;) options.queries.push_back(word);
        break;
      }
      case 'r':
        if (!number(&options.runs)) return Usage("--runs takes a number");
        break;
      case 'S':
        options.settings.push_back(value);
        break;
      case 't':
        if (!number(&options.session.threads)) return Usage("--threads takes a number");
        break;
      case 'T':
        if (!number(&options.tight)) return Usage("--tight takes a number");
        break;
      default:
        return Usage("wrong options");
    }
  }
  if (optind != argc || options.benchmark == nullptr || options.session.directory.empty())
    return Usage("--benchmark and --database are needed");
  if (options.texts.empty()) options.texts = "data_gen/" + options.benchmark->name;
  if (options.demo || options.each_device) options.session.device = DeviceChoice::kAuto;
  std::signal(SIGPIPE, SIG_IGN);  // DuckDB's end of the pipe may close
  const Status status = Run(std::move(options));
  if (status.ok()) return 0;
  fmt::print(stderr, "queries_bench: {}\n", status.message());
  return 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::RunBench(argc, argv); }
