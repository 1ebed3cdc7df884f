// join_gen: two tables to join, with as many matches and as much skew as one likes.
//
//     join_gen --out DIR [--build N] [--probe N] [--matches M] [--skew Z] [--narrow] [--seed S] [--jobs N]
//
// DIR gets r.csv (the build side), s.csv (the probe side), each with a header, and schema.sql, which creates
// and loads them: tessera -f DIR/schema.sql my.db. Both tables have
//
//     id         0, 1, 2, ...
//     k          the join key
//     uniformi, normali5, normali20, uniformf, normalf5, normalf20
//                the distributions of uniform_gen, for theta joins: Nguyen and Hemler (GPU acceleration for SQL queries
//                on large-scale distributed systems) join two such tables of 3,500 rows
//
// The keys are 0 .. D-1 with D = N/M rounded up. In r each stands M times (some M-1 times, where M does not divide N),
// in random order; with M = 1 it is the primary key. In s each row draws its key: uniformly, or after Zipf with
// exponent Z over an order of the keys that is random too, so that frequent keys are no neighbours. Every row of s
// therefore has its M matches, and a join by k makes M rows for each row of s.
//
// With --narrow the tables have k and uniformi only: for joins of many rows.
//
// A row depends on the seed, its number and the sizes only, so the files are the same for any number of threads.
// (Another C library may round a logarithm otherwise: see uniform_gen.cc.)
//
// Start at: Tables().
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data_gen/command_line.h"
#include "data_gen/distributions.h"
#include "data_gen/permutation.h"
#include "data_gen/random.h"
#include "data_gen/row_buffer.h"
#include "data_gen/table_files.h"
#include "data_gen/zipf.h"

namespace tessera {
namespace {

constexpr char kProgram[] = "join_gen";
constexpr uint64_t kDefaultRows = 3500;
constexpr uint64_t kMostRows = uint64_t{1} << 31;  // id and k are 32-bit integers, from 0
constexpr uint64_t kDefaultSeed = 1;
constexpr double kMostSkew = 10;
/// Streams of random numbers.
enum Stream : uint64_t { kBuildValues = 101, kProbeValues, kProbeKeys, kBuildOrder, kKeyOrder };
constexpr uint64_t kBlock = 16384;  ///< rows; about 1.2 MB, narrow 0.2 MB
constexpr size_t kLongestRow = kLongestDistributions + 64;

struct Options {
  uint64_t build = kDefaultRows, probe = kDefaultRows;
  uint64_t matches = 1;
  double skew = 0;
  bool narrow = false;
  uint64_t seed = kDefaultSeed;

