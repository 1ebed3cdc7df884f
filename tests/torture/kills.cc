// kill -9 at random moments of COPY, INSERT, CREATE and DROP. Every statement that was acknowledged is there
// afterwards, the one that was not is there as a whole or not at all, and the next writer can go on. Where rows have values of a
// sequence, each value has gone to one row, and none is missing.
//
//   torture_kills: see tests/torture/campaign.h

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/torture/answers.h"
#include "tests/torture/campaign.h"

namespace tessera {
namespace {

/// Of a batch: several tablets of 1,024, or a part of one, which goes to the commit log.
constexpr int kManyRows = 4000, kFewRows = 20;
int batch_rows = kManyRows;
bool has_identity = false;
constexpr int kTrialsOfADatabase = 25;

/// Writes batches from `first` on until it is killed. Each is one statement; its number is printed when it is done.
int WriteBatches(int first) {
  const std::unique_ptr<Session> session = OpenSession("database");
  for (int batch = first;; ++batch) {
    std::string sql;
    if (batch % 3 == 0) {
      FILE* file = std::fopen("batch.csv", "w");
      for (int i = 0; i < batch_rows; ++i) fmt::print(file, "{},{},text of row {}\n", batch, i, i);
      std::fclose(file);
      sql = "COPY t (batch, i, s) FROM 'batch.csv'";
    } else {
      sql = fmt::format("INSERT INTO t (batch, i, s) SELECT {}, i, s FROM source", batch);
    }
    std::vector<std::string> statements{sql};
    if (batch_rows == kManyRows || batch % 16 == 0) {
      statements.push_back(fmt::format("CREATE TABLE extra_{} (a INTEGER)", batch));
      statements.push_back(fmt::format("DROP TABLE extra_{}", batch));
    }
    for (const std::string& statement : statements) {
      if (const Result<std::string> done = Ask(session.get(), statement); !done.ok()) {
        fmt::print("{}: {}\n", statement, done.status().message());
        std::fflush(stdout);
        return 1;
      }
      if (statement == sql) fmt::print("done {}\n", batch);
      std::fflush(stdout);
    }
  }
}

/// Prints "batches N" if batches 0 .. N - 1 are there, each with all its rows.
int CountBatches() {
  const std::unique_ptr<Session> session = OpenSession("database");
  const Result<std::string> answer =
      Ask(session.get(),
          "SELECT batch, count(*) AS n, sum(i) AS i, count(DISTINCT s) AS s FROM t GROUP BY batch ORDER BY batch");
  std::string expected = "batch,n,i,s\n";
  int batches = 0;
  for (; answer.ok() && expected.size() < answer->size(); ++batches)
    expected += fmt::format("{},{},{},{}\n", batches, batch_rows, batch_rows / 2 * (batch_rows - 1), batch_rows);
  if (has_identity && answer.ok() && *answer == expected) {
    const Result<std::string> ids =
        Ask(session.get(),
            "SELECT count(*) = count(DISTINCT id) AND count(*) = coalesce(max(id), 0) AND count(*) = "
            "(SELECT coalesce(max(last_value), 0) FROM pg_sequences) AS whole FROM t");
    if (!ids.ok() || *ids != "whole\ntrue\n") {
      fmt::print("values of the sequence: {}\n", ids.ok() ? *ids : ids.status().message());
      std::fflush(stdout);
      return 1;
    }
  }
  if (answer.ok() && *answer == expected) {
    fmt::print("batches {}\n", batches);
    return std::fflush(stdout);
  }
  fmt::print("a batch is not whole: {}\n", answer.ok() ? *answer : answer.status().message());
  std::fflush(stdout);
  return 1;
}

int MakeDatabase() {
  const std::unique_ptr<Session> session = OpenSession("database");
  FILE* file = std::fopen("source.csv", "w");
  for (int i = 0; i < batch_rows; ++i) fmt::print(file, "{},text of row {}\n", i, i);
  std::fclose(file);
  for (const char* sql : {has_identity ? "CREATE TABLE t (batch INTEGER, i INTEGER, s TEXT, id BIGINT GENERATED ALWAYS "
                                         "AS IDENTITY) WITH (tablet_rows = 1024)"
                                       : "CREATE TABLE t (batch INTEGER, i INTEGER, s TEXT) WITH (tablet_rows = 1024)",
                          "CREATE TABLE source (i INTEGER, s TEXT)", "COPY source FROM 'source.csv'"}) {
    if (const Result<std::string> done = Ask(session.get(), sql); !done.ok()) return 1;
  }
  return 0;
}

/// The number after the last `word` in `text`, or -1.
int LastNumber(const std::string& text, const std::string& word) {
  const size_t at = text.rfind(word + " ");
  return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + word.size() + 1);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("kills", argc, argv);
  const ScratchFolder folder;
  std::filesystem::current_path(folder.path());
  int batches = 0;
  for (bool first = true; campaign.Next(); first = false) {
    if (first || campaign.trial() % kTrialsOfADatabase == 0) {
      std::filesystem::remove_all("database");
      batches = 0;
      batch_rows = campaign.Random(2) == 0 ? kManyRows : kFewRows;
      has_identity = campaign.Random(2) == 0;
      if (const ChildEnd made = RunInChild(60, MakeDatabase); made.status != 0) campaign.Break(made.Text());
    }
    // "No end within": the kill.
    const double seconds = 0.001 * static_cast<double>(campaign.Random(uint64_t{1} << (4 + campaign.Random(6))));
    const ChildEnd writer = RunInChild(seconds, [&] { return WriteBatches(batches); });
    if (!writer.timed_out) campaign.Break("the writer ended by itself: " + writer.Text());
    const int acknowledged = std::max(batches - 1, LastNumber(writer.output, "done")) + 1;
    const ChildEnd reader = RunInChild(60, CountBatches);
    const int found = LastNumber(reader.output, "batches");
    if (reader.status != 0 || (found != acknowledged && found != acknowledged + 1)) {
      campaign.Break(fmt::format("{} batches were acknowledged; {}", acknowledged, reader.Text()));
    }
    batches = std::max(found, 0);
  }
  return campaign.Finish();
}
