// The program `ssb_bench`: the thirteen queries of the Star Schema Benchmark and one scan, on a loaded database
// (bench/ssb.sh makes it). `make demo` and `make bench-ssb` run it.
//
//   ssb_bench --database DIR [--device host|gpu] [--threads N] [--runs N] [--csv FILE]
//             [--duckdb PYTHON --data DIR]            beside DuckDB: the same text files, the same number of threads
//             [--shell PROGRAM --small-database DIR]  memory and start of whole processes
//   ssb_bench --demo --database DIR [--threads N]     each query once, with its rows
//
// ms is the median of the hot runs, from SQL text to the last row; with DuckDB, runs alternate between the two, so that
// other load on the machine hits both. Rows are compared before anything is timed.

#include <fcntl.h>
#include <fmt/format.h>
#include <getopt.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "compiler/compiler.h"
#include "session/session.h"
#include "shell/statistics_text.h"

namespace tessera {
namespace {

constexpr const char* kQueries[] = {"q1.1", "q1.2", "q1.3", "q2.1", "q2.2", "q2.3", "q3.1",
                                    "q3.2", "q3.3", "q3.4", "q4.1", "q4.2", "q4.3"};
constexpr const char* kScan = "scan";  ///< reads one table only, so kernels run all of it; not in the sums
constexpr double kDuckDbLimit = 1.5;
constexpr double kMemoryLimit = 256e6;
constexpr double kProcessLimit = 50;
constexpr double kCompileLimit = 0.25;

struct Options {
  SessionOptions session;
  bool demo = false;
  int runs = 7;
  std::string csv, duckdb, data, shell, small_database;
};

struct Measurement {
  std::string query;
  double ms = 0, compile_ms = 0, kernel_ms = 0;
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
Result<std::string> QueryText(const std::string& name) {
  TESSERA_ASSIGN(std::string sql, ReadFile(name == kScan ? "bench/ssb_scan.sql" : "data_gen/ssb/" + name + ".sql"));
  for (size_t at; (at = sql.find("--")) != std::string::npos;) sql.erase(at, sql.find('\n', at) - at);
  std::replace(sql.begin(), sql.end(), '\n', ' ');
  sql.erase(sql.find_last_not_of("; \t\r") + 1);
  return sql;
}

/// The rows of a result as lines, values separated by |.
class Lines final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      std::string line;
      for (size_t i = 0; i < batch.columns.size(); ++i) {
        if (i > 0) line += '|';
        if (batch.columns[i].IsNull(row)) {
          line += "None";  // as Python prints it
        } else {
          AppendText(batch.columns[i], row, &line);
        }
      }
      lines.push_back(std::move(line));
    }
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }

  /// The same for the same rows in any order.
  std::string Hash() const {
    std::vector<std::string> sorted = lines;
    std::sort(sorted.begin(), sorted.end());
    uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (i > 0) hash = (hash ^ '\n') * 0x100000001B3;
      for (const char c : sorted[i]) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
    }
    return fmt::format("{:016x}", hash);
  }

  std::vector<std::string> lines;
};

Status Execute(Session* session, const std::string& sql, Lines* lines) {
  Status status = session->Execute(sql, lines);
  if (!status.ok()) return {status.code(), FormatError(status, sql)};
  return status;
}

/// DuckDB in a process of its own, asked one query at a time (bench/ssb_duckdb.py).
class DuckDb {
 public:
  struct Answer {
    double ms = 0;
    uint64_t rows = 0;
    std::string hash;
  };

