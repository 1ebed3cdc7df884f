// Tests of the generators as a user sees them: the built programs are run and their files are read.
//
// The programs are taken from $TESSERA_BUILD_DIR, or "build"; the SQL files from data_gen/ssb of the current directory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/data_gen/generated_tables.h"
#include "tests/data_gen/run_program.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using std::string;

// ---- Star Schema Benchmark ------------------------------------------------------------------------------------------

const std::map<string, size_t>& Columns() {
  static const std::map<string, size_t> columns = {
      {"lineorder", 17}, {"customer", 8}, {"supplier", 7}, {"part", 9}, {"date", 17}};
  return columns;
}

struct SsbGenTables {
  static constexpr char kProgram[] = "ssb_gen";
  static const std::map<string, size_t>& Columns() { return ::tessera::Columns(); }
};

class SsbGen : public GeneratedTables<SsbGenTables> {};

TEST_F(SsbGen, WritesTheFiveFilesAndNothingElse) {
  EXPECT_EQ(directory_->Names(),
            (std::set<string>{"lineorder.tbl", "customer.tbl", "supplier.tbl", "part.tbl", "date.tbl"}));
  EXPECT_EQ(outcome_.err, "");  // no progress bar in a file
}

TEST_F(SsbGen, EveryLineEndsWithTheSeparator) { CheckLineEnds(); }

TEST_F(SsbGen, RowCounts) {
  EXPECT_EQ(Table("customer").size(), 300u);
  EXPECT_EQ(Table("supplier").size(), 20u);
  EXPECT_EQ(Table("part").size(), 2000u);
  EXPECT_EQ(Table("date").size(), 2557u);
  EXPECT_EQ(Distinct("lineorder", 0).size(), 15000u);
  // 15,000 orders of 4 lines on average, standard deviation 2: five sigmas are 1225.
  EXPECT_NEAR(static_cast<double>(Table("lineorder").size()), 60000, 1225);
}

TEST_F(SsbGen, SameBytesForAnyNumberOfJobs) { CheckSameBytes({"3", "16"}); }

const std::map<string, string>& RegionOfNation() {
  static const std::map<string, string> regions = {{"ALGERIA", "AFRICA"},
                                                   {"ETHIOPIA", "AFRICA"},
                                                   {"KENYA", "AFRICA"},
                                                   {"MOROCCO", "AFRICA"},
                                                   {"MOZAMBIQUE", "AFRICA"},
                                                   {"ARGENTINA", "AMERICA"},
                                                   {"BRAZIL", "AMERICA"},
                                                   {"CANADA", "AMERICA"},
                                                   {"PERU", "AMERICA"},
                                                   {"UNITED STATES", "AMERICA"},
                                                   {"CHINA", "ASIA"},
                                                   {"INDIA", "ASIA"},
                                                   {"INDONESIA", "ASIA"},
                                                   {"JAPAN", "ASIA"},
                                                   {"VIETNAM", "ASIA"},
                                                   {"FRANCE", "EUROPE"},
                                                   {"GERMANY", "EUROPE"},
                                                   {"ROMANIA", "EUROPE"},
                                                   {"RUSSIA", "EUROPE"},
                                                   {"UNITED KINGDOM", "EUROPE"},
                                                   {"EGYPT", "MIDDLE EAST"},
                                                   {"IRAN", "MIDDLE EAST"},
                                                   {"IRAQ", "MIDDLE EAST"},
                                                   {"JORDAN", "MIDDLE EAST"},
                                                   {"SAUDI ARABIA", "MIDDLE EAST"}};
  return regions;
}

/// The columns that customers and suppliers share, from the key on.
void CheckPerson(const Row& row, size_t index, const string& prefix) {
  EXPECT_EQ(row[0], std::to_string(index + 1));
  const string digits = "00000000" + row[0];
  EXPECT_EQ(row[1], prefix + "#" + digits.substr(digits.size() - 9));
  EXPECT_TRUE(Matches(row[2], "[A-Za-z0-9][A-Za-z0-9 ,]{8,23}[A-Za-z0-9]")) << row[2];
  const string& nation = row[4];
  ASSERT_TRUE(RegionOfNation().contains(nation)) << nation;
  EXPECT_EQ(row[5], RegionOfNation().at(nation));
  string city = (nation + "         ").substr(0, 9);
  ASSERT_EQ(row[3].size(), 10u);
  EXPECT_EQ(row[3].substr(0, 9), city);
  EXPECT_TRUE(row[3][9] >= '0' && row[3][9] <= '9') << row[3];
  EXPECT_TRUE(Matches(row[6], "[1-3][0-9]-[1-9][0-9]{2}-[1-9][0-9]{2}-[1-9][0-9]{3}")) << row[6];
}

TEST_F(SsbGen, CustomerDomains) {
  const auto& rows = Table("customer");
  for (size_t i = 0; i < rows.size(); ++i) CheckPerson(rows[i], i, "Customer");
  EXPECT_EQ(Distinct("customer", 7),
            (std::set<string>{"AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"}));
  EXPECT_EQ(Distinct("customer", 3).size(), 250u);
  EXPECT_EQ(Distinct("customer", 4).size(), 25u);
}

TEST_F(SsbGen, SupplierDomains) {
  const auto& rows = Table("supplier");
  for (size_t i = 0; i < rows.size(); ++i) CheckPerson(rows[i], i, "Supplier");
  EXPECT_EQ(Distinct("supplier", 4).size(), 20u);
  EXPECT_EQ(Distinct("supplier", 5).size(), 5u);
}

