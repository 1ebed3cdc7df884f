// What the ledger counts: which queries on which databases, and how they are read and run. Its programs run in the folder
// that tests/ledger/ledger.py has made, with the databases in it.
//
// Start at: kMeasured, MeasuredSession. One thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/answer.h"
#include "session/session.h"

namespace tessera {

struct MeasuredBenchmark {
  const char* name;  ///< also of its folder in data_gen/, and of its database
  std::vector<const char*> queries;
};

inline const MeasuredBenchmark kMeasured[] = {
    {"ssb", {"q1.1", "q1.2", "q1.3", "q2.1", "q2.2", "q2.3", "q3.1", "q3.2", "q3.3", "q3.4", "q4.1", "q4.2", "q4.3"}},
    {"tpch", {"q1", "q3", "q6", "q9", "q18"}},
};

/// Ends the program: a count of something else than a query's success would be wrong.
[[noreturn]] inline void Stop(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(1);
}

/// SQL as it was typed, without comment lines and semicolon. `sources`: the folder of the tree.
inline std::string QueryText(const std::string& sources, const std::string& benchmark, const std::string& query) {
  const std::string path = sources + "/data_gen/" + benchmark + "/" + query + ".sql";
  std::ifstream in(path);
  if (!in) Stop("cannot open " + path);
  std::string sql;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with("--")) sql += line + "\n";
  sql.erase(sql.find_last_not_of("; \t\r\n") + 1);
  return sql;
}

inline SessionOptions MeasuredOptions(const std::string& benchmark, DeviceChoice device) {
  SessionOptions options;
  options.directory = benchmark + ".tessera";
  options.mode = OpenMode::kReadOnly;
  options.device = device;
  options.threads = 1;
  options.memory_limit = uint64_t{1} << 30;  // not what this machine has
  return options;
}

class MeasuredSession {
 public:
  MeasuredSession(const std::string& benchmark, DeviceChoice device) {
    Result<std::unique_ptr<Session>> opened = Session::Open(MeasuredOptions(benchmark, device));
    if (!opened.ok()) Stop(benchmark + ": " + opened.status().message());
    session_ = std::move(*opened);
  }

  Session& session() { return *session_; }
  std::shared_ptr<const Snapshot> Tables() {
    Result<std::shared_ptr<const Snapshot>> tables = session_->Tables();
    if (!tables.ok()) Stop(tables.status().message());
    return *tables;
  }
  /// A run compiles, as that of a new text does.
  void Run(const std::string& sql) {
    if (!std::exchange(compiles_, true)) Execute("SET program_cache = 0");
    Execute(sql);
  }
  /// A run of a session as it is.
  void Execute(const std::string& sql) {
    RowCounter rows;
    const Status status = session_->Execute(sql, &rows);
    if (!status.ok()) Stop(sql + ": " + status.message());
  }

 private:
  std::unique_ptr<Session> session_;
  bool compiles_ = false;
};

}  // namespace tessera