  ~DuckDb() {
    if (in_ != nullptr) fclose(in_);
    if (out_ != nullptr) fclose(out_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }

  Status Start(const Options& options, int threads) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return {ErrorCode::kIo, "no pipe for DuckDB"};
    process_ = fork();
    if (process_ < 0) return {ErrorCode::kIo, "no process for DuckDB"};
    if (process_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      const std::string database = options.data + "/duckdb", count = std::to_string(threads);
      execlp(options.duckdb.c_str(), options.duckdb.c_str(), "bench/ssb_duckdb.py", options.data.c_str(),
             "data_gen/ssb/schema.sql", database.c_str(), count.c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = fdopen(to[1], "w");
    out_ = fdopen(from[0], "r");
    TESSERA_ASSIGN(version, ReadLine());
    return Status::Ok();
  }

  Result<Answer> Run(const std::string& sql) {
    fmt::print(in_, "{}\n", sql);
    fflush(in_);
    TESSERA_ASSIGN(const std::string line, ReadLine());
    char hash[32] = "";
    Answer answer;
    if (sscanf(line.c_str(), "ok %lf %lu %31s", &answer.ms, &answer.rows, hash) != 3) {
      return Status(ErrorCode::kSql, "DuckDB: " + line);
    }
    answer.hash = hash;
    return answer;
  }

  std::string version;

 private:
  Result<std::string> ReadLine() {
    char line[4096];
    if (fgets(line, sizeof line, out_) == nullptr) return Status(ErrorCode::kIo, "DuckDB has ended");
    line[strcspn(line, "\n")] = 0;
    return std::string(line);
  }

  pid_t process_ = -1;
  FILE *in_ = nullptr, *out_ = nullptr;
};

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

Status Demo(Session* session) {
  double sum = 0;
  fmt::print("query    first ms      hot ms     rows  first rows\n");
  for (const char* query : kQueries) {
    TESSERA_ASSIGN(const std::string sql, QueryText(query));
    Lines lines, again;
    TESSERA_TRY(Execute(session, sql, &lines));
    const double first = session->last_timing().total;
    TESSERA_TRY(Execute(session, sql, &again));
    const double hot = session->last_timing().total;
    sum += hot;
    fmt::print("{}   {:10.2f}  {:10.2f}  {:7}  ", query, first, hot, lines.lines.size());
    constexpr size_t kShown = 3;
    for (size_t i = 0; i < std::min(kShown, lines.lines.size()); ++i)
      fmt::print("{}{}", i == 0 ? "" : "  ", lines.lines[i]);
    fmt::print("{}\n", lines.lines.size() > kShown ? "  ..." : "");
    fflush(stdout);
  }
  fmt::print("\n{} queries, {:.1f} ms hot; {}\n", std::size(kQueries), sum, session->DeviceDescription());
  return Status::Ok();
}

Result<Measurement> Measure(Session* session, DuckDb* duckdb, const Options& options, const std::string& query) {
  Measurement m;
  m.query = query;
  TESSERA_ASSIGN(const std::string sql, QueryText(query));
  // Warms up, and compares the rows.
  for (int i = 0; i < 2; ++i) {
    Lines lines;
    TESSERA_TRY(Execute(session, sql, &lines));
    m.rows = lines.lines.size();
    if (duckdb == nullptr) continue;
    TESSERA_ASSIGN(const DuckDb::Answer answer, duckdb->Run(sql));
    if (answer.rows != m.rows || answer.hash != lines.Hash()) {
      return Status(ErrorCode::kInternal, query + " has other rows than DuckDB's");
    }
  }
  std::vector<double> ms, compile, kernel, duckdb_ms;
  for (int i = 0; i < options.runs; ++i) {
    Lines lines;
    TESSERA_TRY(Execute(session, sql, &lines));
    const Timing& timing = session->last_timing();
    ms.push_back(timing.total);
    compile.push_back(timing.compile);
    kernel.push_back(timing.kernel);
    m.bytes_read = timing.bytes_read;
    if (duckdb == nullptr) continue;
    TESSERA_ASSIGN(const DuckDb::Answer answer, duckdb->Run(sql));
    duckdb_ms.push_back(answer.ms);
  }
  m.ms = Median(ms);
  m.compile_ms = Median(compile);
  m.kernel_ms = Median(kernel);
  for (const vm::SectionStatistics& section : session->last_statistics().sections)
    m.bytes_transferred += section.bytes_transferred;
  if (duckdb != nullptr) m.duckdb_ms = Median(duckdb_ms);
  if (!options.shell.empty()) {
    TESSERA_ASSIGN(const ProcessRun run, RunProcess(options, options.session.directory, sql));
    m.peak_memory = run.peak_memory;
  }
  return m;
}

void PrintRow(const Measurement& m, bool gpu) {
  fmt::print("{:<6} {:>10.3f} {:>8} {:>10} {:>8.2f} {:>11.3f}", m.query, m.ms, m.rows,
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
  out << "query,ms,rows,bytes_read,gb_per_s,compile_ms,kernel_ms,bytes_transferred,duckdb_ms,peak_memory\n";
  for (const Measurement& m : measurements) {
    out << fmt::format("{},{:.4f},{},{},{:.3f},{:.4f},{:.4f},{},{},{}\n", m.query, m.ms, m.rows, m.bytes_read,
                       m.GigabytesPerSecond(gpu), m.compile_ms, m.kernel_ms, m.bytes_transferred,
                       m.duckdb_ms ? fmt::format("{:.4f}", *m.duckdb_ms) : "",
                       m.peak_memory ? std::to_string(*m.peak_memory) : "");
  }
  if (!out.flush()) return {ErrorCode::kIo, "could not write \"" + file + "\""};
  return Status::Ok();
}

const char* Verdict(bool met) { return met ? "met" : "MISSED"; }

Status Bench(Session* session, const Options& options) {
  const bool gpu = options.session.device == DeviceChoice::kGpu;
  if (gpu) {
    // The kernels run what they can, the host the rest.
    TESSERA_TRY(session->SetDevice(DeviceChoice::kAuto));
    Lines none;
    TESSERA_TRY(Execute(session, "SET gpu_min_rows = 0", &none));
  }
  DuckDb duckdb;
  const bool compare = !options.duckdb.empty();
  fmt::print("{}; {} hot runs", session->DeviceDescription(), options.runs);
  if (compare) {
    TESSERA_TRY(duckdb.Start(options, session->threads()));
    fmt::print("; {}, {} threads", duckdb.version, session->threads());
  }
  fmt::print("\n\nquery          ms     rows       read     GB/s  compile ms");
  if (gpu) fmt::print("  kernel ms       to GPU");
  if (compare) fmt::print("  DuckDB ms  ratio");
  if (!options.shell.empty()) fmt::print("        RSS   RSS-read");
  fmt::print("\n");
  std::vector<Measurement> measurements;
  std::vector<std::string> queries(std::begin(kQueries), std::end(kQueries));
  queries.emplace_back(kScan);
  for (const std::string& query : queries) {
    TESSERA_ASSIGN(Measurement m, Measure(session, compare ? &duckdb : nullptr, options, query));
    PrintRow(m, gpu);
    measurements.push_back(std::move(m));
  }

  double sum = 0, run_sum = 0, duckdb_sum = 0, compile = 0, memory = 0;
  for (const Measurement& m : measurements) {
    compile = std::max(compile, m.compile_ms);
    if (m.peak_memory)
      memory = std::max(memory, static_cast<double>(*m.peak_memory) - static_cast<double>(m.bytes_read));
    if (m.query == kScan) continue;
    sum += m.ms;
    run_sum += m.ms - m.compile_ms;
    duckdb_sum += m.duckdb_ms.value_or(0);
  }
  fmt::print("\nsum of the 13: {:.1f} ms from text to rows, {:.1f} from program to rows", sum, run_sum);
  if (compare) {
    const double ratio = sum / duckdb_sum;
    fmt::print("; DuckDB {:.1f} ms; ratio {:.2f} (limit {:.1f}: {})", duckdb_sum, ratio, kDuckDbLimit,
               Verdict(ratio <= kDuckDbLimit));
  }
  fmt::print("\nslowest compilation: {:.3f} ms (limit {:.2f}: {})\n", compile, kCompileLimit,
             Verdict(compile <= kCompileLimit));
  if (!options.shell.empty()) {
    fmt::print("peak memory of a process beyond the encoded columns it reads: {} (limit {}: {})\n", BytesText(memory),
               BytesText(kMemoryLimit), Verdict(memory <= kMemoryLimit));
    TESSERA_ASSIGN(const std::string sql, QueryText(kQueries[0]));
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
  return options.csv.empty() ? Status::Ok() : WriteCsv(options.csv, measurements, gpu);
}

int Usage(const std::string& message) {
  fmt::print(stderr, "ssb_bench: {}\nThe options are at the head of bench/ssb.cc.\n", message);
  return 2;
}

int RunBench(int argc, char** argv) {
  Options options;
  options.session.mode = OpenMode::kReadOnly;
  options.session.device = DeviceChoice::kHost;
  const option names[] = {{"csv", required_argument, nullptr, 'c'},
                          {"data", required_argument, nullptr, 'a'},
                          {"database", required_argument, nullptr, 'b'},
                          {"demo", no_argument, nullptr, 'e'},
                          {"device", required_argument, nullptr, 'd'},
                          {"duckdb", required_argument, nullptr, 'u'},
                          {"runs", required_argument, nullptr, 'r'},
                          {"shell", required_argument, nullptr, 's'},
                          {"small-database", required_argument, nullptr, 'm'},
                          {"threads", required_argument, nullptr, 't'},
                          {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", names, nullptr)) >= 0;) {
    const std::string value = optarg == nullptr ? "" : optarg;
    const auto number = [&](int* out) {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *out);
      return error == std::errc{} && end == value.data() + value.size() && *out >= 1;
    };
    switch (c) {
      case 'a':
        options.data = value;
        break;
      case 'b':
        options.session.directory = value;
        break;
      case 'c':
        options.csv = value;
        break;
      case 'd':
        if (value != "host" && value != "gpu") return Usage("--device is host or gpu");
        options.session.device = value == "gpu" ? DeviceChoice::kGpu : DeviceChoice::kHost;
        break;
      case 'e':
        options.demo = true;
        break;
      case 'm':
        options.small_database = value;
        break;
      case 'r':
        if (!number(&options.runs)) return Usage("--runs takes a number");
        break;
      case 's':
        options.shell = value;
        break;
      case 't':
        if (!number(&options.session.threads)) return Usage("--threads takes a number");
        break;
      case 'u':
        options.duckdb = value;
        break;
      default:
        return Usage("wrong options");
    }
  }
  if (optind != argc || options.session.directory.empty()) return Usage("--database is missing");
  if (options.demo) options.session.device = DeviceChoice::kAuto;
  std::signal(SIGPIPE, SIG_IGN);  // DuckDB's end of the pipe may close
  Result<std::unique_ptr<Session>> session = Session::Open(options.session);
  Status status =
      session.ok() ? options.demo ? Demo(session->get()) : Bench(session->get(), options) : session.status();
  if (status.ok()) return 0;
  fmt::print(stderr, "ssb_bench: {}\n", status.message());
  return 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::RunBench(argc, argv); }
