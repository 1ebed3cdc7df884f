// wisconsin_gen: two tables of the Wisconsin benchmark.
//
//     wisconsin_gen --rows N --out DIR [--rows2 M] [--seed S] [--jobs N]
//
// After D. DeWitt, The Wisconsin benchmark: past, present, and future (The Benchmark Handbook, 1993). DIR gets t1.csv
// with N rows and t2.csv with M (by default 0.6 N, as Hristov, Performance evaluation of query processing algorithms on
// GPGPUs, joins them), each with a header, and schema.sql, which creates and loads them: tessera -f DIR/schema.sql my.db.
// The columns:
//
//     unique1         0 .. N-1, each once, in random order
//     unique2         0 .. N-1 in order; the primary key
//     two, four, ten, twenty                       unique1 modulo 2, 4, 10, 20
//     onepercent, tenpercent, twentypercent, fiftypercent
//                     unique1 modulo 100, 10, 5, 2: a value of them selects so much
//     unique3         unique1
//     evenonepercent  2 * onepercent
//     oddonepercent   2 * onepercent + 1
//     stringu1        unique1 as seven letters, to the base of 26, A for 0, and 45 times x
//     stringu2        unique2 likewise
//     string4         AAAAxxx..., HHHHxxx..., OOOOxxx..., VVVVxxx..., again and again
//
// The order of unique1 is a pseudo-random permutation (data_gen/permutation.h) where DeWitt takes powers modulo a
// prime. Strings have 52 characters as in the benchmark; --string-length gives others, 8 to 52 (the thesis has 8).
//
// A row depends on the seed, its number and N only, so the files are the same for any number of threads.
//
// Start at: MakeRow().
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data_gen/command_line.h"
#include "data_gen/permutation.h"
#include "data_gen/row_buffer.h"
#include "data_gen/table_files.h"

