// ssb_gen: the five tables of the Star Schema Benchmark as text files.
//
//     ssb_gen --scale S --out DIR [--jobs N]
//
// After the specification: P. O'Neil, E. O'Neil, X. Chen, Star Schema Benchmark, revision 3 (2009), which takes
// whatever it does not say itself from TPC-H. Rows at scale factor S (0.01 to 100):
//
//     lineorder.tbl  S * 1,500,000 orders of 1 to 7 lines, about 6,000,000 * S rows
//     customer.tbl   S * 30,000
//     supplier.tbl   S * 2,000
//     part.tbl       200,000 * (1 + floor(log2 S)) from S = 1 on, S * 200,000 below
//     date.tbl       2,557: every day from 1992-01-01 to 1998-12-31, whatever S is
//
// Values are separated by '|' and each line ends with '|', as the authors' generator writes them; there is no header.
// The tables' columns are in data_gen/ssb/schema.sql. Money is in cents. Every value depends on its table and row only,
// so the files are the same for any number of threads.
//
// Where the specification leaves a choice, or is not followed:
// - Nation and city follow from the key: 25 keys in a row have the 25 nations, 250 in a row the 250 cities; 1000 part
//   keys in a row have the 1000 brands, in another order for each thousand. So every region, nation, city and brand has
//   its exact share at S >= 1, and a table of 20 suppliers still has five regions. Keys in lineorder are uniform and
//   independent, so the shares of the dimension tables are those of the fact table. All customers order (in TPC-H a
//   third of them never does).
// - Order dates are uniform over 1992-01-01 to 1998-08-02 as in TPC-H, so that the commit date, 30 to 90 days later, is
//   in the calendar. A full year therefore has 15.2 % of the rows where the paper's filter factors count 1/7 = 14.3 %.
// - Colours are TPC-H's 92 words, where the specification speaks of 94. d_dayofweek needs 9 characters (Wednesday), not
//   the 8 that the specification gives it.
// - Weeks begin on Sundays (d_daynuminweek 1); d_weeknuminyear counts sevens of days from January 1. Selling seasons
//   are whole months. The specification does not list the holidays: see kHolidays.
// - Queries on few rows at a small scale: Q3.4 selects 7.7e-7 of lineorder, 0.05 rows of scale 0.01. UNITED KI1 and
//   UNITED KI5 are the first two cities of their nation, which multiplies that by ten at 0.01, and kSeed is one of the
//   seeds for which Q3.4 has rows at 0.01, 0.02, 0.05, 0.1, 0.2, 0.5 and 1. At another scale below 1 it may have none.
//   The other twelve queries expect at least five rows at any scale.
//
// Start at: Tables(), MakeOrder().
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data_gen/command_line.h"
#include "data_gen/random.h"
#include "data_gen/row_buffer.h"
#include "data_gen/table_files.h"
#include "data_gen/tpch_values.h"

namespace tessera {
namespace {

using std::string_view;

constexpr char kProgram[] = "ssb_gen";
constexpr double kLargestScale = 100;

/// See the last point above. Another seed gives other data of the same distribution.
constexpr uint64_t kSeed = 204;

/// Names the stream of random numbers of each table.
enum Table : uint64_t { kLineorder, kCustomer, kSupplier, kPart, kPartBrands };

// ---- Value lists ----------------------------------------------------------------------------------------------------

/// [region][rank in the region]: TPC-H's n_nationkey. The regions are AMERICA, ASIA, EUROPE, AFRICA, MIDDLE EAST. Rank 0
/// comes first in small tables: the queries name UNITED STATES (24) and UNITED KINGDOM (23).
constexpr std::array<std::array<unsigned, 5>, 5> kNationOrder = {{
    {24, 2, 3, 1, 17},
    {18, 8, 9, 12, 21},
    {23, 6, 7, 22, 19},
    {5, 14, 15, 16, 0},
    {4, 10, 11, 13, 20},
}};

/// The order in which a nation's cities come up; the queries name the United Kingdom's cities 1 and 5.
constexpr string_view kCityDigits = "1508362947";
constexpr unsigned kUnitedKingdomSlot = 2;

/// Characters of addresses: 64, one for 6 random bits. The last two are not used at either end.
constexpr string_view kAddressCharacters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,";

// ---- The calendar ---------------------------------------------------------------------------------------------------

namespace chrono = std::chrono;

constexpr chrono::sys_days kFirstDay = chrono::January / 1 / 1992;
constexpr chrono::sys_days kLastDay = chrono::December / 31 / 1998;
constexpr chrono::sys_days kLastOrderDay = chrono::August / 2 / 1998;
constexpr int64_t kDays = (kLastDay - kFirstDay).count() + 1;
constexpr int64_t kOrderDays = (kLastOrderDay - kFirstDay).count() + 1;
constexpr int64_t kSoonestCommit = 30;
constexpr int64_t kLatestCommit = 90;
static_assert(kDays == 2557 && kOrderDays == 2557 - 151 && kOrderDays + kLatestCommit <= kDays);

constexpr std::array<string_view, 12> kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                                 "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<string_view, 7> kWeekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                  "Thursday", "Friday", "Saturday"};
constexpr std::array<string_view, 12> kSeasons = {"Winter", "Winter", "Winter", "Spring", "Summer",    "Summer",
                                                  "Summer", "Summer", "Fall",   "Fall",   "Christmas", "Christmas"};

/// New Year, Christmas Eve and the 20th of eight months: the same ten days each year.
constexpr std::array<chrono::month_day, 10> kHolidays = {
    chrono::January / 1, chrono::February / 20,  chrono::April / 20,   chrono::May / 20,      chrono::July / 20,
    chrono::August / 20, chrono::September / 20, chrono::October / 20, chrono::November / 20, chrono::December / 24};

unsigned DateKey(chrono::year_month_day date) {
  return static_cast<unsigned>(static_cast<int>(date.year())) * 10000 + static_cast<unsigned>(date.month()) * 100 +
         static_cast<unsigned>(date.day());
}

/// d_datekey of every day as eight digits; element 0 is kFirstDay.
const std::vector<std::string>& DateKeys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    for (int64_t day = 0; day < kDays; ++day) all.push_back(std::to_string(DateKey(kFirstDay + chrono::days(day))));
    return all;
  }();
  return keys;
}