TEST_F(SsbGen, SmallestScaleHasTheNationsAndCitiesOfTheQueries) {
  for (const char* table : {"customer", "supplier"}) {
    EXPECT_TRUE(Distinct(table, 4).contains("UNITED STATES")) << table;
    EXPECT_TRUE(Distinct(table, 3).contains("UNITED KI1") || Distinct(table, 3).contains("UNITED KI5")) << table;
  }
}

TEST_F(SsbGen, PartDomains) {
  const auto& rows = Table("part");
  std::map<string, int> brands;
  std::set<string> colors;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    EXPECT_EQ(row[0], std::to_string(i + 1));
    ASSERT_TRUE(Matches(row[1], "[a-z]{3,11} [a-z]{3,11}")) << row[1];
    EXPECT_LE(row[1].size(), 22u);
    const size_t blank = row[1].find(' ');
    EXPECT_NE(row[1].substr(0, blank), row[1].substr(blank + 1));
    colors.insert(row[1].substr(0, blank));
    EXPECT_TRUE(Matches(row[2], "MFGR#[1-5]")) << row[2];
    EXPECT_TRUE(Matches(row[3], "MFGR#[1-5][1-5]")) << row[3];
    EXPECT_EQ(row[3].substr(0, 6), row[2]);
    EXPECT_TRUE(Matches(row[4], "MFGR#[1-5][1-5]([1-9]|[1-3][0-9]|40)")) << row[4];
    EXPECT_EQ(row[4].substr(0, 7), row[3]);
    ++brands[row[4]];
    EXPECT_TRUE(Matches(row[5], "[a-z]{3,11}")) << row[5];
    EXPECT_TRUE(Matches(row[6],
                        "(STANDARD|SMALL|MEDIUM|LARGE|ECONOMY|PROMO) (ANODIZED|BURNISHED|PLATED|POLISHED|BRUSHED) "
                        "(TIN|NICKEL|BRASS|STEEL|COPPER)"))
        << row[6];
    NumberIn(row[7], 1, 50);
    EXPECT_TRUE(Matches(row[8], "(SM|LG|MED|JUMBO|WRAP) (CASE|BOX|BAG|JAR|PKG|PACK|CAN|DRUM)")) << row[8];
  }
  EXPECT_EQ(colors.size(), 92u);
  EXPECT_TRUE(std::ranges::includes(colors, Distinct("part", 5)));
  EXPECT_EQ(Distinct("part", 6).size(), 150u);
  EXPECT_EQ(Distinct("part", 7).size(), 50u);
  EXPECT_EQ(Distinct("part", 8).size(), 40u);
  EXPECT_EQ(brands.size(), 1000u);
  for (const auto& [brand, count] : brands) EXPECT_EQ(count, 2) << brand;
}

TEST_F(SsbGen, LineorderDomainsAndArithmetic) {
  std::map<string, int64_t> day_of_key;
  for (const Row& day : Table("date")) day_of_key.emplace(day[0], static_cast<int64_t>(day_of_key.size()));
  const auto& rows = Table("lineorder");
  const std::set<string> priorities = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"};
  const std::set<string> modes = {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};

  int64_t order = -1, line = 0;        // of the last row
  int64_t total = 0, total_given = 0;  // of the order so far, and as its lines say
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const bool same_order = i > 0 && row[0] == rows[i - 1][0];
    if (same_order) {
      for (const size_t column : {2u, 5u, 6u, 10u}) ASSERT_EQ(row[column], rows[i - 1][column]) << "row " << i;
    } else {
      ASSERT_EQ(total, total_given) << "before row " << i;
      ++order;
      line = total = 0;
    }
    ASSERT_EQ(Number(row[0]), order / 8 * 32 + order % 8 + 1);
    ASSERT_EQ(NumberIn(row[1], 1, 7), ++line);
    NumberIn(row[2], 1, 300);
    const int64_t part = NumberIn(row[3], 1, 2000);
    NumberIn(row[4], 1, 20);
    ASSERT_TRUE(day_of_key.contains(row[5]) && row[5] <= "19980802") << row[5];
    ASSERT_TRUE(priorities.contains(row[6])) << row[6];
    ASSERT_EQ(row[7], "0");
    const int64_t quantity = NumberIn(row[8], 1, 50);
    const int64_t price = 90000 + part / 10 % 20001 + 100 * (part % 1000);
    ASSERT_EQ(Number(row[9]), quantity * price);
    total_given = Number(row[10]);
    const int64_t discount = NumberIn(row[11], 0, 10);
    const int64_t revenue = quantity * price * (100 - discount) / 100;
    ASSERT_EQ(Number(row[12]), revenue);
    ASSERT_EQ(Number(row[13]), 6 * price / 10);
    total += revenue * (100 + NumberIn(row[14], 0, 8)) / 100;
    ASSERT_TRUE(day_of_key.contains(row[15])) << row[15];
    const int64_t delay = day_of_key[row[15]] - day_of_key[row[5]];
    ASSERT_TRUE(delay >= 30 && delay <= 90) << delay;
    ASSERT_TRUE(modes.contains(row[16])) << row[16];
  }
  EXPECT_EQ(total, total_given);
  EXPECT_EQ(Distinct("lineorder", 1).size(), 7u);
  EXPECT_EQ(Distinct("lineorder", 2).size(), 300u);
  EXPECT_EQ(Distinct("lineorder", 3).size(), 2000u);
  EXPECT_EQ(Distinct("lineorder", 4).size(), 20u);
  EXPECT_EQ(Distinct("lineorder", 6), priorities);
  EXPECT_EQ(Distinct("lineorder", 8).size(), 50u);
  EXPECT_EQ(Distinct("lineorder", 11).size(), 11u);
  EXPECT_EQ(Distinct("lineorder", 14).size(), 9u);
  EXPECT_EQ(Distinct("lineorder", 16), modes);
}

