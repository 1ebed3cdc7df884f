// uniform_gen: the test table of the papers on virtual machines for SQL on GPUs.
//
//     uniform_gen --rows N --out FILE [--seed S] [--jobs N]
//
// Bakkum and Skadron (Accelerating SQL database operations on a GPU with CUDA, GPGPU 2010) and, with 8 million rows,
// Nguyen and Hemler (GPU acceleration for SQL queries on large-scale distributed systems) measure on a table of this
// shape: an integer primary key, and three distributions, each once as 32-bit integers and once as 32-bit floats. Here
// it is a CSV file with a header:
//
//     id         0, 1, 2, ...
//     uniformi   every integer in [-100, 100] equally often
//     normali5   normal, mean 0, standard deviation 5, rounded to the nearest integer (which makes it 5.008)
//     normali20  normal, standard deviation 20, likewise
//     uniformf   uniform in [-100, 100]
//     normalf5   normal, standard deviation 5
//     normalf20  normal, standard deviation 20
//
// The six columns are independent of each other. Floats are printed in the shortest form that reads back as the same
// float. A row depends on the seed and its id only, so the file is the same for any number of threads, and a shorter
// file of the same seed is the beginning of a longer one. (Another C library may round a logarithm or cosine otherwise,
// and with it the last digit of a float once in many million values.)
//
// Start at: MakeRow().
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "base/progress.h"
#include "base/status.h"
#include "data_gen/command_line.h"
#include "data_gen/distributions.h"
#include "data_gen/ordered_writer.h"
#include "data_gen/random.h"
#include "data_gen/row_buffer.h"

namespace tessera {
namespace {

constexpr char kProgram[] = "uniform_gen";
constexpr uint64_t kDefaultRows = 8'000'000;
constexpr uint64_t kMostRows = uint64_t{1} << 31;  // id is a 32-bit integer, from 0
constexpr uint64_t kDefaultSeed = 1;
constexpr uint64_t kTable = 100;    ///< names the stream of random numbers
constexpr uint64_t kBlock = 16384;  ///< rows; about 0.9 MB

void MakeRow(uint64_t seed, uint64_t row, RowBuffer& rows) {
  RandomRow random(seed, kTable, row);
  rows.Put(row, ',');
  PutDistributions(random, '\n', rows);
}

Status Generate(uint64_t row_count, const std::string& path, uint64_t seed, unsigned jobs) {
  constexpr size_t kLongestRow = kLongestDistributions + 32;  // and the id
  const auto start = std::chrono::steady_clock::now();
  OrderedFile file;
  file.path = path;
  file.header = std::string("id,") + kDistributionColumns + "\n";
  file.blocks = (row_count + kBlock - 1) / kBlock;
  file.make_block = [=](uint64_t block, RowBuffer& rows) {
    const uint64_t first = block * kBlock;
    const uint64_t count = std::min(kBlock, row_count - first);
    rows.Reserve(count * kLongestRow);
    for (uint64_t i = 0; i < count; ++i) MakeRow(seed, first + i, rows);
    return count;
  };
  WrittenFile written;
  {
    ProgressBar progress(std::filesystem::path(path).filename().string(), row_count, ProgressUnit::kRows);
    TESSERA_ASSIGN(written, WriteInOrder(file, jobs, progress));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double megabytes = static_cast<double>(written.bytes) / 1e6;
  // Not to standard output, which may be the file.
  std::fprintf(stderr, "%s: %llu rows, %.1f MB in %.2f s (%.0f MB/s)\n", path.c_str(),
               static_cast<unsigned long long>(written.rows), megabytes, seconds, megabytes / seconds);
  return Status::Ok();
}

constexpr char kHelp[] =
    "Usage: uniform_gen --out FILE [--rows N] [--seed S] [--jobs N]\n"
    "\n"
    "Writes a CSV file with a header: id,uniformi,normali5,normali20,uniformf,normalf5,normalf20.\n"
    "id counts from 0; the others are uniform in [-100, 100] or normal with standard deviation\n"
    "5 or 20, as integers (i) and as floats (f).\n"
    "\n"
    "  --out FILE  replaced if it exists; may be /dev/stdout\n"
    "  --rows N    0 to 2147483648 (default: 8000000)\n"
    "  --seed S    another seed gives other data (default: 1)\n"
    "  --jobs N    threads, 1 to 1024; the file does not depend on it (default: one per core)\n"
    "  --help      this text\n"
    "\n"
    "Exit status: 0 done, 1 the file could not be written, 2 wrong command line.\n";

int Main(int argc, char** argv) {
  uint64_t rows = kDefaultRows, seed = kDefaultSeed, jobs = DefaultJobs();
  std::string path;
  CommandLine line(kProgram, kHelp);
  line.Count("rows", 0, kMostRows, &rows);
  line.Text("out", &path);
  line.Seed(&seed);
  line.Jobs(&jobs);
  if (const std::optional<int> status = line.Parse(argc, argv)) return *status;
  if (path.empty()) return UsageError(kProgram, "--out is missing: give the file to write");

  CatchInterrupts();
  const Status status = Generate(rows, path, seed, static_cast<unsigned>(jobs));
  return status.ok() ? 0 : Failure(kProgram, status);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::Main(argc, argv); }
