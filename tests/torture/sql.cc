// Mutated SQL: the statements of tests/sql, cut, spliced, repeated, nested and filled with odd values, run in a session
// on the tables that these files make. Every statement ends in a result or an error that is not a broken invariant,
// within five seconds of the process's time; one that has run for half a second is cancelled.
//
// A trial is a child process that runs some of the statements of one file, most of them mutated. The child prints each
// before it runs it, so that the last one of a child that breaks is the culprit.
#include <fmt/format.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compiler.h"
#include "compiler/parse/sql_scanner.h"
#include "session/session.h"
#include "tests/sqllogictest/logic_script.h"
#include "tests/torture/campaign.h"

namespace tessera {
namespace {

constexpr int kStatementsOfATrial = 25;
/// Of processor time, for one statement. Sanitizers are slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMostSeconds = 30;
#else
constexpr int kMostSeconds = 5;
#endif

using File = std::vector<std::string>;

bool Has(std::string_view sql, std::string_view word) { return FindKeyword(sql, 0, word) >= 0; }

/// The statements of all files. Those that name files of the machine are left out.
std::vector<File> ReadFiles() {
  std::vector<File> files;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/sql")) {
    if (entry.path().extension() == ".test") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    Result<std::vector<LogicRecord>> records = ParseLogicScript(text, "tessera");
    if (!records.ok()) continue;
    File file;
    for (LogicRecord& r : *records) {
      if (!r.sql.empty() && r.sql.size() < 5000 && !Has(r.sql, "copy")) file.push_back(std::move(r.sql));
    }
    if (!file.empty()) files.push_back(std::move(file));
  }
  return files;
}

class Mutator {
 public:
  Mutator(Campaign* campaign, const std::vector<File>& files) : campaign_(*campaign), files_(files) {}

  std::string Mutate(std::string sql) {
    for (size_t n = 1 + Below(3); n > 0 && sql.size() < 200000; --n) Once(&sql);
    return sql;
  }

  size_t Below(size_t n) { return static_cast<size_t>(campaign_.Random(n)); }
  const std::string& AnyStatement() {
    const File& file = files_[Below(files_.size())];
    return file[Below(file.size())];
  }

 private:
  using Tokens = std::vector<std::string>;

  static Tokens Cut(std::string_view sql) {
    Tokens tokens;
    for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
      if (t.kind != Token::Kind::kSpace) tokens.emplace_back(sql.substr(t.begin, t.end - t.begin));
    }
    return tokens;
  }

  static std::string Joined(const Tokens& tokens, size_t begin, size_t end) {
    std::string out;
    for (size_t i = begin; i < end; ++i) (out += out.empty() ? "" : " ") += tokens[i];
    return out;
  }

  static std::string Repeat(std::string_view text, size_t n) {
    std::string out;
    for (; n > 0; --n) out += text;
    return out;
  }

  size_t Count() {
    constexpr size_t kCounts[] = {1, 2, 3, 10, 63, 64, 65, 300, 900, 1001, 5000};
    return kCounts[Below(std::size(kCounts))];
  }

