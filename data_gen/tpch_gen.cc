// tpch_gen: the eight tables of TPC-H as text files.
//
//     tpch_gen --scale S --out DIR [--jobs N] [--text MB]
//     tpch_gen --scale S --out DIR --updates N [...]
//
// After the specification, TPC Benchmark H, version 3, clause 4.2. Rows at scale factor S (0.01 to 300):
//
//     lineitem.tbl  1 to 7 lines of each order, about 6,000,000 * S rows
//     orders.tbl    S * 1,500,000
//     partsupp.tbl  S * 800,000
//     part.tbl      S * 200,000
//     customer.tbl  S * 150,000
//     supplier.tbl  S * 10,000
//     nation.tbl    25, whatever S is
//     region.tbl    5
//
// Values are separated by '|' and each line ends with '|', as the TPC's generator writes them; there is no header. The
// tables' columns are in data_gen/tpch/schema.sql. Every value depends on its table and row only, so the files are the
// same for any number of threads. The rows are not those of the TPC's generator, but each column has the same
// distribution: bench/tpch_check.py compares them.
//
// With --updates it writes the rows of N pairs of refresh functions instead (clause 2.5), for n = 1 to N:
//
//     orders.tbl.un, lineitem.tbl.un   S * 1,500 new orders, for RF1; their keys are not in the tables
//     delete.n                         the keys of as many orders of the tables, for RF2: one a line
//
// Where the specification leaves a choice:
// - Of order keys, those are used whose place in their 32 is 0 to 7; the first is 1. An order's customer is uniform over
//   all keys, and the next one if it is a multiple of 3: so the customers after a multiple order twice as much as the
//   others, which q13 shows, and a third never orders. New orders have the keys whose place is 8 to 15, from the least on,
//   and the first orders of the tables go first.
// - The specification takes comments from 300 MB of text, DuckDB's dbgen from 10 MiB, so that at scale 10 some 8 of the 15
//   million comments of orders are different, not 14. So is it here, and --text 300 is the specification's.
// - S * 5 suppliers have complaints and as many recommendations (0 below scale 0.1); the words replace characters of the
//   comment.
//
// Start at: Tables(), MakeLine().
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data_gen/command_line.h"
#include "data_gen/permutation.h"
#include "data_gen/random.h"
#include "data_gen/row_buffer.h"
#include "data_gen/table_files.h"
#include "data_gen/tpch_text.h"
#include "data_gen/tpch_values.h"