  uint64_t keys() const { return (build + matches - 1) / matches; }
};

TableFile Table(const char* name, uint64_t row_count, const Options& options, Stream values, auto key) {
  const auto make = [narrow = options.narrow, seed = options.seed, values, key](uint64_t row, RowBuffer& rows) {
    RandomRow random(seed, values, row);
    if (!narrow) rows.Put(row, ',');
    rows.Put(key(row), ',');
    if (narrow) {
      rows.Put(random.Between(-100, 100), '\n');
    } else {
      PutDistributions(random, '\n', rows);
    }
  };
  TableFile file = FileOfRows(name, row_count, kBlock, kLongestRow, make);
  file.header = options.narrow ? "k,uniformi\n" : std::string("id,k,") + kDistributionColumns + "\n";
  return file;
}

std::vector<TableFile> Tables(const Options& options) {
  const uint64_t keys = options.keys();
  const Permutation build_order(options.build, options.seed + kBuildOrder);
  const Permutation key_order(keys, options.seed + kKeyOrder);
  const Zipf zipf(keys, options.skew);
  return {Table("r.csv", options.build, options, kBuildValues, [=](uint64_t row) { return build_order(row) % keys; }),
          Table("s.csv", options.probe, options, kProbeValues, [=, seed = options.seed](uint64_t row) {
            RandomRow random(seed, kProbeKeys, row);
            const uint64_t rank = zipf(random);
            return key_order(rank);
          })};
}

std::string Schema(const Options& options, const std::string& directory) {
  const auto table = [&](const std::string& name, bool unique_key) {
    const std::string key = std::string("  k         INTEGER NOT NULL") + (unique_key ? " PRIMARY KEY" : "") + ",\n";
    const std::string first =
        "CREATE TABLE " + name + " (\n" + (options.narrow ? "" : "  id        INTEGER NOT NULL,\n");
    if (options.narrow) return first + key + "  uniformi  INTEGER NOT NULL\n);\n";
    return first + key +
           "  uniformi  INTEGER NOT NULL,\n  normali5  INTEGER NOT NULL,\n  normali20 INTEGER NOT NULL,\n"
           "  uniformf  REAL NOT NULL,\n  normalf5  REAL NOT NULL,\n  normalf20 REAL NOT NULL\n);\n";
  };
  return table("r", options.matches == 1) + "\n" + table("s", false) + "\n" + CopyStatement(directory, "r") +
         CopyStatement(directory, "s");
}

Status Generate(const Options& options, const std::string& directory, unsigned jobs) {
  TESSERA_TRY(WriteTables(Tables(options), directory, jobs));
  return WriteText(directory + "/schema.sql", Schema(options, directory));
}

constexpr char kHelp[] =
    "Usage: join_gen --out DIR [--build N] [--probe N] [--matches M] [--skew Z] [--narrow]\n"
    "                [--seed S] [--jobs N]\n"
    "\n"
    "Writes two tables to join by their column k: r.csv, s.csv and schema.sql, which creates\n"
    "and loads them (tessera -f DIR/schema.sql my.db). Columns: id, k, uniformi, normali5,\n"
    "normali20, uniformf, normalf5, normalf20.\n"
    "\n"
    "  --out DIR    directory; created if missing, files of these names are replaced\n"
    "  --build N    rows of r, 1 to 2147483648 (default: 3500)\n"
    "  --probe N    rows of s, 0 to 2147483648 (default: 3500)\n"
    "  --matches M  rows of r with the same key, 1 to the rows of r (default: 1, a primary key)\n"
    "  --skew Z     Zipf exponent of the keys in s, 0 (uniform, the default) to 10\n"
    "  --narrow     only the columns k and uniformi\n"
    "  --seed S     another seed gives other data (default: 1)\n"
    "  --jobs N     threads, 1 to 1024; the files do not depend on it (default: one per core)\n"
    "  --help       this text\n"
    "\n"
    "Exit status: 0 done, 1 a file could not be written, 2 wrong command line.\n";

std::optional<double> ParseSkew(std::string_view text) {
  double skew = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), skew);
  // The comparison refuses NaN too.
  if (error == std::errc() && end == text.data() + text.size() && skew >= 0 && skew <= kMostSkew) return skew;
  UsageError(kProgram, "--skew '" + std::string(text) + "' is not a number from 0 to 10");
  return std::nullopt;
}

int Main(int argc, char** argv) {
  Options options;
  uint64_t jobs = DefaultJobs();
  std::string directory;
  CommandLine line(kProgram, kHelp);
  line.Count("build", 1, kMostRows, &options.build);
  line.Count("probe", 0, kMostRows, &options.probe);
  line.Count("matches", 1, kMostRows, &options.matches);
  line.Value("skew", [&](const char* text) {
    const std::optional<double> skew = ParseSkew(text);
    options.skew = skew.value_or(0);
    return skew.has_value();
  });
  line.Flag("narrow", &options.narrow);
  line.Text("out", &directory);
  line.Seed(&options.seed);
  line.Jobs(&jobs);
  if (const std::optional<int> status = line.Parse(argc, argv)) return *status;
  if (directory.empty()) return UsageError(kProgram, "--out is missing: give the directory for the files");
  if (options.matches > options.build) {
    return UsageError(kProgram, "--matches " + std::to_string(options.matches) + " is more than the " +
                                    std::to_string(options.build) + " rows of r (--build)");
  }

  CatchInterrupts();
  const Status status = Generate(options, directory, static_cast<unsigned>(jobs));
  return status.ok() ? 0 : Failure(kProgram, status);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::Main(argc, argv); }
