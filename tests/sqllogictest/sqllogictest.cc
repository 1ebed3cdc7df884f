// The program `sqllogictest`: runs SQL test files, each in a fresh temporary database, and closes with the totals.
//
//   sqllogictest [--device host|gpu] [--threads N] [--tablet-rows N] [--gpu-memory N] [--jobs N] FILE...
//
//   --device gpu      what the kernels can run runs on the GPU, however small the table, the rest on the host; how many
//                     sections ran where is said at the end. It is an error if there is no GPU.
//   --threads N       threads of a statement on the host
//   --tablet-rows N   new tables have tablets of N rows, unless they say otherwise
//   --gpu-memory N    budget on the GPU in bytes, or with mb
//   --jobs N          files at the same time
//   --host-rows N     it is a failure if a section over more than N rows runs on the host
//   --set NAME=VALUE  a setting, in every file. A query that the join_strategy set so cannot run is skipped; a
//                     statement, or a query with RETURNING, then runs under auto, because later records need what it does.
//   --joins           SELECTs whose plan has no join are skipped: a join strategy changes nothing of them
//
// Under mpirun rank 0 reads and prints, and all queries run on all ranks. It is a failure if a rank scanned nothing of
// a table that has a tablet for each rank.
//
// A record is a statement or a query. A failure is printed with file, line, what was expected and what came. Exit
// status: 0 if nothing failed, 1, or 2 (usage, a file that cannot be read, the device).
//
// The format is in tests/sqllogictest/logic_script.h. All input goes through ReadFile and all output through Print, so that under a
// launcher one rank can do both for all.

#include <fmt/format.h>
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <regex>
#include <thread>

#include "compiler/compiler.h"
#include "mpi/cluster.h"
#include "session/session.h"
#include "tests/sqllogictest/logic_result.h"
#include "tests/sqllogictest/logic_script.h"

namespace tessera {
namespace {

constexpr const char* kEngine = "tessera";

struct Options {
  SessionOptions session;
  int tablet_rows = 0;
  int jobs = 1;
  int host_rows = 0;  ///< 0: any
  bool joins = false;
  std::vector<std::string> settings;  ///< NAME=VALUE
  std::string join_strategy;          ///< the one of that name
  std::vector<std::string> files;
};

/// What came of some files.
struct Totals {
  uint64_t passed = 0, failed = 0, skipped = 0, without_join = 0;
  uint64_t gpu_sections = 0, host_sections = 0;  ///< over stored tables
  bool unreadable = false;
  std::vector<uint64_t> rank_rows;  ///< scanned, by rank
};

void Print(const std::string& text) {
  fwrite(text.data(), 1, text.size(), stdout);
  fflush(stdout);
}

bool ReadFile(const std::string& file, std::string* text) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return false;
  text->assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  return !in.bad();
}

/// Whether a join strategy that was asked for cannot run the query.
bool RefusesStrategy(const Status& status) {
  return status.code() == ErrorCode::kUnsupported && status.message().find("join strategy \"") != std::string::npos &&
         status.message().find("\" cannot run this query") != std::string::npos;
}

/// Whether it has joins, perhaps: it is no statement about transactions.
bool MayBeRefused(const std::string& sql) {
  static const std::regex about("^\\s*(begin|start|commit|end|rollback|abort|savepoint|release)\\b", std::regex::icase);
  return !std::regex_search(sql, about);
}

/// Whether it reads tables, and does nothing that a later record may need.
bool OnlyReads(const std::string& sql) {
  static const std::regex reads("^\\s*(select|values)\\b", std::regex::icase);
  static const std::regex does("\\b(nextval|setval|set_config|into)\\b", std::regex::icase);
  return std::regex_search(sql, reads) && !std::regex_search(sql, does);
}

/// Whether the message is the expected one: contains it, or matches it as a regular expression.
bool MessageMatches(const std::string& expected, const std::string& message) {
  if (expected.empty() || message.find(expected) != std::string::npos) return true;
  try {
    return std::regex_search(message, std::regex(expected));
  } catch (const std::regex_error&) {
    return false;  // a text, not a pattern
  }
}

class FileRun {
 public:
  FileRun(const Options& options, const std::string& file) : options_(options), file_(file) {}

