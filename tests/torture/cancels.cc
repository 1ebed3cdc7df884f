// Statements that are canceled at random moments: they end soon, with the error or with the right rows, and the session
// goes on with right answers. Prints how long they took to stop.
//
//   torture_cancels: see tests/torture/campaign.h

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/torture/answers.h"
#include "tests/torture/campaign.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

/// The aim is 200 ms; a busy machine may be slow to run a thread at all.
constexpr double kLongestStop = 1500;
constexpr int kCancelsOfATrial = 6;

constexpr const char* kSetUp[] = {
    "CREATE TABLE d (x BIGINT)",
    "INSERT INTO d VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
    "CREATE TABLE t (x BIGINT, y TEXT) WITH (tablet_rows = 65536)",
    "INSERT INTO t SELECT (a.x * 100000 + b.x * 10000 + c.x * 1000 + d.x * 100 + e.x * 10 + f.x) * 7919 % 1000003, "
    "'k' || (a.x * 131 + b.x * 31 + c.x * 17 + d.x * 3 + e.x) FROM d a, d b, d c, d d, d e, d f",
    "CREATE TABLE copied (x BIGINT, y TEXT)",
};

/// Each of them answers the same every time.
constexpr const char* kStatements[] = {
    "SELECT sum(x) FROM (SELECT x FROM t ORDER BY x DESC LIMIT 900000) q",
    "SELECT count(*) FROM (SELECT y, x FROM t ORDER BY y, x LIMIT 900000 OFFSET 7) q",
    "SELECT count(*) FROM (SELECT x, count(*) FROM t GROUP BY x) q",
    "SELECT count(*) FROM (SELECT DISTINCT y, x FROM t) q",
    "SELECT count(*), sum(a.x) FROM t a JOIN t b ON a.x = b.x",
    "SELECT count(*) FROM t a, d b, d c WHERE a.x + b.x < c.x",
    "SELECT count(*) FROM d a, d b, d c, d d, d e, d f, d g WHERE a.x + g.x = 11",
    "COPY (SELECT x, y FROM t) TO 'out.csv'",
    "COPY copied FROM 'out.csv'",
    "INSERT INTO copied SELECT x, y FROM t WHERE x < 500000",
};

constexpr const char* kCheck = "SELECT count(*), sum(x) FROM t";

int Trial(uint64_t seed, const std::vector<std::string>& answers) {
  std::mt19937_64 random(seed);
  const std::unique_ptr<Session> session = OpenSession("database", 2);
  for (int i = 0; i < kCancelsOfATrial; ++i) {
    const size_t s = random() % std::size(kStatements);
    // Some at once, some after the whole time that the longest takes here.
    const auto delay = std::chrono::microseconds(random() % (uint64_t{1} << (random() % 21)));
    Clock::time_point cancelled;
    std::thread other([&] {
      std::this_thread::sleep_for(delay);
      cancelled = Clock::now();
      session->Cancel();
    });
    const Result<std::string> answer = Ask(session.get(), kStatements[s]);
    const auto end = Clock::now();
    other.join();
    if (answer.ok()) {
      if (*answer != answers[s]) {
        fmt::print("{}: {} instead of {}\n", kStatements[s], *answer, answers[s]);
        return 1;
      }
    } else if (answer.status().code() != ErrorCode::kCancelled) {
      fmt::print("{}: {}\n", kStatements[s], answer.status().message());
      return 1;
    } else {
      fmt::print("stopped after {:.1f} ms: {}\n", Milliseconds(end - cancelled).count(), kStatements[s]);
    }
    const Result<std::string> next = Ask(session.get(), kCheck);
    if (!next.ok() || *next != answers.back()) {
      fmt::print("after {}: {}\n", kStatements[s], next.ok() ? *next : next.status().message());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("cancels", argc, argv);
  const ScratchFolder folder;
  std::filesystem::current_path(folder.path());
  const ChildEnd made = RunInChild(300, [] {
    const std::unique_ptr<Session> session = OpenSession("database");
    for (const char* sql : kSetUp) {
      if (const Result<std::string> done = Ask(session.get(), sql); !done.ok()) return 1;
    }
    for (const char* sql : kStatements) {
      const Result<std::string> answer = Ask(session.get(), sql);
      if (!answer.ok()) return 1;
      fmt::print("{}\f", *answer);
    }
    const Result<std::string> last = Ask(session.get(), kCheck);
    if (last.ok()) fmt::print("{}", *last);
    return std::fflush(stdout);
  });
  std::vector<std::string> answers;
  for (size_t at = 0; at != std::string::npos && at <= made.output.size();) {
    const size_t end = made.output.find('\f', at);
    answers.push_back(made.output.substr(at, end - at));
    at = end == std::string::npos ? end : end + 1;
  }
  if (made.status != 0 || answers.size() != std::size(kStatements) + 1) {
    fmt::print(stderr, "cancels: no database to begin with: {}\n", made.Text());
    return 2;
  }
  std::vector<double> stops;
  while (campaign.Next()) {
    const uint64_t seed = campaign.random()();
    const ChildEnd end = RunInChild(300, [&] { return Trial(seed, answers); });
    if (end.status != 0) campaign.Break(end.Text());
    std::istringstream lines(end.output);
    for (std::string line; std::getline(lines, line);) {
      double milliseconds = 0;
      if (std::sscanf(line.c_str(), "stopped after %lf", &milliseconds) != 1) continue;
      stops.push_back(milliseconds);
      if (milliseconds > kLongestStop) campaign.Break(line);
    }
  }
  std::sort(stops.begin(), stops.end());
  if (!stops.empty()) {
    fmt::print("cancels: {} statements stopped, half of them within {:.1f} ms, 99 % within {:.1f}, all within {:.1f}\n",
               stops.size(), stops[stops.size() / 2], stops[stops.size() * 99 / 100], stops.back());
  }
  return campaign.Finish();
}
