// Two processes that write and eight that read the same tables: no reader sees a part of a statement, what a reader has
// seen does not go away, and every statement that was acknowledged is there at the end.
//
//   torture_writers_readers: see tests/torture/campaign.h

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/torture/answers.h"
#include "tests/torture/campaign.h"

namespace tessera {
namespace {

constexpr int kWriters = 2, kReaders = 8;
constexpr int kRows = 500;  ///< of a batch: several tablets of 64
constexpr std::chrono::milliseconds kWriting(700);

int Complain(const std::string& what) {
  fmt::print("{}\n", what);
  std::fflush(stdout);
  return 1;
}

/// Inserts batches of the writer's own numbers until the time is up.
int Write(int writer) {
  const std::unique_ptr<Session> session = OpenSession("database", 1);
  const auto end = std::chrono::steady_clock::now() + kWriting;
  int batches = 0;
  do {
    const std::string sql = fmt::format("INSERT INTO t SELECT {}, {}, i FROM source", writer, batches);
    if (const Result<std::string> done = Ask(session.get(), sql); !done.ok())
      return Complain(sql + ": " + done.status().message());
    ++batches;
  } while (std::chrono::steady_clock::now() < end);
  fmt::print("wrote {} {}\n", writer, batches);
  return std::fflush(stdout);
}

/// Reads until the time is up. Batches of a writer come in order, each as a whole.
int Read() {
  const std::unique_ptr<Session> session = OpenSession("database", 1);
  const auto end = std::chrono::steady_clock::now() + kWriting;
  std::vector<long> seen(kWriters);
  do {
    const Result<std::string> answer =
        Ask(session.get(), "SELECT writer, count(*), count(DISTINCT batch), max(batch), sum(i) FROM t GROUP BY writer");
    if (!answer.ok()) return Complain("a reader: " + answer.status().message());
    std::istringstream lines(*answer);
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      long writer = 0, rows = 0, batches = 0, last = 0, sum = 0;
      if (std::sscanf(line.c_str(), "%ld,%ld,%ld,%ld,%ld", &writer, &rows, &batches, &last, &sum) != 5 ||
          rows != kRows * batches || last != batches - 1 || sum != batches * (kRows / 2 * (kRows - 1)) ||
          batches < seen[static_cast<size_t>(writer)]) {
        return Complain("a reader saw " + line);
      }
      seen[static_cast<size_t>(writer)] = batches;
    }
  } while (std::chrono::steady_clock::now() < end);
  return 0;
}

/// `small`: of all changes together there is one tablet, so that they go to the commit log.
int Trial(bool small) {
  {
    const std::unique_ptr<Session> session = OpenSession("database", 1);
    for (const char* sql :
         {"CREATE TABLE d (x INTEGER)", "INSERT INTO d VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
          "CREATE TABLE source (i INTEGER)",
          "INSERT INTO source SELECT a.x * 100 + b.x * 10 + c.x FROM d a, d b, d c WHERE a.x < 5",
          small ? "CREATE TABLE t (writer INTEGER, batch INTEGER, i INTEGER)"
                : "CREATE TABLE t (writer INTEGER, batch INTEGER, i INTEGER) WITH (tablet_rows = 64)"}) {
      if (const Result<std::string> done = Ask(session.get(), sql); !done.ok())
        return Complain(done.status().message());
    }
  }
  std::vector<pid_t> children;
  for (int i = 0; i < kWriters + kReaders; ++i) {
    const pid_t child = fork();
    if (child < 0) return Complain("fork failed");
    if (child == 0) _exit(i < kWriters ? Write(i) : Read());
    children.push_back(child);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
      return Complain(fmt::format("a child ended with status {}", status));
    failed |= WEXITSTATUS(status);
  }
  if (failed != 0) return failed;
  const std::unique_ptr<Session> session = OpenSession("database", 1);
  const Result<std::string> answer =
      Ask(session.get(), "SELECT writer, count(DISTINCT batch) AS batches FROM t GROUP BY writer ORDER BY writer");
  fmt::print("found {}", answer.ok() ? *answer : answer.status().message());
  return std::fflush(stdout);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("writers_readers", argc, argv);
  const ScratchFolder folder;
  std::filesystem::current_path(folder.path());
  while (campaign.Next()) {
    std::filesystem::remove_all("database");
    const ChildEnd end = RunInChild(120, [&] { return Trial(campaign.trial() % 2 == 0); });
    std::string expected = "writer,batches\n";
    std::vector<int> wrote(kWriters, -1);
    std::istringstream lines(end.output);
    for (std::string line; std::getline(lines, line);) {
      int writer = 0, batches = 0;
      if (std::sscanf(line.c_str(), "wrote %d %d", &writer, &batches) == 2)
        wrote[static_cast<size_t>(writer)] = batches;
    }
    for (int w = 0; w < kWriters; ++w) expected += fmt::format("{},{}\n", w, wrote[static_cast<size_t>(w)]);
    const size_t found = end.output.find("found ");
    if (end.status != 0 || found == std::string::npos || end.output.substr(found + 6) != expected)
      campaign.Break(end.Text());
  }
  return campaign.Finish();
}