namespace tessera::tpch {
namespace {

using std::string_view;

constexpr char kProgram[] = "tpch_gen";
constexpr double kLargestScale = 300;

/// One of the seeds for which each query returns as many rows at scale 1 as over DuckDB's tables, within 1 %: q11 1055 (DuckDB
/// 1048), q13 42, q18 57, q20 187 (186). Another gives other data of the same distribution.
constexpr uint64_t kSeed = 335022;
/// Of nation and region, which are the same at every scale: their few comments have the lengths of DuckDB's on average.
constexpr uint64_t kFixedSeed = 3772683;

/// Names the stream of random numbers of each table.
enum Table : uint64_t { kLineitem, kOrders, kPartsupp, kPart, kCustomer, kSupplier, kNation, kRegion, kRemarks };

constexpr std::array<string_view, 4> kInstructions = {"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"};

/// Characters of addresses: 64, one for 6 random bits.
constexpr string_view kAddressCharacters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,";

// ---- The calendar ---------------------------------------------------------------------------------------------------

namespace chrono = std::chrono;

constexpr chrono::sys_days kFirstDay = chrono::January / 1 / 1992;
constexpr chrono::sys_days kLastDay = chrono::December / 31 / 1998;
constexpr uint64_t kDays = static_cast<uint64_t>((kLastDay - kFirstDay).count()) + 1;
constexpr uint64_t kOrderDays = kDays - 151;
/// CURRENTDATE of the specification: what was received until then was returned or accepted, what was shipped is final.
constexpr uint64_t kToday = static_cast<uint64_t>((chrono::sys_days(chrono::June / 17 / 1995) - kFirstDay).count());
constexpr uint64_t kLatestShipment = 121;
constexpr uint64_t kLatestReceipt = 30;
static_assert(kOrderDays + kLatestShipment + kLatestReceipt <= kDays);

/// "1992-01-01" and so on.
const std::vector<std::string>& Dates() {
  static const std::vector<std::string> dates = [] {
    const auto two = [](unsigned n) { return (n < 10 ? "-0" : "-") + std::to_string(n); };
    std::vector<std::string> all;
    for (chrono::sys_days day = kFirstDay; day <= kLastDay; day += chrono::days(1)) {
      const chrono::year_month_day date = day;
      all.push_back(std::to_string(static_cast<int>(date.year())) + two(static_cast<unsigned>(date.month())) +
                    two(static_cast<unsigned>(date.day())));
    }
    return all;
  }();
  return dates;
}

// ---- Values ---------------------------------------------------------------------------------------------------------

/// "-12.34" of -1234 cents.
void PutCents(int64_t cents, RowBuffer& rows) {
  if (cents < 0) rows.Put('-');
  const auto size = static_cast<uint64_t>(cents < 0 ? -cents : cents);
  rows.Put(size / 100, '.');
  rows.Put(static_cast<char>('0' + size / 10 % 10));
  rows.Put(static_cast<char>('0' + size % 10));
  rows.Put('|');
}
void PutCents(uint64_t cents, RowBuffer& rows) { PutCents(static_cast<int64_t>(cents), rows); }

/// 10 to 40 characters. Draws five numbers at most.
void PutAddress(RandomRow& random, RowBuffer& rows) {
  const size_t length = 10 + random.Below(31);
  std::array<char, 40> text{};
  uint64_t bits = 0;
  for (size_t i = 0; i < length; ++i, bits >>= 6) {
    if (i % 10 == 0) bits = random.Bits();
    text[i] = kAddressCharacters[bits & 63];
  }
  rows.Put(string_view(text.data(), length), '|');
}

/// Address, nation, telephone number, balance: as in customer and supplier.
void PutPerson(RandomRow& random, RowBuffer& rows) {
  PutAddress(random, rows);
  const uint64_t nation = random.Below(kNations.size());
  rows.Put(nation, '|');
  PutPhone(nation, random, rows);
  PutCents(random.Between(-99'999, 999'999), rows);
}

// ---- The tables -----------------------------------------------------------------------------------------------------

constexpr uint64_t kMostLines = 7;
constexpr uint64_t kSuppliersOfPart = 4;
/// Of 10,000 suppliers.
constexpr double kComplaints = 5, kRecommendations = 5;

/// Rows of the tables at a scale factor.
struct Sizes {
  explicit Sizes(double scale)
      : orders(Rows(1'500'000, scale)),
        customers(Rows(150'000, scale)),
        parts(Rows(200'000, scale)),
        suppliers(Rows(10'000, scale)),
        complaints(Rows(kComplaints, scale)),
        recommendations(Rows(kRecommendations, scale)) {
    // The formula for the suppliers of a part gives one twice if a third of all is between a quarter and 20 more.
    if (suppliers % 3 == 0 && suppliers <= 240) ++suppliers;
  }

  uint64_t orders, customers, parts, suppliers;
  uint64_t complaints, recommendations;

 private:
  static uint64_t Rows(double at_one, double scale) { return static_cast<uint64_t>(std::llround(at_one * scale)); }
};

struct Line {
  uint64_t part = 0, supplier = 0, quantity = 0, price = 0, discount = 0, tax = 0;
  uint64_t ship_day = 0, commit_day = 0, receipt_day = 0;
  string_view return_flag = {}, instruction = {}, ship_mode = {};
  RandomRow random;  ///< for the rest

  bool shipped() const { return ship_day <= kToday; }
  /// In cents.
  uint64_t charge() const { return price * (100 - discount) / 100 * (100 + tax) / 100; }
};

struct Order {
  uint64_t lines, customer, day;
  string_view priority;
  RandomRow random;  ///< for the rest
};

/// The data of a scale. Rows count from 0, keys from 1.
class Generator {
 public:
  Generator(const Sizes& sizes, TextPool text)
      : sizes_(sizes), text_(std::move(text)), supplier_order_(sizes.suppliers, kSeed + kRemarks) {}

  const Sizes& sizes() const { return sizes_; }

  uint64_t Region(uint64_t row, RowBuffer& rows) const {
    RandomRow random(kFixedSeed, kRegion, row);
    rows.Put(row, '|');
    rows.Put(kRegions[row], '|');
    return PutComment(random, 31, 115, rows);
  }

  uint64_t Nation(uint64_t row, RowBuffer& rows) const {
    RandomRow random(kFixedSeed, kNation, row);
    rows.Put(row, '|');
    rows.Put(kNations[row].name, '|');
    rows.Put(kNations[row].region, '|');
    return PutComment(random, 31, 114, rows);
  }

  uint64_t Supplier(uint64_t row, RowBuffer& rows) const {
    RandomRow random(kSeed, kSupplier, row);
    rows.Put(row + 1, '|');
    PutName("Supplier", row + 1, rows);
    PutPerson(random, rows);
    // The first ones of an order of its own.
    const uint64_t rank = supplier_order_(row);
    if (rank >= sizes_.complaints + sizes_.recommendations) return PutComment(random, 25, 100, rows);
    constexpr string_view kCustomer = "Customer ";
    const string_view remark = rank < sizes_.complaints ? "Complaints" : "Recommends";
    std::string comment(text_.Piece(random, 25, 100));
    const uint64_t room = comment.size() - kCustomer.size() - remark.size();
    const uint64_t between = random.Below(room + 1);
    const uint64_t at = random.Below(room - between + 1);
    comment.replace(at, kCustomer.size(), kCustomer);
    comment.replace(at + kCustomer.size() + between, remark.size(), remark);
    rows.Put(comment, '|');
    rows.Put('\n');
    return 1;
  }

  uint64_t Customer(uint64_t row, RowBuffer& rows) const {
    RandomRow random(kSeed, kCustomer, row);
    rows.Put(row + 1, '|');
    PutName("Customer", row + 1, rows);
    PutPerson(random, rows);
    rows.Put(Pick(random, kSegments), '|');
    return PutComment(random, 29, 116, rows);
  }

  uint64_t Part(uint64_t row, RowBuffer& rows) const {
    constexpr size_t kWords = 5;
    RandomRow random(kSeed, kPart, row);
    rows.Put(row + 1, '|');
    // The first words of a shuffle.
    std::array<uint8_t, kColors.size()> colors{};
    std::iota(colors.begin(), colors.end(), uint8_t{0});
    for (size_t i = 0; i < kWords; ++i) {
      std::swap(colors[i], colors[i + random.Below(colors.size() - i)]);
      rows.Put(kColors[colors[i]], i + 1 < kWords ? ' ' : '|');
    }
    const char maker = static_cast<char>('1' + random.Below(5));
    rows.Put("Manufacturer", '#');
    rows.Put(maker);
    rows.Put('|');
    rows.Put("Brand", '#');
    rows.Put(maker);
    rows.Put(static_cast<char>('1' + random.Below(5)));
    rows.Put('|');
    PutType(random, rows);
    rows.Put(random.Between(1, 50), '|');
    PutContainer(random, rows);
    PutCents(PartPrice(row + 1), rows);
    return PutComment(random, 5, 22, rows);
  }

  uint64_t Partsupp(uint64_t row, RowBuffer& rows) const {
    RandomRow random(kSeed, kPartsupp, row);
    const uint64_t part = row / kSuppliersOfPart + 1;
    rows.Put(part, '|');
    rows.Put(SupplierOf(part, row % kSuppliersOfPart), '|');
    rows.Put(random.Between(1, 9999), '|');
    PutCents(random.Between(100, 100'000), rows);
    return PutComment(random, 49, 198, rows);
  }

  uint64_t Orders(uint64_t row, RowBuffer& rows) const { return PutOrder(row, OrderKey(row), rows); }
  uint64_t Lineitem(uint64_t row, RowBuffer& rows) const { return PutLines(row, OrderKey(row), rows); }
  // Of the order that is the `row`th to be added and removed.
  uint64_t NewOrder(uint64_t row, RowBuffer& rows) const { return PutOrder(sizes_.orders + row, NewKey(row), rows); }
  uint64_t NewLines(uint64_t row, RowBuffer& rows) const { return PutLines(sizes_.orders + row, NewKey(row), rows); }
  uint64_t RemovedOrder(uint64_t row, RowBuffer& rows) const {
    rows.Put(OrderKey(row), '|');
    rows.Put('\n');
    return 1;
  }

 private:
  uint64_t PutOrder(uint64_t row, uint64_t key, RowBuffer& rows) const {
    Order order = MakeOrder(row);
    uint64_t total = 0, shipped = 0;
    for (uint64_t i = 0; i < order.lines; ++i) {
      const Line line = MakeLine(row, order, i);
      total += line.charge();
      shipped += line.shipped() ? 1 : 0;
    }
    rows.Put(key, '|');
    rows.Put(order.customer, '|');
    rows.Put(shipped == order.lines ? "F" : shipped == 0 ? "O" : "P", '|');
    PutCents(total, rows);
    rows.Put(Dates()[order.day], '|');
    rows.Put(order.priority, '|');
    PutName("Clerk", 1 + order.random.Below(std::max<uint64_t>(1000, sizes_.orders / 1500)), rows);
    rows.Put("0", '|');
    return PutComment(order.random, 19, 78, rows);
  }

  /// All lines of an order.
  uint64_t PutLines(uint64_t row, uint64_t key, RowBuffer& rows) const {
    const Order order = MakeOrder(row);
    for (uint64_t i = 0; i < order.lines; ++i) {
      Line line = MakeLine(row, order, i);
      rows.Put(key, '|');
      rows.Put(line.part, '|');
      rows.Put(line.supplier, '|');
      rows.Put(i + 1, '|');
      rows.Put(line.quantity, '|');
      PutCents(line.price, rows);
      PutCents(line.discount, rows);
      PutCents(line.tax, rows);
      rows.Put(line.return_flag, '|');
      rows.Put(line.shipped() ? "F" : "O", '|');
      rows.Put(Dates()[line.ship_day], '|');
      rows.Put(Dates()[line.commit_day], '|');
      rows.Put(Dates()[line.receipt_day], '|');
      rows.Put(line.instruction, '|');
      rows.Put(line.ship_mode, '|');
      PutComment(line.random, 10, 43, rows);
    }
    return order.lines;
  }

  uint64_t PutComment(RandomRow& random, size_t least, size_t most, RowBuffer& rows) const {
    rows.Put(text_.Piece(random, least, most), '|');
    rows.Put('\n');
    return 1;
  }

  /// The key of a part's supplier number `i` (from 0).
  uint64_t SupplierOf(uint64_t part, uint64_t i) const {
    const uint64_t n = sizes_.suppliers;
    return (part + i * (n / kSuppliersOfPart + (part - 1) / n)) % n + 1;
  }

  static uint64_t OrderKey(uint64_t row) { return (row + 1) / 8 * 32 + (row + 1) % 8; }
  static uint64_t NewKey(uint64_t row) { return OrderKey(row) + 8; }

  Order MakeOrder(uint64_t row) const {
    RandomRow random(kSeed, kOrders, row);
    const uint64_t lines = 1 + random.Below(kMostLines);
    uint64_t customer = 1 + random.Below(sizes_.customers);
    if (customer % 3 == 0) customer += customer < sizes_.customers ? 1 : -1;
    const uint64_t day = random.Below(kOrderDays);
    const string_view priority = Pick(random, kPriorities);
    return {lines, customer, day, priority, random};
  }

  Line MakeLine(uint64_t row, const Order& order, uint64_t number) const {
    Line line{.random = RandomRow(kSeed, kLineitem, row * (kMostLines + 1) + number)};
    RandomRow& random = line.random;
    line.part = 1 + random.Below(sizes_.parts);
    line.supplier = SupplierOf(line.part, random.Below(kSuppliersOfPart));
    line.quantity = 1 + random.Below(50);
    line.price = line.quantity * PartPrice(line.part);
    line.discount = random.Below(11);
    line.tax = random.Below(9);
    line.ship_day = order.day + 1 + random.Below(kLatestShipment);
    line.commit_day = order.day + 30 + random.Below(61);
    line.receipt_day = line.ship_day + 1 + random.Below(kLatestReceipt);
    line.return_flag = line.receipt_day > kToday ? "N" : random.Below(2) == 0 ? "R" : "A";
    line.instruction = Pick(random, kInstructions);
    line.ship_mode = Pick(random, kShipModes);
    return line;
  }

  const Sizes sizes_;
  const TextPool text_;
  const Permutation supplier_order_;
};

// ---- Files ----------------------------------------------------------------------------------------------------------

/// Orders or rows of a block: 1024 orders are half a megabyte of lines.
constexpr uint64_t kBlock = 1024;
/// After as many pairs of refresh functions all orders are new.
constexpr uint64_t kPairs = 1000;
constexpr size_t kLongestRow = 512;  // the longest row, of partsupp, has 230 characters

std::vector<TableFile> Tables(const Generator& generator) {
  const Sizes& sizes = generator.sizes();
  using Make = uint64_t (Generator::*)(uint64_t, RowBuffer&) const;
  const auto table = [&](const char* name, uint64_t units, uint64_t expected_rows, Make make) {
    return TableFile{name, "", units, kBlock, expected_rows, [&generator, make](uint64_t row, RowBuffer& rows) {
                       rows.Reserve(kMostLines * kLongestRow);
                       return (generator.*make)(row, rows);
                     }};
  };
  return {
      table("region.tbl", kRegions.size(), kRegions.size(), &Generator::Region),
      table("nation.tbl", kNations.size(), kNations.size(), &Generator::Nation),
      table("supplier.tbl", sizes.suppliers, sizes.suppliers, &Generator::Supplier),
      table("customer.tbl", sizes.customers, sizes.customers, &Generator::Customer),
      table("part.tbl", sizes.parts, sizes.parts, &Generator::Part),
      table("partsupp.tbl", kSuppliersOfPart * sizes.parts, kSuppliersOfPart * sizes.parts, &Generator::Partsupp),
      table("orders.tbl", sizes.orders, sizes.orders, &Generator::Orders),
      table("lineitem.tbl", sizes.orders, 4 * sizes.orders, &Generator::Lineitem),
  };
}

/// The files of a pair of refresh functions, from 0.
std::vector<TableFile> Updates(const Generator& generator, uint64_t pair) {
  const uint64_t orders = generator.sizes().orders / kPairs, first = pair * orders;
  using Make = uint64_t (Generator::*)(uint64_t, RowBuffer&) const;
  const auto file = [&](const std::string& name, uint64_t expected_rows, Make make) {
    return TableFile{name, "", orders, kBlock, expected_rows, [&generator, make, first](uint64_t row, RowBuffer& rows) {
                       rows.Reserve(kMostLines * kLongestRow);
                       return (generator.*make)(first + row, rows);
                     }};
  };
  const std::string number = std::to_string(pair + 1);
  return {
      file("orders.tbl.u" + number, orders, &Generator::NewOrder),
      file("lineitem.tbl.u" + number, 4 * orders, &Generator::NewLines),
      file("delete." + number, orders, &Generator::RemovedOrder),
  };
}

// ---- Command line ---------------------------------------------------------------------------------------------------

constexpr char kHelp[] =
    "Usage: tpch_gen --scale S --out DIR [--jobs N] [--text MB] [--updates N]\n"
    "\n"
    "Writes the tables of TPC-H to DIR: region.tbl, nation.tbl, supplier.tbl, customer.tbl,\n"
    "part.tbl, partsupp.tbl, orders.tbl and lineitem.tbl, values separated by '|', no header.\n"
    "\n"
    "  --scale S   scale factor, 0.01 to 300; scale 1 has 6 million lineitem rows (1.1 GB in all)\n"
    "  --out DIR   directory; created if missing, files of these names are replaced\n"
    "  --jobs N    threads, 1 to 1024; the files do not depend on it (default: one per core)\n"
    "  --text MB   comments are pieces of so much text, 1 to 1000 MiB (default: 10, as in DuckDB's\n"
    "              dbgen; 300 is what the specification says, with more different comments)\n"
    "  --updates N instead of the tables the rows of N pairs of refresh functions, 1 to 1000:\n"
    "              orders.tbl.u1, lineitem.tbl.u1 and the keys delete.1, and so on\n"
    "  --help      this text\n"
    "\n"
    "Exit status: 0 done, 1 a file could not be written, 2 wrong command line.\n";

/// `updates`: 0: the tables.
Status Generate(double scale, size_t text_bytes, uint64_t updates, const std::string& directory, unsigned jobs) {
  TESSERA_ASSIGN(TextPool text, TextPool::Make(text_bytes, kSeed, jobs));
  const Generator generator(Sizes(scale), std::move(text));
  if (updates == 0) return WriteTables(Tables(generator), directory, jobs);
  std::vector<TableFile> files;
  for (uint64_t pair = 0; pair < updates; ++pair)
    std::ranges::move(Updates(generator, pair), std::back_inserter(files));
  return WriteTables(files, directory, jobs);
}

int Main(int argc, char** argv) {
  std::optional<double> scale;
  std::string directory;
  uint64_t jobs = DefaultJobs();
  uint64_t text_size = 10, updates = 0;
  CommandLine line(kProgram, kHelp);
  line.Scale(kLargestScale, &scale);
  line.Text("out", &directory);
  line.Jobs(&jobs);
  line.Count("text", 1, 1000, &text_size);
  line.Count("updates", 1, kPairs, &updates);
  if (const std::optional<int> status = line.Parse(argc, argv)) return *status;
  if (!scale) return UsageError(kProgram, "--scale is missing: give the scale factor, 0.01 to 300");
  if (directory.empty()) return UsageError(kProgram, "--out is missing: give the directory for the files");

  CatchInterrupts();
  const Status status = Generate(*scale, text_size << 20, updates, directory, static_cast<unsigned>(jobs));
  return status.ok() ? 0 : Failure(kProgram, status);
}

}  // namespace
}  // namespace tessera::tpch

int main(int argc, char** argv) { return tessera::tpch::Main(argc, argv); }
