// kill -9 at random moments of a process in which many sessions insert a row at a time and share commits. Of each session every
// row that was acknowledged is there, at most one more, and the rest of its row is, too.
//
//   torture_group_kills: see tests/torture/campaign.h

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "session/engine.h"
#include "tests/torture/answers.h"
#include "tests/torture/campaign.h"

namespace tessera {
namespace {

constexpr int kSessions = 12, kTables = 2;
constexpr int kTrialsOfADatabase = 10;

/// Rows of the session from `first` on, until it is killed. Its number and that of the row are printed when it is done.
void InsertRows(int number, int first, const std::shared_ptr<Engine>& engine) {
  SessionOptions options;
  options.directory = "database";
  options.device = DeviceChoice::kHost;
  options.threads = 1;
  options.engine = engine;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  for (int row = first; session.ok(); ++row) {
    const std::string sql =
        fmt::format("INSERT INTO t{} VALUES ({}, {}, {})", number % kTables, number, row, number * 1000000 + row);
    if (const Result<std::string> done = Ask(session->get(), sql); !done.ok()) {
      fmt::print("{}: {}\n", sql, done.status().message());
      std::fflush(stdout);
      std::exit(1);
    }
    fmt::print("done {} {}\n", number, row);
    std::fflush(stdout);
  }
}

int InsertAtOnce(const std::vector<int>& first) {
  const auto engine = std::make_shared<Engine>();
  std::vector<std::thread> threads;
  for (int i = 0; i < kSessions; ++i)
    threads.emplace_back([&, i] { InsertRows(i, first[static_cast<size_t>(i)], engine); });
  for (std::thread& thread : threads) thread.join();
  return 1;
}

/// Prints "session N ROWS" for each that has rows, all of which are whole.
int CountRows() {
  const std::unique_ptr<Session> session = OpenSession("database");
  const Result<std::string> answer =
      Ask(session.get(),
          "SELECT session, count(*) AS n, count(DISTINCT number) AS d, max(number) AS m, "
          "sum(code - session * 1000000 - number) AS s FROM (SELECT * FROM t0 UNION ALL SELECT * FROM t1) t "
          "GROUP BY session ORDER BY session");
  if (!answer.ok()) {
    fmt::print("{}\n", answer.status().message());
    return std::fflush(stdout) + 1;
  }
  std::istringstream lines(*answer);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    int number = 0, rows = 0, different = 0, last = 0, sum = 0;
    if (std::sscanf(line.c_str(), "%d,%d,%d,%d,%d", &number, &rows, &different, &last, &sum) != 5 ||
        rows != different || last != rows - 1 || sum != 0) {
      fmt::print("rows are missing: {}\n", line);
      return std::fflush(stdout) + 1;
    }
    fmt::print("session {} {}\n", number, rows);
  }
  return std::fflush(stdout);
}

int MakeDatabase() {
  const std::unique_ptr<Session> session = OpenSession("database");
  for (const char* sql :
       {"CREATE TABLE t0 (session INTEGER, number INTEGER, code INTEGER, PRIMARY KEY (session, number))",
        "CREATE TABLE t1 (session INTEGER, number INTEGER, code INTEGER)"}) {
    if (const Result<std::string> done = Ask(session.get(), sql); !done.ok()) return 1;
  }
  return 0;
}

/// The greatest second number of lines "WORD N M" by their first, and one more; 0: there is none.
std::vector<int> NumbersOf(const std::string& text, const std::string& word, int more) {
  std::vector<int> numbers(kSessions);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    int number = 0, row = 0;
    if (std::sscanf(line.c_str(), (word + " %d %d").c_str(), &number, &row) != 2 || number < 0 || number >= kSessions)
      continue;
    numbers[static_cast<size_t>(number)] = std::max(numbers[static_cast<size_t>(number)], row + more);
  }
  return numbers;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("group_kills", argc, argv);
  const ScratchFolder folder;
  std::filesystem::current_path(folder.path());
  std::vector<int> rows(kSessions);
  for (bool first = true; campaign.Next(); first = false) {
    if (first || campaign.trial() % kTrialsOfADatabase == 0) {
      std::filesystem::remove_all("database");
      std::ranges::fill(rows, 0);
      if (const ChildEnd made = RunInChild(60, MakeDatabase); made.status != 0) campaign.Break(made.Text());
    }
    // "No end within": the kill.
    const double seconds = 0.001 * static_cast<double>(campaign.Random(uint64_t{1} << (5 + campaign.Random(5))));
    const ChildEnd writer = RunInChild(seconds, [&] { return InsertAtOnce(rows); });
    if (!writer.timed_out) campaign.Break("the writer ended by itself: " + writer.Text());
    const std::vector<int> done = NumbersOf(writer.output, "done", 1);
    const ChildEnd reader = RunInChild(60, CountRows);
    const std::vector<int> found = NumbersOf(reader.output, "session", 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      const int acknowledged = std::max(rows[i], done[i]);
      if (reader.status != 0 || (found[i] != acknowledged && found[i] != acknowledged + 1)) {
        campaign.Break(fmt::format("session {}: {} rows were acknowledged, {} found; {}", i, acknowledged, found[i],
                                   reader.Text()));
        break;
      }
    }
    rows = found;
  }
  return campaign.Finish();
}