void MakeDay(int64_t day, RowBuffer& rows) {
  const chrono::sys_days date = kFirstDay + chrono::days(day);
  const chrono::year_month_day parts = date;
  const auto year = static_cast<unsigned>(static_cast<int>(parts.year()));
  const auto month = static_cast<unsigned>(parts.month());
  const auto day_of_month = static_cast<unsigned>(parts.day());
  const unsigned day_of_week = chrono::weekday(date).c_encoding();  // 0 is Sunday
  const auto day_of_year = static_cast<unsigned>((date - chrono::sys_days(parts.year() / chrono::January / 1)).count());
  const string_view month_name = kMonths[month - 1];
  const bool last_of_month = parts == parts.year() / parts.month() / chrono::last;
  const bool holiday = std::ranges::find(kHolidays, parts.month() / parts.day()) != kHolidays.end();
  const auto put_flag = [&](bool flag) { rows.Put(flag ? "1" : "0", '|'); };

  rows.Put(DateKey(parts), '|');
  rows.Put(month_name, ' ');  // "September 22, 1998"
  rows.Put(day_of_month, ',');
  rows.Put(' ');
  rows.Put(year, '|');
  rows.Put(kWeekdays[day_of_week], '|');
  rows.Put(month_name, '|');
  rows.Put(year, '|');
  rows.Put(year * 100 + month, '|');
  rows.Put(std::string(month_name.substr(0, 3)) + std::to_string(year), '|');
  rows.Put(day_of_week + 1, '|');
  rows.Put(day_of_month, '|');
  rows.Put(day_of_year + 1, '|');
  rows.Put(month, '|');
  rows.Put(day_of_year / 7 + 1, '|');
  rows.Put(kSeasons[month - 1], '|');
  put_flag(day_of_week == 6);
  put_flag(last_of_month);
  put_flag(holiday);
  put_flag(day_of_week != 0 && day_of_week != 6);
  rows.Put('\n');
}

// ---- Customers, suppliers, parts ------------------------------------------------------------------------------------

// Rows count from 0, keys from 1.

/// 10 to 25 characters.
void PutAddress(RandomRow& random, RowBuffer& rows) {
  const size_t length = 10 + random.Below(16);
  std::array<char, 25> text{};
  uint64_t bits = 0;
  for (size_t i = 0; i < length; ++i, bits >>= 6) {
    if (i % 10 == 0) bits = random.Bits();
    text[i] = kAddressCharacters[bits & 63];
  }
  for (char* end : {&text[0], &text[length - 1]}) {
    if (*end == ' ' || *end == ',') *end = 'x';
  }
  rows.Put(string_view(text.data(), length), '|');
}