  void Once(std::string* sql) {
    Tokens tokens = Cut(*sql);
    if (tokens.empty()) return;
    const size_t at = Below(tokens.size()), end = at + 1 + Below(std::min<size_t>(tokens.size() - at, 12));
    const auto from = tokens.begin() + static_cast<ptrdiff_t>(at), to = tokens.begin() + static_cast<ptrdiff_t>(end);
    switch (Below(12)) {
      case 0:
        tokens.erase(from, to);
        break;
      case 1:
        std::swap(tokens[at], tokens[Below(tokens.size())]);
        break;
      case 2: {  // a piece of another statement
        const Tokens other = Cut(AnyStatement());
        if (other.empty()) break;
        const size_t begin = Below(other.size());
        tokens.erase(from, to);
        tokens.insert(tokens.begin() + static_cast<ptrdiff_t>(at), other.begin() + static_cast<ptrdiff_t>(begin),
                      other.begin() + static_cast<ptrdiff_t>(begin + 1 + Below(other.size() - begin)));
        break;
      }
      case 3: {  // again and again
        static constexpr const char* kBetween[] = {" ",      ", ",     " AND ",  " OR ",        " + ",         " * ",
                                                   " || ",   " = ",    " JOIN ", " LEFT JOIN ", " UNION ALL ", " IN ",
                                                   " THEN ", " WHEN ", " . ",    " ; "};
        const std::string piece = Joined(tokens, at, end);
        tokens[at] = piece + Repeat(kBetween[Below(std::size(kBetween))] + piece, Count() % 1000);
        tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(at) + 1, to);
        break;
      }
      case 4: {  // inside something
        static constexpr std::pair<const char*, const char*> kAround[] = {
            {"(", ")"},
            {"abs(", ")"},
            {"- ", ""},
            {"NOT ", ""},
            {"CAST(", " AS INTEGER)"},
            {"", "::TEXT"},
            {"CASE WHEN true THEN ", " END"},
            {"CASE ", " WHEN 1 THEN 2 END"},
            {"coalesce(", ", 1)"},
            {"nullif(", ", 1)"},
            {"greatest(1, ", ")"},
            {"(SELECT ", ")"},
            {"(SELECT * FROM ", ") q"},
            {"sum(", ")"},
            {"ARRAY[", "]"},
            {"(1, ", ")"},
            {"EXISTS (SELECT 1 WHERE ", ")"},
            {"1 IN (SELECT ", ")"},
            {"lower(", ")"},
            {"(", " IS NULL)"},
            {"t JOIN (", " JOIN t ON true) ON true"},
        };
        const auto& [open, close] = kAround[Below(std::size(kAround))];
        const size_t n = Count();
        tokens[at] = Repeat(open, n) + Joined(tokens, at, end) + Repeat(close, n);
        tokens.erase(tokens.begin() + static_cast<ptrdiff_t>(at) + 1, to);
        break;
      }
      case 5:
      case 6: {  // an odd value
        static constexpr const char* kValues[] = {"0",
                                                  "1",
                                                  "-1",
                                                  "2147483648",
                                                  "9223372036854775807",
                                                  "9223372036854775808",
                                                  "-9223372036854775808",
                                                  "1e308",
                                                  "1e-320",
                                                  "NULL",
                                                  "''",
                                                  "'a'",
                                                  "'%'",
                                                  "'NaN'::double precision",
                                                  "0.00000000000000000000000000000000000001",
                                                  "99999999999999999999999999999999999999",
                                                  "true",
                                                  "DATE '0001-01-01'",
                                                  "DATE '9999-12-31'",
                                                  "TIMESTAMP '9999-12-31 23:59:59.999999'",
                                                  "INTERVAL '1 month'",
                                                  "INTERVAL '99999999 years'",
                                                  "*",
                                                  "t.*",
                                                  "\"\"",
                                                  "\"a\"\"b\"",
                                                  "$1",
                                                  "U&'\\0041'",
                                                  "E'\\x00'",
                                                  "B'1'",
                                                  "DEFAULT",
                                                  "()",
                                                  "DECIMAL(38,38)",
                                                  "VARCHAR(0)",
                                                  "'\xE2\x82\xAC'",
                                                  "count(*)",
                                                  "count(*) OVER ()",
                                                  "LIMIT 0",
                                                  "OFFSET 1",
                                                  "ORDER BY 1",
                                                  "GROUP BY 1",
                                                  "HAVING true",
                                                  "DISTINCT"};
        tokens[at] = kValues[Below(std::size(kValues))];
        break;
      }
      case 7:
        sql->resize(Below(sql->size()));
        return;
      case 8: {  // other bytes
        for (size_t n = 1 + Below(4); n > 0; --n) (*sql)[Below(sql->size())] = static_cast<char>(campaign_.random()());
        return;
      }
      case 9: {  // as a part of a larger statement
        const std::string other = AnyStatement();
        switch (Below(7)) {
          case 0:
            *sql = "SELECT * FROM (" + *sql + ") q";
            return;
          case 1:
            *sql = "WITH c AS (" + *sql + ") SELECT * FROM c, c d";
            return;
          case 2:
            *sql = (Below(2) == 0 ? "EXPLAIN " : "EXPLAIN ANALYZE ") + *sql;
            return;
          case 3:
            *sql = "INSERT INTO t " + *sql;
            return;
          case 4:
            *sql = *sql + " " + other;
            return;
          case 5:
            *sql = "SELECT (" + *sql + "), EXISTS (" + other + ")";
            return;
          default: {
            std::string chain = "WITH c0 AS (" + *sql + ")";
            const size_t n = Count();
            for (size_t i = 1; i <= n; ++i) chain += fmt::format(", c{} AS (SELECT * FROM c{})", i, i - 1);
            *sql = chain + fmt::format(" SELECT count(*) FROM c{}", n);
            return;
          }
        }
      }
      case 10:  // a long word
        tokens[at] += std::string(Count() * 10, "a0_%'\"$("[Below(8)]);
        break;
      default:
        tokens.insert(from, tokens[Below(tokens.size())]);
    }
    *sql = Joined(tokens, 0, tokens.size());
  }

  Campaign& campaign_;
  const std::vector<File>& files_;
};