  Totals Run() {
    std::string text;
    if (!ReadFile(file_, &text)) {
      Print(fmt::format("FAILED {}: cannot be read\n", file_));
      totals_.failed = 1;
      totals_.unreadable = true;
      return totals_;
    }
    Result<std::vector<LogicRecord>> records = ParseLogicScript(text, kEngine);
    if (!records.ok()) {
      Fail(0, records.status().message() + "\n");
      return totals_;
    }
    Status opened = OpenSession();
    if (!opened.ok()) {
      Fail(0, opened.message() + "\n");
      return totals_;
    }
    for (const LogicRecord& record : *records) {
      if (record.kind == LogicRecord::Kind::kHalt) break;
      if (record.kind == LogicRecord::Kind::kHashThreshold) {
        hash_threshold_ = record.hash_threshold;
      } else {
        RunRecord(record);
      }
    }
    return totals_;
  }

 private:
  Status OpenSession() {
    TESSERA_ASSIGN(session_, Session::Open(options_.session));
    if (options_.session.device == DeviceChoice::kGpu) {
      TESSERA_TRY(session_->SetDevice(DeviceChoice::kAuto));
      TESSERA_TRY(Set("gpu_min_rows", 0));
    }
    for (const std::string& setting : options_.settings) {
      LogicResult none("");
      TESSERA_TRY(session_->Execute("SET " + setting, &none));
    }
    return options_.tablet_rows > 0 ? Set("tablet_rows", options_.tablet_rows) : Status::Ok();
  }

  Status Set(const char* name, int value) {
    LogicResult none("");
    return session_->Execute(fmt::format("SET {} = {}", name, value), &none);
  }

  void RunQuietly(const char* sql) {
    LogicResult none("");
    (void)session_->Execute(sql, &none);
  }

  /// By its plan. What has no plan may have joins. (An error of EXPLAIN must not end a transaction.)
  bool HasJoins(const LogicRecord& record) {
    if (record.kind != LogicRecord::Kind::kQuery || session_->in_transaction() || !OnlyReads(record.sql)) return true;
    LogicResult plan("T");
    if (!session_->Execute("EXPLAIN " + record.sql, &plan).ok()) return true;
    static const std::regex join("\\bjoin\\b", std::regex::icase);
    return std::ranges::any_of(plan.values(), [](const std::string& line) { return std::regex_search(line, join); });
  }

