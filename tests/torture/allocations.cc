// The n-th allocation fails, once or from then on: of operator new, of SQLite, or the n-th thread. The program must say
// so and exit with a status; it may succeed if it can do without. The database afterwards is as before or as after.
//
//   torture_allocations: see tests/torture/campaign.h

#include <fmt/format.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/background_thread.h"
#include "base/memory_budget.h"
#include "shell/run_shell.h"
#include "tests/torture/campaign.h"
#include "tests/torture/changes.h"

namespace tessera {
namespace {

/// This many allocations of each scenario, the first ones, are tried one by one.
constexpr uint64_t kTried = 3000;
constexpr double kSeconds = 60;

std::atomic<uint64_t> asked{0};
uint64_t first_refused = UINT64_MAX, last_refused = UINT64_MAX;

bool Refuse() {
  const uint64_t n = asked.fetch_add(1, std::memory_order_relaxed) + 1;
  return n >= first_refused && n <= last_refused;
}

sqlite3_mem_methods sqlite_memory;

/// Whether SQLite's allocations count.
bool of_sqlite = true;

void* SqliteMalloc(int bytes) { return of_sqlite && Refuse() ? nullptr : sqlite_memory.xMalloc(bytes); }
void* SqliteRealloc(void* block, int bytes) {
  return of_sqlite && Refuse() ? nullptr : sqlite_memory.xRealloc(block, bytes);
}

bool WatchSqlite() {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_memory);
  sqlite3_mem_methods watched = sqlite_memory;
  watched.xMalloc = SqliteMalloc;
  watched.xRealloc = SqliteRealloc;
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &watched) == SQLITE_OK;
}

constexpr Change kFirstScenarios[] = {
    {"start", "SELECT 1"},
    {"create", "CREATE TABLE fresh (a INTEGER NOT NULL, b TEXT)"},
    {"load", "COPY s FROM 'rows.csv'"},
    {"insert", "INSERT INTO s SELECT a + 1, b, c FROM s"},
    {"join", "SELECT count(*), sum(x.c) FROM s x JOIN s y ON x.a = y.a WHERE x.b < y.b || 'z'"},
    {"group", "SELECT b, count(*), sum(c), min(a), count(DISTINCT a) FROM s GROUP BY b ORDER BY 2 DESC, 1"},
    {"sort", "SELECT a, b, c FROM s ORDER BY c DESC, b, a LIMIT 150 OFFSET 3"},
    {"copy_to", "COPY (SELECT a, b FROM s WHERE c > 2.5) TO 'out.csv' WITH (HEADER)"},
    {"subquery",
     "WITH q AS (SELECT a, avg(c) AS m FROM s GROUP BY a) SELECT s.a FROM s JOIN q ON s.a = q.a "
     "WHERE c > m AND s.b IN (SELECT b FROM s WHERE a > 5)"},
    {"drop", "DROP TABLE spare"},
};

/// `watch` is told of Refuse when the program begins.
int RunSql(const std::string& database, const char* sql, void (*watch)(bool (*)()) = nullptr) {
  std::vector<std::string> arguments = {"tessera", "--device", "host", "--threads", "3", "--csv", "-c", sql, database};
  std::vector<char*> pointers;
  for (std::string& a : arguments) pointers.push_back(a.data());
  pointers.push_back(nullptr);
  optind = 0;
  if (watch != nullptr) watch(Refuse);
  return RunShell(static_cast<int>(arguments.size()), pointers.data(), nullptr);
}

/// StateOf() in a process of its own.
ChildEnd State(const char* database) {
  return RunInChild(kSeconds, [&] {
    fmt::print("{}", StateOf(database));
    return std::fflush(stdout);
  });
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("allocations", argc, argv);
  if (!MemoryIsCounted()) {
    fmt::print("allocations: a sanitizer's operator new cannot be told to fail\n1 passed, 0 failed\n");
    return 0;
  }
  if (!WatchSqlite()) return 2;
  const ScratchFolder folder;
  std::filesystem::current_path(folder.path());
  {
    std::ofstream csv("rows.csv");
    for (int i = 0; i < 200; ++i) csv << i % 17 << ",name" << i % 23 << ',' << i % 7 << ".5\n";
  }
  std::string make =
      "CREATE TABLE s (a INTEGER, b TEXT, c DECIMAL(8,2)) WITH (tablet_rows = 64);"
      "CREATE TABLE spare (a INTEGER); COPY s FROM 'rows.csv'";
  for (const char* sql : kMakeTables) make += std::string("; ") + sql;
  const ChildEnd made = RunInChild(kSeconds, [&] { return RunSql("before", make.c_str()); });
  if (made.status != 0) {
    fmt::print(stderr, "allocations: no database to begin with: {}\n", made.Text());
    return 2;
  }
  std::vector<Change> scenarios(std::begin(kFirstScenarios), std::end(kFirstScenarios));
  scenarios.insert(scenarios.end(), std::begin(kChanges), std::end(kChanges));
  const std::string before = State("before").output;
  // How many allocations each scenario makes, and what it leaves.
  const size_t count_of_all = scenarios.size();
  std::vector<uint64_t> allocations;
  std::vector<std::string> afters;
  for (const Change& s : scenarios) {
    std::filesystem::copy("before", "database", std::filesystem::copy_options::recursive);
    (void)RunInChild(kSeconds, [&] {
      (void)RunSql("database", s.sql, SetAllocationFault);
      SetAllocationFault(nullptr);
      std::ofstream("count") << asked << '\n';
      return 0;
    });
    std::ifstream count("count");
    allocations.emplace_back();
    count >> allocations.back();
    if (allocations.back() == 0) return 2;
    afters.push_back(State("database").output);
    std::filesystem::remove_all("database");
  }
  const uint64_t all = count_of_all * 2 * kTried;
  while (campaign.Next()) {
    // Spread over all of them, each once before any comes again: 7,919 and `all` have no common factor.
    const uint64_t number = campaign.trial() * 7919 % all;
    const size_t scenario = number % count_of_all;
    const Change& s = scenarios[scenario];
    const bool for_ever = number / count_of_all % 2 == 1;
    const bool of_threads = campaign.Random(20) == 0;
    uint64_t n = number / count_of_all / 2 + 1;
    if (of_threads) {
      n = n % 12 + 1;
    } else if (n > allocations[scenario]) {
      n = n % allocations[scenario] + 1;
    }
    std::filesystem::copy("before", "database", std::filesystem::copy_options::recursive);
    const std::string what = fmt::format("{}, {} {} fails{}", s.name, of_threads ? "thread" : "allocation", n,
                                         for_ever ? " and all after it" : "");
    const ChildEnd end = RunInChild(kSeconds, [&] {
      of_sqlite = !of_threads;
      first_refused = n;
      last_refused = for_ever ? UINT64_MAX : n;
      return RunSql("database", s.sql, of_threads ? SetThreadFault : SetAllocationFault);
    });
    if (!end.Returned() || end.status < 0 || end.status > 3) {
      campaign.Break(what + ": " + end.Text());
    } else if (end.status != 0 && end.output.find("tessera: ") == end.output.npos &&
               end.output.find("ERROR: ") == end.output.npos) {
      campaign.Break(what + ", without a message: " + end.Text());
    }
    const ChildEnd after = State("database");
    const bool as_after = after.output == afters[scenario];
    if (after.status != 0 || !(as_after || (end.status != 0 && after.output == before))) {
      campaign.Break(what + ", and then: " + after.Text() + "\nIt had said: " + end.Text());
    }
    std::filesystem::remove_all("database");
  }
  return campaign.Finish();
}