/// City, nation, region and telephone number: as in customer and supplier.
void PutPlace(uint64_t row, RandomRow& random, RowBuffer& rows) {
  const uint64_t slot = row % 25;
  const unsigned nation_key = kNationOrder[slot % 5][slot / 5];
  const tpch::Nation& nation = tpch::kNations[nation_key];
  // Another digit for each nation in the same round of 25, and the first of them for the United Kingdom in round 0.
  const char digit = kCityDigits[(row / 25 + slot + 10 - kUnitedKingdomSlot) % 10];

  constexpr string_view kBlanks = "         ";
  const string_view prefix = nation.name.substr(0, kBlanks.size());
  std::string city(prefix);
  city += kBlanks.substr(prefix.size());
  city += digit;
  rows.Put(city, '|');
  rows.Put(nation.name, '|');
  rows.Put(tpch::kRegions[nation.region], '|');
  tpch::PutPhone(nation_key, random, rows);
}

void MakeCustomer(uint64_t row, RowBuffer& rows) {
  RandomRow random(kSeed, kCustomer, row);
  rows.Put(row + 1, '|');
  tpch::PutName("Customer", row + 1, rows);
  PutAddress(random, rows);
  PutPlace(row, random, rows);
  rows.Put(tpch::Pick(random, tpch::kSegments), '|');
  rows.Put('\n');
}

void MakeSupplier(uint64_t row, RowBuffer& rows) {
  RandomRow random(kSeed, kSupplier, row);
  rows.Put(row + 1, '|');
  tpch::PutName("Supplier", row + 1, rows);
  PutAddress(random, rows);
  PutPlace(row, random, rows);
  rows.Put('\n');
}

void MakePart(uint64_t row, RowBuffer& rows) {
  RandomRow random(kSeed, kPart, row);
  // 617 has no factor in common with 1000, so a thousand rows take every brand once, and it is near 1000 / the golden
  // ratio, so fewer rows are spread evenly. The turn by a random number keeps brand and price independent: the price
  // depends on the key modulo 1000 too.
  const uint64_t turn = RandomRow(kSeed, kPartBrands, row / 1000).Below(1000);
  const uint64_t brand = (row % 1000 * 617 + turn) % 1000;
  const char maker = static_cast<char>('1' + brand / 200);
  const char category = static_cast<char>('1' + brand / 40 % 5);
  const uint64_t first = random.Below(tpch::kColors.size());
  const uint64_t second =
      (first + 1 + random.Below(tpch::kColors.size() - 1)) % tpch::kColors.size();  // another word than the first

  rows.Put(row + 1, '|');
  rows.Put(tpch::kColors[first], ' ');
  rows.Put(tpch::kColors[second], '|');
  rows.Put("MFGR", '#');
  rows.Put(maker);
  rows.Put('|');
  rows.Put("MFGR", '#');
  rows.Put(maker);
  rows.Put(category);
  rows.Put('|');
  rows.Put("MFGR", '#');
  rows.Put(maker);
  rows.Put(category);
  rows.Put(brand % 40 + 1, '|');
  rows.Put(tpch::Pick(random, tpch::kColors), '|');
  tpch::PutType(random, rows);
  rows.Put(random.Between(1, 50), '|');
  tpch::PutContainer(random, rows);
  rows.Put('\n');
}

// ---- Orders ---------------------------------------------------------------------------------------------------------

/// Rows of the tables at a scale factor.
struct Sizes {
  explicit Sizes(double scale)
      : orders(Rows(1500000, scale)),
        customers(Rows(30000, scale)),
        suppliers(Rows(2000, scale)),
        parts(scale < 1 ? Rows(200000, scale) : 200000 * static_cast<uint64_t>(1 + std::floor(std::log2(scale)))) {}

  uint64_t orders, customers, suppliers, parts;

 private:
  static uint64_t Rows(double at_one, double scale) { return static_cast<uint64_t>(std::llround(at_one * scale)); }
};

constexpr uint64_t kMostLines = 7;

struct Line {
  uint64_t part, supplier, quantity, price, discount, revenue, supply_cost, tax;
  int64_t commit_day;  ///< days from kFirstDay
  string_view ship_mode;
};