  void RunRecord(const LogicRecord& record) {
    if (options_.joins && !HasJoins(record)) {
      ++totals_.without_join;
      return;
    }
    LogicResult result(record.types);
    // (What the strategy cannot run must not end a transaction.)
    const bool returns = !options_.join_strategy.empty() && session_->in_transaction() && MayBeRefused(record.sql);
    if (returns) RunQuietly("SAVEPOINT before_record");
    Status status = session_->Execute(record.sql, &result);
    const bool expected = record.expect_error && !status.ok() && MessageMatches(record.error, status.message());
    const bool refused = !status.ok() && !expected && !options_.join_strategy.empty() && RefusesStrategy(status);
    if (returns && refused) RunQuietly("ROLLBACK TO before_record");
    if (returns) RunQuietly("RELEASE before_record");
    if (refused) {
      ++totals_.skipped;
      const bool changes = record.sql.find("RETURNING") != std::string::npos;
      if ((record.kind == LogicRecord::Kind::kQuery && !changes) || record.expect_error) return;
      LogicResult none("");
      status = session_->Execute("SET join_strategy = auto", &none);
      if (status.ok()) status = session_->Execute(record.sql, &result);
      if (status.ok()) status = session_->Execute("SET " + options_.join_strategy, &none);
      if (!status.ok()) Fail(record.line, FormatError(status, record.sql, record.sql_line) + "\n");
      return;
    }
    for (const vm::SectionStatistics& section : session_->last_statistics().sections) {
      if (section.on_gpu) ++totals_.gpu_sections;
      if (!section.on_gpu && section.tablets > 0) ++totals_.host_sections;
      if (section.on_gpu || options_.host_rows == 0 || section.rows_in <= static_cast<uint64_t>(options_.host_rows))
        continue;
      return Fail(record.line, fmt::format("  \"{}\" over {} rows ran on the host\n{}\n", section.label,
                                           section.rows_in, record.sql));
    }
    std::string problem;
    // (An error of one rank may stop another one before it begins.)
    if (status.ok() && session_->last_statistics().idle_portions > 0) {
      Fail(record.line, "  a rank scanned nothing of a table that has a tablet for each of them\n" + record.sql + "\n");
      return;
    }
    for (const vm::RankStatistics& rank : session_->last_statistics().ranks) {
      // (Of a statement that the master ran alone there is one.)
      const size_t r = static_cast<size_t>(rank.rank);
      totals_.rank_rows.resize(std::max(totals_.rank_rows.size(), r + 1));
      totals_.rank_rows[r] += rank.rows_scanned;
    }
    if (record.kind == LogicRecord::Kind::kStatement && record.expect_error) {
      if (status.ok()) {
        problem = "  expected an error, got none\n";
      } else {
        const std::string message = status.message() + (status.hint().empty() ? "" : "\n" + status.hint());
        if (!MessageMatches(record.error, message)) {
          problem = fmt::format("  expected the error\n    {}\n  got\n    {}\n", record.error, message);
        }
      }
    } else if (!status.ok()) {
      problem = FormatError(status, record.sql, record.sql_line) + "\n";
    } else if (record.kind == LogicRecord::Kind::kQuery) {
      problem = CompareLogicResult(record, result.columns(), hash_threshold_, &result.values());
      if (problem.empty() && !record.label.empty()) problem = CheckLabel(record, result.values());
    }
    if (problem.empty()) {
      ++totals_.passed;
    } else {
      Fail(record.line, problem + record.sql + "\n");
    }
  }

  std::string CheckLabel(const LogicRecord& record, const std::vector<std::string>& values) {
    const std::string hash = LogicHash(values);
    const auto [at, added] = labels_.try_emplace(record.label, hash);
    if (added || at->second == hash) return {};
    return fmt::format("  another query with the label {} had\n    {}\n  this one has\n    {}\n", record.label,
                       at->second, hash);
  }

  void Fail(int line, const std::string& what) {
    ++totals_.failed;
    Print(fmt::format("FAILED {}:{}\n{}\n", file_, line, what));
  }

  const Options& options_;
  const std::string& file_;
  std::unique_ptr<Session> session_;
  int64_t hash_threshold_ = 0;
  std::map<std::string, std::string> labels_;
  Totals totals_;
};

int Usage(const std::string& message) {
  fmt::print(stderr, "sqllogictest: {}\n", message);
  fmt::print(
      stderr,
      "Usage: sqllogictest [--device host|gpu] [--threads N] [--tablet-rows N] [--gpu-memory N] [--jobs N] FILE...\n");
  return 2;
}

bool ParseNumber(const char* text, int greatest, int* number) {
  const char* end = text + std::char_traits<char>::length(text);
  const auto [at, error] = std::from_chars(text, end, *number);
  return error == std::errc{} && at == end && *number >= 1 && *number <= greatest;
}

/// A number of bytes, or of MB ("256MB").
bool ParseBytes(std::string_view text, uint64_t* bytes) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), *bytes);
  const std::string_view unit(at, static_cast<size_t>(text.data() + text.size() - at));
  if (unit == "MB" || unit == "mb") *bytes <<= 20;
  return error == std::errc{} && *bytes > 0 && (unit.empty() || unit == "MB" || unit == "mb");
}

