// DuckDB in a process of its own, asked one query at a time (bench/queries_duckdb.py).
//
// Start at: DuckDb::Start, Time, Rows. One thread. The process ends with the object.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/status.h"
#include "bench/answer.h"

namespace tessera {

class DuckDb {
 public:
  DuckDb() = default;
  DuckDb(const DuckDb&) = delete;
  DuckDb& operator=(const DuckDb&) = delete;
  ~DuckDb() {
    if (in_ != nullptr) fclose(in_);
    if (out_ != nullptr) fclose(out_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }

  /// `python` has the package duckdb. The tables of `schema` come from the files of `data`, where its own file goes too.
  Status Start(const std::string& python, const std::string& data, const std::string& schema, int threads) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return {ErrorCode::kIo, "no pipe for DuckDB"};
    process_ = fork();
    if (process_ < 0) return {ErrorCode::kIo, "no process for DuckDB"};
    if (process_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      const std::string database = data + "/duckdb", count = std::to_string(threads);
      execlp(python.c_str(), python.c_str(), "bench/queries_duckdb.py", data.c_str(), schema.c_str(), database.c_str(),
             count.c_str(), nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = fdopen(to[1], "w");
    out_ = fdopen(from[0], "r");
    TESSERA_ASSIGN(version, ReadLine());
    return Status::Ok();
  }

  /// Milliseconds until the query's result is complete.
  Result<double> Time(const std::string& sql) {
    double ms = 0;
    TESSERA_ASSIGN(const std::string line, Ask("time", sql));
    if (sscanf(line.c_str(), "ok %lf", &ms) != 1) return Status(ErrorCode::kSql, "DuckDB: " + line);
    return ms;
  }

  Result<Answer> Rows(const std::string& sql) {
    TESSERA_ASSIGN(const std::string line, Ask("rows", sql));
    unsigned long rows = 0;
    char kinds[4096] = "";
    if (sscanf(line.c_str(), "ok %lu %4095s", &rows, kinds) != 2) return Status(ErrorCode::kSql, "DuckDB: " + line);
    Answer answer{kinds, {}};
    for (; rows > 0; --rows) {
      std::vector<std::string>& cells = answer.rows.emplace_back();
      TESSERA_ASSIGN(const std::string row, ReadLine());
      for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
        end = row.find('|', begin);
        cells.push_back(row.substr(begin, end - begin));
      }
    }
    return answer;
  }

  std::string version;

 private:
  Result<std::string> Ask(const char* what, const std::string& sql) {
    fmt::print(in_, "{} {}\n", what, sql);
    fflush(in_);
    return ReadLine();
  }
  Result<std::string> ReadLine() {
    std::string line;
    for (int c; (c = getc_unlocked(out_)) != '\n'; line += static_cast<char>(c))
      if (c == EOF) return Status(ErrorCode::kIo, "DuckDB has ended");
    return line;
  }

  pid_t process_ = -1;
  FILE *in_ = nullptr, *out_ = nullptr;
};

}  // namespace tessera