namespace tessera {
namespace {

constexpr char kProgram[] = "wisconsin_gen";
constexpr uint64_t kMostRows = uint64_t{1} << 31;  // unique1 is a 32-bit integer, from 0; 26^7 is more
constexpr uint64_t kDefaultSeed = 1;
constexpr uint64_t kBlock = 4096;  ///< rows; about 0.9 MB
constexpr size_t kLetters = 7;     ///< of a string that vary; the rest is x
constexpr size_t kShortestString = 8, kLongestString = 52;
constexpr size_t kLongestRow = 3 * (kLongestString + 1) + 13 * 12;

constexpr char kHeader[] =
    "unique1,unique2,two,four,ten,twenty,onepercent,tenpercent,twentypercent,fiftypercent,unique3,evenonepercent,"
    "oddonepercent,stringu1,stringu2,string4\n";

/// A string of the benchmark with `value` in its letters.
std::string_view UniqueString(uint64_t value, size_t length, std::array<char, kLongestString>& text) {
  text.fill('x');
  for (size_t i = kLetters; i-- > 0; value /= 26) text[i] = static_cast<char>('A' + value % 26);
  return {text.data(), length};
}
std::string_view CyclicString(uint64_t row, size_t length, std::array<char, kLongestString>& text) {
  text.fill('x');
  for (size_t i = 0; i < 4; ++i) text[i] = "AHOV"[row % 4];
  return {text.data(), length};
}

void MakeRow(const Permutation& order, size_t length, uint64_t row, RowBuffer& rows) {
  const uint64_t unique1 = order(row);
  std::array<char, kLongestString> text;
  rows.Put(unique1, ',');
  rows.Put(row, ',');
  for (const uint64_t modulus : {2, 4, 10, 20, 100, 10, 5, 2}) rows.Put(unique1 % modulus, ',');
  rows.Put(unique1, ',');
  rows.Put(unique1 % 100 * 2, ',');
  rows.Put(unique1 % 100 * 2 + 1, ',');
  rows.Put(UniqueString(unique1, length, text), ',');
  rows.Put(UniqueString(row, length, text), ',');
  rows.Put(CyclicString(row, length, text), '\n');
}

TableFile Table(const char* name, uint64_t row_count, uint64_t seed, size_t length) {
  TableFile file = FileOfRows(name, row_count, kBlock, kLongestRow,
                              [order = Permutation(row_count, seed), length](uint64_t row, RowBuffer& rows) {
                                MakeRow(order, length, row, rows);
                              });
  file.header = kHeader;
  return file;
}

std::string Schema(size_t length, const std::string& directory) {
  std::string out;
  for (const std::string table : {"t1", "t2"}) {
    out += (out.empty() ? "" : "\n") + ("CREATE TABLE " + table) + " (\n";
    for (const std::string column : {"unique1", "unique2", "two", "four", "ten", "twenty", "onepercent", "tenpercent",
                                     "twentypercent", "fiftypercent", "unique3", "evenonepercent", "oddonepercent"}) {
      out += "  " + column + std::string(15 - column.size(), ' ') + "INTEGER NOT NULL" +
             (column == "unique2" ? " PRIMARY KEY" : "") + ",\n";
    }
    for (const std::string column : {"stringu1", "stringu2", "string4"}) {
      out += "  " + column + std::string(15 - column.size(), ' ') + "VARCHAR(" + std::to_string(length) + ") NOT NULL" +
             (column == "string4" ? "\n" : ",\n");
    }
    out += ");\n";
  }
  return out + "\n" + CopyStatement(directory, "t1") + CopyStatement(directory, "t2");
}

Status Generate(uint64_t rows, uint64_t rows2, size_t length, uint64_t seed, const std::string& directory,
                unsigned jobs) {
  TESSERA_TRY(
      WriteTables({Table("t1.csv", rows, seed, length), Table("t2.csv", rows2, seed + 1, length)}, directory, jobs));
  return WriteText(directory + "/schema.sql", Schema(length, directory));
}

constexpr char kHelp[] =
    "Usage: wisconsin_gen --rows N --out DIR [--rows2 M] [--string-length L] [--seed S] [--jobs N]\n"
    "\n"
    "Writes two tables of the Wisconsin benchmark to DIR: t1.csv, t2.csv (with a header) and\n"
    "schema.sql, which creates and loads them: tessera -f DIR/schema.sql my.db.\n"
    "\n"
    "  --rows N           rows of t1, 1 to 2147483648\n"
    "  --rows2 M          rows of t2, 1 to 2147483648 (default: 0.6 N, at least 1)\n"
    "  --out DIR          directory; created if missing, files of these names are replaced\n"
    "  --string-length L  characters of the three strings, 8 to 52 (default: 52)\n"
    "  --seed S           another seed gives another order of unique1 (default: 1)\n"
    "  --jobs N           threads, 1 to 1024; the files do not depend on it (default: one per core)\n"
    "  --help             this text\n"
    "\n"
    "Exit status: 0 done, 1 a file could not be written, 2 wrong command line.\n";

int Main(int argc, char** argv) {
  uint64_t rows = 0, rows2 = 0;  // 0: not given
  uint64_t length = kLongestString, seed = kDefaultSeed, jobs = DefaultJobs();
  std::string directory;
  CommandLine line(kProgram, kHelp);
  line.Count("rows", 1, kMostRows, &rows);
  line.Count("rows2", 1, kMostRows, &rows2);
  line.Text("out", &directory);
  line.Count("string-length", kShortestString, kLongestString, &length);
  line.Seed(&seed);
  line.Jobs(&jobs);
  if (const std::optional<int> status = line.Parse(argc, argv)) return *status;
  if (rows == 0) return UsageError(kProgram, "--rows is missing: give the rows of t1");
  if (directory.empty()) return UsageError(kProgram, "--out is missing: give the directory for the files");
  if (rows2 == 0) rows2 = rows < 2 ? 1 : rows * 3 / 5;

  CatchInterrupts();
  const Status status =
      Generate(rows, rows2, static_cast<size_t>(length), seed, directory, static_cast<unsigned>(jobs));
  return status.ok() ? 0 : Failure(kProgram, status);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::Main(argc, argv); }