int RunAll(int argc, char** argv, Cluster* cluster) {
  Options options;
  options.session.device = DeviceChoice::kHost;
  const option names[] = {{"device", required_argument, nullptr, 'd'},
                          {"threads", required_argument, nullptr, 't'},
                          {"tablet-rows", required_argument, nullptr, 'r'},
                          {"gpu-memory", required_argument, nullptr, 'm'},
                          {"jobs", required_argument, nullptr, 'j'},
                          {"set", required_argument, nullptr, 's'},
                          {"scatter", no_argument, nullptr, 'S'},
                          {"host-rows", required_argument, nullptr, 'h'},
                          {"joins", no_argument, nullptr, 'J'},
                          {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "j:", names, nullptr)) >= 0;) {
    const std::string value = optarg == nullptr ? "" : optarg;
    if (c == 'd' && (value == "host" || value == "gpu")) {
      options.session.device = value == "gpu" ? DeviceChoice::kGpu : DeviceChoice::kHost;
    } else if (c == 't' && ParseNumber(optarg, 1024, &options.session.threads)) {
    } else if (c == 'r' && ParseNumber(optarg, 1 << 20, &options.tablet_rows)) {
    } else if (c == 's') {
      options.settings.push_back(value);
      if (value.starts_with("join_strategy=")) options.join_strategy = value;
    } else if (c == 'm' && ParseBytes(value, &options.session.gpu_memory)) {
    } else if (c == 'h' && ParseNumber(optarg, 1 << 30, &options.host_rows)) {
    } else if (c == 'S') {
      options.session.scatter = true;
    } else if (c == 'J') {
      options.joins = true;
    } else if (c == 'j' && ParseNumber(optarg, 1024, &options.jobs)) {
    } else {
      return Usage(optarg == nullptr ? "wrong options" : "wrong value \"" + value + "\"");
    }
  }
  options.files.assign(argv + optind, argv + argc);
  if (options.files.empty()) return Usage("no files");
  options.session.cluster = cluster;
  if (cluster != nullptr) options.jobs = 1;  // one program at a time runs on all ranks
  {
    // Without the device every file would fail in the same way.
    Result<std::unique_ptr<Session>> session = Session::Open(options.session);
    if (!session.ok()) return Usage(session.status().message());
  }

  Totals totals;
  std::atomic<size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i; (i = next++) < options.files.size();) {
      const Totals file = FileRun(options, options.files[i]).Run();
      const std::scoped_lock lock(mutex);
      totals.passed += file.passed;
      totals.failed += file.failed;
      totals.skipped += file.skipped;
      totals.without_join += file.without_join;
      totals.gpu_sections += file.gpu_sections;
      totals.host_sections += file.host_sections;
      totals.unreadable |= file.unreadable;
      totals.rank_rows.resize(std::max(totals.rank_rows.size(), file.rank_rows.size()));
      for (size_t r = 0; r < file.rank_rows.size(); ++r) totals.rank_rows[r] += file.rank_rows[r];
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < options.jobs; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();

  if (options.session.device == DeviceChoice::kGpu) {
    Print(fmt::format("{} sections ran on the GPU, {} over tables on the host\n", totals.gpu_sections,
                      totals.host_sections));
  }
  if (totals.rank_rows.size() > 1) {
    std::string rows = "rows scanned by rank:";
    for (const uint64_t n : totals.rank_rows) rows += " " + std::to_string(n);
    Print(rows + "\n");
    if (std::find(totals.rank_rows.begin(), totals.rank_rows.end(), uint64_t{0}) != totals.rank_rows.end()) {
      Print("FAILED: a rank scanned no rows\n");
      ++totals.failed;
    }
  }
  if (!options.join_strategy.empty())
    Print(fmt::format("{} skipped: the join strategy cannot run them\n", totals.skipped));
  if (options.joins) Print(fmt::format("{} have no join\n", totals.without_join));
  Print(fmt::format("{} passed, {} failed\n", totals.passed, totals.failed));
  return totals.unreadable ? 2 : totals.failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  tessera::Result<std::unique_ptr<tessera::Cluster>> cluster = tessera::Cluster::Join("");
  const tessera::Status& ready = cluster.ok() && *cluster != nullptr ? (*cluster)->ready() : cluster.status();
  if (!ready.ok()) return tessera::Usage(ready.message());
  if (*cluster != nullptr && (*cluster)->rank() != 0) return (*cluster)->Serve(1);
  const int status = tessera::RunAll(argc, argv, cluster->get());
  if (*cluster != nullptr) (*cluster)->Leave(status);
  return status;
}
