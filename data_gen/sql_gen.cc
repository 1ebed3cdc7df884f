// sql_gen: one table, for what TPC-H and the Star Schema Benchmark leave out: windows, sets, medians, functions of texts.
//
//     sql_gen --scale S --out DIR [--jobs N]
//
// DIR gets events.tbl, 10,000,000 * S rows, fields that each end with |, as in the files of ssb_gen; data_gen/sql/ has the
// table and the queries. The columns:
//
//     event     0, 1, 2, ...: the primary key
//     visit     the same numbers in random order: partitions of one row
//     session   uniform, partitions of about 1,000 rows
//     shop      uniform, partitions of about 1,000,000 rows, at least one
//     kind      uniform, 0 to 999
//     visitor   uniform, about ten rows each
//     amount    uniform, 0.00 to 999.99
//     score     uniform in [0, 1), a double
//     day       uniform, of the ten years from 2015
//     url       user7@host42.org/page/12345: nearly all differ
//
// A row depends on its number and the number of rows only, so the file is the same for any number of threads.
//
// Start at: MakeRow().
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data_gen/command_line.h"
#include "data_gen/permutation.h"
#include "data_gen/random.h"
#include "data_gen/row_buffer.h"
#include "data_gen/table_files.h"

namespace tessera {
namespace {

constexpr char kProgram[] = "sql_gen";
constexpr double kRowsAtOne = 10'000'000, kLargestScale = 100;
constexpr uint64_t kSeed = 1, kTable = 110;  ///< the latter names the stream of random numbers
constexpr uint64_t kBlock = 8192;            ///< rows; about 0.9 MB
constexpr size_t kLongestRow = 256;
constexpr std::chrono::sys_days kFirstDay = std::chrono::year(2015) / 1 / 1;
constexpr int64_t kDays = 3653;

struct Sizes {
  explicit Sizes(uint64_t all)
      : rows(all),
        visits(all, kSeed),
        sessions(Least1(all / 1'000)),
        shops(Least1(all / 1'000'000)),
        visitors(Least1(all / 10)) {}
  static uint64_t Least1(uint64_t n) { return std::max<uint64_t>(n, 1); }
  uint64_t rows;
  Permutation visits;
  uint64_t sessions, shops, visitors;
};

void MakeRow(const Sizes& sizes, uint64_t row, RowBuffer& rows) {
  RandomRow random(kSeed, kTable, row);
  const auto put_decimal = [&](uint64_t cents) {
    rows.Put(cents / 100, '.');
    rows.Put(static_cast<char>('0' + cents / 10 % 10));
    rows.Put(static_cast<char>('0' + cents % 10));
    rows.Put('|');
  };
  rows.Put(row, '|');
  rows.Put(sizes.visits(row), '|');
  rows.Put(random.Below(sizes.sessions), '|');
  rows.Put(random.Below(sizes.shops), '|');
  rows.Put(random.Below(1'000), '|');
  rows.Put(random.Below(sizes.visitors), '|');
  put_decimal(random.Below(100'000));
  rows.Put(random.Unit(), '|');
  const std::chrono::year_month_day day(kFirstDay + std::chrono::days(random.Between(0, kDays - 1)));
  rows.Put(fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                       static_cast<unsigned>(day.day())),
           '|');
  rows.Put(fmt::format("user{}@host{}.org/page/{}", random.Below(9'000'000), random.Below(500), random.Below(80'000)),
           '|');
  rows.Put('\n');
}

TableFile Events(uint64_t rows) {
  return FileOfRows("events.tbl", rows, kBlock, kLongestRow,
                    [sizes = Sizes(rows)](uint64_t row, RowBuffer& buffer) { MakeRow(sizes, row, buffer); });
}

constexpr char kHelp[] =
    "Usage: sql_gen --scale S --out DIR [--jobs N]\n"
    "\n"
    "Writes DIR/events.tbl, the table of data_gen/sql/schema.sql.\n"
    "\n"
    "  --scale S   scale factor, 0.01 to 100; scale 1 has 10 million rows (1 GB)\n"
    "  --out DIR   created if missing; a file of this name is replaced\n"
    "  --jobs N    threads, 1 to 1024; the file does not depend on it (default: one per core)\n"
    "  --help      this text\n"
    "\n"
    "Exit status: 0 done, 1 a file could not be written, 2 wrong command line.\n";

int Main(int argc, char** argv) {
  std::optional<double> scale;
  uint64_t jobs = DefaultJobs();
  std::string directory;
  CommandLine line(kProgram, kHelp);
  line.Scale(kLargestScale, &scale);
  line.Text("out", &directory);
  line.Jobs(&jobs);
  if (const std::optional<int> status = line.Parse(argc, argv)) return *status;
  if (!scale) return UsageError(kProgram, "--scale is missing: give the scale factor, 0.01 to 100");
  if (directory.empty()) return UsageError(kProgram, "--out is missing: give the directory for the file");

  CatchInterrupts();
  const auto rows = static_cast<uint64_t>(std::llround(kRowsAtOne * *scale));
  const Status status = WriteTables({Events(rows)}, directory, static_cast<unsigned>(jobs));
  return status.ok() ? 0 : Failure(kProgram, status);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::Main(argc, argv); }