/// Takes the rows and looks at each value, as a shell would.
class Reader final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    std::string text;
    for (const ColumnVector& column : batch.columns) {
      for (size_t row = 0; row < std::min<size_t>(batch.rows, 10); ++row) {
        if (!column.IsNull(row)) AppendText(column, row, &text);
      }
    }
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }
};

std::atomic<Session*> running{nullptr};

void CancelRunning(int) {
  if (Session* const session = running.load()) session->Cancel();
}

void SetTimer(int timer, int seconds, int microseconds) {
  const itimerval at{{0, 0}, {seconds, microseconds}};
  setitimer(static_cast<__itimer_which>(timer), &at, nullptr);
}

std::string Shown(const std::string& sql) {
  return sql.size() <= 4000
             ? sql
             : fmt::format("{} ... {} bytes ... {}", sql.substr(0, 2000), sql.size(), sql.substr(sql.size() - 1000));
}

/// Runs one statement. False if it says that an invariant is broken.
bool Run(Session* session, const std::string& sql) {
  fmt::print("statement: {}\n", Shown(sql));
  std::fflush(stdout);
  Reader reader;
  running = session;
  SetTimer(ITIMER_PROF, kMostSeconds, 0);  // SIGPROF ends the process
  SetTimer(ITIMER_REAL, 0, 500000);
  const Status status = session->Execute(sql, &reader);
  SetTimer(ITIMER_REAL, 0, 0);
  SetTimer(ITIMER_PROF, 0, 0);
  if (status.ok()) return true;
  const std::string shown = FormatError(status, sql);
  if (status.code() != ErrorCode::kInternal && status.code() != ErrorCode::kCorrupt) return true;
  fmt::print("a broken invariant: {}\n", shown);
  return false;
}

int RunTrial(Campaign* campaign, const std::vector<File>& files) {
  struct sigaction cancel = {};
  cancel.sa_handler = CancelRunning;
  cancel.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &cancel, nullptr);
  SessionOptions options;
  options.device = DeviceChoice::kHost;
  options.threads = 1;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  if (!session.ok()) {
    fmt::print("{}\n", session.status().message());
    return 1;
  }
  Mutator mutator(campaign, files);
  const File& file = files[mutator.Below(files.size())];
  const size_t begin = mutator.Below(file.size());
  bool good = true;
  // What makes the tables comes first.
  for (size_t i = 0, made = 0; i < begin && made < 15; ++i) {
    if (!Has(file[i], "create") && !Has(file[i], "insert")) continue;
    good = Run(session->get(), file[i]) && good;
    ++made;
  }
  for (int i = 0; i < kStatementsOfATrial; ++i) {
    const std::string& sql = file[(begin + static_cast<size_t>(i)) % file.size()];
    good = Run(session->get(), mutator.Below(6) == 0 ? sql : mutator.Mutate(sql)) && good;
    if (!good) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("sql", argc, argv);
  const std::vector<File> files = ReadFiles();
  if (files.empty()) {
    fmt::print(stderr, "torture_sql: no statements in tests/sql; run it in the folder of the sources\n");
    return 2;
  }
  while (campaign.Next()) {
    const ChildEnd end = RunInChild(300, [&] { return RunTrial(&campaign, files); });
    if (!end.Returned() || end.status != 0) campaign.Break(end.Text());
  }
  return campaign.Finish();
}