/// The columns of lineorder that queries restrict are uniform: chi-square within five sigmas of its mean.
TEST_F(SsbGen, LineorderIsUniform) {
  for (const size_t column : {2u, 3u, 4u, 6u, 8u, 11u, 14u, 16u}) {
    std::map<string, double> counts;
    // Customer and priority are drawn once for an order.
    const bool of_order = column == 2 || column == 6;
    double rows = 0;
    for (const Row& row : Table("lineorder")) {
      if (of_order && row[1] != "1") continue;
      ++counts[row[column]];
      ++rows;
    }
    const double expected = rows / static_cast<double>(counts.size());
    const double freedom = static_cast<double>(counts.size()) - 1;
    double chi_square = 0;
    for (const auto& [value, count] : counts) chi_square += (count - expected) * (count - expected) / expected;
    EXPECT_NEAR(chi_square, freedom, 5 * std::sqrt(2 * freedom)) << "column " << column;
  }
}

TEST_F(SsbGen, DateDimensionIsTheCalendar) {
  // An independent count of days: 1992-01-01 was a Wednesday.
  const std::array<string, 12> months = {"January", "February", "March",     "April",   "May",      "June",
                                         "July",    "August",   "September", "October", "November", "December"};
  const std::array<string, 7> weekdays = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
  const std::array<string, 12> seasons = {"Winter", "Winter", "Winter", "Spring", "Summer",    "Summer",
                                          "Summer", "Summer", "Fall",   "Fall",   "Christmas", "Christmas"};
  const auto& rows = Table("date");
  size_t i = 0;
  for (int year = 1992; year <= 1998; ++year) {
    int day_of_year = 0, holidays = 0;
    for (int month = 1; month <= 12; ++month) {
      const std::array<int, 12> lengths = {31, year % 4 == 0 ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
      const int length = lengths[static_cast<size_t>(month - 1)];
      const string& name = months[static_cast<size_t>(month - 1)];
      for (int day = 1; day <= length; ++day, ++i) {
        ++day_of_year;
        ASSERT_LT(i, rows.size());
        const size_t weekday = (3 + i) % 7;
        const Row expected = {std::to_string(year * 10000 + month * 100 + day),
                              name + " " + std::to_string(day) + ", " + std::to_string(year),
                              weekdays[weekday],
                              name,
                              std::to_string(year),
                              std::to_string(year * 100 + month),
                              name.substr(0, 3) + std::to_string(year),
                              std::to_string(weekday + 1),
                              std::to_string(day),
                              std::to_string(day_of_year),
                              std::to_string(month),
                              std::to_string((day_of_year - 1) / 7 + 1),
                              seasons[static_cast<size_t>(month - 1)],
                              weekday == 6 ? "1" : "0",
                              day == length ? "1" : "0",
                              rows[i][15],  // counted below
                              weekday == 0 || weekday == 6 ? "0" : "1"};
        ASSERT_EQ(rows[i], expected);
        ASSERT_TRUE(rows[i][15] == "0" || rows[i][15] == "1");
        holidays += rows[i][15] == "1" ? 1 : 0;
      }
    }
    EXPECT_EQ(holidays, 10) << year;
  }
  EXPECT_EQ(i, rows.size());
}

TEST_F(SsbGen, KnownDays) {
  std::map<string, Row> days;
  for (const Row& row : Table("date")) days[row[0]] = row;
  EXPECT_EQ(days["19920229"][2], "Saturday");
  EXPECT_EQ(days["19960229"][2], "Thursday");
  EXPECT_EQ(days["19960229"][14], "1");
  EXPECT_FALSE(days.contains("19930229"));
  EXPECT_EQ(days["19940704"][2], "Monday");
  EXPECT_EQ(days["19980922"][1], "September 22, 1998");
  EXPECT_EQ(days["19961231"][9], "366");
  EXPECT_EQ(days["19961231"][11], "53");
  EXPECT_EQ(days["19971224"][15], "1");
  EXPECT_EQ(days["19980101"][15], "1");
  EXPECT_EQ(days["19971203"][6], "Dec1997");
}

TEST(SsbGenErrors, WrongCommandLines) {
  const TemporaryDirectory directory;
  const string out = directory / "new";
  const struct {
    std::vector<string> arguments;
    const char* says;
  } cases[] = {
      {{"--scale", "0", "--out", out}, "--scale '0'"},
      {{"--scale", "0.009", "--out", out}, "0.01 to 100"},
      {{"--scale", "100.5", "--out", out}, "0.01 to 100"},
      {{"--scale", "-1", "--out", out}, "--scale '-1'"},
      {{"--scale", "nan", "--out", out}, "--scale 'nan'"},
      {{"--scale", "1x", "--out", out}, "--scale '1x'"},
      {{"--scale", "", "--out", out}, "--scale ''"},
      {{"--scale", "1"}, "--out is missing"},
      {{"--out", out}, "--scale is missing"},
      {{"--scale", "0.01", "--out", out, "--jobs", "0"}, "--jobs '0'"},
      {{"--scale", "0.01", "--out", out, "--jobs", "many"}, "--jobs 'many'"},
      {{"--scale", "0.01", "--out", out, "again"}, "unexpected argument 'again'"},
      {{"--scale", "0.01", "--out", out, "--rows", "3"}, "--rows"},
      {{"--scale"}, "--scale"},
  };
  for (const auto& test : cases) {
    std::vector<string> command = {Program("ssb_gen")};
    command.insert(command.end(), test.arguments.begin(), test.arguments.end());
    const Outcome outcome = RunProgram(command);
    EXPECT_EQ(outcome.status, 2) << test.says;
    EXPECT_TRUE(Contains(outcome.err, test.says)) << outcome.err;
    EXPECT_TRUE(Contains(outcome.err, "--help")) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_FALSE(fs::exists(out));
}

TEST(SsbGenErrors, Help) {
  for (const char* program : {"ssb_gen", "tpch_gen", "uniform_gen"}) {
    const Outcome outcome = RunProgram({Program(program), "--help"});
    EXPECT_EQ(outcome.status, 0) << program;
    EXPECT_TRUE(Contains(outcome.out, "--jobs")) << program;
    EXPECT_EQ(outcome.err, "") << program;
  }
}

TEST(SsbGenErrors, DirectoryThatCannotBe) {
  const TemporaryDirectory directory;
  const string file = directory / "file";
  std::ofstream(file) << "x";
  for (const string& out : {file, file + "/below", string("/dev/null/below")}) {
    const Outcome outcome = RunProgram({Program("ssb_gen"), "--scale", "0.01", "--out", out});
    EXPECT_EQ(outcome.status, 1) << out;
    EXPECT_TRUE(Contains(outcome.err, out)) << outcome.err;
    EXPECT_TRUE(Contains(outcome.err, "directory")) << outcome.err;
  }
  EXPECT_EQ(ReadAll(file), "x");
}

TEST(SsbGenErrors, NewDirectoriesAreCreated) {
  const TemporaryDirectory directory;
  EXPECT_EQ(RunProgram({Program("ssb_gen"), "--scale", "0.01", "--out", directory / "a/b"}).status, 0);
  EXPECT_TRUE(fs::exists(directory / "a/b/lineorder.tbl"));
}

TEST(SsbGenErrors, FullDisk) {
  const TemporaryDirectory directory;
  fs::create_symlink("/dev/full", directory / "lineorder.tbl");
  const Outcome outcome = RunProgram({Program("ssb_gen"), "--scale", "0.01", "--jobs", "2", "--out", directory.path()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(Contains(outcome.err, "lineorder.tbl")) << outcome.err;
  EXPECT_TRUE(Contains(outcome.err, "No space left")) << outcome.err;
  EXPECT_TRUE(fs::is_symlink(directory / "lineorder.tbl"));
}

/// A limit on the size of files stops the fact table of scale 2 after the dimensions, so its part table can be looked
/// at.
TEST(SsbGenErrors, HalfWrittenFileGoesAndTheOldOneStays) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "lineorder.tbl") << "old";
  const Outcome outcome = RunProgram({Program("ssb_gen"), "--scale", "2", "--out", directory.path()}, rlim_t{48} << 20);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(Contains(outcome.err, "File too large")) << outcome.err;
  EXPECT_EQ(ReadAll(directory / "lineorder.tbl"), "old");
  EXPECT_EQ(directory.Names(),
            (std::set<string>{"lineorder.tbl", "customer.tbl", "supplier.tbl", "part.tbl", "date.tbl"}));
  const auto lines = [&](const char* name) { return std::ranges::count(ReadAll(directory / name), '\n'); };
  EXPECT_EQ(lines("part.tbl"), 400000);  // 200,000 * (1 + log2 2)
  EXPECT_EQ(lines("customer.tbl"), 60000);
  EXPECT_EQ(lines("supplier.tbl"), 4000);
  EXPECT_EQ(lines("date.tbl"), 2557);
}

TEST(SsbQueries, ThirteenStatementsAndASchema) {
  const string folder = "data_gen/ssb/";
  for (const char* name : {"1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "3.4", "4.1", "4.2", "4.3"}) {
    const string sql = ReadAll(folder + "q" + name + ".sql");
    ASSERT_FALSE(sql.empty()) << name;
    EXPECT_EQ(std::ranges::count(sql, ';'), 1) << name;
    EXPECT_TRUE(sql.ends_with(";\n")) << name;
    EXPECT_TRUE(Contains(sql, "lineorder")) << name;
  }
  const string schema = ReadAll(folder + "schema.sql");
  for (const auto& [table, columns] : Columns()) {
    const size_t begin = schema.find("CREATE TABLE " + table + " (");
    ASSERT_NE(begin, string::npos) << table;
    const string body = schema.substr(begin, schema.find(';', begin) - begin);
    size_t found = 0;
    for (size_t at = body.find("NOT NULL"); at != string::npos; at = body.find("NOT NULL", at + 1)) ++found;
    EXPECT_EQ(found, columns) << table;
    EXPECT_EQ(Contains(body, "PRIMARY KEY"), table != "lineorder");
  }
}

// ---- Uniform and normal columns -------------------------------------------------------------------------------------

constexpr size_t kUniformColumns = 7;
constexpr char kUniformHeader[] = "id,uniformi,normali5,normali20,uniformf,normalf5,normalf20";

std::vector<std::array<double, kUniformColumns>> ReadUniform(const string& path) {
  std::vector<std::array<double, kUniformColumns>> rows;
  std::istringstream file(ReadAll(path));
  string line;
  std::getline(file, line);
  EXPECT_EQ(line, kUniformHeader);
  while (std::getline(file, line)) {
    auto& row = rows.emplace_back();
    const char* at = line.data();
    const char* const end = at + line.size();
    for (size_t column = 0; column < kUniformColumns; ++column) {
      float single = 0;
      int64_t whole = 0;
      const auto read = column < 4 ? std::from_chars(at, end, whole) : std::from_chars(at, end, single);
      EXPECT_TRUE(read.ec == std::errc()) << line;
      row[column] = column < 4 ? static_cast<double>(whole) : static_cast<double>(single);
      const bool last = column + 1 == kUniformColumns;
      EXPECT_TRUE(last ? read.ptr == end : read.ptr != end && *read.ptr == ',') << line;
      at = last ? end : read.ptr + 1;
    }
  }
  return rows;
}

TEST(UniformGen, SameBytesForAnyNumberOfJobs) {
  const TemporaryDirectory directory;
  const auto make = [&](const string& name, const string& rows, const string& jobs, const string& seed) {
    const Outcome outcome =
        RunProgram({Program("uniform_gen"), "--rows", rows, "--jobs", jobs, "--seed", seed, "--out", directory / name});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_FALSE(Contains(outcome.err, "\r")) << "no progress bar in a file";
    return ReadAll(directory / name);
  };
  const string one = make("one", "100000", "1", "1");
  EXPECT_TRUE(one == make("three", "100000", "3", "1"));
  EXPECT_FALSE(one == make("other", "100000", "1", "2"));
  EXPECT_TRUE(one.starts_with(make("short", "16385", "3", "1")));
  EXPECT_EQ(make("empty", "0", "3", "1"), string(kUniformHeader) + "\n");
}

TEST(UniformGen, Distributions) {
  const TemporaryDirectory directory;
  constexpr double kRows = 400000;
  ASSERT_EQ(RunProgram({Program("uniform_gen"), "--rows", "400000", "--out", directory / "u.csv"}).status, 0);
  const auto rows = ReadUniform(directory / "u.csv");
  ASSERT_EQ(rows.size(), static_cast<size_t>(kRows));
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i][0], static_cast<double>(i));

  struct Column {
    double variance, kurtosis;  ///< kurtosis: fourth moment / variance^2, 3 if normal
    double least, most;
  };
  const double discrete = 201.0 * 201.0;  // values of uniformi, squared
  const std::array<Column, kUniformColumns> columns = {{{},
                                                        {(discrete - 1) / 12, 1.8, -100, 100},
                                                        {25 + 1.0 / 12, 3, -43, 43},
                                                        {400 + 1.0 / 12, 3, -172, 172},
                                                        {200.0 * 200.0 / 12, 1.8, -100, 100},
                                                        {25, 3, -43, 43},
                                                        {400, 3, -172, 172}}};
  std::array<double, kUniformColumns> means{}, deviations{};
  for (size_t c = 1; c < kUniformColumns; ++c) {
    const Column& expected = columns[c];
    double sum = 0, squares = 0, fourths = 0;
    for (const auto& row : rows) {
      const double x = row[c];
      ASSERT_TRUE(x >= expected.least && x <= expected.most) << "column " << c << ": " << x;
      sum += x;
      squares += x * x;
      fourths += x * x * x * x;
    }
    const double deviation = std::sqrt(expected.variance);
    means[c] = sum / kRows;
    deviations[c] = deviation;
    EXPECT_NEAR(means[c], 0, 5 * deviation / std::sqrt(kRows)) << "column " << c;
    const double variance = squares / kRows - means[c] * means[c];
    EXPECT_NEAR(variance / expected.variance, 1, 5 * std::sqrt((expected.kurtosis - 1) / kRows)) << "column " << c;
    EXPECT_NEAR(fourths / kRows / (variance * variance), expected.kurtosis, 0.05) << "column " << c;
  }
  // No two columns go together.
  for (size_t a = 1; a < kUniformColumns; ++a) {
    for (size_t b = a + 1; b < kUniformColumns; ++b) {
      double product = 0;
      for (const auto& row : rows) product += (row[a] - means[a]) * (row[b] - means[b]);
      EXPECT_NEAR(product / kRows / deviations[a] / deviations[b], 0, 5 / std::sqrt(kRows)) << a << " and " << b;
    }
  }
  std::set<double> integers, floats;
  for (const auto& row : rows) {
    integers.insert(row[1]);
    floats.insert(row[4]);
  }
  EXPECT_EQ(integers.size(), 201u);
  EXPECT_GT(floats.size(), rows.size() * 9 / 10);
}

TEST(UniformGen, Errors) {
  const TemporaryDirectory directory;
  const string out = directory / "u.csv";
  const string program = Program("uniform_gen");
  for (const std::vector<string>& arguments : std::vector<std::vector<string>>{{"--rows", "-1", "--out", out},
                                                                               {"--rows", "2147483649", "--out", out},
                                                                               {"--rows", "10"},
                                                                               {"--seed", "x", "--out", out},
                                                                               {"--jobs", "0", "--out", out},
                                                                               {"--out", out, "more"}}) {
    std::vector<string> command = {program};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunProgram(command);
    EXPECT_EQ(outcome.status, 2) << arguments[1];
    EXPECT_TRUE(Contains(outcome.err, "--help")) << outcome.err;
  }
  EXPECT_TRUE(directory.Names().empty());

  const Outcome missing = RunProgram({program, "--rows", "10", "--out", directory / "no/u.csv"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_TRUE(Contains(missing.err, "No such file")) << missing.err;
  const Outcome full = RunProgram({program, "--rows", "100000", "--jobs", "3", "--out", "/dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_TRUE(Contains(full.err, "No space left")) << full.err;
  const Outcome limited = RunProgram({program, "--rows", "100000", "--out", out}, 1 << 20);
  EXPECT_EQ(limited.status, 1);
  EXPECT_TRUE(directory.Names().empty());
}

TEST(UniformGen, InterruptRemovesTheUnfinishedFile) {
  const TemporaryDirectory directory;
  const pid_t child = StartProgram({Program("uniform_gen"), "--rows", "2000000000", "--out", directory / "u.csv"}, [] {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
  });
  for (int wait = 0; directory.Names().empty() && wait < 1000; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(directory.Names().contains("u.csv"));  // not under its name before it is complete
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_TRUE(directory.Names().empty());
}

// ---- Tables to join -------------------------------------------------------------------------------------------------

/// The rows of a CSV file without quotes, and its header.
struct Csv {
  string header;
  std::vector<Row> rows;
};

Csv ReadCsv(const string& path) {
  Csv csv;
  std::istringstream file(ReadAll(path));
  std::getline(file, csv.header);
  for (string line; std::getline(file, line);) {
    Row& row = csv.rows.emplace_back();
    std::istringstream values(line);
    for (string value; std::getline(values, value, ',');) row.push_back(value);
  }
  return csv;
}

/// How often each key stands in column `column`.
std::map<int64_t, size_t> KeyCounts(const Csv& csv, size_t column) {
  std::map<int64_t, size_t> counts;
  for (const Row& row : csv.rows) ++counts[Number(row[column])];
  return counts;
}

Outcome Generate(const string& program, const string& directory, const std::vector<string>& arguments) {
  std::vector<string> command = {Program(program), "--out", directory};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Outcome outcome = RunProgram(command);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");  // no progress bar in a file
  return outcome;
}

/// A file of the directory, with DIR where its text names the directory itself (schema.sql does).
string ReadWithoutPath(const TemporaryDirectory& directory, const string& name) {
  string text = ReadAll(directory / name);
  for (size_t at; (at = text.find(directory.path())) != string::npos;) text.replace(at, directory.path().size(), "DIR");
  return text;
}

/// Whether the two directories have the same files.
bool SameFiles(const TemporaryDirectory& a, const TemporaryDirectory& b) {
  return a.Names() == b.Names() && std::ranges::all_of(a.Names(), [&](const string& name) {
           return ReadWithoutPath(a, name) == ReadWithoutPath(b, name);
         });
}

/// What the shell prints for `query` after it ran the directory's schema.sql.
string Load(const TemporaryDirectory& directory, const string& query) {
  const Outcome outcome =
      RunProgram({Program("tessera"), "--device", "host", "-csv", "-f", directory / "schema.sql", "-c", query});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return outcome.out;
}

TEST(JoinGen, SameBytesForAnyNumberOfJobs) {
  const std::vector<string> arguments = {"--build", "20000", "--probe", "50000", "--matches", "3", "--skew", "1.2"};
  const TemporaryDirectory one, three, other;
  const auto make = [&](const TemporaryDirectory& directory, const string& jobs, const string& seed) {
    std::vector<string> all = arguments;
    all.insert(all.end(), {"--jobs", jobs, "--seed", seed});
    Generate("join_gen", directory.path(), all);
  };
  make(one, "1", "1");
  make(three, "3", "1");
  make(other, "1", "2");
  EXPECT_EQ(one.Names(), (std::set<string>{"r.csv", "s.csv", "schema.sql"}));
  EXPECT_TRUE(SameFiles(one, three));
  EXPECT_FALSE(ReadAll(one / "r.csv") == ReadAll(other / "r.csv"));
  EXPECT_FALSE(ReadAll(one / "s.csv") == ReadAll(other / "s.csv"));
}

TEST(JoinGen, SchemaLoadsTheTables) {
  for (const string narrow : {"", "--narrow"}) {
    const TemporaryDirectory directory;
    std::vector<string> arguments = {"--build", "100", "--probe", "300"};
    if (!narrow.empty()) arguments.push_back(narrow);
    Generate("join_gen", directory.path(), arguments);
    EXPECT_EQ(Load(directory, "SELECT count(*) AS n FROM r, s WHERE r.k = s.k"), "n\n300\n");
  }
}

TEST(JoinGen, KeysHaveTheirMatches) {
  for (const int64_t matches : {1, 7, 1000}) {
    const TemporaryDirectory directory;
    Generate("join_gen", directory.path(),
             {"--build", "1000", "--probe", "5000", "--matches", std::to_string(matches)});
    const Csv r = ReadCsv(directory / "r.csv"), s = ReadCsv(directory / "s.csv");
    EXPECT_EQ(r.header, "id,k," + string(kUniformHeader).substr(3));
    EXPECT_EQ(s.header, r.header);
    ASSERT_EQ(r.rows.size(), 1000u);
    ASSERT_EQ(s.rows.size(), 5000u);
    for (size_t i = 0; i < s.rows.size(); ++i) EXPECT_EQ(Number(s.rows[i][0]), static_cast<int64_t>(i));
    const auto keys = KeyCounts(r, 1);
    const int64_t distinct = (1000 + matches - 1) / matches;
    EXPECT_EQ(keys.size(), static_cast<size_t>(distinct));
    for (const auto& [key, count] : keys) {
      EXPECT_TRUE(key >= 0 && key < distinct) << key;
      EXPECT_TRUE(count == static_cast<size_t>(matches) || count + 1 == static_cast<size_t>(matches)) << count;
    }
    for (const auto& [key, count] : KeyCounts(s, 1)) EXPECT_TRUE(keys.contains(key)) << key;
    EXPECT_EQ(Contains(ReadAll(directory / "schema.sql"), "PRIMARY KEY"), matches == 1);
  }
  // Not in the order of the rows.
  const TemporaryDirectory directory;
  Generate("join_gen", directory.path(), {"--build", "1000", "--probe", "0"});
  const Csv r = ReadCsv(directory / "r.csv");
  size_t in_place = 0, neighbours = 0;
  for (size_t i = 1; i < r.rows.size(); ++i) {
    in_place += Number(r.rows[i][1]) == static_cast<int64_t>(i) ? 1 : 0;
    neighbours += std::abs(Number(r.rows[i][1]) - Number(r.rows[i - 1][1])) == 1 ? 1 : 0;
  }
  EXPECT_LE(in_place, 10u);
  EXPECT_LE(neighbours, 10u);
}

TEST(JoinGen, SkewIsZipf) {
  constexpr size_t kKeys = 500, kRows = 200000;
  for (const string skew : {"0", "0.5", "1", "1.5"}) {
    const TemporaryDirectory directory;
    Generate("join_gen", directory.path(),
             {"--narrow", "--build", std::to_string(kKeys), "--probe", std::to_string(kRows), "--skew", skew});
    const Csv s = ReadCsv(directory / "s.csv");
    EXPECT_EQ(s.header, "k,uniformi");
    std::vector<double> counts;
    double squares = 0;
    for (const auto& [key, count] : KeyCounts(s, 0)) counts.push_back(static_cast<double>(count));
    counts.resize(kKeys);
    if (skew == "0") {
      for (const double count : counts) squares += (count - kRows / kKeys) * (count - kRows / kKeys);
      // Chi-squared with 499 degrees of freedom: five standard deviations of sqrt(2 * 499) beyond.
      EXPECT_LT(squares / (kRows / kKeys), 499 + 5 * std::sqrt(2 * 499.0));
      continue;
    }
    std::ranges::sort(counts, std::greater<>());
    double sum = 0;
    for (size_t k = 1; k <= kKeys; ++k) sum += std::pow(static_cast<double>(k), -std::stod(skew));
    for (const size_t rank : {size_t{1}, size_t{2}, size_t{3}, size_t{5}}) {
      const double expected = kRows * std::pow(static_cast<double>(rank), -std::stod(skew)) / sum;
      EXPECT_NEAR(counts[rank - 1], expected, 5 * std::sqrt(expected)) << "skew " << skew << ", rank " << rank;
    }
    double head = 0, expected_head = 0;
    for (size_t k = 1; k <= 50; ++k) {
      head += counts[k - 1];
      expected_head += kRows * std::pow(static_cast<double>(k), -std::stod(skew)) / sum;
    }
    // Counts that are sorted favour the head a little where neighbours are nearly equal.
    EXPECT_NEAR(head, expected_head, 0.02 * kRows) << skew;
  }
}

TEST(JoinGen, Errors) {
  const TemporaryDirectory directory;
  const string out = directory / "join";
  for (const std::vector<string>& arguments : std::vector<std::vector<string>>{{"--build", "0", "--out", out},
                                                                               {"--probe", "-1", "--out", out},
                                                                               {"--matches", "3501", "--out", out},
                                                                               {"--skew", "-0.5", "--out", out},
                                                                               {"--skew", "nan", "--out", out},
                                                                               {"--jobs", "0", "--out", out},
                                                                               {"--narrow", "--build", "3"},
                                                                               {"--out", out, "more"}}) {
    std::vector<string> command = {Program("join_gen")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunProgram(command);
    EXPECT_EQ(outcome.status, 2) << arguments[1];
    EXPECT_TRUE(Contains(outcome.err, "--help")) << outcome.err;
  }
  EXPECT_TRUE(directory.Names().empty());
  const Outcome missing = RunProgram({Program("join_gen"), "--out", "/proc/no"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_TRUE(Contains(missing.err, "cannot create the directory")) << missing.err;
}

// ---- Wisconsin ------------------------------------------------------------------------------------------------------

TEST(WisconsinGen, Columns) {
  constexpr int64_t kRows = 10007;
  const TemporaryDirectory directory, three;
  Generate("wisconsin_gen", directory.path(), {"--rows", "10007", "--jobs", "1"});
  Generate("wisconsin_gen", three.path(), {"--rows", "10007", "--jobs", "3"});
  EXPECT_EQ(directory.Names(), (std::set<string>{"t1.csv", "t2.csv", "schema.sql"}));
  EXPECT_TRUE(SameFiles(directory, three));
  const Csv t1 = ReadCsv(directory / "t1.csv"), t2 = ReadCsv(directory / "t2.csv");
  ASSERT_EQ(t1.rows.size(), static_cast<size_t>(kRows));
  ASSERT_EQ(t2.rows.size(), static_cast<size_t>(kRows * 3 / 5));
  // The header names the columns of the schema.
  const string schema = ReadAll(directory / "schema.sql");
  std::istringstream names(t1.header);
  size_t at = 0, columns = 0;
  for (string name; std::getline(names, name, ','); ++columns) {
    at = schema.find("  " + name + " ", at);
    ASSERT_NE(at, string::npos) << name;
  }
  ASSERT_EQ(columns, 16u);
  const auto letters = [](int64_t value) {
    string text(7, 'A');
    for (size_t i = 7; i-- > 0; value /= 26) text[i] = static_cast<char>('A' + value % 26);
    return text + string(45, 'x');
  };
  std::set<int64_t> unique;
  size_t in_place = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    const Row& row = t1.rows[static_cast<size_t>(i)];
    ASSERT_EQ(row.size(), columns);
    const int64_t u = NumberIn(row[0], 0, kRows - 1);
    unique.insert(u);
    in_place += u == i ? 1 : 0;
    const std::vector<int64_t> expected = {u,      i,     u % 2, u % 4, u % 10,      u % 20,         u % 100,
                                           u % 10, u % 5, u % 2, u,     u % 100 * 2, u % 100 * 2 + 1};
    for (size_t c = 0; c < expected.size(); ++c)
      ASSERT_EQ(Number(row[c]), expected[c]) << "row " << i << " column " << c;
    ASSERT_EQ(row[13], letters(u));
    ASSERT_EQ(row[14], letters(i));
    ASSERT_EQ(row[15], string(4, "AHOV"[i % 4]) + string(48, 'x'));
  }
  EXPECT_EQ(unique.size(), static_cast<size_t>(kRows));
  EXPECT_LE(in_place, 10u);
  // The second table has its own order.
  EXPECT_NE(t1.rows[0][0] + t1.rows[1][0] + t1.rows[2][0], t2.rows[0][0] + t2.rows[1][0] + t2.rows[2][0]);
}

TEST(WisconsinGen, SchemaLoadsTheTables) {
  const TemporaryDirectory directory;
  Generate("wisconsin_gen", directory.path(), {"--rows", "100"});
  EXPECT_EQ(Load(directory, "SELECT count(*) AS n FROM t1, t2 WHERE t1.unique1 = t2.unique2"), "n\n60\n");
}

TEST(WisconsinGen, Options) {
  const TemporaryDirectory directory;
  Generate("wisconsin_gen", directory.path(), {"--rows", "1", "--string-length", "8"});
  const Csv t2 = ReadCsv(directory / "t2.csv");
  ASSERT_EQ(t2.rows.size(), 1u);
  EXPECT_EQ(t2.rows[0][13], "AAAAAAAx");
  EXPECT_EQ(t2.rows[0][15], "AAAAxxxx");
  EXPECT_TRUE(Contains(ReadAll(directory / "schema.sql"), "VARCHAR(8)"));
  Generate("wisconsin_gen", directory.path(), {"--rows", "2", "--rows2", "3"});
  EXPECT_EQ(ReadCsv(directory / "t2.csv").rows.size(), 3u);
}

TEST(WisconsinGen, Errors) {
  const TemporaryDirectory directory;
  const string out = directory / "wisconsin";
  for (const std::vector<string>& arguments :
       std::vector<std::vector<string>>{{"--rows", "0", "--out", out},
                                        {"--out", out},
                                        {"--rows", "10"},
                                        {"--rows", "10", "--string-length", "7", "--out", out},
                                        {"--rows", "10", "--rows2", "0", "--out", out},
                                        {"--rows", "10", "--out", out, "more"}}) {
    std::vector<string> command = {Program("wisconsin_gen")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunProgram(command);
    EXPECT_EQ(outcome.status, 2) << arguments[1];
    EXPECT_TRUE(Contains(outcome.err, "--help")) << outcome.err;
  }
  EXPECT_TRUE(directory.Names().empty());
}

// ---- The progress bar -----------------------------------------------------------------------------------------------

// On a terminal of 60 columns. The output is a pipe that is not read for over a second, so the work lasts.

TEST(Progress, DrawsOneLineAndClearsIt) {
  constexpr size_t kWidth = 60;
  const TemporaryDirectory directory;
  const string pipe = directory / "u.csv";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const string terminal_name = ptsname(terminal);
  // Held open, so that what was drawn can be read after the child is gone.
  const int inner = open(terminal_name.c_str(), O_RDWR | O_NOCTTY);
  ASSERT_GE(inner, 0);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = kWidth;
  ASSERT_EQ(ioctl(inner, TIOCSWINSZ, &size), 0);

  const pid_t child =
      StartProgram({Program("uniform_gen"), "--rows", "200000", "--out", pipe}, [&] { dup2(inner, STDERR_FILENO); });
  const int input = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);  // does not wait for a writer, which may not be built
  ASSERT_GE(input, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  ASSERT_EQ(fcntl(input, F_SETFL, 0), 0);
  std::array<char, 65536> buffer{};
  while (read(input, buffer.data(), buffer.size()) > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  close(input);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);

  string drawn;
  ASSERT_EQ(fcntl(terminal, F_SETFL, O_NONBLOCK), 0);
  for (ssize_t n; (n = read(terminal, buffer.data(), buffer.size())) > 0;)
    drawn.append(buffer.data(), static_cast<size_t>(n));
  close(inner);
  close(terminal);

  const size_t cleared = drawn.rfind('\r', drawn.rfind(": 200000 rows"));  // the summary comes on a clear line
  ASSERT_NE(cleared, string::npos) << drawn;
  std::istringstream lines(drawn.substr(0, cleared));
  size_t bars = 0;
  string line;
  while (std::getline(lines, line, '\r')) {
    EXPECT_LT(line.size(), kWidth) << line;
    if (!Contains(line, "% [")) continue;
    ++bars;
    EXPECT_TRUE(Matches(line, "u\\.csv +[0-9]+% \\[=*>? *\\] [0-9.]+ [kM]? ?rows/s  ETA [0-9]+:[0-9]{2} *")) << line;
  }
  EXPECT_GE(bars, 1u) << drawn;
  EXPECT_LE(bars, 10u) << "more than ten a second";
  EXPECT_EQ(line.find_first_not_of(' '), string::npos) << "not cleared: " << line;
}

}  // namespace
}  // namespace tessera