/// Appends the lines of order number `order` (from 0); returns how many.
uint64_t MakeOrder(const Sizes& sizes, uint64_t order, RowBuffer& rows) {
  static_assert(4 + 7 * kMostLines <= RandomRow::kDrawsPerRow);
  RandomRow random(kSeed, kLineorder, order);
  // The first 8 of each 32 keys are used.
  const uint64_t order_key = order / 8 * 32 + order % 8 + 1;
  const uint64_t line_count = 1 + random.Below(kMostLines);
  const uint64_t customer = 1 + random.Below(sizes.customers);
  const auto order_day = static_cast<int64_t>(random.Below(kOrderDays));
  const string_view priority = tpch::Pick(random, tpch::kPriorities);

  std::array<Line, kMostLines> lines;
  uint64_t total = 0;
  for (uint64_t i = 0; i < line_count; ++i) {
    Line& line = lines[i];
    line.quantity = 1 + random.Below(50);
    line.part = 1 + random.Below(sizes.parts);
    line.supplier = 1 + random.Below(sizes.suppliers);
    line.discount = random.Below(11);
    line.tax = random.Below(9);
    line.commit_day = order_day + random.Between(kSoonestCommit, kLatestCommit);
    line.ship_mode = tpch::Pick(random, tpch::kShipModes);
    line.price = line.quantity * tpch::PartPrice(line.part);
    line.revenue = line.price * (100 - line.discount) / 100;
    line.supply_cost = 6 * tpch::PartPrice(line.part) / 10;
    total += line.revenue * (100 + line.tax) / 100;
  }

  constexpr size_t kLongestLine = 256;  // 17 values, the longest of 15 characters
  rows.Reserve(kMostLines * kLongestLine);
  const auto& date_keys = DateKeys();
  for (uint64_t i = 0; i < line_count; ++i) {
    const Line& line = lines[i];
    rows.Put(order_key, '|');
    rows.Put(i + 1, '|');
    rows.Put(customer, '|');
    rows.Put(line.part, '|');
    rows.Put(line.supplier, '|');
    rows.Put(date_keys[static_cast<size_t>(order_day)], '|');
    rows.Put(priority, '|');
    rows.Put("0", '|');
    rows.Put(line.quantity, '|');
    rows.Put(line.price, '|');
    rows.Put(total, '|');
    rows.Put(line.discount, '|');
    rows.Put(line.revenue, '|');
    rows.Put(line.supply_cost, '|');
    rows.Put(line.tax, '|');
    rows.Put(date_keys[static_cast<size_t>(line.commit_day)], '|');
    rows.Put(line.ship_mode, '|');
    rows.Put('\n');
  }
  return line_count;
}

// ---- Files ----------------------------------------------------------------------------------------------------------

/// Orders or rows of a block. 2048 orders are 0.8 MB.
constexpr uint64_t kBlock = 2048;
constexpr size_t kLongestDimensionRow = 512;  // at most 17 values; the longest row has 150 characters

std::vector<TableFile> Tables(const Sizes& sizes) {
  const auto dimension = [](const char* name, uint64_t count, auto make) {
    return FileOfRows(name, count, kBlock, kLongestDimensionRow, make);
  };
  return {
      dimension("date.tbl", kDays, [](uint64_t row, RowBuffer& rows) { MakeDay(static_cast<int64_t>(row), rows); }),
      dimension("supplier.tbl", sizes.suppliers, MakeSupplier),
      dimension("customer.tbl", sizes.customers, MakeCustomer),
      dimension("part.tbl", sizes.parts, MakePart),
      {"lineorder.tbl", "", sizes.orders, kBlock, 4 * sizes.orders,
       [sizes](uint64_t order, RowBuffer& rows) { return MakeOrder(sizes, order, rows); }},
  };
}

// ---- Command line ---------------------------------------------------------------------------------------------------

constexpr char kHelp[] =
    "Usage: ssb_gen --scale S --out DIR [--jobs N]\n"
    "\n"
    "Writes the tables of the Star Schema Benchmark to DIR: lineorder.tbl, customer.tbl,\n"
    "supplier.tbl, part.tbl and date.tbl, values separated by '|', no header.\n"
    "\n"
    "  --scale S   scale factor, 0.01 to 100; scale 1 has 6 million lineorder rows (0.6 GB)\n"
    "  --out DIR   directory; created if missing, files of these names are replaced\n"
    "  --jobs N    threads, 1 to 1024; the files do not depend on it (default: one per core)\n"
    "  --help      this text\n"
    "\n"
    "Exit status: 0 done, 1 a file could not be written, 2 wrong command line.\n";

int Main(int argc, char** argv) {
  std::optional<double> scale;
  std::string directory;
  uint64_t jobs = DefaultJobs();
  CommandLine line(kProgram, kHelp);
  line.Scale(kLargestScale, &scale);
  line.Text("out", &directory);
  line.Jobs(&jobs);
  if (const std::optional<int> status = line.Parse(argc, argv)) return *status;
  if (!scale) return UsageError(kProgram, "--scale is missing: give the scale factor, 0.01 to 100");
  if (directory.empty()) return UsageError(kProgram, "--out is missing: give the directory for the files");

  CatchInterrupts();
  const Status status = WriteTables(Tables(Sizes(*scale)), directory, static_cast<unsigned>(jobs));
  return status.ok() ? 0 : Failure(kProgram, status);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::Main(argc, argv); }
